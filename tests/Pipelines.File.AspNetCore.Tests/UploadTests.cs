using System.Runtime.Versioning;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>Request bodies that become files, whole or not at all.</summary>
[Collection(nameof(AloneCollection))]
public sealed class UploadTests : InARoot
{
    // What the endpoint does.
    private SaveBodyOptions? _options;
    private CancellationTokenSource? _cancellation;
    private volatile string? _answer;
    private readonly SemaphoreSlim _opened = new(0);

    public override async ValueTask InitializeAsync() => _server = await StartAsync(HttpProtocols.Http1);

    public override async ValueTask DisposeAsync()
    {
        await base.DisposeAsync();
        _opened.Dispose();
    }

    [Theory]
    [InlineData(0, false), InlineData(1, false), InlineData(70_000, true), InlineData(5_000_001, false), InlineData(5_000_001, true)]
    [InlineData(3_000_000, false, true), InlineData(3_000_000, false, false, FileCaching.DropBehind)]
    public async Task SaveBodyAsync_WholeBody_IsTheFile(
        int size, bool isChunked, bool isDurable = false, FileCaching caching = FileCaching.Keep)
    {
        _options = new SaveBodyOptions { Durable = isDurable, Caching = caching };
        byte[] content = FileTree.Content(size);
        using Counters counters = new();
        using HttpClient client = _server.CreateClient(HttpVersion.Version11);
        Assert.Equal($"{size}", await PutAsync(client, "save/f.bin", content, isChunked));
        Assert.Equal(content, await File.ReadAllBytesAsync(PathOf("f.bin"), _stop));
        AssertFiles("f.bin");
        Assert.Equal((1, 0), (counters["uploads.saved"], counters["uploads.broken"]));
    }

    [Fact]
    public async Task SaveBodyAsync_Http2AndTestHost_IsTheFile()
    {
        byte[] content = FileTree.Content(3_000_000);
        await using (FileServer server = await StartAsync(HttpProtocols.Http2))
        {
            using HttpClient client = server.CreateClient(HttpVersion.Version20);
            client.DefaultVersionPolicy = HttpVersionPolicy.RequestVersionExact;
            Assert.Equal("3000000", await PutAsync(client, "save/http2.bin", content));
        }

        await using (FileServer server = await StartAsync(HttpProtocols.Http1, onTestHost: true))
        {
            using HttpClient client = server.CreateClient(HttpVersion.Version11);
            Assert.Equal("3000000", await PutAsync(client, "save/test.bin", content));
        }

        Assert.Equal(content, await File.ReadAllBytesAsync(PathOf("http2.bin"), _stop));
        Assert.Equal(content, await File.ReadAllBytesAsync(PathOf("test.bin"), _stop));
        AssertFiles("http2.bin", "test.bin");
    }

    [Fact]
    public async Task SaveBodyAsync_WhileTheBodyComes_TheOldFileIsThere()
    {
        await File.WriteAllTextAsync(PathOf("f.bin"), "old", _stop);
        using Socket socket = await _server.ConnectAsync();
        await SendAsync(socket, "PUT /save/f.bin HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n");
        await socket.SendAsync(new byte[150_000], _stop);
        await TemporaryFileAsync();
        Assert.Equal("old", await File.ReadAllTextAsync(PathOf("f.bin"), _stop));
        await socket.SendAsync(new byte[50_000], _stop);
        await using NetworkStream stream = new(socket);
        Assert.Contains(" 200 ", (await RawResponse.ReadAsync(stream)).Head, StringComparison.Ordinal);
        Assert.Equal(200_000, new FileInfo(PathOf("f.bin")).Length);
        AssertFiles("f.bin");
    }

    [Theory]
    [InlineData("Content-Length: 200000\r\n\r\n", "")]
    [InlineData("Transfer-Encoding: chunked\r\n\r\n", "186a0\r\n")]
    public async Task SaveBodyAsync_UploadIsCutOff_LeavesNothingAndKeepsTheOldFile(string header, string before)
    {
        foreach (bool isReset in new[] { false, true })
        {
            await File.WriteAllTextAsync(PathOf("f.bin"), "old", _stop);
            using Counters counters = new();
            _answer = null;
            using (Socket socket = await _server.ConnectAsync())
            {
                await SendAsync(socket, "PUT /save/f.bin HTTP/1.1\r\nHost: a\r\n" + header + before);
                await socket.SendAsync(new byte[100_000], _stop);
                await TemporaryFileAsync();
                socket.LingerState = new LingerOption(isReset, 0);
            }

            Assert.StartsWith(isReset ? "" : nameof(BadHttpRequestException), await AnswerAsync(), StringComparison.Ordinal);
            Assert.NotEqual("100000", _answer);
            Assert.Equal("old", await File.ReadAllTextAsync(PathOf("f.bin"), _stop));
            AssertFiles("f.bin");
            Assert.Equal((0, 1), (counters["uploads.saved"], counters["uploads.broken"]));
        }
    }

    [Fact]
    public async Task SaveBodyAsync_Canceled_LeavesNothing()
    {
        using CancellationTokenSource cancellation = _cancellation = new();
        using Socket socket = await _server.ConnectAsync();
        await SendAsync(socket, "PUT /save/f.bin HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\nstart");
        await TemporaryFileAsync();
        await cancellation.CancelAsync();
        Assert.Contains("CanceledException", await AnswerAsync(), StringComparison.Ordinal);
        AssertFiles();
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task SaveBodyAsync_LongerThanAllowed_Is413AndLeavesNothing(bool isChunked)
    {
        foreach (bool onTestHost in new[] { false, true })
        {
            _options = new SaveBodyOptions { MaxLength = 99_999 };
            await using FileServer server = await StartAsync(HttpProtocols.Http1, onTestHost);
            using HttpClient client = server.CreateClient(HttpVersion.Version11);
            client.DefaultRequestHeaders.ExpectContinue = true;
            Assert.StartsWith("BadHttpRequestException 413", await PutAsync(client, "save/f.bin", new byte[100_000], isChunked),
                StringComparison.Ordinal);
            AssertFiles();
        }

        // It replaces a smaller limit of the server, too.
        _options = new SaveBodyOptions { MaxLength = 100_000 };
        await using FileServer small = await StartAsync(HttpProtocols.Http1, limit: 1000);
        using HttpClient other = small.CreateClient(HttpVersion.Version11);
        Assert.Equal("100000", await PutAsync(other, "save/f.bin", new byte[100_000], isChunked));
        _options = null;

        // Few enough for the client to send at once: one that is still sending when the server has answered and closed finds a broken pipe,
        // and no answer.
        Assert.StartsWith(
            "BadHttpRequestException 413", await PutAsync(other, "save/g.bin", new byte[2000], isChunked), StringComparison.Ordinal);
        AssertFiles("f.bin");
    }

    [Fact]
    public async Task SaveBodyAsync_NoOverwrite_ThrowsAndKeepsTheFile()
    {
        _options = new SaveBodyOptions { Overwrite = false };
        using HttpClient client = _server.CreateClient(HttpVersion.Version11);
        Assert.Equal("1", await PutAsync(client, "save/f.bin", [1]));
        Assert.StartsWith(nameof(FileExistsException), await PutAsync(client, "save/f.bin", [2, 3]), StringComparison.Ordinal);
        Assert.Equal([1], await File.ReadAllBytesAsync(PathOf("f.bin"), _stop));

        // One that came there meanwhile is kept as well.
        _answer = null;
        using Socket socket = await _server.ConnectAsync();
        await SendAsync(socket, "PUT /save/g.bin HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na");
        await TemporaryFileAsync();
        await File.WriteAllTextAsync(PathOf("g.bin"), "other", _stop);
        await SendAsync(socket, "b");
        Assert.StartsWith(nameof(FileExistsException), await AnswerAsync(), StringComparison.Ordinal);
        Assert.Equal("other", await File.ReadAllTextAsync(PathOf("g.bin"), _stop));
        AssertFiles("f.bin", "g.bin");
    }

    [Theory]
    [InlineData("multipart/form-data; boundary=x")]
    [InlineData("Multipart/Mixed;boundary=\"x y\"")]
    public async Task SaveBodyAsync_Multipart_Is415AndSavesNothing(string contentType)
    {
        await File.WriteAllTextAsync(PathOf("f.bin"), "old", _stop);
        using HttpClient client = _server.CreateClient(HttpVersion.Version11);
        string answer = await PutAsync(
            client, "save/f.bin", "--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\nabc\r\n--x--\r\n"u8.ToArray(),
            contentType: contentType);
        Assert.StartsWith("BadHttpRequestException 415", answer, StringComparison.Ordinal);
        Assert.Contains("SaveSectionAsync", answer, StringComparison.Ordinal);
        Assert.Equal("old", await File.ReadAllTextAsync(PathOf("f.bin"), _stop));
        AssertFiles("f.bin");

        // A type that only looks like it.
        Assert.Equal("1", await PutAsync(client, "save/f.bin", [1], contentType: "application/multipart"));
    }

    [Fact]
    public async Task SaveBodyAsync_UnfinishedFile_HasTheDocumentedName()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It runs find(1).");
        using Socket socket = await _server.ConnectAsync();
        await SendAsync(socket, "PUT /save/f.bin HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na");
        await TemporaryFileAsync();
        using Process find = Process.Start(
            new ProcessStartInfo("find", [_root, "-name", ".pipelines-file-*"]) { RedirectStandardOutput = true })!;
        string found = await find.StandardOutput.ReadToEndAsync(_stop);
        Assert.Equal(Directory.GetFiles(_root, "*", new EnumerationOptions { AttributesToSkip = 0 }),
            found.Split('\n', StringSplitOptions.RemoveEmptyEntries));
        await SendAsync(socket, "b");
        Assert.Equal("2", await AnswerAsync());
        AssertFiles("f.bin");
    }

    [Fact]
    public async Task SaveBodyAsync_TwoOfOneNewNameAtOnce_OneIsSavedAndTheOtherIsAConflict()
    {
        _options = new SaveBodyOptions { Overwrite = false };
        Socket[] sockets = [await _server.ConnectAsync(), await _server.ConnectAsync()];
        Array.ForEach(sockets, socket => socket.NoDelay = true);
        for (int round = 0; round < 400; round++)
        {
            // Each one byte short, so that both files are open and neither name is taken.
            string name = $"f{round}.bin";
            for (int i = 0; i < 2; i++)
            {
                await SendAsync(sockets[i], $"PUT /conflict/{name} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{i}");
            }

            await _opened.WaitAsync(_stop);
            await _opened.WaitAsync(_stop);
            await Task.WhenAll(sockets.Select(socket => SendAsync(socket, "!")));
            string[] answers = await Task.WhenAll(sockets.Select(async socket =>
            {
                await using NetworkStream stream = new(socket);
                return (await RawResponse.ReadAsync(stream)).Head.Split(' ')[1];
            }));
            Assert.Equal(["201", "409"], answers.Order());
            Assert.Equal($"{answers.IndexOf("201")}!", await File.ReadAllTextAsync(PathOf(name), _stop));
        }

        Array.ForEach(sockets, socket => socket.Dispose());
        AssertFiles([.. Enumerable.Range(0, 400).Select(round => $"f{round}.bin")]);
    }

    [Fact]
    [UnsupportedOSPlatform("windows")]
    public async Task SaveBodyAsync_Permissions_AreAsAsked()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Unix.");
        UnixFileMode secret = UnixFileMode.UserRead | UnixFileMode.UserWrite;
        using HttpClient client = _server.CreateClient(HttpVersion.Version11);
        _options = new SaveBodyOptions { UnixCreateMode = secret };
        Assert.Equal("2", await PutAsync(client, "save/new", [2, 3]));
        Assert.Equal(secret, File.GetUnixFileMode(PathOf("new")));
    }

    [Fact]
    [SupportedOSPlatform("linux")]
    public async Task SaveBodyAsync_WhileTheBodyComes_NobodyElseMayReadWhatReplacesASecret()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It looks into /proc.");
        UnixFileMode secret = UnixFileMode.UserRead | UnixFileMode.UserWrite;
        await File.WriteAllBytesAsync(PathOf("old"), [1], _stop);
        File.SetUnixFileMode(PathOf("old"), secret);
        using Socket socket = await _server.ConnectAsync();
        await SendAsync(socket, "PUT /save/old HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na");
        await TemporaryFileAsync();
        Assert.Equal(secret, File.GetUnixFileMode(Unfinished().Single()));
        await SendAsync(socket, "b");
        Assert.Equal("2", await AnswerAsync());
        Assert.Equal(secret, File.GetUnixFileMode(PathOf("old")));
    }

    [Theory]
    [InlineData("/save/f.bin", "2000\r\n", false)]
    [InlineData("/save/f.bin", "1;", true)]
    [InlineData("/uncaught/f.bin", "2000\r\n", false)]
    public async Task SaveBodyAsync_ChunkedBodyWithoutEnd_Is413AndTheEndOfTheConnection(string target, string chunk, bool isOneExtension)
    {
        _options = new SaveBodyOptions { MaxLength = 100_000 };
        using Socket socket = await _server.ConnectAsync();
        await SendAsync(socket, $"PUT {target} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        byte[] piece = Encoding.ASCII.GetBytes((isOneExtension ? "" : chunk) + new string('x', 8192) + (isOneExtension ? "" : "\r\n"));
        if (isOneExtension)
        {
            await SendAsync(socket, chunk);
        }

        long sent = await SendEndlesslyAsync(socket, piece);

        // What was on its way: the system's buffers on both sides and the server's.
        Assert.InRange(sent, 100_000, 32 * 1024 * 1024);
        if (!target.StartsWith("/uncaught", StringComparison.Ordinal))
        {
            Assert.StartsWith("BadHttpRequestException 413", await AnswerAsync(), StringComparison.Ordinal);
        }

        AssertFiles();
    }

    [Theory]
    [InlineData("/save/f.bin", "HTTP/1.1")]
    [InlineData("/save/f.bin", "HTTP/1.0")]
    [InlineData("/uncaught/f.bin", "HTTP/1.1")]
    public async Task SaveBodyAsync_AnnouncedTooLongWhereTheServerHasNoLimit_IsNotReadToItsEnd(string target, string protocol)
    {
        _options = new SaveBodyOptions { MaxLength = 100_000 };
        using Socket socket = await _server.ConnectAsync();
        await SendAsync(socket, $"PUT {target} {protocol}\r\nHost: a\r\nContent-Length: {long.MaxValue}\r\n\r\n");
        await using NetworkStream stream = new(socket);
        RawResponse response = await RawResponse.ReadAsync(stream);
        Assert.StartsWith(target == "/save/f.bin" ? "HTTP/1.1 200" : "HTTP/1.1 413", response.Head, StringComparison.Ordinal);
        long sent = await SendEndlesslyAsync(socket, new byte[8192]);
        Assert.InRange(sent, 0, 32 * 1024 * 1024);
        AssertFiles();
    }

    [Theory]
    [InlineData("Transfer-Encoding: chunked\r\n\r\n7fffffff\r\n")]
    [InlineData("Content-Length: 9223372036854775807\r\n\r\n")]
    public async Task SaveBodyAsync_MultipartWithoutEndWhereTheServerHasNoLimit_IsNotReadToItsEnd(string framing)
    {
        _options = new SaveBodyOptions { MaxLength = 100_000 };
        using Socket socket = await _server.ConnectAsync();
        await SendAsync(socket, $"PUT /save/f.bin HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=x\r\n{framing}");
        long sent = await SendEndlesslyAsync(socket, new byte[8192]);
        Assert.InRange(sent, 0, 32 * 1024 * 1024);
        Assert.StartsWith("BadHttpRequestException 415", _answer!, StringComparison.Ordinal);
    }

    [Fact]
    public async Task SaveBodyAsync_NoPermissionBits_Throws()
    {
        _options = new SaveBodyOptions { UnixCreateMode = (UnixFileMode)0x1000 };
        using HttpClient client = _server.CreateClient(HttpVersion.Version11);
        Assert.StartsWith(nameof(ArgumentOutOfRangeException), await PutAsync(client, "save/f.bin", [1]), StringComparison.Ordinal);
        AssertFiles();
    }

    [Fact]
    public async Task SaveBodyAsync_ChunkedBodyTooLong_TheClientGetsTheAnswer()
    {
        _options = new SaveBodyOptions { MaxLength = 1000 };
        foreach (string target in new[] { "/save/f.bin", "/uncaught/f.bin" })
        {
            using Socket socket = await _server.ConnectAsync();
            await SendAsync(
                socket, $"PUT {target} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n{new string('x', 2000)}\r\n");
            await using NetworkStream stream = new(socket);
            RawResponse response = await RawResponse.ReadAsync(stream);
            Assert.True(response.IsWhole);
            Assert.StartsWith(target == "/save/f.bin" ? "HTTP/1.1 200" : "HTTP/1.1 413", response.Head, StringComparison.Ordinal);
            Assert.Contains("Connection: close", response.Head, StringComparison.Ordinal);
        }
    }

    [Fact]
    public async Task SaveBodyAsync_SmallestChunks_AreNoPartOfTheLength()
    {
        _options = new SaveBodyOptions { MaxLength = 50_000 };
        using Socket socket = await _server.ConnectAsync();
        await SendAsync(socket, "PUT /save/f.bin HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        await SendAsync(socket, string.Concat(Enumerable.Repeat("001\r\nx\r\n", 50_000)) + "0\r\n\r\n");
        Assert.Equal("50000", await AnswerAsync());
    }

    [Fact]
    public async Task SaveBodyAsync_NameTooLong_IsKnownBeforeTheBodyIsRead()
    {
        using Socket socket = await _server.ConnectAsync();
        await SendAsync(socket, $"PUT /save/{new string('x', 256)} HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n");
        Assert.StartsWith(nameof(PathTooLongException), await AnswerAsync(), StringComparison.Ordinal);
        AssertFiles();
    }

    [Fact]
    public async Task SaveBodyAsync_NoSuchFolderOrAFolder_Throws()
    {
        Directory.CreateDirectory(PathOf("folder"));
        using HttpClient client = _server.CreateClient(HttpVersion.Version11);
        Assert.StartsWith(
            nameof(DirectoryNotFoundException), await PutAsync(client, "save/none%5Cf", [1], rootedAt: "none/f"), StringComparison.Ordinal);
        Assert.StartsWith(nameof(UnauthorizedAccessException), await PutAsync(client, "save/folder", [1]), StringComparison.Ordinal);
        AssertFiles();
    }

    [Fact]
    public async Task SaveBodyAsync_LongestNameAndSymbolicLink_AreReplaced()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Needs symbolic links.");
        using HttpClient client = _server.CreateClient(HttpVersion.Version11);
        string name = new('x', 255);
        Assert.Equal("1", await PutAsync(client, "save/" + name, [1]));
        string outside = PathOf(name);
        File.CreateSymbolicLink(PathOf("link"), outside);
        Assert.Equal("2", await PutAsync(client, "save/link", [2, 3]));
        Assert.Equal([1], await File.ReadAllBytesAsync(outside, _stop));
        Assert.Null(new FileInfo(PathOf("link")).LinkTarget);
        Assert.Equal([2, 3], await File.ReadAllBytesAsync(PathOf("link"), _stop));
    }

    private Task<FileServer> StartAsync(HttpProtocols protocols, bool onTestHost = false, long? limit = null) => FileServer.StartAsync(
        _root,
        withPipelines: true,
        configureKestrel: kestrel => kestrel.Limits.MaxRequestBodySize = limit,
        listen: endpoint => endpoint.Protocols = protocols,
        after: app =>
        {
            app.MapPut("/save/{name}", async (string name, HttpContext context) =>
            {
                try
                {
                    string path = PathOf((string?)context.Request.Headers["X-Path"] ?? name);
                    _answer = (await context.Request.SaveBodyAsync(path, _options, _cancellation?.Token ?? default)).Length.ToString(
                        CultureInfo.InvariantCulture);
                }
                catch (Exception e)
                {
                    _answer = string.Create(
                        CultureInfo.InvariantCulture, $"{e.GetType().Name} {(e as BadHttpRequestException)?.StatusCode} {e.Message}");
                }

                await context.Response.WriteAsync(_answer);
            });
            app.MapPut("/uncaught/{name}", (string name, HttpRequest request) => request.SaveBodyAsync(PathOf(name), _options));
            app.MapPut("/conflict/{name}", async (string name, HttpRequest request) =>
            {
                try
                {
                    // It opens the file before it waits for the body.
                    Task<SavedFile> saving = request.SaveBodyAsync(PathOf(name), _options);
                    _opened.Release();
                    await saving;
                    return Results.StatusCode(StatusCodes.Status201Created);
                }
                catch (FileExistsException)
                {
                    return Results.Conflict();
                }
            });
        },
        onTestHost: onTestHost);

    private async Task<string> PutAsync(
        HttpClient client, string target, byte[] content, bool isChunked = false, string? rootedAt = null, string? contentType = null)
    {
        using HttpRequestMessage request = new(HttpMethod.Put, target)
        {
            Content = new ByteArrayContent(content),
            Version = client.DefaultRequestVersion,
            VersionPolicy = client.DefaultVersionPolicy,
        };
        if (isChunked)
        {
            request.Headers.TransferEncodingChunked = true;
        }

        if (contentType is not null)
        {
            request.Content.Headers.TryAddWithoutValidation("Content-Type", contentType);
        }

        if (rootedAt is not null)
        {
            request.Headers.Add("X-Path", rootedAt);
        }

        using HttpResponseMessage response = await client.SendAsync(request, _stop);
        return await response.Content.ReadAsStringAsync(_stop);
    }

    /// <summary>Waits until an upload has its file, with a temporary name or none.</summary>
    private Task TemporaryFileAsync() => Eventually.TrueAsync(() => CountUnfinished() == 1);

    private int CountUnfinished() => Unfinished().Length;

    private string[] Unfinished() =>
    [
        .. Directory.GetFiles(_root, ".pipelines-file-*", new EnumerationOptions { AttributesToSkip = 0 }),
        .. OperatingSystem.IsLinux() ? Directory.GetFiles("/proc/self/fd")
            .Where(fd => new FileInfo(fd).LinkTarget?.StartsWith(_root + "/#", StringComparison.Ordinal) == true) : [],
    ];

    private async Task<string> AnswerAsync()
    {
        await Eventually.TrueAsync(() => _answer is not null);
        return _answer!;
    }

    /// <summary>Sends the piece again and again, 256 MiB at most, until the connection has ended: the bytes that went.</summary>
    private async Task<long> SendEndlesslyAsync(Socket socket, byte[] piece)
    {
        const long Endless = 256 * 1024 * 1024;
        long sent = 0;
        try
        {
            while (sent < Endless)
            {
                sent += await socket.SendAsync(piece, _stop).AsTask().WaitAsync(Eventually.Limit, _stop);
            }
        }
        catch (SocketException)
        {
            // The connection has ended.
        }

        return sent;
    }

    private static async Task SendAsync(Socket socket, string text)
        => await socket.SendAsync(Encoding.ASCII.GetBytes(text), TestContext.Current.CancellationToken);
}
