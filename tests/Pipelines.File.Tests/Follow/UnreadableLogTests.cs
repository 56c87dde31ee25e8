using System.Diagnostics;
using Pipelines.File;
using Pipelines.File.Follow;

namespace FilePipelinesTests;

/// <summary>Logs and folders that may not be read, or not yet: the others go on, and they come when they may be read.</summary>
public sealed class UnreadableLogTests : IDisposable
{
    private const UnixFileMode Everybody = UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.UserExecute
        | UnixFileMode.GroupRead | UnixFileMode.GroupExecute | UnixFileMode.OtherRead | UnixFileMode.OtherExecute;

    private static readonly TimeSpan s_minute = TimeSpan.FromMinutes(1);

    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public void Dispose() => _folder.Dispose();

    [Fact]
    public async Task OnUnreadable_LogStaysSo_IsCalledAtOnceAndNowAndThen()
    {
        ChildProcess.SkipUnlessLinux("mkfifo");
        Assert.True((await ChildProcess.RunAsync($"mkfifo '{_folder.File("fifo.log")}'")).ExitCode == 0);
        ManualClock clock = new();
        List<TimeSpan> calls = [];
        TaskCompletionSource thrice = new(TaskCreationOptions.RunContinuationsAsynchronously);
        QuickOptions options = FollowedLog.Quick with
        {
            FollowInterval = s_minute,
            TimeProvider = clock,
            OnUnreadable = (_, _) =>
            {
                calls.Add(clock.Elapsed);
                if (calls.Count == 3)
                {
                    thrice.SetResult();
                }
            },
        };
        await using FollowedLog lines = new(_folder.File("*.log"), options);
        Task<bool> step = lines.StepAsync();
        await clock.AdvanceUntilAsync(thrice.Task, s_minute);
        Assert.Equal(TimeSpan.Zero, calls[0]);
        Assert.True(calls[1] >= 20 * s_minute, $"{calls[1]}");
        Assert.True(calls[2] >= 40 * s_minute, $"{calls[2]}");
        Assert.False(step.IsCompleted);
    }

    /// <summary>
    /// The follower starts with a checkpoint in a file that was rotated, and the first two listings of its folder fail, as they do for a
    /// moment while no descriptor is free. It may throw that or try again, but the folder is not one without rotated files.
    /// </summary>
    [Fact]
    public async Task Start_FolderCannotBeListedAtFirst_SkipsNoRotatedFile()
    {
        ChildProcess.SkipUnlessLinux("strace");
        string folder = Directory.CreateDirectory(_folder.File("logs")).FullName;
        string path = Path.Combine(folder, "app.log");
        string output = _folder.File("shipped");
        await File.WriteAllTextAsync(path, "a1\na2\na3\n", _stop);
        await foreach (FollowedLine line in new LogFollower(path).ReadLinesAsync(_stop))
        {
            await File.WriteAllTextAsync(output, $"{line.Checkpoint} {line}\n", _stop);
            break;
        }

        File.Move(path, path + ".1");
        await File.WriteAllTextAsync(path, "b1\n", _stop);
        using Process child = ChildProcess.Start($"exec strace -f -o /dev/null -P '{folder}' -e trace=openat "
            + $"-e inject=openat:error=EMFILE:when=1..2 {ChildProcess.Command("ship", path, output)}");
        Task<string> error = child.StandardError.ReadToEndAsync(_stop);
        try
        {
            await Eventually.TrueAsync(() => child.HasExited || File.ReadAllText(output).EndsWith(" b1\n", StringComparison.Ordinal));
            Assert.SkipWhen(child.HasExited && (await error).Contains("PTRACE", StringComparison.Ordinal), "strace may not trace here.");
            string[] shipped = [.. File.ReadLines(output).Select(static line => line.Split(' ')[1])];
            Assert.Equal(child.HasExited ? ["a1"] : ["a1", "a2", "a3", "b1"], shipped);
        }
        finally
        {
            child.Kill(entireProcessTree: true);
            await child.WaitForExitAsync(_stop);
        }
    }

    [Fact]
    public async Task Child_WithoutPermission_ReadsTheOthersAndTheseWhenItMay()
    {
        ChildProcess.SkipUnlessLinux("setpriv");
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux only.");

        // Others may not be able to enter the folder of the tests.
        string child = Directory.CreateDirectory(_folder.File("child")).FullName;
        foreach (string file in Directory.EnumerateFiles(AppContext.BaseDirectory).Where(
            static file => Path.GetExtension(file) is ".dll" or ".json"))
        {
            File.Copy(file, Path.Combine(child, Path.GetFileName(file)));
        }

        string closed = Directory.CreateDirectory(_folder.File("above/closed")).FullName;
        string open = Directory.CreateDirectory(_folder.File("open")).FullName;
        string above = Path.GetDirectoryName(closed)!;
        await File.WriteAllTextAsync(Path.Combine(closed, "a.log"), "1\n", _stop);
        await File.WriteAllTextAsync(Path.Combine(open, "b.log"), "1\n", _stop);
        File.SetUnixFileMode(Path.Combine(open, "b.log"), UnixFileMode.None);
        string asNobody = Environment.UserName == "root" ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : "";
        using Process process = ChildProcess.Start(
            $"chmod 755 '{_folder.Path}' && chmod -R a+rX '{child}' && HOME=/tmp DOTNET_EnableDiagnostics=0 exec {asNobody}dotnet "
            + $"'{child}/Pipelines.File.Child.dll' printlogs '{closed}/*.log' '{open}/*.log'");
        try
        {
            string? first = await process.StandardOutput.ReadLineAsync(_stop);
            Assert.SkipWhen(first is null, "The program cannot be reached as nobody here.");
            Assert.Equal("b.log UnauthorizedAccessException", first);
            await ExpectAsync(process, "a.log 1");
            File.SetUnixFileMode(Path.Combine(open, "b.log"), Everybody);
            await ExpectAsync(process, "b.log 1");

            // Its search looks at the closed folder first, so it has done that when it finds the new log.
            File.SetUnixFileMode(above, UnixFileMode.None);
            await File.WriteAllTextAsync(Path.Combine(open, "c.log"), "1\n", _stop);
            await ExpectAsync(process, "c.log 1");
            await File.AppendAllTextAsync(Path.Combine(open, "c.log"), "2\n", _stop);
            await ExpectAsync(process, "c.log 2");
            File.SetUnixFileMode(above, Everybody);
            await File.AppendAllTextAsync(Path.Combine(closed, "a.log"), "2\n", _stop);
            await ExpectAsync(process, "a.log 2");
            await File.WriteAllTextAsync(Path.Combine(closed, "d.log"), "1\n", _stop);
            await ExpectAsync(process, "d.log 1");
        }
        finally
        {
            File.SetUnixFileMode(above, Everybody);
            process.Kill();
            await process.WaitForExitAsync(_stop);
        }
    }

    [Fact]
    public void Read_BytesThatCannotBeRead_AreNotTakenForOthers()
    {
        string path = _folder.File("log", "1\n"u8.ToArray());
        using Microsoft.Win32.SafeHandles.SafeFileHandle file = File.OpenHandle(path, FileMode.Open, FileAccess.Write);
        Assert.ThrowsAny<Exception>(() => LogContent.Read(file, 0, new byte[2]));
    }

    private async Task ExpectAsync(Process process, string line)
    {
        string? next;
        do
        {
            next = await GrowingFile.Bounded(process.StandardOutput.ReadLineAsync(_stop).AsTask());
        }
        while (next?.EndsWith("Exception", StringComparison.Ordinal) == true);
        Assert.Equal(line, next);
    }
}
