using Microsoft.AspNetCore.Http.Features;
using Microsoft.Extensions.FileProviders;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>What happens to a file, a client and the process while files are sent.</summary>
[Collection(nameof(AloneCollection))]
public sealed class SendingTests : InARoot
{
    private const int Large = 64 * 1024 * 1024;

    private static readonly FilePipelinesOptions s_letsGoSoon = new() { OpenFileIdleTime = TimeSpan.FromMilliseconds(100) };

    [Fact]
    public async Task Get_FilesAndTheirSegments_AreCounted()
    {
        Add("small.txt", 1024);
        Add("large.txt", 1024 * 1024);
        using Counters counters = new();
        await using FileServer server = await FileServer.StartAsync(_root, withPipelines: true);
        using HttpClient client = server.CreateClient(HttpVersion.Version11);
        await client.GetByteArrayAsync("small.txt", _stop);
        await client.GetByteArrayAsync("large.txt", _stop);
        Assert.Equal((2, 0, 1024 + 1024 * 1024), (counters["responses.sent"], counters["responses.left"], counters["bytes_read"]));
        Assert.Equal(17, counters["reads.inline"] + counters["reads.handed_over"]);
    }

    [Fact]
    public async Task Get_Fifo_IsOpenedOnlyByTheServer()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It calls mkfifo.");
        string path = Path.Combine(_root, "fifo");
        await RunAsync("mkfifo", path);
        await using FileServer server = await FileServer.StartAsync(_root, withPipelines: true);
        using HttpClient client = server.CreateClient(HttpVersion.Version11);
        Task<HttpResponseMessage> response = client.GetAsync("send/fifo", _stop);

        // One writer, whom one opening lets in. The server cannot seek in it, and says so. A second opening would wait for ever.
        await RunAsync("sh", "-c", $"printf lost 2> /dev/null > '{path}' || true");
        Assert.Equal(HttpStatusCode.InternalServerError, (await response.WaitAsync(Eventually.Limit, _stop)).StatusCode);

        async Task RunAsync(string program, params string[] arguments)
        {
            using System.Diagnostics.Process process = System.Diagnostics.Process.Start(program, arguments);
            await process.WaitForExitAsync(_stop).WaitAsync(Eventually.Limit, _stop);
            Assert.Equal(0, process.ExitCode);
        }
    }

    [Fact]
    public async Task AddFilePipelines_Options_AreThoseOfTheApplication()
    {
        Add("f.txt", 1000);
        List<string> listened = [];
        using System.Diagnostics.Metrics.MeterListener listener = new();
        listener.InstrumentPublished = (instrument, self) =>
        {
            if (instrument.Meter.Name == FilePipelinesMeter.Name && instrument.Name == FilePipelinesMeter.ResponsesLeft)
            {
                self.EnableMeasurementEvents(instrument);
            }
        };
        listener.SetMeasurementEventCallback<long>(
            (instrument, value, _, _) => listened.Add($"{instrument.Meter.Scope is not null} {value}"));
        listener.Start();
        await using FileServer server = await FileServer.StartAsync(
            _root, withPipelines: true, services: services => services.AddFilePipelines(options => options.MinimumSize = 2000));
        using HttpClient client = server.CreateClient(HttpVersion.Version11);
        await client.GetByteArrayAsync("send/f.txt", _stop);
        listener.RecordObservableInstruments();

        // The application's own meter.
        Assert.Contains("True 1", listened);
    }

    [Fact]
    public async Task Branches_BeforeTheirApplication_HaveItsSetOfFiles()
    {
        await using WebApplication app = WebApplication.CreateSlimBuilder().Build();
        FileSender branch = FilePipelinesApplicationBuilderExtensions.SenderOf(((IApplicationBuilder)app).New());
        Assert.Same(branch, FilePipelinesApplicationBuilderExtensions.SenderOf(((IApplicationBuilder)app).New()));
        Assert.Same(branch, FilePipelinesApplicationBuilderExtensions.SenderOf(app));
    }

    [Fact]
    public void AddFilePipelines_SeveralTimes_IsOneSetOfFiles()
    {
        using ServiceProvider services = new ServiceCollection().AddFilePipelines().AddFilePipelines(options => options.MaxOpenFiles = 3)
            .Configure<FilePipelinesOptions>(options => options.BufferSize = 8192).BuildServiceProvider();
        FileSender sender = services.GetRequiredService<FileSender>();
        Assert.Equal(8192, sender.BufferSize);
        Assert.Same(sender, services.GetRequiredService<FileSender>());
        using ServiceProvider wrong = new ServiceCollection().AddFilePipelines(options => options.BufferSize = 1).BuildServiceProvider();
        Assert.Throws<ArgumentOutOfRangeException>(() => new ApplicationBuilder(wrong).UseFilePipelines());
    }

    [Fact]
    public async Task Get_MapStaticAssets_IsSent()
    {
        byte[] content = Add("asset.txt", 5000);
        string manifest = PathOf("assets.json");
        await File.WriteAllTextAsync(
            manifest,
            """
            { "Version": 1, "ManifestType": "Publish", "Endpoints": [ { "Route": "assets/f.txt", "AssetFile": "asset.txt", "Selectors": [], "EndpointProperties": [],
              "ResponseHeaders": [ { "Name": "Content-Length", "Value": "5000" }, { "Name": "Content-Type", "Value": "text/plain" }, { "Name": "ETag", "Value": "\"x\"" },
                { "Name": "Last-Modified", "Value": "Fri, 02 Jan 2026 03:04:05 GMT" } ] } ] }
            """,
            _stop);
        using Counters counters = new();
        await using FileServer server = await FileServer.StartAsync(_root, withPipelines: true, after: app =>
        {
            app.Environment.WebRootFileProvider = new PhysicalFileProvider(_root);
            app.MapStaticAssets(manifest);
        });
        using HttpClient client = server.CreateClient(HttpVersion.Version11);
        Assert.Equal(content, await client.GetByteArrayAsync("assets/f.txt", _stop));
        Assert.Equal((1, 0), (counters["responses.sent"], counters["responses.left"]));
    }

    [Fact]
    public async Task Get_BelowMinimumSize_IsLeftToTheServer()
    {
        Add("small.txt", 999);
        Add("large.txt", 1000);
        using Counters counters = new();
        await using FileServer server = await FileServer.StartAsync(
            _root, withPipelines: true, options: new FilePipelinesOptions { MinimumSize = 1000 });
        using HttpClient client = server.CreateClient(HttpVersion.Version11);
        Assert.Equal(999, (await client.GetByteArrayAsync("small.txt", _stop)).Length);
        Assert.Equal((0, 1), (counters["responses.sent"], counters["responses.left"]));
        Assert.Equal(1000, (await client.GetByteArrayAsync("large.txt", _stop)).Length);
        Assert.Equal((1, 1), (counters["responses.sent"], counters["responses.left"]));
    }

    [Theory]
    [InlineData(4096), InlineData(5000), InlineData(1024 * 1024)]
    public async Task Get_AnyBufferSize_SendsTheBytes(int segmentSize)
    {
        byte[] content = Add("f.txt", 3_000_001);
        await using FileServer server = await FileServer.StartAsync(
            _root, withPipelines: true, options: new FilePipelinesOptions { BufferSize = segmentSize });
        using HttpClient client = server.CreateClient(HttpVersion.Version11);
        Assert.Equal(content, await client.GetByteArrayAsync("f.txt", _stop));
        Assert.Equal(content, await client.GetByteArrayAsync("send/f.txt", _stop));
    }

    [Theory]
    [InlineData(4095, 0, 0, 0)]
    [InlineData((1024 * 1024) + 1, 0, 0, 0)]
    [InlineData(4096, -1, 0, 0)]
    [InlineData(4096, 0, -1, 0)]
    [InlineData(4096, 0, 0, -1)]
    [InlineData(4096, 0, 0, 86_401)]
    public void UseFilePipelines_OptionOutOfRange_Throws(int segmentSize, long minimumSize, int maxOpenFiles, int idleSeconds)
    {
        WebApplication app = WebApplication.CreateSlimBuilder().Build();
        Assert.Throws<ArgumentOutOfRangeException>(() => app.UseFilePipelines(new FilePipelinesOptions
        {
            BufferSize = segmentSize,
            MinimumSize = minimumSize,
            MaxOpenFiles = maxOpenFiles,
            OpenFileIdleTime = TimeSpan.FromSeconds(idleSeconds),
        }));
        Assert.Throws<ArgumentOutOfRangeException>(() => app.UseFilePipelines(options =>
        {
            (options.BufferSize, options.MinimumSize) = (segmentSize, minimumSize);
            (options.MaxOpenFiles, options.OpenFileIdleTime) = (maxOpenFiles, TimeSpan.FromSeconds(idleSeconds));
        }));
    }

    [Fact]
    public async Task Get_BodyOfAnotherServer_KeepsItsOwnSendFile()
    {
        Add("f.txt", 5000);
        SendFileCount own = new();
        await using FileServer server = await FileServer.StartAsync(_root, withPipelines: true, before: app => app.Use((context, next) =>
        {
            own.Inner = context.Features.GetRequiredFeature<IHttpResponseBodyFeature>();
            context.Features.Set<IHttpResponseBodyFeature>(own);
            return next(context);
        }));
        using HttpClient client = server.CreateClient(HttpVersion.Version11);
        Assert.Equal(5000, (await client.GetByteArrayAsync("f.txt", _stop)).Length);
        Assert.Equal(1, own.Count);
    }

    [Fact]
    public async Task Get_AfterTheRequest_TheBodyIsTheServersAgain()
    {
        Add("f.txt", 5000);
        IHttpResponseBodyFeature? before = null;
        IHttpResponseBodyFeature? during = null;
        IHttpResponseBodyFeature? after = null;
        await using FileServer server = await FileServer.StartAsync(
            _root,
            withPipelines: true,
            before: app => app.Use(async (context, next) =>
            {
                before = context.Features.Get<IHttpResponseBodyFeature>();
                await next(context);
                after = context.Features.Get<IHttpResponseBodyFeature>();
            }),
            after: app => app.Use((context, next) =>
            {
                during = context.Features.Get<IHttpResponseBodyFeature>();
                return next(context);
            }));
        using HttpClient client = server.CreateClient(HttpVersion.Version11);
        await client.GetByteArrayAsync("f.txt", _stop);
        Assert.NotSame(before, during);

        // The client has the whole body before the server's middleware goes on.
        await Eventually.TrueAsync(() => after is not null);
        Assert.Same(before, after);
    }

    [Theory]
    [InlineData("f.txt"), InlineData("send/f.txt")]
    public async Task Get_FileIsReplacedMeanwhile_GoesOnFromTheOpenedOne(string target)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "An open file cannot be replaced there.");
        byte[] content = Add("f.txt", Large);
        Add("other.txt", Large / 2);
        await using FileServer server = await FileServer.StartAsync(_root, withPipelines: true);
        await using NetworkStream stream = await AskAndWaitAsync(server, target);
        File.Move(PathOf("other.txt"), PathOf("f.txt"), overwrite: true);
        File.Delete(PathOf("f.txt"));
        RawResponse response = await RawResponse.ReadAsync(stream);
        Assert.True(response.IsWhole);
        Assert.Equal(Convert.ToHexString(SHA256.HashData(content)), response.BodyHash);
        Assert.Empty(server.Log.Lines);
    }

    [Theory]
    [InlineData("f.txt"), InlineData("send/f.txt"), InlineData("typed/f.txt")]
    public async Task Get_FileIsTruncatedMeanwhile_AbortsTheConnection(string target)
    {
        byte[] content = Add("f.txt", Large);
        await using FileServer server = await FileServer.StartAsync(_root, withPipelines: true, options: s_letsGoSoon);
        await using NetworkStream stream = await AskAndWaitAsync(server, target);
        using (FileStream file = new(PathOf("f.txt"), FileMode.Open, FileAccess.Write, FileShare.ReadWrite))
        {
            file.SetLength(1000);
        }

        RawResponse response = await RawResponse.ReadAsync(stream);
        Assert.Contains(" 200 ", response.Head, StringComparison.Ordinal);
        Assert.False(response.IsWhole);
        Assert.InRange(response.BodyLength, 1, Large - 1);
        Assert.Equal(Convert.ToHexString(SHA256.HashData(content.AsSpan(0, (int)response.BodyLength))), response.BodyHash);
        if (OperatingSystem.IsLinux())
        {
            await OpenHandles.NoneAsync(PathOf("f.txt"));
        }

        Assert.Contains(server.Log.Lines, line => line.Contains("truncated while it was sent", StringComparison.Ordinal));
    }

    [Fact]
    public async Task Get_FileIsTruncatedMeanwhileOverHttp2_ResetsTheStreamOnly()
    {
        Add("f.txt", Large);
        Add("g.txt", 5000);
        await using FileServer server = await FileServer.StartAsync(
            _root, withPipelines: true, listen: endpoint => endpoint.Protocols = HttpProtocols.Http2);
        using HttpClient client = server.CreateClient(HttpVersion.Version20);
        client.DefaultVersionPolicy = HttpVersionPolicy.RequestVersionExact;
        await using (Stream body = await client.GetStreamAsync("send/f.txt", _stop))
        {
            using (FileStream file = new(PathOf("f.txt"), FileMode.Open, FileAccess.Write, FileShare.ReadWrite))
            {
                file.SetLength(1000);
            }

            await Assert.ThrowsAnyAsync<IOException>(() => body.CopyToAsync(Stream.Null, _stop));
        }

        Assert.Equal(5000, (await client.GetByteArrayAsync("g.txt", _stop)).Length);
    }

    [Theory]
    [InlineData("f.txt", false)]
    [InlineData("send/f.txt", false)]
    [InlineData("around/f.txt", false)]
    [InlineData("f.txt", true)]
    [InlineData("typed/f.txt", true)]
    public async Task Get_ClientGoesAway_StopsReadingAndClosesTheFile(string target, bool onHttp2)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It looks into /proc.");
        int rounds = Rounds.Of(4, 10);
        AddSparse("f.txt", 1L << 30);
        using Counters counters = new();
        await using FileServer server = await FileServer.StartAsync(
            _root, withPipelines: true,
            listen: endpoint => endpoint.Protocols = onHttp2 ? HttpProtocols.Http2 : HttpProtocols.Http1, options: s_letsGoSoon);
        for (int i = 0; i < rounds; i++)
        {
            if (onHttp2)
            {
                using HttpClient client = server.CreateClient(HttpVersion.Version20);
                client.DefaultVersionPolicy = HttpVersionPolicy.RequestVersionExact;
                await using Stream body = await client.GetStreamAsync(target, _stop);
                await body.ReadExactlyAsync(new byte[1000], _stop);
                Assert.Equal(1, OpenHandles.Of(PathOf("f.txt")));
            }
            else
            {
                await using NetworkStream stream = await AskAndWaitAsync(server, target);
                Assert.Equal(1, OpenHandles.Of(PathOf("f.txt")));
                stream.Socket.Close(timeout: i % 2 == 0 ? 0 : -1);
            }

            await OpenHandles.NoneAsync(PathOf("f.txt"));
        }

        await Eventually.TrueAsync(() => counters["responses.broken"] == rounds);
        Assert.Equal(["abandoned"], counters.Kinds("responses.broken"));
        Assert.Equal(0, counters["responses.sent"]);
        Assert.InRange(counters["bytes_read"], rounds, rounds * 32L * 1024 * 1024);
        Assert.Empty(server.Log.Lines);
    }

    [Theory]
    [InlineData("f.txt")]
    [InlineData("mapped/f.txt")]
    [InlineData("typed/f.txt")]
    [InlineData("send/f.txt")]
    [InlineData("around/f.txt")]
    [InlineData("announced/f.txt/1073741824")]
    public async Task Get_ClientGoesAway_IsNotLoggedAsTheApplicationsAbort(string target)
    {
        int rounds = Rounds.Of(6, 20);
        AddSparse("f.txt", 1L << 30);
        await using FileServer server = await FileServer.StartAsync(
            _root, withPipelines: true, listen: endpoint => endpoint.Protocols = HttpProtocols.Http1, logsFrom: LogLevel.Information);
        for (int i = 0; i < rounds; i++)
        {
            await using NetworkStream stream = await AskAndWaitAsync(server, target, wait: false);
            await stream.ReadExactlyAsync(new byte[1000], _stop);
            stream.Socket.Close(timeout: i % 2 == 0 ? 0 : -1);
        }

        await Eventually.TrueAsync(
            () => server.Log.Lines.Count(line => line.Contains("Request finished", StringComparison.Ordinal)) == rounds);
        Assert.DoesNotContain(server.Log.Lines, line =>
            line.Contains("abort", StringComparison.OrdinalIgnoreCase) || line.Contains("exception", StringComparison.OrdinalIgnoreCase));
    }

    [Fact]
    public async Task SendFileAsync_ClientGoesAway_Completes()
    {
        AddSparse("f.txt", 1L << 30);
        TaskCompletionSource<Exception?> ended = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using FileServer server = await FileServer.StartAsync(
            _root, withPipelines: true, after: app => app.MapGet("/ends", async context =>
            {
                try
                {
                    // The extension method passes RequestAborted on where it is given no token.
                    using CancellationTokenSource own = new();
                    await context.Response.SendFileAsync(PathOf("f.txt"), 0, null, own.Token);
                    ended.SetResult(null);
                }
                catch (Exception e)
                {
                    ended.SetResult(e);
                }
            }));
        await using (NetworkStream stream = await AskAndWaitAsync(server, "ends"))
        {
            stream.Socket.Close(timeout: 0);
        }

        Assert.Null(await ended.Task.WaitAsync(Eventually.Limit, _stop));
        Assert.Empty(server.Log.Lines);
    }

    [Fact]
    public async Task Get_SlowClients_MemoryStaysFlat()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It looks into /proc.");
        const int Clients = 50;
        AddSparse("f.txt", 1L << 30);
        await using FileServer server = await FileServer.StartAsync(_root, withPipelines: true, options: s_letsGoSoon);
        await using (await AskAndWaitAsync(server, "f.txt"))
        {
        }

        await OpenHandles.NoneAsync(PathOf("f.txt"));
        long before = GC.GetTotalMemory(forceFullCollection: true);
        using Counters counters = new();
        List<NetworkStream> streams = [];
        try
        {
            for (int i = 0; i < Clients; i++)
            {
                streams.Add(await AskAndWaitAsync(server, "f.txt", wait: false));
            }

            // They read now and then, and never wait for less.
            byte[] buffer = new byte[256 * 1024];
            for (int round = 0; round < 20; round++)
            {
                foreach (NetworkStream stream in streams)
                {
                    await stream.ReadExactlyAsync(buffer, _stop);
                }
            }

            Assert.Equal(1, OpenHandles.Of(PathOf("f.txt")));

            // What a client holds up: a segment, the write buffer limit of 64 KiB, and what the blocks around them waste.
            Assert.InRange(GC.GetTotalMemory(forceFullCollection: true) - before, long.MinValue, Clients * 320 * 1024);
            Assert.InRange(counters["bytes_read"], Clients * 20L * buffer.Length, Clients * (20L * buffer.Length + 16 * 1024 * 1024));
        }
        finally
        {
            streams.ForEach(stream => stream.Dispose());
        }

        await OpenHandles.NoneAsync(PathOf("f.txt"));
    }

    /// <summary>Asks for a file by a client that reads nothing, and waits until the server has stopped reading the file.</summary>
    private static async Task<NetworkStream> AskAndWaitAsync(FileServer server, string target, bool wait = true)
    {
        using Counters counters = new();
        Socket socket = await server.ConnectAsync(receiveBuffer: 4096);
        NetworkStream stream = new(socket, ownsSocket: true);
        await stream.WriteAsync(
            Encoding.ASCII.GetBytes($"GET /{target} HTTP/1.1\r\nHost: a\r\n\r\n"), TestContext.Current.CancellationToken);
        long last = 0;
        for (int same = 0; wait && same < 5;)
        {
            await Task.Delay(20, TestContext.Current.CancellationToken);
            long read = counters["bytes_read"];
            same = read > 0 && read == last ? same + 1 : 0;
            last = read;
        }

        return stream;
    }

    private byte[] Add(string name, int size)
    {
        byte[] content = FileTree.Content(size);
        File.WriteAllBytes(PathOf(name), content);
        return content;
    }

    private void AddSparse(string name, long size)
    {
        using FileStream file = File.Create(PathOf(name));
        file.SetLength(size);
    }

    private sealed class SendFileCount : IHttpResponseBodyFeature
    {
        internal IHttpResponseBodyFeature Inner { get; set; } = null!;

        internal int Count { get; private set; }

        public Stream Stream => Inner.Stream;

        public System.IO.Pipelines.PipeWriter Writer => Inner.Writer;

        public void DisableBuffering() => Inner.DisableBuffering();

        public Task StartAsync(CancellationToken cancellationToken = default) => Inner.StartAsync(cancellationToken);

        public Task CompleteAsync() => Inner.CompleteAsync();

        public Task SendFileAsync(string path, long offset, long? count, CancellationToken cancellationToken = default)
        {
            Count++;
            return Inner.SendFileAsync(path, offset, count, cancellationToken);
        }
    }
}
