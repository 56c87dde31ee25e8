using Microsoft.AspNetCore.Antiforgery;
using Microsoft.AspNetCore.DataProtection;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.WebUtilities;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>Uploads in applications whose own parts read the body, or check it: controllers, antiforgery, decompression.</summary>
[Collection(nameof(AloneCollection))]
public sealed class UploadsInApplicationsTests : InARoot
{
    [Theory]
    [InlineData("without", "application/x-www-form-urlencoded", false)]
    [InlineData("with", "application/x-www-form-urlencoded", true)]
    [InlineData("without", "application/octet-stream", true)]
    public async Task SaveBodyAsync_InAController_IsSavedOrSaysWhatToDo(string action, string type, bool isSaved)
    {
        await using FileServer server = await StartControllersAsync();
        using HttpClient client = CreateClient(server);
        using StringContent content = new("a=1&b=2", Encoding.ASCII, type);
        using HttpResponseMessage response = await client.PutAsync($"mvc-save/{action}/f.txt", content, _stop);
        AssertSaved(await response.Content.ReadAsStringAsync(_stop), isSaved ? "a=1&b=2" : null);
    }

    [Theory]
    [InlineData("without", false)]
    [InlineData("with", true)]
    public async Task ReadSectionsAsync_InAController_IsSavedOrSaysWhatToDo(string action, bool isSaved)
    {
        await using FileServer server = await StartControllersAsync();
        using HttpClient client = CreateClient(server);
        using MultipartFormDataContent form = new("b") { { new StringContent("content"), "file", "f" } };
        using HttpResponseMessage response = await client.PostAsync($"mvc-form/{action}/f.txt", form, _stop);
        AssertSaved(await response.Content.ReadAsStringAsync(_stop), isSaved ? "content" : null);
    }

    [Theory]
    [InlineData("in part", false)]
    [InlineData("whole", false)]
    [InlineData("saved", false)]
    [InlineData("buffered", false)]
    [InlineData("rewound", true)]
    [InlineData("replaced", true)]
    [InlineData("not", true)]
    public async Task SaveBodyAsync_BodyWasReadBefore_Throws(string how, bool isSaved)
    {
        foreach ((bool isHttp2, bool isChunked) in new[] { (false, false), (false, true), (true, false), (true, true) })
        {
            await using FileServer server = await FileServer.StartAsync(
                _root,
                withPipelines: true,
                listen: endpoint => endpoint.Protocols = isHttp2 ? HttpProtocols.Http2 : HttpProtocols.Http1,
                after: app => app.MapPut("/save", async (HttpRequest request) =>
                {
                    await ReadBeforeAsync(request, how);
                    return await SavedOrAdviceAsync(request, "f.txt");
                }));
            using HttpClient client = server.CreateClient(isHttp2 ? HttpVersion.Version20 : HttpVersion.Version11);
            client.DefaultVersionPolicy = HttpVersionPolicy.RequestVersionExact;
            using HttpContent content = isChunked ? new PushContent("content"u8.ToArray()) : new StringContent("content");
            using HttpResponseMessage response = await client.PutAsync("save", content, _stop);
            AssertSaved(await response.Content.ReadAsStringAsync(_stop), isSaved ? "content" : null);
        }
    }

    [Fact]
    public async Task SaveBodyAsync_ServerEndsTheBodyBetweenTwoReads_IsBrokenOff()
    {
        // As Kestrel does when an HTTP/2 stream is reset. RequestAborted is canceled a moment later.
        DefaultHttpContext context = new();
        context.Features.Set<IRequestBodyPipeFeature>(new EndedBody());
        using Counters counters = new();
        await Assert.ThrowsAsync<IOException>(() => context.Request.SaveBodyAsync(Path.Combine(_root, "f.txt"), null, _stop));
        Assert.Equal(["broken_off"], counters.Kinds("uploads.broken"));
        Assert.Empty(Directory.GetFiles(_root));
    }

    [Theory]
    [InlineData(StatusCodes.Status412PreconditionFailed)]
    [InlineData(StatusCodes.Status413PayloadTooLarge)]
    [InlineData(StatusCodes.Status415UnsupportedMediaType)]
    public async Task SaveBodyAsync_BeforeReplaceHasAStatus_IsRefused(int status)
    {
        await File.WriteAllTextAsync(Path.Combine(_root, "f.txt"), "old", _stop);
        File.SetLastWriteTimeUtc(Path.Combine(_root, "f.txt"), DateTime.UtcNow.AddDays(-1));
        SaveBodyOptions options = new() { BeforeReplaceAsync = (_, _) => throw new BadHttpRequestException("Not now.", status) };
        using Counters counters = new();
        await Assert.ThrowsAsync<BadHttpRequestException>(
            () => new DefaultHttpContext().Request.SaveBodyAsync(Path.Combine(_root, "f.txt"), options, _stop));
        Assert.Equal(["refused"], counters.Kinds("uploads.broken"));
    }

    [Fact]
    public async Task ReadSectionsAsync_BodyWasReadBefore_Throws()
    {
        await using FileServer server = await FileServer.StartAsync(_root, withPipelines: true, after: app =>
            app.MapPost("/form", async (HttpRequest request) =>
            {
                await foreach (MultipartSection section in request.ReadSectionsAsync())
                {
                    Assert.NotNull(section.Headers);
                }

                return Assert.Throws<InvalidOperationException>(() => request.ReadSectionsAsync(cancellationToken: _stop)).Message;
            }));
        using HttpClient client = server.CreateClient(HttpVersion.Version11);
        using MultipartFormDataContent form = new("b") { { new StringContent("content"), "file", "f" } };
        using HttpResponseMessage response = await client.PostAsync("form", form, _stop);
        AssertSaved(await response.Content.ReadAsStringAsync(_stop), null);
    }

    [Theory]
    [InlineData("token", HttpStatusCode.OK)]
    [InlineData("none", HttpStatusCode.BadRequest)]
    [InlineData("broken", HttpStatusCode.BadRequest)]
    public async Task ReadSectionsAsync_Antiforgery_IsAsked(string what, HttpStatusCode status)
    {
        await using FileServer server = await FileServer.StartAsync(
            _root,
            withPipelines: true,
            services: services => services.AddAntiforgery().AddSingleton<IDataProtectionProvider, EphemeralDataProtectionProvider>(),
            after: app =>
            {
                app.UseRouting();
                app.UseAntiforgery();
                app.MapGet("/token", (HttpContext context, IAntiforgery antiforgery) =>
                    antiforgery.GetAndStoreTokens(context).RequestToken);
                app.MapPost("/form", async (HttpRequest request) =>
                {
                    int sections = 0;
                    await foreach (MultipartSection section in request.ReadSectionsAsync())
                    {
                        await section.SaveSectionAsync(Path.Combine(_root, $"{sections++}"));
                    }
                }).WithMetadata(new RequireAntiforgeryTokenAttribute());
            });
        using HttpClient client = server.CreateClient(HttpVersion.Version11);
        string token = await client.GetStringAsync("token", _stop);

        // The middleware looks for a token in the form, and finds no form there.
        string headers = string.Concat(Enumerable.Range(0, 17).Select(i => $"X-{i}: 1\r\n"));
        using StringContent form = new(
            $"--b\r\n{(what == "broken" ? headers : "")}Content-Disposition: form-data; name=a\r\n\r\none\r\n"
            + "--b\r\nContent-Disposition: form-data; name=c\r\n\r\ntwo\r\n--b--\r\n");
        form.Headers.Remove("Content-Type");
        form.Headers.TryAddWithoutValidation("Content-Type", "multipart/form-data; boundary=b");
        using HttpRequestMessage request = new(HttpMethod.Post, "form") { Content = form };
        if (what == "token")
        {
            request.Headers.Add("RequestVerificationToken", token);
        }

        using HttpResponseMessage response = await client.SendAsync(request, _stop);
        Assert.Equal(status, response.StatusCode);
        Assert.Equal(what == "token" ? 2 : 0, Directory.GetFiles(_root).Length);
    }

    [Theory]
    [InlineData("whole", HttpStatusCode.OK)]
    [InlineData("corrupt", HttpStatusCode.BadRequest)]
    [InlineData("cut", HttpStatusCode.BadRequest)]
    public async Task SaveBodyAsync_BehindRequestDecompression_IsWholeOrRefused(string what, HttpStatusCode status)
    {
        // As the project file of this program says, because the documentation recommends it.
        Assert.True(AppContext.TryGetSwitch("System.IO.Compression.UseStrictValidation", out bool isStrict) && isStrict);
        byte[] content = FileTree.Content(100_000);
        using MemoryStream packed = new();
        await using (System.IO.Compression.GZipStream gzip = new(packed, System.IO.Compression.CompressionLevel.Fastest, leaveOpen: true))
        {
            await gzip.WriteAsync(content, _stop);
        }

        byte[] body = packed.ToArray();
        if (what == "cut")
        {
            body = body[..(body.Length / 2)];
        }
        else if (what == "corrupt")
        {
            body.AsSpan(body.Length / 2, 1000).Fill(0xA5);
        }

        await using FileServer server = await FileServer.StartAsync(
            _root,
            withPipelines: true,
            services: services => services.AddRequestDecompression(),
            after: app =>
            {
                app.UseRequestDecompression();
                app.MapPut("/save", (HttpRequest request) => request.SaveBodyAsync(Path.Combine(_root, "f.bin")));
            });
        using HttpClient client = server.CreateClient(HttpVersion.Version11);
        using ByteArrayContent sent = new(body);
        sent.Headers.Add("Content-Encoding", "gzip");
        using HttpResponseMessage response = await client.PutAsync("save", sent, _stop);
        Assert.Equal(status, response.StatusCode);
        Assert.Equal(what == "whole" ? content : null,
            File.Exists(Path.Combine(_root, "f.bin")) ? await File.ReadAllBytesAsync(Path.Combine(_root, "f.bin"), _stop) : null);
    }

    [Fact]
    public async Task ReadSectionsAsync_MoreThanAllowed_Is413()
    {
        int? most = null;
        await using FileServer server = await FileServer.StartAsync(_root, withPipelines: true, after: app =>
            app.MapPost("/form", async (HttpRequest request) =>
            {
                int sections = 0;
                await foreach (MultipartSection section in most is int max ? request.ReadSectionsAsync(max) : request.ReadSectionsAsync())
                {
                    sections++;
                }

                return sections;
            }));
        using HttpClient client = server.CreateClient(HttpVersion.Version11);
        Assert.Equal(HttpStatusCode.OK, await PostAsync(1024));
        Assert.Equal(HttpStatusCode.RequestEntityTooLarge, await PostAsync(1025));
        most = 2;
        Assert.Equal(HttpStatusCode.OK, await PostAsync(2));
        Assert.Equal(HttpStatusCode.RequestEntityTooLarge, await PostAsync(3));

        async Task<HttpStatusCode> PostAsync(int sections)
        {
            using MultipartFormDataContent form = new("b");
            for (int i = 0; i < sections; i++)
            {
                form.Add(new StringContent("a"), $"{i}");
            }

            using HttpResponseMessage response = await client.PostAsync("form", form, _stop);
            return response.StatusCode;
        }
    }

    [Fact]
    public async Task SaveBodyAsync_OtherTransferCoding_IsRefused()
    {
        await using FileServer server = await FileServer.StartAsync(_root, withPipelines: true, after: app =>
            app.MapPut("/save", (HttpRequest request) => request.SaveBodyAsync(Path.Combine(_root, "f.bin"))));
        using System.Net.Sockets.Socket socket = await server.ConnectAsync();
        await using System.Net.Sockets.NetworkStream stream = new(socket);
        RawResponse response = await RawResponse.GetAsync(
            stream, "PUT /save HTTP/1.1", "Host: a", "Transfer-Encoding: gzip, chunked", "Connection: close", "", "3", "abc", "0");
        Assert.StartsWith("HTTP/1.1 415 ", response.Head, StringComparison.Ordinal);
        Assert.Empty(Directory.GetFiles(_root));
    }

    [Fact]
    public void SetUploadHeaders_PolicyOfTheApplication_GetsTheSandboxAsWell()
    {
        DefaultHttpContext context = new();
        context.Response.ContentType = "text/html";
        context.Response.Headers.ContentSecurityPolicy = "img-src 'self'";
        context.Response.SetUploadHeaders();
        context.Response.SetUploadHeaders();
        Assert.Equal<string?>(["img-src 'self'", "sandbox; default-src 'none'; style-src 'unsafe-inline'"],
            (IEnumerable<string?>)context.Response.Headers.ContentSecurityPolicy);
    }

    private async Task ReadBeforeAsync(HttpRequest request, string how)
    {
        switch (how)
        {
            case "in part":
                await request.Body.ReadExactlyAsync(new byte[3], _stop);
                break;
            case "whole":
                await request.Body.CopyToAsync(Stream.Null, _stop);
                break;
            case "saved":
                await request.SaveBodyAsync(Path.Combine(_root, "f.txt"), cancellationToken: _stop);
                File.Delete(Path.Combine(_root, "f.txt"));
                break;
            case "buffered" or "rewound":
                request.EnableBuffering();
                await request.Body.CopyToAsync(Stream.Null, _stop);
                request.Body.Position = how == "rewound" ? 0 : request.Body.Position;
                break;
            case "replaced":
                MemoryStream copy = new();
                await request.Body.CopyToAsync(copy, _stop);
                copy.Position = 0;
                request.Body = copy;
                break;
        }
    }

    private async Task<string> SavedOrAdviceAsync(HttpRequest request, string name)
    {
        try
        {
            return $"{(await request.SaveBodyAsync(Path.Combine(_root, name), cancellationToken: _stop)).Length}";
        }
        catch (InvalidOperationException e)
        {
            return e.Message;
        }
    }

    private static Task<FileServer> StartControllersAsync(string root)
        => FileServer.StartAsync(
            root,
            withPipelines: true,
            services: services => services.AddControllers().AddApplicationPart(typeof(UploadsController).Assembly),
            after: app => app.MapControllers());

    private Task<FileServer> StartControllersAsync() => StartControllersAsync(_root);

    private HttpClient CreateClient(FileServer server)
    {
        HttpClient client = server.CreateClient(HttpVersion.Version11);
        client.DefaultRequestHeaders.Add("X-Root", _root);
        return client;
    }

    private void AssertSaved(string answer, string? content)
    {
        string path = Path.Combine(_root, "f.txt");
        Assert.Equal(content, File.Exists(path) ? File.ReadAllText(path) : null);
        File.Delete(path);
        if (content is null)
        {
            Assert.Contains("[DisableFormValueModelBinding]", answer, StringComparison.Ordinal);
        }
        else
        {
            Assert.Equal($"{content.Length}", answer);
        }
    }

    /// <summary>A body that the server ends after the first read.</summary>
    private sealed class EndedBody : PipeReader, IRequestBodyPipeFeature
    {
        public PipeReader Reader => this;

        public override ValueTask<ReadResult> ReadAsync(CancellationToken cancellationToken = default)
            => new(new ReadResult(new ReadOnlySequence<byte>("abc"u8.ToArray()), isCanceled: false, isCompleted: false));

        public override void AdvanceTo(SequencePosition consumed) => throw new IOException("The client reset the request stream.");

        public override void AdvanceTo(SequencePosition consumed, SequencePosition examined) => AdvanceTo(consumed);

        public override void CancelPendingRead()
        {
        }

        public override void Complete(Exception? exception = null)
        {
        }

        public override bool TryRead(out ReadResult result) => throw new NotSupportedException();
    }

    /// <summary>A body whose length is not announced.</summary>
    private sealed class PushContent(byte[] content) : HttpContent
    {
        protected override Task SerializeToStreamAsync(Stream stream, TransportContext? context) => stream.WriteAsync(content).AsTask();

        protected override bool TryComputeLength(out long length)
        {
            length = 0;
            return false;
        }
    }
}
