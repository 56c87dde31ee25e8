using System.Diagnostics;
using System.Globalization;
using System.Runtime.InteropServices;

namespace FilePipelines.Devices.Tests;

/// <summary>
/// The n-th system call of an operation fails, n = 1, 2, … until the operation succeeds, with every errno of its man page. Afterwards the
/// file is old or new, nothing is left, and the error is one that the documentation promises.
/// </summary>
[Trait("Category", StressTime.Category)]
public sealed class SystemCallSweepTests : IDisposable
{
    private const int ContentLength = 150_000;
    private const int OldLength = 100;

    private static readonly byte[] s_content = Pattern.Bytes(ContentLength);
    private static readonly byte[] s_old = Pattern.Bytes(OldLength, 5);

    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public void Dispose() => _folder.Dispose();

    /// <summary>
    /// What a sandbox or a file system refuses always, .NET's own calls survive or not: the library does at least as well. What is not
    /// among these is needed (open, read, write, sync, rename), and its error is one that the documentation promises.
    /// </summary>
    private static readonly string[] s_dispensable =
    [
        "fchmod", "fchown", "faccessat", "faccessat2", "statx", "linkat", "renameat2", "fstatfs", "statfs", "fallocate", "flock",
        "fsetxattr", "getxattr", "fgetxattr", "fremovexattr", "fadvise64", "inotify_add_watch", "sync_file_range", "cachestat", "preadv2",
        "pwritev2", "readlinkat", "dup", "dup3", "utimensat", "chmod", "fchmodat",
    ];

    // What a profile of a container and an old kernel say, and in the long run also what a file system does.
    private static readonly string[] s_refusals
        = Rounds.AreMany ? ["EPERM", "ENOSYS", "EACCES", "EINVAL", "EOPNOTSUPP"] : ["EPERM", "ENOSYS"];

    [Theory]
    [InlineData("open")]
    [InlineData("replace")]
    [InlineData("replacenew")]
    [InlineData("replaceportable")]
    [InlineData("durable")]
    [InlineData("append")]
    [InlineData("follow")]
    [InlineData("upload")]
    [InlineData("copy")]
    [InlineData("journal")]
    [InlineData("journalread")]
    [InlineData("outputcache")]
    [InlineData("distributedcache")]
    public Task Operation_ASystemCallIsAlwaysRefused_SucceedsUnlessItIsNeeded(string operation)
        => RunAsync(operation, (folder, child, supervisor) => RefuseAsync(operation, folder, child, supervisor));

    [Theory]
    [InlineData("open")]
    [InlineData("replace")]
    [InlineData("replacenew")]
    [InlineData("replaceportable")]
    [InlineData("durable")]
    [InlineData("append")]
    [InlineData("follow")]
    [InlineData("upload")]
    [InlineData("copy")]
    [InlineData("journal")]
    public Task Operation_AnySystemCallFails_LeavesOldOrNewAndNothingElse(string operation)
        => RunAsync(operation, (folder, child, supervisor) => SweepAsync(operation, folder, child, supervisor));

    private async Task RunAsync(string operation, Func<string, Process, SystemCallSupervisor, Task> run)
    {
        Assert.SkipUnless(
            OperatingSystem.IsLinux() && RuntimeInformation.ProcessArchitecture == Architecture.X64,
            "It knows the system calls of Linux on x86-64.");
        Assert.SkipUnless(Libc.EffectiveUser() == 0, "Only root takes a descriptor of another process.");
        string folder = Directory.CreateDirectory(_folder.File("swept")).FullName;
        string program = Path.Combine(AppContext.BaseDirectory, "Pipelines.File.Devices.Child.dll");
        ProcessStartInfo start = new("dotnet", [program, "sweep", folder])
        {
            RedirectStandardInput = true,
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        };

        // Nothing is compiled anew meanwhile, which would take longer than what is swept.
        start.Environment["DOTNET_TieredPGO"] = "0";
        using Process child = Process.Start(start)!;
        SystemCallSupervisor? supervisor = null;
        try
        {
            Task<string> errors = child.StandardError.ReadToEndAsync(_stop);
            await child.StandardInput.WriteLineAsync(string.Join(' ', SystemCall.All.Select(static call => call.Number)));
            await child.StandardInput.FlushAsync(_stop);
            string? first = await child.StandardOutput.ReadLineAsync(_stop);
            Assert.SkipWhen(
                first is null && (await errors).Contains("Win32Exception", StringComparison.Ordinal), "seccomp(2) has no listeners here.");
            Assert.True(first?.StartsWith("listener ", StringComparison.Ordinal), first ?? await errors);
            supervisor = new SystemCallSupervisor(child, int.Parse(first.AsSpan("listener ".Length), CultureInfo.InvariantCulture), folder);
            await run(folder, child, supervisor);
        }
        finally
        {
            child.Kill();
            await child.WaitForExitAsync(CancellationToken.None);
            supervisor?.Dispose();
        }
    }

    private async Task RefuseAsync(string operation, string folder, Process child, SystemCallSupervisor supervisor)
    {
        Assert.Equal("ok", await PerformAsync(operation, folder, child, supervisor, -1, 0, 0));
        Dictionary<int, int> made = supervisor.Counts;
        List<string> wrongs = [];
        foreach (SystemCall call in SystemCall.All.Where(call => made.ContainsKey(call.Number)))
        {
            foreach (string errno in s_refusals)
            {
                string told = await PerformAsync(
                    operation, folder, child, supervisor, call.Number, SystemCallSupervisor.Always, SystemCall.NumberOf(errno));
                bool isRight = told == "ok" || (IsNeeded(call, operation) && (IsDocumented(told, folder) || IsOfRuntime(call, told)));
                if (!isRight || !IsLeftAsPromised(operation, folder, told))
                {
                    wrongs.Add($"{call.Name}, {errno}: {told}; there is {Describe(folder)}");
                }

                if (operation.StartsWith("journal", StringComparison.Ordinal))
                {
                    supervisor.Arm(-1, 0, 0);
                    string read = await AskAsync(child, "journalcheck");
                    if (read != "ok")
                    {
                        wrongs.Add($"{call.Name}, {errno}: {told}; then {read}");
                    }
                }
            }
        }

        Assert.True(wrongs.Count == 0, $"{operation}:\n{string.Join('\n', wrongs)}");
    }

    private async Task SweepAsync(string operation, string folder, Process child, SystemCallSupervisor supervisor)
    {
        Assert.Equal("ok", await PerformAsync(operation, folder, child, supervisor, -1, 0, 0));
        string memory = await AskAsync(child, "memory");
        long threads = Directory.GetDirectories($"/proc/{child.Id}/task").Length;
        Dictionary<int, int> made = supervisor.Counts;
        List<string> wrongs = [];
        int cases = 0;
        foreach (SystemCall call in SystemCall.All.Where(call => made.ContainsKey(call.Number)))
        {
            // A journal makes many calls: an error of the device, one of the process, and the one after which a call is made again.
            foreach ((string name, int error) in call.Errnos.Where(
                errno => operation != "journal" || errno.Name is "EIO" or "EINTR" or "EMFILE"))
            {
                for (int n = 1; ; n++)
                {
                    string told = await PerformAsync(operation, folder, child, supervisor, call.Number, n, error);
                    if (!supervisor.WasMade)
                    {
                        // It was not made as often: the whole operation was performed.
                        Check(told == "ok", $"{call.Name}, {name}, after {n - 1}: {told}");
                        break;
                    }

                    cases++;
                    string what = $"{call.Name} {n}, {name}: {told}";
                    Check(IsDocumented(told, folder), what);
                    Check(IsLeftAsPromised(operation, folder, told), $"{what}; there is {Describe(folder)}");
                    if (operation == "journal")
                    {
                        supervisor.Arm(-1, 0, 0);
                        string read = await AskAsync(child, "journalcheck");
                        Check(read == "ok", $"{what}; then {read}");
                    }

                    Check(await IsNothingOpenAsync(child, folder), $"{what}; a descriptor is left");
                }
            }
        }

        void Check(bool isRight, string what)
        {
            if (!isRight)
            {
                wrongs.Add(what);
            }
        }

        // Nothing adds up over the cases. What a follower or a journal's recovery holds when it fails is left to the garbage collector, as
        // the reader says of buffers that were not given back.
        await Eventually.TrueAsync(
            async () => operation is "follow" or "journal" || await AskAsync(child, "memory") == memory,
            $"{operation}: memory of the pool is left");
        Assert.InRange(Directory.GetDirectories($"/proc/{child.Id}/task").Length, 1, threads + 32);
        Assert.True(wrongs.Count == 0, $"{wrongs.Count} of {cases} cases of {operation}:\n{string.Join('\n', wrongs.Take(60))}");
        TestContext.Current.SendDiagnosticMessage(
            $"{operation}: {made.Values.Sum()} calls of {made.Count} kinds, {cases} failures");
    }

    private async Task<string> PerformAsync(
        string operation, string folder, Process child, SystemCallSupervisor supervisor, int call, int number, int error)
    {
        Array.ForEach(Directory.GetFiles(folder, "*", new EnumerationOptions { AttributesToSkip = 0 }), File.Delete);
        Array.ForEach(Directory.GetDirectories(folder), static below => Directory.Delete(below, recursive: true));
        await File.WriteAllBytesAsync(Path.Combine(folder, "source"), operation is "open" or "copy" ? s_content : s_old, _stop);

        // An upload waits for the next second where it replaces a file of this one.
        File.SetLastWriteTimeUtc(Path.Combine(folder, "source"), DateTime.UnixEpoch.AddDays(1));
        await File.WriteAllTextAsync(Path.Combine(folder, "log"), "one\ntwo\nthree\n", _stop);
        supervisor.Arm(call, number, error);
        try
        {
            return await AskAsync(child, operation);
        }
        catch (TimeoutException e)
        {
            throw new TimeoutException($"{operation} does not end: call {call}, {number}, errno {error}", e);
        }
    }

    private async Task<string> AskAsync(Process child, string command)
    {
        await child.StandardInput.WriteLineAsync(command);
        await child.StandardInput.FlushAsync(_stop);
        return await child.StandardOutput.ReadLineAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop) ?? "The child has ended.";
    }

    // A journal has one writer on every system, or does not open.
    private static bool IsNeeded(SystemCall call, string operation)
        => !s_dispensable.Contains(call.Name) || (call.Name == "flock" && operation.StartsWith("journal", StringComparison.Ordinal));

    // The caches ask for times by a handle, and .NET knows no path of one.
    private static bool IsOfRuntime(SystemCall call, string told)
        => call.Name == "fstat" && told.Split(' ')[0] is "System.IO.IOException" or "System.UnauthorizedAccessException";

    // What the documentation names, and the path.
    private static bool IsDocumented(string told, string folder)
        => told == "ok"
            || (told.Split(' ')[0] is "System.IO.IOException" or "System.UnauthorizedAccessException" or "System.IO.FileNotFoundException"
                    or "System.IO.DirectoryNotFoundException" or "System.IO.PathTooLongException" or "Pipelines.File.FileExistsException"
                && told.Contains(folder, StringComparison.Ordinal));

    private static bool IsLeftAsPromised(string operation, string folder, string told)
    {
        byte[]? source = ContentOf(Path.Combine(folder, "source"));
        byte[]? made = ContentOf(Path.Combine(folder, "new"));
        bool isOk = told == "ok";
        return operation switch
        {
            "open" or "follow" or "journal" or "journalread" or "outputcache" or "distributedcache" => true,

            // Old or new. After an error it may be new already: its folder's sync, or the closing, has failed.
            "replace" or "replaceportable" => Is(source, s_content, s_content) || (!isOk && Is(source, s_old)),
            "upload" => Is(source, s_content) || (!isOk && Is(source, s_old)),
            "replacenew" => Is(made, s_content, s_content) || (!isOk && made is null),
            "copy" => Is(made, s_content) || (!isOk && made is null),
            "append" => isOk ? Is(source, s_old, s_content, s_content[..1000])
                : IsPrefix(source, [.. s_old, .. s_content, .. s_content[..1000]]),
            _ => isOk ? Is(made, s_content, s_content[..1000]) : made is null || IsPrefix(made, [.. s_content, .. s_content[..1000]]),
        };
    }

    private static byte[]? ContentOf(string path) => File.Exists(path) ? File.ReadAllBytes(path) : null;

    private static bool Is(byte[]? content, params byte[][] parts)
        => content is not null && content.AsSpan().SequenceEqual(parts.SelectMany(static part => part).ToArray());

    // An unbroken prefix; behind it what was preallocated and could not be cut off.
    private static bool IsPrefix(byte[]? content, byte[] whole)
        => content is not null
            && !content.AsSpan()[Math.Min(content.Length, content.AsSpan().CommonPrefixLength(whole))..].ContainsAnyExcept((byte)0);

    private static string Describe(string folder)
        => string.Join(", ", Directory.GetFiles(folder, "*", new EnumerationOptions { AttributesToSkip = 0 })
            .Select(static path => $"{Path.GetFileName(path)} {new FileInfo(path).Length}"));

    /// <summary>Whether the child has no file of the folder open, soon.</summary>
    private static async Task<bool> IsNothingOpenAsync(Process child, string folder)
    {
        for (int attempt = 0; attempt < 6000; attempt++)
        {
            bool isOpen = Directory.EnumerateFileSystemEntries($"/proc/{child.Id}/fd").Any(entry =>
            {
                try
                {
                    return new FileInfo(entry).LinkTarget?.StartsWith(folder, StringComparison.Ordinal) == true;
                }
                catch (IOException)
                {
                    return false;
                }
            });
            if (!isOpen)
            {
                return true;
            }

            await Task.Delay(10);
        }

        return false;
    }
}
