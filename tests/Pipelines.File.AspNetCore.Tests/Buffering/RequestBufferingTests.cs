using System.Net.Http.Headers;
using System.Net.WebSockets;
using System.Text.Json;
using Microsoft.Extensions.Hosting;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>A body that is buffered is read more than once: what works behind EnableBuffering works behind this.</summary>
public sealed class RequestBufferingTests : InARoot
{
    private readonly TaskCompletionSource<Exception> _left = new();
    private WebApplication _app = null!;

    public override async ValueTask InitializeAsync()
    {
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder(new WebApplicationOptions { EnvironmentName = "Production" });
        builder.Logging.ClearProviders();
        builder.WebHost.UseKestrel(kestrel =>
        {
            kestrel.Listen(IPAddress.Loopback, 0);
            kestrel.Listen(IPAddress.Loopback, 0, listen => listen.Protocols = HttpProtocols.Http2);
        });
        _app = builder.Build();
        _app.Use(async (context, next) =>
        {
            FileBufferingPipe pipe;
            try
            {
                pipe = await context.Request.BufferBodyAsync(new() { MaxLength = 1_000_000, Folder = _root });
            }
            catch (Exception e)
            {
                _left.TrySetResult(e);
                throw;
            }

            using StreamReader log = new(context.Request.Body, leaveOpen: true);
            Assert.Equal(pipe.Length, Encoding.UTF8.GetByteCount(await log.ReadToEndAsync()));
            context.Request.Body.Position = 0;
            await next(context);
        });
        _app.MapPost("/json", (JsonElement body) => body.GetProperty("text").GetString()!.Length);
        _app.MapPost("/form", async (HttpRequest request) => (await request.ReadFormAsync())["text"].ToString().Length);
        _app.MapPost("/reader", async (HttpRequest request) =>
        {
            long first = await LengthAsync(request.BodyReader);
            Assert.Equal(0, await LengthAsync(request.BodyReader));
            request.Body.Position = 0;
            return first + await LengthAsync(request.BodyReader);
        });
        _app.MapPost("/again", async (HttpRequest request) =>
        {
            long first = await LengthAsync(request.BodyReader);
            FileBufferingPipe pipe = await request.BufferBodyAsync();
            Assert.Same(pipe, await request.BufferBodyAsync());
            return first + pipe.Length + await LengthAsync(request.BodyReader);
        });
        _app.MapPost("/limited", (HttpRequest request) => request.BufferBodyAsync(new() { MaxLength = 5 }));
        _app.MapPost("/replaced", async (HttpRequest request) =>
        {
            long first = await LengthAsync(request.BodyReader);
            request.Body = new MemoryStream(new byte[7], writable: false);
            long second = await LengthAsync(request.BodyReader);
            request.Body.Position = 0;
            FileBufferingPipe pipe = await request.BufferBodyAsync();
            return first + second + pipe.Length + await LengthAsync(request.BodyReader);
        });
        _app.MapPost("/save", async (HttpRequest request) => (await request.SaveBodyAsync(Path.Combine(_root, "saved"))).Length);
        _app.MapPost("/upload", async (HttpRequest request) =>
        {
            IFormFile file = (await request.ReadFormAsync()).Files[0];
            await using Stream content = file.OpenReadStream();
            long length = await LengthAsync(PipeReader.Create(content));
            request.Body.Position = 0;
            return length + await LengthAsync(request.BodyReader);
        });
        await _app.StartAsync(_stop);
        _client = new HttpClient { BaseAddress = new Uri(_app.Urls.First()) };
    }

    public override async ValueTask DisposeAsync()
    {
        await base.DisposeAsync();
        await _app.DisposeAsync();
    }

    [Theory]
    [InlineData(10), InlineData(300_000)]
    public async Task Body_IsReadMoreThanOnce(int length)
    {
        string text = new('x', length);
        StringContent json = new($"{{\"text\":\"{text}\"}}", new MediaTypeHeaderValue("application/json"));
        Assert.Equal($"{length}", await PostAsync("/json", json));
        Assert.Equal($"{length}", await PostAsync("/form", new FormUrlEncodedContent([new("text", text)])));
        Assert.Equal($"{length}", await PostAsync("/form", new MultipartFormDataContent { { new StringContent(text), "text" } }));
        Assert.Equal($"{2 * length}", await PostAsync("/reader", new StringContent(text)));
        Assert.Equal("0", await PostAsync("/reader", new StringContent("")));
    }

    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task BodyIsTooLong_Is413(bool isChunked)
    {
        using HttpRequestMessage request = new(HttpMethod.Post, "/reader") { Content = new StringContent(new string('x', 1_000_001)) };
        request.Headers.TransferEncodingChunked = isChunked ? true : null;
        using HttpResponseMessage response = await _client.SendAsync(request, _stop);
        Assert.Equal(HttpStatusCode.RequestEntityTooLarge, response.StatusCode);
    }

    [Theory]
    [InlineData(0), InlineData(300_000)]
    public async Task BufferedTwice_IsTheSamePipeFromItsBeginning(int length)
    {
        Assert.Equal($"{3 * length}", await PostAsync("/again", new ByteArrayContent(new byte[length])));
        using HttpResponseMessage response = await _client.PostAsync("/limited", new ByteArrayContent(new byte[6]), _stop);
        Assert.Equal(HttpStatusCode.RequestEntityTooLarge, response.StatusCode);
    }

    [Fact]
    public async Task BodyIsReplacedAfterwards_BodyReaderReadsTheNewOne()
        => Assert.Equal("121", await PostAsync("/replaced", new ByteArrayContent(new byte[100])));

    [Fact]
    public async Task SavedOrReadAsAFormAfterwards_IsWhole()
    {
        Assert.Equal("300000", await PostAsync("/save", new ByteArrayContent(new byte[300_000])));
        using MultipartFormDataContent form = new() { { new ByteArrayContent(new byte[300_000]), "file", "name" } };
        byte[] body = await form.ReadAsByteArrayAsync(_stop);
        Assert.Equal($"{300_000 + body.Length}", await PostAsync("/upload", form));
    }

    [Theory]
    [InlineData(10, true), InlineData(300_000, true), InlineData(300_000, false)]
    public async Task Http2AndExpectContinue_ArriveWhole(int length, bool isHttp2)
    {
        using HttpRequestMessage request = new(HttpMethod.Post, new Uri(new Uri(_app.Urls.ElementAt(isHttp2 ? 1 : 0)), "/reader"))
        {
            Version = isHttp2 ? HttpVersion.Version20 : HttpVersion.Version11,
            VersionPolicy = HttpVersionPolicy.RequestVersionExact,
            Content = new ByteArrayContent(new byte[length]),
        };
        request.Headers.ExpectContinue = !isHttp2;
        using HttpResponseMessage response = await _client.SendAsync(request, _stop);
        Assert.Equal($"{2 * length}", await response.Content.ReadAsStringAsync(_stop));
    }

    [Fact]
    public async Task ClientLeavesInTheMiddle_NothingIsLeft()
    {
        using (TcpClient client = new())
        {
            await client.ConnectAsync(IPAddress.Loopback, new Uri(_app.Urls.First()).Port, _stop);
            NetworkStream stream = client.GetStream();
            await stream.WriteAsync("POST /reader HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\n"u8.ToArray(), _stop);
            await stream.WriteAsync(new byte[500_000], _stop);
            await Eventually.TrueAsync(() => !OperatingSystem.IsLinux() || OpenHandles.Below(_root) == 1);
        }

        await Eventually.TrueAsync(() => OpenHandles.Below(_root) == 0);
        Assert.True(await _left.Task.WaitAsync(Eventually.Limit, _stop) is IOException);
        Assert.Empty(Directory.EnumerateFileSystemEntries(_root));
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task WebSocket_BehindUseRequestBuffering_IsNotWaitedFor(bool isHttp2)
    {
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder(new WebApplicationOptions { EnvironmentName = "Production" });
        builder.Logging.ClearProviders();
        builder.WebHost.UseKestrel(kestrel => kestrel.Listen(IPAddress.Loopback, 0,
            listen => listen.Protocols = isHttp2 ? HttpProtocols.Http2 : HttpProtocols.Http1));
        await using WebApplication app = builder.Build();
        app.UseRequestBuffering();
        app.UseWebSockets();
        app.Run(async context =>
        {
            using WebSocket socket = await context.WebSockets.AcceptWebSocketAsync();
            await socket.SendAsync("hello"u8.ToArray(), WebSocketMessageType.Text, endOfMessage: true, _stop);
        });
        await app.StartAsync(_stop);
        using ClientWebSocket client = new();
        client.Options.HttpVersion = isHttp2 ? HttpVersion.Version20 : HttpVersion.Version11;
        client.Options.HttpVersionPolicy = HttpVersionPolicy.RequestVersionExact;
        using SocketsHttpHandler handler = new();
        using HttpMessageInvoker invoker = new(handler);
        Uri address = new(app.Urls.First().Replace("http:", "ws:", StringComparison.Ordinal));
        await client.ConnectAsync(address, invoker, _stop).WaitAsync(Eventually.Limit, _stop);
        byte[] message = new byte[10];
        Assert.Equal(5, (await client.ReceiveAsync(message.AsMemory(), _stop)).Count);
        client.Abort();
    }

    private static async Task<long> LengthAsync(PipeReader reader)
    {
        long length = 0;
        while (true)
        {
            ReadResult result = await reader.ReadAsync();
            length += result.Buffer.Length;
            reader.AdvanceTo(result.Buffer.End);
            if (result.IsCompleted)
            {
                return length;
            }
        }
    }

    private async Task<string> PostAsync(string path, HttpContent content)
    {
        using HttpResponseMessage response = await _client.PostAsync(path, content, _stop);
        Assert.Equal(HttpStatusCode.OK, response.StatusCode);
        return await response.Content.ReadAsStringAsync(_stop);
    }
}
