using System.Net.Http.Headers;
using Microsoft.AspNetCore.WebUtilities;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>What an upload is refused for, before its body, after it, and in the moment in which it takes its name.</summary>
[Collection(nameof(AloneCollection))]
public sealed class UploadChecksTests : InARoot
{
    private Func<HttpRequest, SaveBodyOptions> _options = _ => new SaveBodyOptions();

    public override async ValueTask InitializeAsync()
    {
        _server = await FileServer.StartAsync(_root, withPipelines: true, after: app =>
        {
            app.MapPut("/save/{name}", (string name, HttpRequest request) => request.SaveBodyAsync(PathOf(name), _options(request)));
            app.MapPost("/sections", async (HttpRequest request) =>
            {
                await foreach (MultipartSection section in request.ReadSectionsAsync())
                {
                    await section.SaveSectionAsync(PathOf("section.txt"));
                }
            });
            app.MapPost("/form/{name}", async (string name, HttpRequest request) =>
            {
                MultipartReader form = new("b", request.Body);
                return (await (await form.ReadNextSectionAsync())!.SaveSectionAsync(PathOf(name), _options(request))).Length;
            });
        });
        _client = _server.CreateClient(HttpVersion.Version11);
    }

    [Theory]
    [InlineData("Content-Range", "bytes 5-9/10", HttpStatusCode.BadRequest, "malformed")]
    [InlineData("Content-Encoding", "gzip", HttpStatusCode.UnsupportedMediaType, "unsupported")]
    [InlineData("Content-Encoding", "identity, br", HttpStatusCode.UnsupportedMediaType, "unsupported")]
    [InlineData("Content-Encoding", "identity", HttpStatusCode.OK, null)]
    [InlineData("If-Match", "", HttpStatusCode.BadRequest, "malformed")]
    [InlineData("If-Match", "what", HttpStatusCode.BadRequest, "malformed")]
    [InlineData("Content-Type", "multipart/form-data; boundary=b", HttpStatusCode.UnsupportedMediaType, "unsupported")]
    public async Task SaveBodyAsync_BodyIsNotTheFileItself_IsRefused(string header, string value, HttpStatusCode status, string? kind)
    {
        HonourPreconditions();
        using Counters counters = new();
        Assert.Equal(status, await PutAsync("f.bin", "56789"u8.ToArray(), (header, value)));
        Assert.Equal(kind is null, File.Exists(PathOf("f.bin")));
        Assert.Equal(kind is null ? (1, 0) : (0, 1), (counters["uploads.saved"], counters["uploads.broken"]));
        Assert.Equal(kind is null ? [] : [kind], counters.Kinds("uploads.broken"));
    }

    [Theory]
    [InlineData(null), InlineData("MD6")]
    public async Task SaveBodyAsync_HashIsNone_LeavesNothing(string? name)
    {
        _options = _ => new SaveBodyOptions { Hash = new HashAlgorithmName(name) };
        Assert.Equal(HttpStatusCode.InternalServerError, await PutAsync("f.bin", [1, 2, 3]));
        Assert.Equal(0, OpenHandles.Below(_root));
        Assert.Empty(Directory.GetFileSystemEntries(_root));
    }

    [Fact]
    public async Task SaveBodyAsync_KeepContentEncoding_SavesWhatCame()
    {
        _options = _ => new SaveBodyOptions { KeepContentEncoding = true };
        Assert.Equal(HttpStatusCode.OK, await PutAsync("f.gz", "encoded"u8.ToArray(), ("Content-Encoding", "gzip")));
        Assert.Equal("encoded", await File.ReadAllTextAsync(PathOf("f.gz"), _stop));
    }

    [Fact]
    public async Task SaveBodyAsync_IfMatch_IsTheTagOfTheStaticFiles()
    {
        HonourPreconditions();
        Assert.Equal(HttpStatusCode.PreconditionFailed, await PutAsync("f.txt", "0"u8.ToArray(), ("If-Match", "*")));
        Assert.Equal(HttpStatusCode.OK, await PutAsync("f.txt", "1"u8.ToArray(), ("If-None-Match", "*")));
        Assert.Equal(HttpStatusCode.PreconditionFailed, await PutAsync("f.txt", "2"u8.ToArray(), ("If-None-Match", "*")));
        string tag = await TagOfAsync("f.txt");
        Assert.Equal(HttpStatusCode.PreconditionFailed, await PutAsync("f.txt", "3"u8.ToArray(), ("If-None-Match", tag)));
        Assert.Equal(HttpStatusCode.PreconditionFailed, await PutAsync("f.txt", "4"u8.ToArray(), ("If-Match", "\"other\"")));
        Assert.Equal(HttpStatusCode.PreconditionFailed, await PutAsync("f.txt", "5"u8.ToArray(), ("If-Match", "W/" + tag)));
        Assert.Equal(HttpStatusCode.BadRequest, await PutAsync("f.txt", "6"u8.ToArray(), ("If-Match", "what")));
        Assert.Equal("1", await File.ReadAllTextAsync(PathOf("f.txt"), _stop));

        // The same length in the same second, and nevertheless another tag.
        Assert.Equal(HttpStatusCode.OK, await PutAsync("f.txt", "7"u8.ToArray(), ("If-Match", "\"other\", " + tag)));
        Assert.Equal(HttpStatusCode.PreconditionFailed, await PutAsync("f.txt", "8"u8.ToArray(), ("If-Match", tag)));
        Assert.Equal("7", await File.ReadAllTextAsync(PathOf("f.txt"), _stop));
        Assert.NotEqual(tag, await TagOfAsync("f.txt"));
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task SaveBodyAsync_ManyWithTheSameTag_OneWins(bool isDurable)
    {
        HonourPreconditions(isDurable);
        for (int round = 0; round < 10; round++)
        {
            await File.WriteAllTextAsync(PathOf("f.txt"), "old", _stop);
            File.SetLastWriteTimeUtc(PathOf("f.txt"), DateTime.UtcNow.AddMinutes(-1 - round));
            string tag = await TagOfAsync("f.txt");
            HttpStatusCode[] answers = await Task.WhenAll(
                Enumerable.Range(100, 16).Select(i => PutAsync("f.txt", Encoding.ASCII.GetBytes($"{i}"), ("If-Match", tag))));
            Assert.Equal([HttpStatusCode.OK, .. Enumerable.Repeat(HttpStatusCode.PreconditionFailed, 15)], answers.Order());
            Assert.Equal($"{100 + Array.IndexOf(answers, HttpStatusCode.OK)}", await File.ReadAllTextAsync(PathOf("f.txt"), _stop));
        }

        Assert.Equal(["f.txt"], Directory.EnumerateFiles(_root).Select(Path.GetFileName));
    }

    [Theory]
    [InlineData("If-Match"), InlineData("If-None-Match")]
    public async Task SaveBodyAsync_FileChangesWhileTheBodyComes_IsDecidedInTheEnd(string header)
    {
        HonourPreconditions();
        string value = "*";
        if (header == "If-Match")
        {
            await File.WriteAllTextAsync(PathOf("f.txt"), "old", _stop);
            value = await TagOfAsync("f.txt");
        }

        using Socket socket = await _server.ConnectAsync();
        await socket.SendAsync(Encoding.ASCII.GetBytes($"PUT /save/f.txt HTTP/1.1\r\nHost: a\r\n{header}: {value}\r\n"
            + "Content-Length: 200000\r\nExpect: 100-continue\r\n\r\n"), _stop);

        // From then on the first look is over.
        byte[] answer = new byte[25];
        await using NetworkStream stream = new(socket);
        await stream.ReadExactlyAsync(answer, _stop);
        Assert.StartsWith("HTTP/1.1 100", Encoding.ASCII.GetString(answer), StringComparison.Ordinal);
        await File.WriteAllTextAsync(PathOf("f.txt"), "others", _stop);
        await socket.SendAsync(new byte[200_000], _stop);
        Assert.StartsWith("HTTP/1.1 412", (await RawResponse.ReadAsync(stream)).Head, StringComparison.Ordinal);
        Assert.Equal("others", await File.ReadAllTextAsync(PathOf("f.txt"), _stop));
        Assert.Equal(["f.txt"], Directory.EnumerateFiles(_root).Select(Path.GetFileName));
    }

    [Theory]
    [InlineData(0, false), InlineData(300_000, false), InlineData(3_000_000, true)]
    public async Task SaveBodyAsync_Inspect_SeesTheWholeFileBeforeItHasItsName(int size, bool isDurable)
    {
        byte[] content = FileTree.Content(size);
        ConcurrentQueue<long> progress = [];
        byte[]? seen = null;
        byte[]? hash = null;
        bool wasThere = true;
        _options = _ => new SaveBodyOptions
        {
            Durable = isDurable,
            Hash = HashAlgorithmName.SHA256,
            Progress = new Reports(progress.Enqueue),
            InspectAsync = async (upload, cancellationToken) =>
            {
                wasThere = File.Exists(PathOf("f.bin"));
                hash = upload.Hash.ToArray();
                using MemoryStream copy = new();
                await upload.Reader.CopyToAsync(copy, cancellationToken);
                seen = copy.ToArray();
                return upload.Length == size;
            },
        };
        foreach (string target in new[] { "save", "form" })
        {
            progress.Clear();
            Assert.Equal(HttpStatusCode.OK, target == "save" ? await PutAsync("f.bin", content) : await PostAsync("f.bin", content));
            Assert.False(wasThere);
            Assert.Equal(content, seen);
            Assert.Equal(SHA256.HashData(content), hash);
            Assert.Equal(content, await File.ReadAllBytesAsync(PathOf("f.bin"), _stop));
            Assert.Equal(progress.Order(), progress);
            Assert.Equal(size, progress.Last());
            File.Delete(PathOf("f.bin"));
        }
    }

    [Theory]
    [InlineData("refuses", HttpStatusCode.UnprocessableEntity)]
    [InlineData("throws", HttpStatusCode.UnprocessableEntity)]
    [InlineData("has a status", HttpStatusCode.InsufficientStorage)]
    [InlineData("cannot scan", HttpStatusCode.ServiceUnavailable)]
    public async Task SaveBodyAsync_InspectRefuses_NothingAppears(string how, HttpStatusCode status)
    {
        await File.WriteAllTextAsync(PathOf("f.bin"), "old", _stop);
        using Counters counters = new();
        _options = _ => new SaveBodyOptions
        {
            InspectAsync = async (upload, _) =>
            {
                ReadResult read = await upload.Reader.ReadAsync(CancellationToken.None);
                upload.Reader.AdvanceTo(read.Buffer.End);
                Assert.True(upload.Hash.IsEmpty);
                return how switch
                {
                    "throws" => throw new InvalidDataException("A virus."),
                    "cannot scan" => throw new IOException("The scanner is gone."),
                    "has a status" => throw new BadHttpRequestException("No room.", StatusCodes.Status507InsufficientStorage),
                    _ => false,
                };
            },
        };
        Assert.Equal(status, await PutAsync("f.bin", FileTree.Content(100_000)));
        Assert.Equal(status, await PostAsync("f.bin", FileTree.Content(100_000)));
        Assert.Equal("old", await File.ReadAllTextAsync(PathOf("f.bin"), _stop));
        Assert.Equal(["f.bin"], Directory.EnumerateFiles(_root).Select(Path.GetFileName));
        Assert.Equal((0, 2), (counters["uploads.saved"], counters["uploads.broken"]));
        Assert.Equal([how == "cannot scan" ? "inspection_failed" : "inspection"], counters.Kinds("uploads.broken"));
        if (how == "cannot scan")
        {
            Assert.Contains(_server.Log.Lines, line => line.Contains("The scanner is gone.", StringComparison.Ordinal)
                && line.StartsWith("The inspection of an upload has failed", StringComparison.Ordinal));
        }

        if (OperatingSystem.IsLinux())
        {
            Assert.Equal(0, OpenHandles.Below(_root));
        }
    }

    [Theory]
    [InlineData("multipart/form-data; boundary=b",
        "--b\r\nContent-Disposition: form-data; name=a\r\n\r\nwhole\r\n--b--\r\n", HttpStatusCode.OK)]
    [InlineData("multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=a\r\n\r\nbroken off",
        HttpStatusCode.BadRequest)]
    [InlineData("multipart/form-data; boundary=b", "--b\r\nno header\r\n\r\nx\r\n--b--\r\n", HttpStatusCode.BadRequest)]
    [InlineData("multipart/form-data; boundary=b", "--b\r\nContent-Disp", HttpStatusCode.BadRequest)]
    [InlineData("multipart/form-data; boundary=b", "nothing of a form", HttpStatusCode.BadRequest)]
    [InlineData("multipart/form-data; boundary=b", "", HttpStatusCode.BadRequest)]
    [InlineData("multipart/form-data", "--b--\r\n", HttpStatusCode.UnsupportedMediaType)]
    [InlineData("multipart/form-data; boundary=\"\"", "--b--\r\n", HttpStatusCode.UnsupportedMediaType)]
    [InlineData("text/plain; boundary=b", "--b--\r\n", HttpStatusCode.UnsupportedMediaType)]
    [InlineData("what", "--b--\r\n", HttpStatusCode.UnsupportedMediaType)]
    public async Task ReadSectionsAsync_Form_IsReadOrTheClientsMistake(string type, string body, HttpStatusCode status)
    {
        using ByteArrayContent content = new(Encoding.ASCII.GetBytes(body));
        content.Headers.TryAddWithoutValidation("Content-Type", type);
        using HttpResponseMessage response = await _client.PostAsync("sections", content, _stop);
        Assert.Equal(status, response.StatusCode);
        Assert.Equal(status == HttpStatusCode.OK ? 1 : 0, Directory.EnumerateFileSystemEntries(_root).Count());
    }

    private void HonourPreconditions(bool isDurable = false)
        => _options = request =>
            new SaveBodyOptions { IfMatch = request.Headers.IfMatch, IfNoneMatch = request.Headers.IfNoneMatch, Durable = isDurable };

    private async Task<string> TagOfAsync(string name)
    {
        using HttpResponseMessage response = await _client.GetAsync(name, _stop);
        return response.Headers.ETag!.ToString();
    }

    private async Task<HttpStatusCode> PutAsync(string name, byte[] content, params (string Name, string Value)[] headers)
    {
        using HttpRequestMessage request = new(HttpMethod.Put, "save/" + name) { Content = new ByteArrayContent(content) };
        foreach ((string header, string value) in headers)
        {
            Assert.True(request.Headers.TryAddWithoutValidation(header, value)
                || request.Content.Headers.TryAddWithoutValidation(header, value));
        }

        using HttpResponseMessage response = await _client.SendAsync(request, _stop);
        return response.StatusCode;
    }

    private async Task<HttpStatusCode> PostAsync(string name, byte[] content)
    {
        using ByteArrayContent part = new(content);
        using MultipartFormDataContent form = new("b") { { part, "file", "f" } };
        using HttpResponseMessage response = await _client.PostAsync("form/" + name, form, _stop);
        return response.StatusCode;
    }

    private sealed class Reports(Action<long> report) : IProgress<long>
    {
        public void Report(long value) => report(value);
    }
}
