using System.IO.Compression;
using Microsoft.AspNetCore.HttpLogging;
using Microsoft.AspNetCore.ResponseCompression;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>Buffered bodies between other middleware that replaces, compresses, keeps or logs bodies, and with trailers.</summary>
public sealed class BufferingAmongMiddlewareTests
{
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    [Theory]
    [InlineData("compression|buffering", 200_000)]
    [InlineData("buffering|compression", 200_000)]
    [InlineData("buffering|compression", 0)]
    [InlineData("cache|buffering", 200_000)]
    [InlineData("buffering|cache", 200_000)]
    [InlineData("compression|cache|buffering", 200_000)]
    [InlineData("buffering|cache|compression", 200_000)]
    [InlineData("logging|buffering|compression", 200_000)]
    [InlineData("buffering|logging", 200_000)]
    [InlineData("buffering|buffering", 200_000)]
    public async Task Response_AmongOtherMiddleware_ArrivesWholeEachTime(string order, int length)
    {
        await using WebApplication app = await StartAsync(order, app => app.MapGet("/", async (HttpResponse response) =>
        {
            response.ContentType = "text/plain";
            for (int at = 0; at < length; at += 1000)
            {
                await response.WriteAsync(new string((char)('a' + (at / 1000 % 26)), 1000));
                await response.Body.FlushAsync();
            }
        }));
        using HttpClient client = new() { BaseAddress = new Uri(app.Urls.First()) };
        for (int i = 0; i < 3; i++)
        {
            using HttpRequestMessage request = new(HttpMethod.Get, "/");
            request.Headers.AcceptEncoding.ParseAdd("gzip");
            using HttpResponseMessage response = await client.SendAsync(request, _stop);
            byte[] body = await response.Content.ReadAsByteArrayAsync(_stop);
            bool isCompressed = response.Content.Headers.ContentEncoding.Contains("gzip");
            Assert.Equal(order.Contains("compression", StringComparison.Ordinal) && length > 0, isCompressed);
            string text = Encoding.ASCII.GetString(isCompressed ? Decompress(body) : body);
            Assert.Equal(length, text.Length);
            Assert.All(text.Chunk(1000).Index(), chunk => Assert.All(chunk.Item, one => Assert.Equal('a' + (chunk.Index % 26), one)));

            // Whoever compresses behind the buffer does not know the length.
            Assert.True(order.StartsWith("compression", StringComparison.Ordinal) || response.Content.Headers.ContentLength == body.Length);
        }
    }

    [Theory]
    [InlineData("decompression|requests")]
    [InlineData("requests|decompression")]
    [InlineData("logging|requests|decompression")]
    public async Task Request_ThatIsCompressed_IsReadTwice(string order)
    {
        byte[] content = Encoding.ASCII.GetBytes(string.Concat(Enumerable.Range(0, 40_000).Select(number => $"{number};")));
        await using WebApplication app = await StartAsync(order, app => app.MapPost("/", async (HttpRequest request) =>
        {
            string[] hashes = new string[2];
            for (int i = 0; i < 2 && (i == 0 || request.Body.CanSeek); i++)
            {
                hashes[i] = Convert.ToHexString(await SHA256.HashDataAsync(request.Body));
                if (request.Body.CanSeek)
                {
                    request.Body.Position = 0;
                }
            }

            return string.Join('|', hashes);
        }));
        using HttpClient client = new() { BaseAddress = new Uri(app.Urls.First()) };
        using MemoryStream compressed = new();
        await using (GZipStream gzip = new(compressed, CompressionLevel.Fastest, leaveOpen: true))
        {
            await gzip.WriteAsync(content, _stop);
        }

        using ByteArrayContent body = new(compressed.ToArray());
        body.Headers.ContentEncoding.Add("gzip");
        using HttpResponseMessage response = await client.PostAsync("/", body, _stop);
        string hash = Convert.ToHexString(SHA256.HashData(content));

        // What decompresses a buffered body cannot seek.
        Assert.Equal(order.StartsWith("decompression", StringComparison.Ordinal) ? $"{hash}|{hash}" : $"{hash}|",
            await response.Content.ReadAsStringAsync(_stop));
    }

    [Fact]
    public async Task ResponseTrailers_ComeBehindTheBody()
    {
        await using WebApplication app = await StartAsync("buffering", app => app.MapGet("/{length:int}",
            async (int length, HttpResponse response) =>
            {
                response.DeclareTrailer("X-Sum");
                await response.Body.WriteAsync(new byte[length]);
                response.AppendTrailer("X-Sum", $"{length}");
            }), HttpProtocols.Http2);
        using HttpClient client = new() { BaseAddress = new Uri(app.Urls.First()) };
        foreach (int length in new[] { 0, 10, 300_000 })
        {
            using HttpRequestMessage request = new(HttpMethod.Get, $"/{length}")
            {
                Version = HttpVersion.Version20,
                VersionPolicy = HttpVersionPolicy.RequestVersionExact,
            };
            using HttpResponseMessage response = await client.SendAsync(request, _stop);
            Assert.Equal(length, (await response.Content.ReadAsByteArrayAsync(_stop)).Length);
            Assert.Equal($"{length}", response.TrailingHeaders.GetValues("X-Sum").Single());
        }
    }

    [Fact]
    public async Task RequestTrailers_AreThereWhenTheBodyIsBuffered()
    {
        await using WebApplication app = await StartAsync("requests", app => app.MapPost("/", async (HttpRequest request) =>
        {
            using MemoryStream body = new();
            await request.Body.CopyToAsync(body);
            return $"{body.Length} {request.CheckTrailersAvailable()} {request.GetTrailer("X-Sum")}";
        }));
        using Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        await socket.ConnectAsync(IPAddress.Loopback, new Uri(app.Urls.First()).Port, _stop);
        await using NetworkStream stream = new(socket);
        await stream.WriteAsync(Encoding.ASCII.GetBytes(
            "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"
            + "Trailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 7\r\n\r\n"), _stop);
        using StreamReader reader = new(stream);
        Assert.Contains("5 True 7", await reader.ReadToEndAsync(_stop), StringComparison.Ordinal);
    }

    private static byte[] Decompress(byte[] body)
    {
        using GZipStream gzip = new(new MemoryStream(body), CompressionMode.Decompress);
        using MemoryStream plain = new();
        gzip.CopyTo(plain);
        return plain.ToArray();
    }

    private async Task<WebApplication> StartAsync(string order, Action<WebApplication> map, HttpProtocols protocols = HttpProtocols.Http1)
    {
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder(new WebApplicationOptions { EnvironmentName = "Production" });
        builder.Logging.ClearProviders();
        builder.WebHost.UseKestrel(kestrel => kestrel.Listen(IPAddress.Loopback, 0, listen => listen.Protocols = protocols));
        builder.Services.AddResponseCompression(options => options.Providers.Add<GzipCompressionProvider>());
        builder.Services.AddRequestDecompression();
        builder.Services.AddOutputCache(options => options.AddBasePolicy(policy => policy.Cache()));
        builder.Services.AddHttpLogging(logging => logging.LoggingFields = HttpLoggingFields.All);
        WebApplication app = builder.Build();
        foreach (string one in order.Split('|'))
        {
            _ = one switch
            {
                "compression" => app.UseResponseCompression(),
                "decompression" => app.UseRequestDecompression(),
                "cache" => app.UseOutputCache(),
                "logging" => app.UseHttpLogging(),
                "requests" => app.UseRequestBuffering(),
                _ => app.UseResponseBuffering(),
            };
        }

        map(app);
        await app.StartAsync(_stop);
        return app;
    }
}
