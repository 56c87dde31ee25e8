using System.Buffers;
using System.IO.Pipelines;
using System.Net;
using System.Net.Http.Headers;
using System.Text;
using System.Text.Json;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Http;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;
using Pipelines.File;

namespace FileSendingTests;

/// <summary>A body that is buffered is read more than once: what works behind EnableBuffering works behind this.</summary>
public sealed class RequestBufferingTests : IAsyncLifetime
{
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;
    private readonly HttpClient _client = new();
    private WebApplication _app = null!;

    public async ValueTask InitializeAsync()
    {
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder(new WebApplicationOptions { EnvironmentName = "Production" });
        builder.Logging.ClearProviders();
        builder.WebHost.UseKestrel(kestrel => kestrel.Listen(IPAddress.Loopback, 0));
        _app = builder.Build();
        _app.Use(async (context, next) =>
        {
            FileBufferingPipe pipe = await context.Request.BufferBodyAsync(new() { MaxLength = 1_000_000 });
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
        await _app.StartAsync(_stop);
        _client.BaseAddress = new Uri(_app.Urls.First());
    }

    public async ValueTask DisposeAsync()
    {
        _client.Dispose();
        await _app.DisposeAsync();
    }

    [Theory]
    [InlineData(10)]
    [InlineData(300_000)]
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
    [InlineData(true)]
    [InlineData(false)]
    public async Task BodyIsTooLong_Is413(bool isChunked)
    {
        using HttpRequestMessage request = new(HttpMethod.Post, "/reader") { Content = new StringContent(new string('x', 1_000_001)) };
        request.Headers.TransferEncodingChunked = isChunked ? true : null;
        using HttpResponseMessage response = await _client.SendAsync(request, _stop);
        Assert.Equal(HttpStatusCode.RequestEntityTooLarge, response.StatusCode);
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
