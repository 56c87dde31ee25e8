namespace FilePipelines.AspNetCore.Tests.Abuse;

/// <summary>Clients that make more uploads than there is room for, and connections that die without a word.</summary>
public sealed class UploadFloodTests : Resumable.UploadsInAFolder
{
    private readonly ManualTime _time = new();

    [Theory]
    [InlineData("0"), InlineData(null)]
    public async Task Creations_OfNoLengthOrOfNone_EndWhereTheRoomDoes(string? length)
    {
        await StartAsync(new ResumableUploadOptions { Folder = Folder, MaxTotalLength = 64 * 1024, OnCompletedAsync = Never });
        int taken = 0;
        for (int i = 0; i < 60; i++)
        {
            (string, string) header = length is null ? ("Upload-Defer-Length", "1") : ("Upload-Length", "10");
            taken += (await Server.SendAsync("POST", Server.Uploads, null, header)).Status == 201 ? 1 : 0;
        }

        // As many as fit with a block each, and 16.
        Assert.Equal(32, taken);
    }

    [Fact]
    public async Task Uploads_OfOneOwner_LeaveRoomForTheOthers()
    {
        await StartAsync(new ResumableUploadOptions
        {
            Folder = Folder,
            MaxUploads = 3,
            MaxUploadsPerOwner = 2,
            MaxTotalLengthPerOwner = 100,
            Owner = context => context.Request.Headers["X-User"],
        });
        (string, string) one = ("X-User", "one"), two = ("X-User", "two");
        Uri first = await Server.CreateAsync(60, one);
        Assert.Equal(507, (await Server.PostAsync(41, one)).Status);
        await Server.CreateAsync(40, one);
        Assert.Equal(507, (await Server.PostAsync(0, one)).Status);
        await Server.CreateAsync(100, two);
        Assert.Equal(507, (await Server.PostAsync(0, two)).Status);
        Assert.Equal(204, (await Server.SendAsync("DELETE", first, null, one)).Status);
        await Server.CreateAsync(60, one);
    }

    [Fact]
    public async Task DeferredLength_TakesWhatComes_AlsoOfAnOwner()
    {
        await StartAsync(new ResumableUploadOptions
        {
            Folder = Folder,
            MaxTotalLengthPerOwner = 100,
            Owner = context => context.Request.Headers["X-User"],
        });
        (string, string) one = ("X-User", "one");
        Uri upload = await Server.CreateAsync(null, one, ("Upload-Defer-Length", "1"));
        Assert.Equal(204, (await Server.PatchAsync(upload, 0, new byte[100], one)).Status);
        Assert.Equal(507, (await Server.PatchAsync(upload, 100, new byte[1], one)).Status);
    }

    [Fact]
    public async Task Metadata_HasABound()
    {
        await StartAsync(new ResumableUploadOptions { Folder = Folder, MaxMetadataLength = 20 });
        await Server.CreateAsync(1, ("Upload-Metadata", "filename YQ=="));
        Assert.Equal(431, (await Server.PostAsync(1, ("Upload-Metadata", "filename " + new string('Y', 12)))).Status);
    }

    [Fact]
    public async Task DeadConnection_KeepsWhatCame_AndEndsWith408()
    {
        TestLog log = new(LogLevel.Information);
        Server = await Resumable.TusServer.StartAsync(
            new ResumableUploadOptions { Folder = Folder, IdleTimeout = TimeSpan.FromMilliseconds(200) }, log: log);
        Uri upload = await Server.CreateAsync(1000);
        await using NetworkStream connection = await SendPartAsync(upload);
        Assert.Contains(" 408 ", (await RawResponse.ReadAsync(connection)).Head, StringComparison.Ordinal);
        Assert.Equal(3, await Server.OffsetAsync(upload));
        Assert.Contains(log.Lines, line => line.StartsWith("An upload was refused with status 408", StringComparison.Ordinal));
    }

    [Theory]
    [InlineData("PATCH", 204)]
    [InlineData("DELETE", 204)]
    public async Task DeadConnection_DoesNotHoldTheUpload(string method, int status)
    {
        TestLog log = new(LogLevel.Information);
        Server = await Resumable.TusServer.StartAsync(
            new ResumableUploadOptions { Folder = Folder, IdleTimeout = Timeout.InfiniteTimeSpan }, log: log);
        Uri upload = await Server.CreateAsync(1000);
        await using NetworkStream connection = await SendPartAsync(upload);

        // It waits for bytes when its first ones are written.
        await Eventually.TrueAsync(() => Length(upload) == 3);
        if (method == "PATCH")
        {
            await Eventually.TrueAsync(async () => (await Server.PatchAsync(upload, 3, new byte[7])).Status == status);
            Assert.Equal(10, await Server.OffsetAsync(upload));
        }
        else
        {
            Assert.Equal(status, (await Server.SendAsync(method, upload, null)).Status);
        }

        Assert.Contains(" 423 ", (await RawResponse.ReadAsync(connection)).Head, StringComparison.Ordinal);
        Assert.Contains(log.Lines, line => line.Contains("goes on with the upload", StringComparison.Ordinal));
    }

    [Fact]
    public async Task RequestThatWritesWhatHasCome_IsTakenOverFrom_BeforeItReadsOn()
    {
        using UploadStore store = new(new ResumableUploadOptions { Folder = Folder }, _time);
        string id = UploadStore.NewId();
        StoredUpload first = await store.CreateAsync(id, new UploadState { Length = 10 });
        Pipe pipe = new();
        await pipe.Writer.WriteAsync("abc"u8.ToArray(), _stop);
        Task<StoredUpload?>? second = null;
        PipeReader body = new Told(pipe.Reader, () =>
        {
            second ??= store.TakeOverAsync(id);
            Assert.Null(second.Exception);
        });
        BadHttpRequestException ended = await Assert.ThrowsAsync<BadHttpRequestException>(
            () => first.AppendAsync(body, isChecked: false, static _ => null, _stop));
        Assert.Equal(423, ended.StatusCode);
        first.Dispose();
        using StoredUpload? next = await second!;
        Assert.Equal(3, next!.State.Offset);
    }

    [Fact]
    public async Task Lock_IsHeld_WhereFileLockingOfDotNetIsTurnedOff()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "The variable is about Unix.");
        int port = 0;
        using Process server = Resumable.TusChild.Start(Root, ref port, "DOTNET_SYSTEM_IO_DISABLEFILELOCKING");
        try
        {
            using HttpClient client = new();
            Uri uploads = new($"http://127.0.0.1:{port}/uploads");
            Resumable.TusAnswer made = await Resumable.TusAnswer.SendAsync(client, "POST", uploads, null, ("Upload-Length", "1000"));
            Uri upload = new(uploads, made["Location"]);
            using TcpClient first = new();
            await first.ConnectAsync("127.0.0.1", port, _stop);
            await first.GetStream().WriteAsync(Encoding.ASCII.GetBytes(PartOf(upload)), _stop);

            // This process is another one, which the server has to keep out. (It may get the lock before the request does.)
            string path = Path.Combine(Resumable.TusChild.UnfinishedOf(Root), upload.Segments[^1] + ".lock");
            await Eventually.TrueAsync(() =>
            {
                using FileLock? turn = FileLock.TryAcquire(path);
                return turn is null || first.Available > 0;
            });
            Assert.Equal(0, first.Available);
        }
        finally
        {
            server.Kill();
            await server.WaitForExitAsync(CancellationToken.None);
        }
    }

    [Fact]
    public async Task Concatenation_WhoseClientHasLeft_IsNotMade()
    {
        TaskCompletionSource isAsked = new(TaskCreationOptions.RunContinuationsAsynchronously);
        int completed = 0;
        await StartAsync(new ResumableUploadOptions
        {
            Folder = Folder,
            OnRequestAsync = async (request, stop) =>
            {
                if (request.Operation == ResumableUploadOperation.Concatenate)
                {
                    isAsked.SetResult();
                    await Task.Delay(Timeout.Infinite, stop).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
                }
            },
            OnCompletedAsync = (_, _) =>
            {
                completed++;
                return ValueTask.CompletedTask;
            },
        });
        Uri part = await Server.CreateAsync(3, ("Upload-Concat", "partial"));
        await Server.PatchAsync(part, 0, "abc"u8.ToArray());
        NetworkStream connection = await Server.ConnectAsync();
        await connection.WriteAsync(Encoding.ASCII.GetBytes("POST /uploads HTTP/1.1\r\nHost: a\r\nTus-Resumable: 1.0.0\r\n"
            + $"Upload-Concat: final;{part.AbsolutePath}\r\nContent-Length: 0\r\n\r\n"), _stop);
        await isAsked.Task.WaitAsync(_stop);
        int before = Server.Ended;
        await connection.DisposeAsync();
        await Eventually.TrueAsync(() => Server.Ended > before);
        Assert.Equal(0, completed);
        Assert.Single(Directory.EnumerateFiles(Folder, "*.json"));
    }

    [Fact]
    public async Task UploadUnderWay_DoesNotExpire_AndOneThatIsLeftDoes()
    {
        TestLog log = new(LogLevel.Information);
        Server = await Resumable.TusServer.StartAsync(new ResumableUploadOptions { Folder = Folder }, _time, log: log);
        Uri upload = await Server.CreateAsync(1000);
        Uri left = await Server.CreateAsync(1000);
        await using NetworkStream connection = await SendPartAsync(upload, "Upload-Checksum: sha1 AAAA\r\n");
        await Eventually.TrueAsync(() => Length(upload) == 3);
        _time.Advance(TimeSpan.FromDays(2));
        using UploadStore other = new(new ResumableUploadOptions { Folder = Folder }, _time);
        other.Sweep();
        Assert.Equal(200, (await Server.HeadAsync(upload)).Status);
        Assert.True((await Server.HeadAsync(left)).Status is 404 or 410);
        Assert.True(File.Exists(Path.Combine(Folder, upload.Segments[^1] + ".json")));
        Assert.False(File.Exists(Path.Combine(Folder, left.Segments[^1] + ".json")));
    }

    [Fact]
    public async Task Folder_ThatIsRemoved_IsMadeAgainWithTheSameRights()
    {
        await StartAsync(new ResumableUploadOptions { Folder = Folder });
        Uri upload = await Server.CreateAsync(10);
        Directory.Delete(Folder, recursive: true);
        Assert.Equal(404, (await Server.PatchAsync(upload, 0, [1])).Status);
        Uri next = await Server.CreateAsync(3);
        Assert.Equal(204, (await Server.PatchAsync(next, 0, new byte[3])).Status);
        if (!OperatingSystem.IsWindows())
        {
            Assert.Equal(UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.UserExecute, File.GetUnixFileMode(Folder));
        }
    }

    [Fact]
    public async Task Look_TellsWhatItCannotDo_AndCountsWhatItCannotRead()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Not every user of Windows may make symbolic links.");
        TestLog log = new(LogLevel.Information);
        ResumableUploadOptions options = new() { Folder = Folder, MaxTotalLength = 100 };
        using UploadStore store = new(options, _time, log);
        string hidden = UploadStore.NewId(), odd = UploadStore.NewId(), damaged = UploadStore.NewId();
        (await store.CreateAsync(hidden, new UploadState { Length = 60 })).Dispose();
        (await store.CreateAsync(odd, new UploadState { Length = 30 })).Dispose();
        string path = store.StatePathOf(hidden);
        File.Move(path, path + ".away");
        File.CreateSymbolicLink(path, path);
        await File.WriteAllTextAsync(store.StatePathOf(damaged), "{", _stop);
        await File.WriteAllTextAsync(
            store.StatePathOf(odd), "{\"length\":30,\"offset\":0,\"expires\":\"2020-01-01T00:00:00Z\",\"savingTo\":\"/x\\u0000y\"}", _stop);
        store.Sweep();

        // Unreadable for a moment, it takes what it took; the one with a place that no file can have is gone.
        Assert.False(store.TryCount(41));
        Assert.True(store.TryCount(40));
        Assert.False(File.Exists(store.StatePathOf(odd)));
        Assert.Contains(log.Lines, line => line.StartsWith("The look for expired uploads could not", StringComparison.Ordinal));
        Assert.Contains(log.Lines, line => line.StartsWith("The state of the upload", StringComparison.Ordinal));
        Assert.Contains(log.Lines, line => line.Contains("has expired", StringComparison.Ordinal));
    }

    [Fact]
    public async Task LogThatThrows_DoesNotEndTheProcess()
    {
        using UploadStore store = new(new ResumableUploadOptions { Folder = Folder }, _time, new Rude());
        await File.WriteAllTextAsync(store.StatePathOf(UploadStore.NewId()), "{", _stop);
        Directory.CreateDirectory(store.StatePathOf(UploadStore.NewId()));
        Assert.ThrowsAny<Exception>(store.Sweep);
        using UploadStore another = new(new ResumableUploadOptions { Folder = Folder }, _time, new Rude());
        (await another.CreateAsync(UploadStore.NewId(), new UploadState { Length = 1 })).Dispose();
    }

    [Fact]
    public async Task FileThatOldTimesTellNothingOf_IsRemovedByTheLook()
    {
        string folder = OddTimes.NewFolder();
        try
        {
            using UploadStore store = new(new ResumableUploadOptions { Folder = folder }, _time);
            string path = Path.Combine(folder, ".pipelines-file-0123456789abcdef");
            await File.WriteAllTextAsync(path, "x", _stop);
            OddTimes.Set(path, "@300000000000");
            store.Sweep();
            Assert.False(File.Exists(path));
        }
        finally
        {
            Directory.Delete(folder, recursive: true);
        }
    }

    private static ValueTask Never(CompletedUpload upload, CancellationToken stop) => throw new InvalidOperationException("not yet");

    private long Length(Uri upload)
        => new FileInfo(Path.Combine(Folder, upload.Segments[^1] + ".part")) is { Exists: true } part ? part.Length : 0;

    private async Task StartAsync(ResumableUploadOptions options) => Server = await Resumable.TusServer.StartAsync(options, _time);

    private async Task<NetworkStream> SendPartAsync(Uri upload, string headers = "")
    {
        NetworkStream connection = await Server.ConnectAsync();
        await connection.WriteAsync(Encoding.ASCII.GetBytes(PartOf(upload, headers)), _stop);
        return connection;
    }

    private static string PartOf(Uri upload, string headers = "")
        => $"PATCH {upload.AbsolutePath} HTTP/1.1\r\nHost: a\r\nTus-Resumable: 1.0.0\r\n"
            + $"Upload-Offset: 0\r\nContent-Type: application/offset+octet-stream\r\nContent-Length: 1000\r\n{headers}\r\nabc";

    // Tells when bytes were taken from it.
    private sealed class Told(PipeReader inner, Action taken) : PipeReader
    {
        public override void AdvanceTo(SequencePosition consumed) => AdvanceTo(consumed, consumed);

        public override void AdvanceTo(SequencePosition consumed, SequencePosition examined)
        {
            inner.AdvanceTo(consumed, examined);
            taken();
        }

        public override void CancelPendingRead() => inner.CancelPendingRead();

        public override void Complete(Exception? exception = null) => inner.Complete(exception);

        public override ValueTask<ReadResult> ReadAsync(CancellationToken cancellationToken = default)
            => inner.ReadAsync(cancellationToken);

        public override bool TryRead(out ReadResult result) => inner.TryRead(out result);
    }

    private sealed class Rude : ILogger
    {
        public IDisposable? BeginScope<TState>(TState state) where TState : notnull => null;

        public bool IsEnabled(LogLevel logLevel) => true;

        public void Log<TState>(
            LogLevel logLevel, EventId eventId, TState state, Exception? exception, Func<TState, Exception?, string> formatter)
            => throw new InvalidOperationException("A logger.");
    }
}
