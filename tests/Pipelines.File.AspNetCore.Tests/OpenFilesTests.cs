using System.Runtime.Versioning;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.Extensions.Caching.Distributed;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>
/// Files that stay open for the next request: what is kept, for how long, and that nothing is served which is not there any more.
/// </summary>
[Collection(nameof(AloneCollection))]
[SupportedOSPlatform("linux")]
public sealed class OpenFilesTests : InARoot
{
    public OpenFilesTests()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Only there files are kept open.");
        Add("any.txt", 1);
        using Microsoft.Win32.SafeHandles.SafeFileHandle any = File.OpenHandle(PathOf("any.txt"));
        Assert.SkipUnless(
            Pipelines.File.IO.LocalFileSystems.Hold(Pipelines.File.IO.FileProperties.Of(any, null)),
            "The temporary folder lies on a file system that is not known to be local.");
    }

    [Theory]
    [InlineData("f.txt"), InlineData("typed/f.txt"), InlineData("send/f.txt"), InlineData("send/link.txt")]
    public async Task Get_Again_IsSentFromTheFileThatIsOpen(string target)
    {
        byte[] content = Add("f.txt", 100_000);
        File.CreateSymbolicLink(PathOf("link.txt"), PathOf("f.txt"));
        using Counters counters = new();
        await NothingIsKeptAsync(counters);
        await using FileServer server = await StartAsync();
        using HttpClient client = server.CreateClient(HttpVersion.Version11);
        for (int i = 0; i < 3; i++)
        {
            Assert.Equal(content, await client.GetByteArrayAsync(target, _stop));
        }

        Assert.Equal((3, 1, 1), (counters["responses.sent"], counters["responses.opened"], counters["responses.kept"]));
        Assert.Equal(1, OpenHandles.Of(PathOf("f.txt")));
    }

    public static TheoryData<string> Changes => ["replaced", "rewritten", "grown", "truncated", "linked elsewhere", "folder renamed",
        "permissions", "times", "deleted", "a folder now"];

    [Theory]
    [MemberData(nameof(Changes))]
    public async Task Get_AfterAChange_IsWhatIsThereNow(string change)
    {
        Directory.CreateDirectory(PathOf("folder"));
        string path = PathOf("folder/f.txt");
        byte[] content = Add("folder/f.txt", 10_000);
        byte[] other = FileTree.Content(10_001)[1..];

        // The static files middleware announces the length of a link itself.
        File.CreateSymbolicLink(PathOf("link.txt"), path);
        using Counters counters = new();
        await using FileServer server = await StartAsync();
        using HttpClient client = server.CreateClient(HttpVersion.Version11);
        Assert.Equal(content, await client.GetByteArrayAsync("send/link.txt", _stop));
        byte[]? expected = other;
        switch (change)
        {
            case "replaced":
                Add("new.txt", other);
                File.SetLastWriteTimeUtc(PathOf("new.txt"), File.GetLastWriteTimeUtc(path));
                File.Move(PathOf("new.txt"), path, overwrite: true);
                break;
            case "rewritten":
                DateTime written = File.GetLastWriteTimeUtc(path);
                await File.WriteAllBytesAsync(path, other, _stop);
                File.SetLastWriteTimeUtc(path, written);
                break;
            case "grown":
                await File.AppendAllTextAsync(path, "more", _stop);
                expected = [.. content, .. "more"u8];
                break;
            case "truncated":
                using (FileStream file = new(path, FileMode.Open))
                {
                    file.SetLength(9_000);
                }

                expected = content[..9_000];
                break;
            case "linked elsewhere":
                Add("other.txt", other);
                File.Delete(PathOf("link.txt"));
                File.CreateSymbolicLink(PathOf("link.txt"), PathOf("other.txt"));
                break;
            case "folder renamed":
                Directory.Move(PathOf("folder"), PathOf("old"));
                Directory.CreateDirectory(PathOf("folder"));
                Add("folder/f.txt", other);
                break;
            case "permissions":
                File.SetUnixFileMode(path, UnixFileMode.UserRead);
                expected = content;
                break;
            case "times":
                File.SetLastWriteTimeUtc(path, new DateTime(2026, 1, 2, 3, 4, 5, DateTimeKind.Utc));
                expected = content;
                break;
            case "deleted":
                File.Delete(path);
                expected = null;
                break;
            case "a folder now":
                File.Delete(path);
                Directory.CreateDirectory(path);
                expected = null;
                break;
        }

        using HttpResponseMessage response = await client.GetAsync("send/link.txt", _stop);
        Assert.Equal(expected is null ? HttpStatusCode.InternalServerError : HttpStatusCode.OK, response.StatusCode);
        if (expected is not null)
        {
            Assert.Equal(expected, await response.Content.ReadAsByteArrayAsync(_stop));
            Assert.Equal(2, counters["responses.opened"]);
        }
        else
        {
            await Eventually.TrueAsync(() => OpenHandles.Below(_root) == 0);
        }
    }

    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task Open_KeptFileWasReplaced_IsClosedByAnotherThreadIfItHasNoName(bool hasName)
    {
        Add("f.txt", 10_000);
        Add("new.txt", 1000);
        using OpenFiles files = new(maxFiles: 10, TimeSpan.FromMinutes(1));
        files.Open(PathOf("f.txt"))!.Release();
        if (hasName)
        {
            File.Move(PathOf("f.txt"), PathOf("old.txt"));
        }

        File.Move(PathOf("new.txt"), PathOf("f.txt"), overwrite: true);
        using Counters counters = new();
        OpenFile open = files.Open(PathOf("f.txt"))!;
        Assert.Equal(1000, open.Shared.Length);
        open.Release();
        await OpenHandles.NoneAsync(PathOf(hasName ? "old.txt" : "f.txt (deleted)"));
        await Eventually.TrueAsync(() => counters["waiting.calls"] == (hasName ? 0 : 1));
    }

    [Theory]
    [InlineData("upload"), InlineData("sent"), InlineData("cached")]
    public async Task Open_NoDescriptorIsLeft_EverythingKeptIsLetGo(string what)
    {
        using OpenFiles files = new(maxFiles: 10, TimeSpan.FromMinutes(1));
        for (int i = 0; i < 8; i++)
        {
            Add($"{i}.txt", 1000);
            files.Open(PathOf($"{i}.txt"))!.Release();
        }

        Add("last.txt", 1000);
        Assert.Equal(8, files.Count);
        await using ServiceProvider services = new ServiceCollection()
            .AddFileDistributedCache(options => options.Folder = PathOf("cache")).BuildServiceProvider();
        IDistributedCache cache = services.GetRequiredService<IDistributedCache>();
        await cache.SetAsync("key", [1], new DistributedCacheEntryOptions(), _stop);
        using FewDescriptors few = new(spare: 20);
        few.TakeAll();
        switch (what)
        {
            case "upload":
                await new DefaultHttpContext().Request.SaveBodyAsync(PathOf("new.txt"), new SaveBodyOptions { Durable = true }, _stop);
                break;
            case "sent":
                files.Open(PathOf("last.txt"))!.Release();
                break;
            case "cached":
                Assert.Equal([1], (await cache.GetAsync("key", _stop))!);
                break;
        }

        Assert.Equal(0, OpenHandles.Of(PathOf("0.txt")));
    }

    [Fact]
    public void Open_FewDescriptors_KeepsAQuarterOfThem()
    {
        using FewDescriptors few = new(spare: 400);
        using OpenFiles files = new(maxFiles: 512, TimeSpan.FromMinutes(1));
        for (int i = 0; i < 380; i++)
        {
            Add($"{i}.txt", 1000);
            files.Open(PathOf($"{i}.txt"))!.Release();
        }

        // Others of this process may open and close files meanwhile.
        Assert.InRange(files.Count, 1, 200);
    }

    [Theory]
    [InlineData(0xef53, true)]
    [InlineData(0x58465342, true)]
    [InlineData(0x01021994, true)]
    [InlineData(unchecked((int)0x9123683e), true)]
    [InlineData(0x6969, false)]
    [InlineData(0x517b, false)]
    [InlineData(unchecked((int)0xff534d42), false)]
    [InlineData(unchecked((int)0xfe534d42), false)]
    [InlineData(0x65735546, false)]
    [InlineData(0x01021997, false)]
    [InlineData(0x794c7630, false)]
    [InlineData(0x12345678, false)]
    public void Open_FileSystem_IsKeptWhereItIsKnownToBeLocal(int type, bool isLocal)
        => Assert.Equal(isLocal, Pipelines.File.IO.LocalFileSystems.IsLocal(type));

    [Theory]
    [InlineData("folder/f.txt"), InlineData("folder")]
    public void Open_PermissionIsTakenAway_IsRefused(string name)
    {
        Assert.SkipWhen(Environment.IsPrivilegedProcess, "The superuser needs no permission.");
        Directory.CreateDirectory(PathOf("folder"));
        Add("folder/f.txt", 1000);
        using OpenFiles files = new(maxFiles: 10, TimeSpan.FromSeconds(10));
        files.Open(PathOf("folder/f.txt"))!.Release();
        UnixFileMode before = File.GetUnixFileMode(PathOf(name));
        File.SetUnixFileMode(PathOf(name), UnixFileMode.None);
        try
        {
            Assert.Null(files.Open(PathOf("folder/f.txt")));
            Assert.Equal((0, 0), (files.Count, OpenHandles.Below(_root)));
        }
        finally
        {
            File.SetUnixFileMode(PathOf(name), before);
        }
    }

    [Fact]
    public async Task Get_KeptFileAndOneThatIsSent_AreLockedForNobody()
    {
        byte[] content = Add("f.txt", 16 * 1024 * 1024);
        await using FileServer server = await StartAsync();
        using HttpClient client = server.CreateClient(HttpVersion.Version11);
        await client.GetByteArrayAsync("f.txt", _stop);
        using Socket socket = await server.ConnectAsync(receiveBuffer: 4096);
        await using NetworkStream stream = new(socket);
        await stream.WriteAsync("GET /f.txt HTTP/1.1\r\nHost: a\r\n\r\n"u8.ToArray(), _stop);
        await stream.ReadExactlyAsync(new byte[1], _stop);
        using (FileStream own = new(PathOf("f.txt"), FileMode.Open, FileAccess.ReadWrite, FileShare.None))
        {
            // It is as it was, so it is served; what changes it makes it another one to open, and that is refused.
            Assert.Equal(content, await client.GetByteArrayAsync("f.txt", _stop));
            own.WriteByte(1);
            own.Flush();
            Assert.Equal(HttpStatusCode.InternalServerError, (await client.GetAsync("f.txt", _stop)).StatusCode);
        }

        Assert.Equal(1, (await client.GetByteArrayAsync("f.txt", _stop))[0]);
    }

    [Fact]
    public async Task Get_ManyFiles_AreKeptUpToTheMaximum()
    {
        using Counters counters = new();
        await NothingIsKeptAsync(counters);
        await using FileServer server = await StartAsync(new FilePipelinesOptions { MaxOpenFiles = 3 });
        using HttpClient client = server.CreateClient(HttpVersion.Version11);
        byte[][] contents = [.. Enumerable.Range(0, 10).Select(i => Add($"{i}.txt", 1000 + i))];
        for (int round = 0; round < 3; round++)
        {
            for (int i = 0; i < contents.Length; i++)
            {
                Assert.Equal(contents[i], await client.GetByteArrayAsync($"{i}.txt", _stop));

                // What is not kept is closed after the client has it.
                await Eventually.TrueAsync(() => OpenHandles.Below(_root) is >= 1 and <= 3);
            }
        }

        Assert.Equal(3, counters["responses.kept"]);

        // What is asked for again and again finds a place.
        for (int i = 0; i < 10; i++)
        {
            await client.GetByteArrayAsync("0.txt", _stop);
        }

        long opened = counters["responses.opened"];
        await client.GetByteArrayAsync("0.txt", _stop);
        Assert.Equal(opened, counters["responses.opened"]);
    }

    [Fact]
    public async Task Get_FileThatIsBeingSentLosesItsPlace_IsSentToTheEnd()
    {
        byte[] content = Add("large.txt", 16 * 1024 * 1024);
        byte[] small = Add("small.txt", 1000);
        await using FileServer server = await StartAsync(new FilePipelinesOptions { MaxOpenFiles = 1 });
        using HttpClient client = server.CreateClient(HttpVersion.Version11);
        using Socket socket = await server.ConnectAsync(receiveBuffer: 4096);
        await using NetworkStream stream = new(socket);
        await stream.WriteAsync("GET /large.txt HTTP/1.1\r\nHost: a\r\n\r\n"u8.ToArray(), _stop);
        byte[] first = new byte[1];
        await stream.ReadExactlyAsync(first, _stop);
        Assert.Equal(1, OpenHandles.Of(PathOf("large.txt")));
        File.Move(PathOf("large.txt"), PathOf("old.txt"));
        File.Move(PathOf("small.txt"), PathOf("large.txt"));
        Assert.Equal(small, await client.GetByteArrayAsync("large.txt", _stop));
        Assert.Equal(1, OpenHandles.Of(PathOf("old.txt")));
        using MemoryStream received = new();
        received.Write(first);
        byte[] buffer = new byte[64 * 1024];
        while (received.Length < content.Length
            || received.GetBuffer().AsSpan().IndexOf("\r\n\r\n"u8) + 4 + content.Length > received.Length)
        {
            int read = await stream.ReadAsync(buffer, _stop);
            Assert.NotEqual(0, read);
            received.Write(buffer, 0, read);
        }

        Assert.True(received.ToArray().AsSpan()[^content.Length..].SequenceEqual(content));
        await OpenHandles.NoneAsync(PathOf("old.txt"));
    }

    [Fact]
    public async Task Get_NobodyAsksAnyMore_IsClosedAndTheTimerEnds()
    {
        OpenFiles files = new(maxFiles: 10, idleTime: TimeSpan.FromSeconds(1));
        Add("a.txt", 1000);
        Add("b.txt", 1000);
        for (int round = 0; round < 2; round++)
        {
            Assert.False(files.IsTimerSet);

            // On a busy machine the first may be closed before this looks.
            await Eventually.TrueAsync(() =>
            {
                files.Open(PathOf("a.txt"))!.Release();
                files.Open(PathOf("b.txt"))!.Release();
                return files is { Count: 2, IsTimerSet: true };
            });
            await Eventually.TrueAsync(() => OpenHandles.Below(_root) == 0 && files is { Count: 0, IsTimerSet: false });
        }
    }

    [Fact]
    public async Task Open_FileThatIsInUse_StaysAndIsClosedByItsLastUser()
    {
        OpenFiles files = new(maxFiles: 10, idleTime: TimeSpan.FromMilliseconds(50));
        Add("f.txt", 1000);
        Add("other.txt", 1000);
        OpenFile first = files.Open(PathOf("f.txt"))!;
        files.Open(PathOf("other.txt"))!.Release();
        await Eventually.TrueAsync(() => files.Count == 1);
        OpenFile second = files.Open(PathOf("f.txt"))!;
        Assert.Same(first, second);
        files.Dispose();
        first.Release();
        Assert.Equal(1, OpenHandles.Below(_root));
        second.Release();
        Assert.Equal(0, OpenHandles.Below(_root));
        Assert.False(first.TryAddReference());
    }

    [Theory]
    [InlineData(0, 10), InlineData(10, 0)]
    public void Open_SwitchedOff_KeepsNothing(int maxFiles, int idleSeconds)
    {
        using OpenFiles files = new(maxFiles, TimeSpan.FromSeconds(idleSeconds));
        Add("f.txt", 1000);
        OpenFile file = files.Open(PathOf("f.txt"))!;
        Assert.Equal(1000, file.Shared.Length);

        // Nothing that is sent is locked.
        new FileStream(PathOf("f.txt"), FileMode.Open, FileAccess.ReadWrite, FileShare.None).Dispose();
        file.Release();
        Assert.Equal((0, 0, false), (files.Count, OpenHandles.Below(_root), files.IsTimerSet));
    }

    [Fact]
    public void Open_WhatNobodyCanCompare_IsNotKept()
    {
        using OpenFiles files = new(maxFiles: 10, TimeSpan.FromSeconds(10));
        Add("f.txt", 1000);
        foreach (string path in new[] { "/proc/self/status", "/sys/kernel/mm/transparent_hugepage/enabled", "/dev/zero",
            PathOf("f.txt") + "\0", Path.GetRelativePath(Environment.CurrentDirectory, PathOf("f.txt")) })
        {
            files.Open(path)?.Release();
            Assert.Equal(0, files.Count);
        }

        Assert.Null(files.Open(PathOf("none")));
        Assert.Null(files.Open(""));
        Assert.Null(files.Open(null));
        Assert.Null(files.Open(_root));
    }

    [Theory]
    [InlineData("/sys/kernel/mm/transparent_hugepage/enabled")]
    [InlineData("/sys/devices/system/cpu/kernel_max")]
    [InlineData("/proc/version")]
    public async Task SendFileAsync_FileThatTheKernelMakesUp_IsSentAsByTheServer(string path)
    {
        Assert.SkipUnless(File.Exists(path), "There is no such file here.");
        await using FileServer server = await FileServer.StartAsync(_root, withPipelines: true, after: app => app.MapGet(
            "/madeup", context =>
                context.Features.GetRequiredFeature<IHttpResponseBodyFeature>().SendFileAsync(path, 0, null, context.RequestAborted)));
        using HttpClient client = server.CreateClient(HttpVersion.Version11);
        Assert.Equal(await File.ReadAllTextAsync(path, _stop), await client.GetStringAsync("madeup", _stop));
    }

    [Fact]
    public async Task Open_ManyFirstOnesAtOnce_HaveOneHandle()
    {
        Add("f.txt", 1000);
        for (int round = 0; round < 100; round++)
        {
            using OpenFiles files = new(maxFiles: 10, TimeSpan.FromSeconds(10));
            using Barrier start = new(4);
            OpenFile[] opened = await Task.WhenAll(Enumerable.Range(0, 4).Select(_ => Task.Factory.StartNew(
                () =>
                {
                    start.SignalAndWait(Eventually.Limit, _stop);
                    for (int i = 0; i < 100; i++)
                    {
                        OpenFile file = files.Open(PathOf("f.txt"))!;
                        Assert.False(file.Shared.Handle.IsClosed);
                        file.Release();
                    }

                    return files.Open(PathOf("f.txt"))!;
                },
                _stop,
                TaskCreationOptions.LongRunning,
                TaskScheduler.Default)));
            Assert.All(opened, file => Assert.Same(opened[0], file));
            Assert.Equal((1, 1), (files.Count, OpenHandles.Below(_root)));
            Array.ForEach(opened, file => file.Release());
            files.Dispose();
            Assert.Equal(0, OpenHandles.Below(_root));
        }
    }

    [Fact]
    public async Task Stop_Application_ClosesWhatIsKeptAndKeepsNoMore()
    {
        Add("f.txt", 1000);
        WebApplication? application = null;
        FileServer server = await FileServer.StartAsync(_root, withPipelines: true, after: app => application = app);
        await using (server)
        {
            using HttpClient client = server.CreateClient(HttpVersion.Version11);
            await client.GetByteArrayAsync("f.txt", _stop);
            Assert.Equal(1, OpenHandles.Below(_root));
            application!.Lifetime.StopApplication();
            await Eventually.TrueAsync(() => OpenHandles.Below(_root) == 0);
        }
    }

    [Fact]
    public async Task Get_WarmFile_AllocatesNothing()
    {
        string path = PathOf("f.txt");
        Add("f.txt", 1000);
        long least = long.MaxValue;
        int measured = 0;
        await using FileServer server = await FileServer.StartAsync(
            _root,
            withPipelines: true,
            before: app => app.Use((context, next) =>
            {
                // What is not over on this thread when it returns is not measured.
                long before = GC.GetAllocatedBytesForCurrentThread();
                Task sending = next(context);
                long allocated = GC.GetAllocatedBytesForCurrentThread() - before;
                if (sending.IsCompletedSuccessfully)
                {
                    least = Math.Min(least, allocated);
                    measured++;
                }

                return sending;
            }),
            after: app => app.Run(context =>
            {
                context.Response.ContentLength = 1000;
                return context.Features.GetRequiredFeature<IHttpResponseBodyFeature>().SendFileAsync(path, 0, 1000, CancellationToken.None);
            }));
        using Socket socket = await server.ConnectAsync();
        await using NetworkStream stream = new(socket);
        byte[] request = Encoding.ASCII.GetBytes("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        byte[] response = new byte[4096];

        // Until the code has become optimized, which a busy machine does late: from then on there is a request that allocates nothing.
        long begun = Environment.TickCount64;
        while (least > 0 && Environment.TickCount64 - begun < Eventually.Limit.TotalMilliseconds)
        {
            await stream.WriteAsync(request, _stop);
            for (int received = 0; received < 1000;)
            {
                int read = await stream.ReadAsync(response.AsMemory(received), _stop);
                Assert.NotEqual(0, read);
                received += read;
            }
        }

        // With the server's own part: the middleware, the headers, the flush.
        Assert.InRange(measured, 1, int.MaxValue);
        Assert.Equal(0, least);
    }

    /// <summary>
    /// Waits until the level of this process is nobody else's: a server that was disposed without being stopped keeps its files for their
    /// idle time.
    /// </summary>
    private static Task NothingIsKeptAsync(Counters counters) => Eventually.TrueAsync(() => counters["responses.kept"] == 0);

    private Task<FileServer> StartAsync(FilePipelinesOptions? options = null)
        => FileServer.StartAsync(_root, withPipelines: true, options: options);

    private byte[] Add(string name, int size) => Add(name, FileTree.Content(size));

    private byte[] Add(string name, byte[] content)
    {
        File.WriteAllBytes(PathOf(name), content);
        return content;
    }
}
