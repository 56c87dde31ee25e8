using System.IO.Compression;
using Microsoft.Extensions.FileProviders;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>
/// Compressed variants beside a file: who gets which, and that each is answered as a file of its own. Each request is made several times
/// over, because answers are remembered.
/// </summary>
public sealed class PrecompressedFilesTests : InARoot
{
    private const int Times = 4;

    private static readonly DateTime s_written = new(2026, 1, 2, 3, 4, 5, DateTimeKind.Utc);
    private static readonly string[] s_encodings = ["", "br", "gzip"];

    [Theory]
    [InlineData(null, "")]
    [InlineData("", "")]
    [InlineData("br", "br")]
    [InlineData("BR", "br")]
    [InlineData("gzip", "gzip")]
    [InlineData("gzip, deflate, br, zstd", "br")]
    [InlineData("gzip;q=1, br;q=0.9", "gzip")]
    [InlineData("gzip;q=0.001, br;q=0", "gzip")]
    [InlineData("x-gzip", "gzip")]
    [InlineData("x-gzip, *;q=0", "gzip")]
    [InlineData("gzip, X-GZIP;q=0", "")]
    [InlineData("br;q=0", "")]
    [InlineData("br;q=0.000, gzip;q=0.000", "")]
    [InlineData("br;q=0, br", "")]
    [InlineData("br, br;q=0", "")]
    [InlineData("*", "br")]
    [InlineData("*;q=0", "")]
    [InlineData("gzip, *;q=0", "gzip")]
    [InlineData("br;q=0, *", "gzip")]
    [InlineData("*;q=0.5, gzip", "gzip")]
    [InlineData("identity", "")]
    [InlineData("identity;q=0", "")]
    [InlineData("identity, br;q=0.5", "")]
    [InlineData("identity;q=0.5, br;q=0.5", "br")]
    [InlineData("identity;q=0.5, br;q=0.4, gzip;q=0.6", "gzip")]
    [InlineData("identity;q=0, *;q=0", "")]
    [InlineData("br;q=2", "")]
    [InlineData("br;q=-1", "")]
    [InlineData("br;q=1.0001", "")]
    [InlineData("br;q=NaN", "")]
    [InlineData("br;q=", "")]
    [InlineData("br;q", "")]
    [InlineData("br q=1", "")]
    [InlineData("brotli", "")]
    [InlineData("\"br\"", "")]
    [InlineData("b\u0000r", null)]
    [InlineData(",,,, ,", "")]
    [InlineData(",,br,,", "br")]
    [InlineData("../../br", "")]
    [InlineData("/br", "")]
    [InlineData("br\r\nAccept-Encoding: gzip;q=0", "br")]
    [InlineData("deflate\r\nAccept-Encoding: gzip", "gzip")]
    public async Task AcceptEncoding_EachForm_GetsTheBestThatIsTaken(string? header, string? encoding)
    {
        AddAll();
        await using FileServer server = await StartAsync();
        for (int i = 0; i < Times; i++)
        {
            string[] request = header is null ? [] : [$"Accept-Encoding: {header}"];
            RawResponse response = await AskAsync(server, "GET /files/app.js HTTP/1.1", request);
            if (encoding is null)
            {
                Assert.Contains(" 400 ", response.Head, StringComparison.Ordinal);
                continue;
            }

            CheckIs(response, encoding);
        }
    }

    [Fact]
    public async Task AcceptEncoding_LongAndFullOfNames_IsAnswered()
    {
        AddAll();
        await using FileServer server = await StartAsync();
        string names = string.Join(',', Enumerable.Range(0, 3000).Select(number => $"x{number}"));
        CheckIs(await AskAsync(server, "GET /files/app.js HTTP/1.1", $"Accept-Encoding: {names},gzip"), "gzip");
        CheckIs(await AskAsync(server, "GET /files/app.js HTTP/1.1", "Accept-Encoding: " + new string(',', 20_000) + "br"), "br");
        CheckIs(await AskAsync(server, "GET /files/app.js HTTP/1.1", "Accept-Encoding: " + new string(';', 20_000) + "br"), "");
    }

    [Theory]
    [InlineData("br"), InlineData("gzip")]
    public async Task Variant_ConditionsAndRanges_IsAnsweredAsAFileOfItsOwn(string encoding)
    {
        AddAll();

        // The same bytes and times, under the name of the file itself, from a server without variants.
        string other = Directory.CreateDirectory(Path.Combine(_root, "plain")).FullName;
        File.Copy(PathOf("app.js" + ExtensionOf(encoding)), Path.Combine(other, "app.js"));
        File.SetLastWriteTimeUtc(Path.Combine(other, "app.js"), s_written);
        await using FileServer ours = await StartAsync();
        await using FileServer plain = await StartAsync(new() { FileProvider = new PhysicalFileProvider(other) });
        RawResponse whole = await AskAsync(plain, "GET /files/app.js HTTP/1.1");
        string own = TagOf(whole);
        string original = TagOf(await AskAsync(ours, "GET /files/app.js HTTP/1.1"));
        foreach (string condition in new[]
        {
            "X: y", $"If-None-Match: {own}", $"If-None-Match: {original}", $"If-None-Match: W/{own}", "If-None-Match: *",
            $"If-Match: {own}", $"If-Match: {original}", "If-Modified-Since: Fri, 02 Jan 2026 03:04:05 GMT",
            "If-Unmodified-Since: Thu, 01 Jan 2026 03:04:05 GMT", "Range: bytes=3-9", "Range: bytes=-5", "Range: bytes=999999-",
            "Range: bytes=0-0,3-4", $"Range: bytes=3-9|If-Range: {own}", $"Range: bytes=3-9|If-Range: {original}",
        })
        {
            foreach (string method in new[] { "GET", "HEAD" })
            {
                RawResponse expected = await AskAsync(plain, $"{method} /files/app.js HTTP/1.1", condition.Split('|'));
                for (int i = 0; i < Times; i++)
                {
                    RawResponse actual = await AskAsync(ours, $"{method} /files/app.js HTTP/1.1",
                        [$"Accept-Encoding: {encoding}", .. condition.Split('|')]);
                    Assert.Contains("Vary: Accept-Encoding", actual.Head, StringComparison.Ordinal);
                    Assert.Equal(expected.Head.Contains("Content-Length: ", StringComparison.Ordinal)
                        && !expected.Head.Contains("Content-Length: 0", StringComparison.Ordinal),
                        actual.Head.Contains($"Content-Encoding: {encoding}", StringComparison.Ordinal));
                    Assert.Equal(expected with { Head = "" }, actual with { Head = "" });
                    Assert.Equal(Sorted(expected.Head), Sorted(actual.Head));
                }
            }
        }

        static string Sorted(string head) => string.Join('\n', head.Split('\n').Order(StringComparer.Ordinal)
            .Where(line => !line.StartsWith("Vary: ", StringComparison.Ordinal)
                && !line.StartsWith("Content-Encoding: ", StringComparison.Ordinal)));
    }

    [Fact]
    public async Task Variant_TagsOfAllThatAClientCanGet_Differ()
    {
        // As `gzip -k` and `brotli` leave times, and with lengths that are the same.
        AddAll();
        Add("app.js.gz", File.ReadAllBytes(PathOf("app.js.br")), s_written.AddMilliseconds(300));
        await using FileServer server = await StartAsync();
        Dictionary<string, string> bodies = [];
        foreach (string encoding in s_encodings)
        {
            RawResponse response = await AskAsync(server, "GET /files/app.js HTTP/1.1", $"Accept-Encoding: {encoding}");
            string body = response.BodyHash + response.Head.Contains("Content-Encoding: br", StringComparison.Ordinal);
            Assert.Equal(body, bodies.TryAdd(TagOf(response), body) ? body : bodies[TagOf(response)]);
        }
    }

    [Theory]
    [InlineData("older", false)]
    [InlineData("same time", true)]
    [InlineData("newer", true)]
    [InlineData("as long", false)]
    [InlineData("empty", false)]
    [InlineData("folder", false)]
    [InlineData("link", false)]
    [InlineData("link to another", false)]
    [InlineData("dangling link", false)]
    [InlineData("FIFO", false)]
    [InlineData("missing", false)]
    public async Task Variant_ThatIsNotOneOfTheFile_IsNotUsed(string what, bool isUsed)
    {
        AddAll();
        string path = PathOf("app.js.br");
        byte[] content = File.ReadAllBytes(path);
        File.Delete(path);
        switch (what)
        {
            case "older" or "same time" or "newer":
                Add("app.js.br", content, s_written.AddMilliseconds(what == "older" ? -10 : what == "newer" ? 10 : 0));
                break;
            case "as long":
                Add("app.js.br", File.ReadAllBytes(PathOf("app.js")), s_written);
                break;
            case "empty":
                Add("app.js.br", [], s_written);
                break;
            case "folder":
                Directory.CreateDirectory(path);
                break;
            case "FIFO":
                Assert.SkipWhen(OperatingSystem.IsWindows(), "There are no FIFOs in folders.");
                using (Process mkfifo = Process.Start("mkfifo", path))
                {
                    await mkfifo.WaitForExitAsync(TestContext.Current.CancellationToken);
                    Assert.Equal(0, mkfifo.ExitCode);
                }

                break;
            case "link" or "link to another" or "dangling link":
                Assert.SkipWhen(OperatingSystem.IsWindows(), "Needs symbolic links.");
                string outside = what == "link" ? Add("real.br", content, s_written) : "/etc/passwd";
                File.CreateSymbolicLink(path, what == "dangling link" ? PathOf("nothing") : outside);
                break;
        }

        await using FileServer server = await StartAsync();
        foreach (string method in new[] { "GET", "HEAD", "GET", "GET", "GET" })
        {
            RawResponse response = await AskAsync(server, $"{method} /files/app.js HTTP/1.1", "Accept-Encoding: br");
            Assert.Contains(" 200 ", response.Head, StringComparison.Ordinal);
            Assert.Equal(isUsed, response.Head.Contains("Content-Encoding: br", StringComparison.Ordinal));
            Assert.Contains($"Content-Length: {(isUsed ? content.Length : 10_000)}", response.Head, StringComparison.Ordinal);
            Assert.True(response.IsWhole);
        }
    }

    [Fact]
    public async Task Variant_ComesAndGoesWhileAnswersAreRemembered_IsSeenAtOnce()
    {
        AddAll();
        byte[] brotli = File.ReadAllBytes(PathOf("app.js.br"));
        byte[] plain = File.ReadAllBytes(PathOf("app.js"));
        await using FileServer server = await StartAsync();
        for (int round = 0; round < 3; round++)
        {
            await CheckAsync("br");
            File.Delete(PathOf("app.js.br"));
            await CheckAsync("gzip");
            Add("app.js.br", brotli, s_written);
            await CheckAsync("br");

            // Another version of the file: both variants are stale.
            Add("app.js", plain, s_written.AddSeconds(1));
            await CheckAsync("");
            Add("app.js.gz", Compress(plain, stream => new GZipStream(stream, CompressionLevel.Optimal)), s_written.AddSeconds(1));
            await CheckAsync("gzip");
            File.Delete(PathOf("app.js"));
            Assert.Contains(" 404 ", (await AskAsync(server, "GET /files/app.js HTTP/1.1", "Accept-Encoding: br, gzip")).Head,
                StringComparison.Ordinal);
            AddAll();
        }

        async Task CheckAsync(string encoding)
        {
            for (int i = 0; i < Times; i++)
            {
                CheckIs(await AskAsync(server, "GET /files/app.js HTTP/1.1", "Accept-Encoding: gzip, br"), encoding);
                CheckIs(await AskAsync(server, "GET /files/app.js HTTP/1.1"), "");
            }
        }
    }

    [Fact]
    public async Task AskedForItself_OrNotSwitchedOn_IsAsBefore()
    {
        AddAll();
        await using FileServer on = await StartAsync();
        await using FileServer off = await StartAsync(new FileEndpointOptions { FileProvider = new PhysicalFileProvider(_root) });
        await using FileServer plain = await StartAsync(new StaticFileOptions { FileProvider = new PhysicalFileProvider(_root) });
        foreach (string path in new[] { "app.js", "app.js.br", "app.js.gz", "missing.js", "app", ".br", "app.js/", "app.js.br.br", "" })
        {
            foreach (string encoding in new[] { "", "br", "gzip", "br, gzip" })
            {
                string[] headers = [$"Accept-Encoding: {encoding}"];
                RawResponse expected = await AskAsync(plain, $"GET /files/{path} HTTP/1.1", headers);
                Assert.Equal(expected, await AskAsync(off, $"GET /files/{path} HTTP/1.1", headers));
                if (path != "app.js")
                {
                    RawResponse actual = await AskAsync(on, $"GET /files/{path} HTTP/1.1", headers);
                    Assert.Equal(expected, actual with
                    {
                        Head = actual.Head.Replace("\nVary: Accept-Encoding", "", StringComparison.Ordinal),
                    });
                }
            }
        }
    }

    [Fact]
    public async Task CallbackOtherVaryAndErrorPage_GoTogetherWithIt()
    {
        AddAll();
        await using FileServer server = await StartAsync(
            new FileEndpointOptions
            {
                FileProvider = new PhysicalFileProvider(_root),
                ServePrecompressedFiles = true,
                OnPrepareResponse = prepared => prepared.Context.Response.Headers["X-File"]
                    = $"{prepared.File.Name} {prepared.Context.Response.Headers.ContentEncoding} {prepared.File.Length}",
            },
            app => app.UseStatusCodePagesWithReExecute("/files/app.js").Use((context, next) =>
            {
                context.Response.Headers.Vary = "Origin";
                return next(context);
            }));
        for (int i = 0; i < Times; i++)
        {
            RawResponse response = await AskAsync(server, "GET /files/app.js HTTP/1.1", "Accept-Encoding: br");
            CheckIs(response, "br");
            Assert.Contains("Vary: Origin", response.Head, StringComparison.Ordinal);
            Assert.Contains($"X-File: app.js.br br {response.BodyLength}", response.Head, StringComparison.Ordinal);
            RawResponse page = await AskAsync(server, "GET /missing HTTP/1.1", "Accept-Encoding: br");
            Assert.Contains(" 404 ", page.Head, StringComparison.Ordinal);
            Assert.Equal(response.BodyHash, page.BodyHash);
            Assert.Contains("Content-Encoding: br", page.Head, StringComparison.Ordinal);
        }
    }

    [Fact]
    public async Task BehindResponseCompression_IsCompressedOnce()
    {
        AddAll();
        File.Delete(PathOf("app.js.gz"));
        await using FileServer server = await StartAsync(before: app => app.UseResponseCompression(),
            services: services => services.AddResponseCompression());
        for (int i = 0; i < Times; i++)
        {
            CheckIs(await AskAsync(server, "GET /files/app.js HTTP/1.1", "Accept-Encoding: gzip, br"), "br");
            RawResponse compressed = await AskAsync(server, "GET /files/app.js HTTP/1.1", "Accept-Encoding: gzip");
            Assert.Contains("Content-Encoding: gzip", compressed.Head, StringComparison.Ordinal);
            Assert.Single(compressed.Head.Split('\n'), line => line.StartsWith("Vary: ", StringComparison.Ordinal));
        }
    }

    [Fact]
    public async Task FolderOfTheRequest_ServesItsVariants()
    {
        AddAll();
        await using FileServer server = await FileServer.StartAsync(_root, withPipelines: false, after: app =>
            app.MapFiles("/of/{user}", _ => _root, new FileEndpointOptions { ServePrecompressedFiles = true }));
        for (int i = 0; i < Times; i++)
        {
            CheckIs(await AskAsync(server, "GET /of/x/app.js HTTP/1.1", "Accept-Encoding: br"), "br");
            CheckIs(await AskAsync(server, "GET /of/x/app.js HTTP/1.1"), "");
        }
    }

    private static string ExtensionOf(string encoding) => encoding == "br" ? ".br" : ".gz";

    private static string TagOf(RawResponse response)
        => response.Head.Split('\n').Single(line => line.StartsWith("ETag: ", StringComparison.Ordinal))[6..];

    private static byte[] Compress(byte[] content, Func<Stream, Stream> compressor)
    {
        using MemoryStream compressed = new();
        using (Stream stream = compressor(compressed))
        {
            stream.Write(content);
        }

        return compressed.ToArray();
    }

    private void AddAll()
    {
        byte[] content = Encoding.ASCII.GetBytes(string.Concat(Enumerable.Range(0, 2500).Select(number => $"{number % 97:D3};")));
        Add("app.js", content, s_written);
        Add("app.js.br", Compress(content, stream => new BrotliStream(stream, CompressionLevel.Optimal)), s_written);
        Add("app.js.gz", Compress(content, stream => new GZipStream(stream, CompressionLevel.Optimal)), s_written);
    }

    private string Add(string name, byte[] content, DateTime written)
    {
        File.WriteAllBytes(PathOf(name), content);
        File.SetLastWriteTimeUtc(PathOf(name), written);
        return PathOf(name);
    }

    private void CheckIs(RawResponse response, string encoding)
    {
        Assert.Contains(" 200 ", response.Head, StringComparison.Ordinal);
        Assert.Contains("Content-Type: text/javascript", response.Head, StringComparison.Ordinal);
        Assert.Contains("Accept-Encoding", response.Head, StringComparison.Ordinal);
        Assert.Equal(encoding, response.Head.Split('\n')
            .SingleOrDefault(line => line.StartsWith("Content-Encoding: ", StringComparison.Ordinal))?[18..] ?? "");
        string expected = PathOf("app.js" + (encoding == "" ? "" : ExtensionOf(encoding)));
        Assert.Equal(Convert.ToHexString(System.Security.Cryptography.SHA256.HashData(File.ReadAllBytes(expected))), response.BodyHash);
        Assert.True(response.IsWhole);
    }

    private Task<FileServer> StartAsync(StaticFileOptions? options = null, Action<WebApplication>? before = null,
        Action<IServiceCollection>? services = null)
        => FileServer.StartAsync(Directory.CreateDirectory(PathOf("empty")).FullName, withPipelines: false, before: before,
            services: services, after: app => app.MapFiles("/files", options ?? new FileEndpointOptions
            {
                FileProvider = new PhysicalFileProvider(_root),
                ServePrecompressedFiles = true,
            }));

    private static async Task<RawResponse> AskAsync(FileServer server, string request, params string[] headers)
    {
        using Socket socket = await server.ConnectAsync();
        await using NetworkStream stream = new(socket);
        return await RawResponse.GetAsync(stream, [request, "Host: a", .. headers]);
    }
}
