namespace FilePipelines.AspNetCore.Tests.Resumable;

/// <summary>A server with resumable uploads at /uploads, and a client for it that adds what every request needs.</summary>
internal sealed class TusServer : IAsyncDisposable
{
    private readonly WebApplication _app;
    private readonly HttpClient _client = new();
    private int _begun;
    private int _ended;

    private TusServer(WebApplication app)
    {
        _app = app;
        app.Use(async (_, next) =>
        {
            Interlocked.Increment(ref _begun);
            try
            {
                await next();
            }
            finally
            {
                Interlocked.Increment(ref _ended);
            }
        });
    }

    internal Uri Address => new(_app.Urls.Single());

    internal Uri Uploads => new(Address, "/uploads");

    /// <summary>The requests that the application has been given.</summary>
    internal int Begun => Volatile.Read(ref _begun);

    /// <summary>The requests that it has ended.</summary>
    internal int Ended => Volatile.Read(ref _ended);

    internal static async Task<TusServer> StartAsync(
        ResumableUploadOptions options, TimeProvider? time = null, int port = 0, HttpProtocols protocols = HttpProtocols.Http1AndHttp2,
        ILoggerProvider? log = null)
    {
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
        builder.Logging.ClearProviders();
        if (log is not null)
        {
            builder.Logging.AddProvider(log);
        }

        if (time is not null)
        {
            builder.Services.AddSingleton(time);
        }

        builder.WebHost.UseKestrel(kestrel => kestrel.Listen(IPAddress.Loopback, port, listen => listen.Protocols = protocols));
        WebApplication app = builder.Build();
        TusServer server = new(app);
        app.MapResumableUploads("/uploads", options);
        await app.StartAsync(CancellationToken.None);
        return server;
    }

    internal Task<TusAnswer> PostAsync(long? length, params (string Name, string Value)[] headers)
        => SendAsync("POST", Uploads, null,
            length is null ? headers : [("Upload-Length", length.Value.ToString(CultureInfo.InvariantCulture)), .. headers]);

    /// <summary>The URL of a new upload.</summary>
    internal async Task<Uri> CreateAsync(long? length, params (string Name, string Value)[] headers)
    {
        TusAnswer answer = await PostAsync(length, headers);
        Assert.Equal(201, answer.Status);
        return new Uri(Address, answer["Location"]);
    }

    internal Task<TusAnswer> PatchAsync(Uri upload, long offset, byte[] body, params (string Name, string Value)[] headers)
        => SendAsync("PATCH", upload, body, [("Upload-Offset", offset.ToString(CultureInfo.InvariantCulture)), .. headers]);

    internal Task<TusAnswer> HeadAsync(Uri upload) => SendAsync("HEAD", upload, null);

    internal async Task<long> OffsetAsync(Uri upload)
        => long.Parse((await HeadAsync(upload))["Upload-Offset"], CultureInfo.InvariantCulture);

    /// <summary>Sends a request; a header of the name Tus-Resumable replaces the version, and an empty value leaves a header out.</summary>
    internal Task<TusAnswer> SendAsync(string method, Uri target, byte[]? body, params (string Name, string Value)[] headers)
        => TusAnswer.SendAsync(_client, method, target, body is null ? null : new ByteArrayContent(body), headers);

    internal async Task<NetworkStream> ConnectAsync()
    {
        Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        await socket.ConnectAsync(IPAddress.Loopback, Address.Port);
        return new NetworkStream(socket, ownsSocket: true);
    }

    public async ValueTask DisposeAsync()
    {
        _client.Dispose();
        using CancellationTokenSource impatience = new(TimeSpan.FromSeconds(2));
        await _app.StopAsync(impatience.Token);
        await _app.DisposeAsync();
    }
}
