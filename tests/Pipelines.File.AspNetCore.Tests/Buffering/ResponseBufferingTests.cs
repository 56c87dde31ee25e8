using Microsoft.AspNetCore.Http.Features;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>A response that is buffered is sent when its endpoint is done, and not at all if that throws.</summary>
public sealed class ResponseBufferingTests : InARoot
{
    private WebApplication _app = null!;

    public override async ValueTask InitializeAsync()
    {
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder(new WebApplicationOptions { EnvironmentName = "Production" });
        builder.Logging.ClearProviders();
        builder.WebHost.UseUrls("http://127.0.0.1:0");
        _app = builder.Build();
        _app.UseExceptionHandler(error => error.Run(context => context.Response.WriteAsync("failed")));
        _app.Map("/gives-up", branch => branch.UseResponseBuffering().Run(async context =>
        {
            await context.Response.WriteAsync("half");
            await context.Response.BodyWriter.CompleteAsync(new InvalidDataException());
        }));
        _app.UseResponseBuffering(new() { Folder = _root, MaxLength = 2_000_000 }, async (context, pipe, token) =>
        {
            byte[] hash = await SHA256.HashDataAsync(pipe.AsStream(), token);
            context.Response.Headers.ETag = $"\"{Convert.ToHexStringLower(hash)}\"";
            if (context.Request.Headers.IfNoneMatch == context.Response.Headers.ETag)
            {
                context.Response.StatusCode = StatusCodes.Status304NotModified;
            }
        });
        _app.MapMethods("/bytes/{length}", ["GET", "HEAD"], async (int length, HttpResponse response) =>
        {
            await response.Body.WriteAsync(new byte[length / 2]);
            await response.Body.FlushAsync();
            response.StatusCode = StatusCodes.Status202Accepted;
            response.BodyWriter.GetSpan(length - (length / 2)).Clear();
            response.BodyWriter.Advance(length - (length / 2));
            await response.Body.DisposeAsync();
            Assert.False(response.HasStarted);
        });
        _app.MapGet("/throws/{length}", async (int length, HttpResponse response) =>
        {
            await response.Body.WriteAsync(new byte[length]);
            await response.CompleteAsync();
            throw new InvalidDataException();
        });
        _app.MapGet("/file", (HttpResponse response) => response.SendFileAsync(Path.Combine(_root, "sent")));
        _app.MapGet("/started", async (HttpResponse response) =>
        {
            await response.StartAsync();
            response.Headers["X-Late"] = "1";
            response.StatusCode = StatusCodes.Status204NoContent;
        });
        _app.MapGet("/off", async (HttpContext context) =>
        {
            context.Features.GetRequiredFeature<IHttpResponseBodyFeature>().DisableBuffering();
            await context.Response.WriteAsync("at once");
            Assert.True(context.Response.HasStarted);
        });
        _app.MapGet("/held", async (HttpContext context) =>
        {
            // As response compression and logging of responses do: they take the stream before the endpoint runs.
            Stream body = context.Response.Body;
            PipeWriter writer = context.Response.BodyWriter;
            context.Features.GetRequiredFeature<IHttpResponseBodyFeature>().DisableBuffering();
            await body.WriteAsync("at "u8.ToArray());
            Assert.True(context.Response.HasStarted);
            await writer.WriteAsync("once"u8.ToArray());
        });
        _app.MapGet("/changes/{status}", async (int status, HttpResponse response) =>
        {
            response.ContentLength = 4;
            await response.WriteAsync("text");
            response.StatusCode = status;
        });
        _app.MapMethods("/headers", ["HEAD"], (HttpResponse response) =>
        {
            response.Headers["X-Only"] = "1";
        });
        _app.MapGet("/endpoint", (HttpResponse response) => response.WriteAsync("twice")).WithResponseBuffering();
        await _app.StartAsync(_stop);
        _client = new HttpClient { BaseAddress = new Uri(_app.Urls.First()) };
    }

    public override async ValueTask DisposeAsync()
    {
        await base.DisposeAsync();
        await _app.DisposeAsync();
    }

    [Theory]
    [InlineData(0), InlineData(10), InlineData(1_000_000)]
    public async Task Answer_HasItsLengthAndItsTag(int length)
    {
        using HttpResponseMessage response = await _client.GetAsync($"/bytes/{length}", _stop);
        Assert.Equal(HttpStatusCode.Accepted, response.StatusCode);
        Assert.Equal(length, response.Content.Headers.ContentLength);
        Assert.Equal(length, (await response.Content.ReadAsByteArrayAsync(_stop)).Length);
        using HttpRequestMessage again = new(HttpMethod.Get, $"/bytes/{length}");
        again.Headers.IfNoneMatch.Add(response.Headers.ETag!);
        using HttpResponseMessage unchanged = await _client.SendAsync(again, _stop);
        Assert.Equal(HttpStatusCode.NotModified, unchanged.StatusCode);
        using HttpRequestMessage head = new(HttpMethod.Head, $"/bytes/{length}");
        using HttpResponseMessage headers = await _client.SendAsync(head, _stop);
        Assert.Equal(length > 0 ? length : null, headers.Content.Headers.ContentLength);
        Assert.Equal(response.Headers.ETag, headers.Headers.ETag);
    }

    [Theory]
    [InlineData("/throws/10"), InlineData("/throws/1000000"), InlineData("/bytes/3000000"), InlineData("/gives-up")]
    public async Task EndpointThrows_NothingOfItsAnswerIsSent(string path)
    {
        using HttpResponseMessage response = await _client.GetAsync(path, _stop);
        Assert.Equal(HttpStatusCode.InternalServerError, response.StatusCode);
        Assert.Equal("failed", await response.Content.ReadAsStringAsync(_stop));
        Assert.Empty(Directory.EnumerateFileSystemEntries(_root));
    }

    [Fact]
    public async Task FilesStartsAndOff_AreAsWithout()
    {
        await File.WriteAllTextAsync(Path.Combine(_root, "sent"), "a file", _stop);
        Assert.Equal("a file", await _client.GetStringAsync("/file", _stop));
        Assert.Equal("twice", await _client.GetStringAsync("/endpoint", _stop));
        Assert.Equal("at once", await _client.GetStringAsync("/off", _stop));
        Assert.Equal("at once", await _client.GetStringAsync("/held", _stop));
        using HttpResponseMessage started = await _client.GetAsync("/started", _stop);
        Assert.Equal(HttpStatusCode.NoContent, started.StatusCode);
        Assert.Equal("1", started.Headers.GetValues("X-Late").Single());
    }

    [Theory]
    [InlineData(204), InlineData(304)]
    public async Task StatusWithoutABody_TheLengthOfTheAnswerDoesNotBreakIt(int status)
    {
        using HttpResponseMessage response = await _client.GetAsync($"/changes/{status}", _stop);
        Assert.Equal(status, (int)response.StatusCode);
        Assert.Equal("", await response.Content.ReadAsStringAsync(_stop));
        Assert.True(status == 304 || !response.Content.Headers.NonValidated.Contains("Content-Length"));
        Assert.Equal("twice", await _client.GetStringAsync("/endpoint", _stop));
    }

    [Fact]
    public async Task HeadWithoutABody_SaysNoLengthThatGetWouldNotHave()
    {
        using HttpRequestMessage head = new(HttpMethod.Head, "/headers");
        using HttpResponseMessage response = await _client.SendAsync(head, _stop);
        Assert.Equal("1", response.Headers.GetValues("X-Only").Single());
        Assert.False(response.Content.Headers.NonValidated.Contains("Content-Length"));
    }
}
