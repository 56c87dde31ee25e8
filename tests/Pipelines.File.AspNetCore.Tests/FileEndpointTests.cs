using Microsoft.AspNetCore.Routing;
using Microsoft.AspNetCore.StaticFiles;
using Microsoft.Extensions.FileProviders;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>
/// MapFiles against UseStaticFiles with the same options: each request is made several times over, because the answer is remembered.
/// </summary>
public sealed class FileEndpointTests : IDisposable
{
    private static readonly string[] s_conditions =
    [
        "If-None-Match: ETAG", "If-None-Match: \"x\"", "If-None-Match: *", "If-Match: ETAG", "If-Match: \"x\"",
        "If-Modified-Since: Fri, 02 Jan 2026 03:04:05 GMT", "If-Modified-Since: Thu, 01 Jan 2026 03:04:05 GMT",
        "If-Unmodified-Since: Thu, 01 Jan 2026 03:04:05 GMT", "If-Unmodified-Since: Fri, 02 Jan 2026 03:04:05 GMT",
        "Range: bytes=10-20", "Range: bytes=0-0,2-3", "Range: bytes=999999999-", "Range: bytes=5-2", "Range: lines=1-2",
        "Range: bytes=10-20|If-Range: ETAG", "Range: bytes=10-20|If-Range: \"x\"",
        "Range: bytes=10-20|If-Range: Fri, 02 Jan 2026 03:04:05 GMT", "Range: bytes=10-20|If-Range: Thu, 01 Jan 2026 03:04:05 GMT",
        "If-None-Match: ETAG|Range: bytes=1-2", "Range:", "If-None-Match:", "Accept-Encoding: gzip", "Connection: close",
    ];

    private static readonly bool[] s_plainAndMapped = [false, true];

    private readonly FileTree _files = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public void Dispose() => _files.Dispose();

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Get_AnySizeAndCondition_IsTheSame(bool alsoByMiddleware)
    {
        await using Pair pair = await StartAsync(alsoByMiddleware: alsoByMiddleware);
        foreach (int size in FileTree.Sizes)
        {
            string path = "/files/" + FileTree.NameOf(size);
            RawResponse response = await pair.SameAsync(path);
            Assert.Equal((size, true), (response.BodyLength, response.IsWhole));
            string etag = response.Head.Split('\n').Single(line => line.StartsWith("ETag: ", StringComparison.Ordinal))[6..];
            foreach (string condition in size is 0 or 4096 or 65537 ? s_conditions : [])
            {
                await pair.SameAsync(path, [.. condition.Replace("ETAG", etag, StringComparison.Ordinal).Split('|')]);
            }

            await pair.HeadAsync(path);
        }
    }

    [Fact]
    public async Task Get_RandomRange_IsTheSame()
    {
        await using Pair pair = await StartAsync();
        Random random = new(39);
        for (int i = 0; i < 200; i++)
        {
            int size = FileTree.Sizes[random.Next(FileTree.Sizes.Length)];
            int from = random.Next(-2, size + 2);
            string range = string.Create(CultureInfo.InvariantCulture,
                $"Range: bytes={(from < 0 ? "" : from)}-{(random.Next(3) == 0 ? "" : Math.Max(0, from) + random.Next(size + 2))}");
            await pair.SameAsync("/files/" + FileTree.NameOf(size), range);
        }
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Get_RudePath_IsTheSame(bool servesUnknown)
    {
        string outside = _files.Add("outside.txt", [1]);
        string root = Directory.CreateDirectory(_files.PathOf("root")).FullName;
        foreach (string name in new[] { "a.txt", ".hidden.txt", "unknown.zzz", "none", "two words.txt", "ü.txt", "100%.txt", "a+b.txt" })
        {
            File.WriteAllText(Path.Combine(root, name), name);
        }

        Directory.CreateDirectory(Path.Combine(root, "folder.txt"));
        File.WriteAllText(Path.Combine(root, "folder.txt", "in.txt"), "in");
        if (!OperatingSystem.IsWindows())
        {
            File.CreateSymbolicLink(Path.Combine(root, "link.txt"), outside);
            File.CreateSymbolicLink(Path.Combine(root, "dangling.txt"), Path.Combine(root, "nothing"));
            File.CreateSymbolicLink(Path.Combine(root, "device.txt"), "/dev/null");
        }

        await using Pair pair = await StartAsync(root, servesUnknown: servesUnknown);
        foreach (string path in new[]
        {
            "a.txt", ".hidden.txt", "unknown.zzz", "none", "two%20words.txt", "%C3%BC.txt", "100%25.txt", "a+b.txt", "a%2Bb.txt",
            "folder.txt", "folder.txt/", "folder.txt/in.txt", "folder.txt%2Fin.txt", "folder.txt%5Cin.txt", "folder.txt\\in.txt",
            "link.txt", "dangling.txt", "missing.txt", "a.txt.", "a.txt%20", "a.txt%00", "a%00.txt", "%00", "A.TXT",
            "../outside.txt", "%2e%2e/outside.txt", "..%2foutside.txt", "%2e%2e%2foutside.txt", "..%5coutside.txt",
            "folder.txt/../a.txt", "./a.txt", "", ".", "..", "%2e", "a.txt?x=1",
            "a.txt?", "a.txt%3Fx", "~/a.txt", "C:/a.txt", "%2Fa.txt", "%FF.txt", "a.txt/in.txt",
            new string('a', 300) + ".txt", string.Concat(Enumerable.Repeat("./", 200)) + "a.txt",
        })
        {
            await pair.SameAsync("/files/" + path);
            await pair.HeadAsync("/files/" + path);
        }

        // It never ends, so only its head is asked for.
        await pair.HeadAsync("/files/device.txt");
        foreach (string path in new[] { "/files", "/FILES/a.txt", "/file/a.txt", "/filesa.txt", "/", "//files/a.txt" })
        {
            await pair.SameAsync(path);
        }
    }

    [Fact]
    public async Task Get_FileThatWasAnswered_IsAnsweredWithoutTheMiddleware()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Only there files are kept open.");
        using (SharedFile file = SharedFile.Open(_files.PathOf(FileTree.NameOf(4096))))
        {
            Assert.SkipUnless(file.TellsChanges, "The file system of the temporary folder is not known to be local.");
        }

        await using Pair pair = await StartAsync();
        string path = "/files/" + FileTree.NameOf(4096);

        // The first request opens the file, and the second one finds that it is kept.
        await pair.SameAsync(path);
        Assert.Equal(2, pair.Answers);
        await pair.SameAsync(path, "Range: bytes=0-1");
        await pair.HeadAsync(path);
        Assert.Equal(2, pair.Answers);
    }

    [Fact]
    public async Task Get_FileThatChanges_IsTheSame()
    {
        string path = _files.PathOf("changes.txt");
        await using Pair pair = await StartAsync();
        DateTime time = new(2026, 2, 3, 4, 5, 6, DateTimeKind.Utc);
        for (int i = 0; i < 3; i++)
        {
            // Another file of another length; rewritten with the same length; made shorter; longer; gone.
            Write(path + ".new", 5000 + i);
            File.Move(path + ".new", path, overwrite: true);
            Assert.Equal(5000 + i, (await pair.SameAsync("/files/changes.txt")).BodyLength);
            Write(path, 5000 + i);
            await pair.SameAsync("/files/changes.txt");
            Write(path, 10);
            Assert.Equal(10, (await pair.SameAsync("/files/changes.txt")).BodyLength);
            Write(path, 100_000);
            Assert.Equal(100_000, (await pair.SameAsync("/files/changes.txt")).BodyLength);
            Write(path, 0);
            await pair.SameAsync("/files/changes.txt");
            File.Delete(path);
            Assert.Contains(" 404 ", (await pair.SameAsync("/files/changes.txt")).Head, StringComparison.Ordinal);
            Directory.CreateDirectory(path);
            await pair.SameAsync("/files/changes.txt");
            Directory.Delete(path);
        }

        void Write(string to, int length)
        {
            time = time.AddSeconds(1);
            byte[] content = FileTree.Content(length);
            Array.Fill(content, (byte)time.Second, 0, Math.Min(5, length));
            File.WriteAllBytes(to, content);
            File.SetLastWriteTimeUtc(to, time);
        }
    }

    [Fact]
    public async Task Get_FolderOnTheWayThatBecomesAnother_IsTheSame()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Needs symbolic links.");
        foreach (string version in new[] { "one", "two" })
        {
            Directory.CreateDirectory(_files.PathOf(version));
            File.WriteAllText(_files.PathOf(Path.Combine(version, "a.txt")), version);
            File.SetLastWriteTimeUtc(_files.PathOf(Path.Combine(version, "a.txt")), new DateTime(2026, 1, 2, 3, 4, 5, DateTimeKind.Utc));
        }

        await using Pair pair = await StartAsync();
        RawResponse[] bodies = new RawResponse[2];
        for (int i = 0; i < 4; i++)
        {
            Directory.CreateSymbolicLink(_files.PathOf("current"), _files.PathOf(i % 2 == 0 ? "one" : "two"));
            bodies[i % 2] = await pair.SameAsync("/files/current/a.txt");
            Directory.Delete(_files.PathOf("current"));
        }

        Assert.NotEqual(bodies[0].BodyHash, bodies[1].BodyHash);
    }

    [Fact]
    public async Task Get_OptionsWithCallbacks_AreCalledForEachResponse()
    {
        List<string> seen = [];
        await using Pair pair = await StartAsync(configure: options =>
        {
            options.OnPrepareResponse = prepared =>
            {
                prepared.Context.Response.SetUploadHeaders();
                prepared.Context.Response.Headers["X-Seen"] =
                    $"{prepared.Context.Request.Path} {prepared.File.Name} {prepared.File.Length} {prepared.File.LastModified:O}";
                seen.Add($"{prepared.Context.Request.Path} {prepared.Context.GetEndpoint() is not null}");
            };
            options.OnPrepareResponseAsync = async prepared =>
            {
                await Task.Yield();
                prepared.Context.Response.Headers["X-Later"] = "yes";
            };
        });
        string path = "/files/" + FileTree.NameOf(4096);
        RawResponse response = await pair.SameAsync(path);
        Assert.Contains("X-Later: yes", response.Head, StringComparison.Ordinal);

        // The plain server has no endpoint.
        Assert.Equal((Pair.Times, Pair.Times), (seen.Count(one => one == path + " False"), seen.Count(one => one == path + " True")));
    }

    [Theory]
    [InlineData("throws"), InlineData("304"), InlineData("length"), InlineData("canceled")]
    public async Task Get_CallbackThatSpoilsTheResponse_IsTheSame(string what)
    {
        await using Pair pair = await StartAsync(configure: options => options.OnPrepareResponse = prepared =>
        {
            if (prepared.Context.Request.QueryString.HasValue)
            {
                switch (what)
                {
                    case "throws":
                        throw new InvalidOperationException("the test's own");
                    case "304":
                        prepared.Context.Response.StatusCode = StatusCodes.Status304NotModified;
                        break;
                    case "length":
                        prepared.Context.Response.ContentLength = 10;
                        break;
                    default:
                        prepared.Context.RequestAborted = new CancellationToken(canceled: true);
                        break;
                }
            }
        });
        string path = "/files/" + FileTree.NameOf(4096);
        await pair.SameAsync(path);
        await pair.SameAsync(path + "?");
        await pair.SameAsync(path + "?now");
        await pair.SameAsync(path);
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Get_CallbackThatReplacesTheBody_SendsNothingOfTheFile(bool alsoByMiddleware)
    {
        await using Pair pair = await StartAsync(alsoByMiddleware: alsoByMiddleware, configure: options =>
        {
            options.OnPrepareResponse = prepared =>
            {
                if (prepared.Context.Request.QueryString.HasValue)
                {
                    prepared.Context.Response.StatusCode = StatusCodes.Status401Unauthorized;
                    prepared.Context.Response.ContentLength = prepared.Context.Request.QueryString.Value == "?0" ? 0 : null;
                    prepared.Context.Response.Body = Stream.Null;
                }
            };
        });
        string path = "/files/" + FileTree.NameOf(4096);
        await pair.SameAsync(path);
        Assert.Equal(0, (await pair.SameAsync(path + "?0")).BodyLength);
        await pair.SameAsync(path + "?none");
        await pair.SameAsync(path);
    }

    [Fact]
    public async Task Get_PageOfAnError_KeepsItsStatus()
    {
        string path = "/files/" + FileTree.NameOf(4096);
        await using Pair pair = await StartAsync(before: app => app.UseStatusCodePagesWithReExecute(path));
        await pair.SameAsync(path);
        RawResponse response = await pair.SameAsync("/missing");
        Assert.Contains(" 404 ", response.Head, StringComparison.Ordinal);
        Assert.Equal(4096, response.BodyLength);
    }

    [Fact]
    public async Task Get_ProviderThatComposesOthers_IsAskedEachTime()
    {
        string over = Directory.CreateDirectory(_files.PathOf("over")).FullName;
        await using Pair pair = await StartAsync(configure: options => options.FileProvider
            = new CompositeFileProvider(new PhysicalFileProvider(over), new PhysicalFileProvider(_files.Root)));
        string name = FileTree.NameOf(4096);
        await pair.SameAsync("/files/" + name);
        File.WriteAllText(Path.Combine(over, name), "over");
        Assert.Equal(4, (await pair.SameAsync("/files/" + name)).BodyLength);
    }

    [Fact]
    public async Task MapFiles_InAGroupWithAParameter_ServesTheFilesBelowIt()
    {
        await using FileServer server = await FileServer.StartAsync(_files.Root, withPipelines: false, after: app =>
            app.MapGroup("/of/{tenant}").MapFiles("files/", _ => _files.Root).RequireHost("a"));
        foreach ((string host, string status) in new[] { ("a", " 200 "), ("a", " 200 "), ("b", " 404 "), ("a", " 200 ") })
        {
            RawResponse response = await AskAsync(server, "GET /of/x/files/4096.txt HTTP/1.1", $"Host: {host}");
            Assert.Contains(status, response.Head, StringComparison.Ordinal);
        }
    }

    [Theory]
    [InlineData("POST"), InlineData("PUT"), InlineData("DELETE")]
    public async Task MapFiles_OtherMethod_Is405(string method)
    {
        await using Pair pair = await StartAsync();
        RawResponse response = await AskAsync(pair.Ours, $"{method} /files/4096.txt HTTP/1.1", "Host: a", "Content-Length: 0");
        Assert.Contains(" 405 ", response.Head, StringComparison.Ordinal);
        Assert.Contains("Allow: GET, HEAD", response.Head, StringComparison.Ordinal);
    }

    [Fact]
    public void MapFiles_WrongArgument_Throws()
    {
        WebApplication app = WebApplication.CreateSlimBuilder().Build();
        Assert.Throws<ArgumentNullException>(() => app.MapFiles(null!));
        Assert.Throws<ArgumentNullException>(() => FileEndpointRouteBuilderExtensions.MapFiles(null!, "/files"));
        Assert.Throws<ArgumentException>(() => app.MapFiles("/files", new StaticFileOptions { RequestPath = "/files" }));
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Get_OnHttp2AndOnTheTestHost_IsTheSame(bool onTestHost)
    {
        List<FileServer> servers = [];
        try
        {
            foreach (bool isMapped in s_plainAndMapped)
            {
                servers.Add(await FileServer.StartAsync(_files.Root, withPipelines: false, onTestHost: onTestHost,
                    listen: endpoint => endpoint.Protocols = HttpProtocols.Http2,
                    after: app => Serve(app, isMapped, OptionsOf(_files.Root, servesUnknown: true))));
            }

            foreach (int size in FileTree.Sizes)
            {
                List<string> answers = [];
                foreach (FileServer server in servers)
                {
                    using HttpClient client = server.CreateClient(onTestHost ? HttpVersion.Version11 : HttpVersion.Version20);
                    client.DefaultVersionPolicy = HttpVersionPolicy.RequestVersionExact;
                    for (int i = 0; i < Pair.Times; i++)
                    {
                        using HttpResponseMessage response = await client.GetAsync($"files/{FileTree.NameOf(size)}", _stop);
                        Assert.Equal(FileTree.Content(size), await response.Content.ReadAsByteArrayAsync(_stop));
                        response.Headers.Date = null;
                        answers.Add($"{response.StatusCode} {response.Headers} {response.Content.Headers}");
                    }
                }

                Assert.Single(answers.Distinct());
            }
        }
        finally
        {
            foreach (FileServer server in servers)
            {
                await server.DisposeAsync();
            }
        }
    }

    private static void Serve(WebApplication app, bool isMapped, StaticFileOptions options)
    {
        if (isMapped)
        {
            app.MapFiles("/files", options);
        }
        else
        {
            options.RequestPath = "/files";
            app.UseStaticFiles(options);
        }
    }

    private static StaticFileOptions OptionsOf(string root, bool servesUnknown)
        => new() { FileProvider = new PhysicalFileProvider(root), ServeUnknownFileTypes = servesUnknown };

    private static async Task<RawResponse> AskAsync(FileServer server, params string[] request)
    {
        using Socket socket = await server.ConnectAsync();
        await using NetworkStream stream = new(socket);
        return await RawResponse.GetAsync(stream, request);
    }

    private async Task<Pair> StartAsync(
        string? root = null, bool servesUnknown = true, bool alsoByMiddleware = false, Action<StaticFileOptions>? configure = null,
        Action<WebApplication>? before = null)
    {
        // The root of the servers themselves has no folder of that name.
        string empty = Directory.CreateDirectory(_files.PathOf("empty")).FullName;
        FileServer[] servers = await Task.WhenAll(s_plainAndMapped.Select(isMapped =>
        {
            StaticFileOptions options = OptionsOf(root ?? _files.Root, servesUnknown);
            configure?.Invoke(options);
            return FileServer.StartAsync(empty, withPipelines: isMapped && alsoByMiddleware, before: before,
                after: app => Serve(app, isMapped, options), logsFrom: LogLevel.Information);
        }));
        return new Pair(servers[0], servers[1]);
    }

    /// <summary>The same files, served by the middleware and by the endpoint.</summary>
    private sealed class Pair(FileServer plain, FileServer ours) : IAsyncDisposable
    {
        /// <summary>How often each request is made.</summary>
        internal const int Times = 4;

        internal FileServer Ours => ours;

        /// <summary>How many whole files the middleware of the endpoint has sent.</summary>
        internal int Answers => ours.Log.Lines.Count(line => line.StartsWith("Sending file. Request path", StringComparison.Ordinal));

        internal Task<RawResponse> SameAsync(string path, params string[] headers)
            => SameAsAsync([$"GET {path} HTTP/1.1", "Host: a", .. headers]);

        internal Task<RawResponse> HeadAsync(string path) => SameAsAsync([$"HEAD {path} HTTP/1.1", "Host: a"]);

        private async Task<RawResponse> SameAsAsync(string[] request)
        {
            RawResponse expected = await AskAsync(plain, request);
            for (int i = 0; i < Times; i++)
            {
                RawResponse actual = await AskAsync(ours, request);
                Assert.True(expected == actual, $"{string.Join('|', request)}: {actual}, expected {expected}");
            }

            // As often as the other server.
            for (int i = 1; i < Times; i++)
            {
                Assert.Equal(expected, await AskAsync(plain, request));
            }

            return expected;
        }

        public async ValueTask DisposeAsync()
        {
            await plain.DisposeAsync();
            await ours.DisposeAsync();
        }
    }
}
