using System.Buffers.Binary;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>
/// Files that somebody changes as fast as possible while clients fetch them; for two seconds, or PIPELINES_FILE_STRESS_SECONDS. Every word
/// of a file tells which version it is of and where it stands there.
/// </summary>
[Collection(nameof(AloneCollection))]
[Trait("Category", StressTime.Category)]
public sealed class ChangingFilesTests : InARoot
{
    private const int WordSize = 8;
    private const int StandardSize = 200_000;
    private const int LeastWholes = 10;

    private int _version;

    [Theory]
    [InlineData(512, 10.0), InlineData(2, 0.01), InlineData(0, 0.0)]
    public async Task Get_FileThatIsReplacedRenamedAndDeleted_IsAWholeVersion(int maxOpenFiles, double idleSeconds)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "An open file cannot be replaced there.");
        Random random = new(1);
        int wholes = await RunAsync(
            maxOpenFiles,
            idleSeconds,
            change: () =>
            {
                // The static files middleware announces the length that it has seen before, and of a link its own: so there all versions
                // have one, and there is no link.
                (string name, int size) = random.Next(2) == 0 ? ("same.bin", StandardSize) : ("any.bin", random.Next(1, 40_000) * WordSize);
                switch (random.Next(8))
                {
                    case 0:
                        File.Delete(PathOf(name));
                        break;
                    case 1 when File.Exists(PathOf(name)):
                        File.Move(PathOf(name), PathOf("away.bin"), overwrite: true);
                        File.Move(PathOf("away.bin"), PathOf(name), overwrite: true);
                        break;
                    case 2 when name == "any.bin":
                        File.Delete(PathOf(name));
                        Write("new.bin", size);
                        File.CreateSymbolicLink(PathOf("link.bin"), PathOf(string.Create(CultureInfo.InvariantCulture, $"{_version}.bin")));
                        File.Move(PathOf("new.bin"), PathOf(string.Create(CultureInfo.InvariantCulture, $"{_version}.bin")));
                        File.Move(PathOf("link.bin"), PathOf(name), overwrite: true);
                        File.Delete(PathOf(string.Create(CultureInfo.InvariantCulture, $"{_version - 2}.bin")));
                        break;
                    default:
                        Write("new.bin", size);
                        File.Move(PathOf("new.bin"), PathOf(name), overwrite: true);
                        break;
                }
            },
            targets: ["same.bin", "mapped/same.bin", "send/same.bin", "send/any.bin", "whole/any.bin"],
            check: (target, body) =>
            {
                ulong version = VersionOf(BinaryPrimitives.ReadUInt64LittleEndian(body));
                for (int i = 0; i < body.Length / WordSize; i++)
                {
                    Assert.Equal(Word(version, i, body.Length), BinaryPrimitives.ReadUInt64LittleEndian(body.AsSpan(i * WordSize)));
                }

                Assert.Equal(0, body.Length % WordSize);
            });
        Assert.InRange(wholes, LeastWholes, int.MaxValue);
    }

    [Theory]
    [InlineData(512, 10.0), InlineData(0, 0.0)]
    public async Task Get_FileThatIsRewrittenInPlaceAndTruncated_HasBytesOfItsVersionsOnly(int maxOpenFiles, double idleSeconds)
    {
        Random random = new(2);
        Write("same.bin", StandardSize);
        await RunAsync(
            maxOpenFiles,
            idleSeconds,
            change: () =>
            {
                using FileStream file = new(
                    PathOf("same.bin"), FileMode.OpenOrCreate, FileAccess.Write, FileShare.ReadWrite | FileShare.Delete, bufferSize: 0);
                if (random.Next(3) == 0)
                {
                    file.SetLength(random.Next(0, StandardSize / WordSize) * WordSize);
                }

                file.Write(Content(StandardSize));
            },
            targets: ["same.bin", "mapped/same.bin", "send/same.bin", "whole/same.bin", "typed/same.bin"],
            check: (target, body) =>
            {
                for (int i = 0; i < body.Length / WordSize; i++)
                {
                    // A file that was cut and grown again has zeros there for a moment, and the system may stop copying, for a page that is
                    // not there, within a word.
                    ulong word = BinaryPrimitives.ReadUInt64LittleEndian(body.AsSpan(i * WordSize));
                    ulong expected = Word(VersionOf(word), i, StandardSize);
                    for (int shift = 0; shift < 40; shift += 8)
                    {
                        ulong one = (word >> shift) & 0xFF;
                        Assert.True(one == 0 || one == ((expected >> shift) & 0xFF),
                            $"{target}: word {i} of {body.Length / WordSize} is {word:x16}, and its version would have {expected:x16}");
                    }
                }
            });
    }

    /// <summary>
    /// Fetches the targets, each in turn over connections of its own, until the time is over. How many bodies came whole.
    /// </summary>
    private async Task<int> RunAsync(int maxOpenFiles, double idleSeconds, Action change, string[] targets, Action<string, byte[]> check)
    {
        FilePipelinesOptions options = new() { MaxOpenFiles = maxOpenFiles, OpenFileIdleTime = TimeSpan.FromSeconds(idleSeconds) };
        await using FileServer server = await FileServer.StartAsync(_root, withPipelines: true, options: options, after: app => app.MapGet(
            "/whole/{name}", (string name, HttpContext context) => context.Response.SendFileAsync(PathOf(name))));
        using CancellationTokenSource over = CancellationTokenSource.CreateLinkedTokenSource(_stop);
        over.CancelAfter(TimeSpan.FromSeconds(StressTime.Seconds));
        int changes = 0;
        int wholes = 0, aborted = 0, refused = 0;
        Task changing = Task.Factory.StartNew(
            () =>
            {
                while (GoesOn())
                {
                    change();
                    changes++;
                }
            },
            _stop,
            TaskCreationOptions.LongRunning,
            TaskScheduler.Default);
        await StressTime.BoundedAsync(Task.WhenAll(targets.Select(async target =>
        {
            using HttpClient client = server.CreateClient(HttpVersion.Version11);
            while (GoesOn())
            {
                try
                {
                    using HttpResponseMessage response = await client.GetAsync(target, _stop);
                    byte[] body = await response.Content.ReadAsByteArrayAsync(_stop);
                    if (response.StatusCode != HttpStatusCode.OK)
                    {
                        // It is gone just now, or has another length than the one that the headers tell.
                        Assert.True(response.StatusCode is HttpStatusCode.NotFound or HttpStatusCode.InternalServerError,
                            response.StatusCode.ToString());
                        Interlocked.Increment(ref refused);
                    }
                    else if (body.Length > 0)
                    {
                        check(target, body);
                        Interlocked.Increment(ref wholes);
                    }
                }
                catch (Exception e) when (e is HttpRequestException or IOException)
                {
                    Interlocked.Increment(ref aborted);
                }
            }
        })));
        await StressTime.BoundedAsync(changing);
        Write("same.bin", StandardSize);
        Write("any.bin", StandardSize / 2);
        using HttpClient last = server.CreateClient(HttpVersion.Version11);
        foreach (string target in targets)
        {
            Assert.Equal(await File.ReadAllBytesAsync(PathOf(Path.GetFileName(target)), _stop),
                await last.GetByteArrayAsync(target, _stop));
        }

        TestContext.Current.SendDiagnosticMessage($"{changes} changes, {wholes} whole, {aborted} aborted, {refused} refused");
        return wholes;

        // A busy machine may do little in that time.
        bool GoesOn() => !over.IsCancellationRequested || Volatile.Read(ref wholes) < LeastWholes;
    }

    private static ulong Word(ulong version, int index, int size) => (version << 40) | ((ulong)(uint)(size / WordSize) << 20) | (uint)index;

    private static ulong VersionOf(ulong word) => word >> 40;

    private byte[] Content(int size)
    {
        byte[] content = new byte[size];
        _version++;
        for (int i = 0; i < size / WordSize; i++)
        {
            BinaryPrimitives.WriteUInt64LittleEndian(content.AsSpan(i * WordSize), Word((ulong)_version, i, size));
        }

        return content;
    }

    private void Write(string name, int size) => File.WriteAllBytes(PathOf(name), Content(size));
}
