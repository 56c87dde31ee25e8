namespace FilePipelines.AspNetCore.Tests;

/// <summary>
/// Every response of a server with the middleware against that of the same server without it, as they come over the wire.
/// </summary>
public sealed class ComparisonTests : IClassFixture<ComparisonTests.Servers>
{
    private readonly Servers _servers;

    public ComparisonTests(Servers servers) => _servers = servers;

    private static readonly string[] s_ways = ["", "mapped/", "results/", "typed/", "mvc/", "send/", "around/"];

    public static TheoryData<int, string> SizesAndWays() => [.. FileTree.Sizes.SelectMany(size => s_ways.Select(way => (size, way)))];

    public static TheoryData<int, string> SizesAndRanges()
        => [.. FileTree.Sizes.SelectMany(size => RangesOf(size).Select(range => (size, range)))];

    public static TheoryData<string> RangesOfALargeFile() => [.. RangesOf(FileTree.Large)];

    private static string[] RangesOf(int size) =>
    [
        "bytes=0-0", "bytes=1-100", "bytes=4000-", "bytes=-1", "bytes=-70000", "bytes=0-0,2-3", "bytes=999999999-", "bytes=5-2", "bytes=",
        "lines=1-2", string.Create(CultureInfo.InvariantCulture, $"bytes={size - 1}-"), string.Create(
            CultureInfo.InvariantCulture, $"bytes={size}-"),
    ];

    [Theory]
    [MemberData(nameof(SizesAndWays))]
    public async Task Get_WholeFile_IsTheSame(int size, string way)
    {
        RawResponse response = await SameAsync($"GET /{way}{FileTree.NameOf(size)} HTTP/1.1", "Host: a");
        Assert.Contains(" 200 ", response.Head, StringComparison.Ordinal);
        Assert.Equal(way == "around/" ? size + 13 : size, response.BodyLength);
    }

    [Theory]
    [MemberData(nameof(SizesAndWays))]
    public async Task Get_Http10_IsTheSame(int size, string way) => await SameAsync($"GET /{way}{FileTree.NameOf(size)} HTTP/1.0");

    [Theory]
    [MemberData(nameof(SizesAndWays))]
    public async Task Head_IsTheSame(int size, string way) => await SameAsync($"HEAD /{way}{FileTree.NameOf(size)} HTTP/1.1", "Host: a");

    [Theory]
    [InlineData(""), InlineData("results/"), InlineData("typed/"), InlineData("mvc/"), InlineData("send/"), InlineData("around/")]
    [Trait("Category", StressTime.Category)]
    public async Task Get_LargeFile_IsTheSame(string way)
    {
        _servers.Files.AddLarge();
        await Get_WholeFile_IsTheSame(FileTree.Large, way);
        await Get_Http10_IsTheSame(FileTree.Large, way);
        await Head_IsTheSame(FileTree.Large, way);
    }

    [Theory]
    [MemberData(nameof(RangesOfALargeFile))]
    [Trait("Category", StressTime.Category)]
    public Task Get_RangeOfALargeFile_IsTheSame(string range)
    {
        _servers.Files.AddLarge();
        return Get_Range_IsTheSame(FileTree.Large, range);
    }

    [Theory]
    [MemberData(nameof(SizesAndRanges))]
    public async Task Get_Range_IsTheSame(int size, string range)
    {
        foreach (string way in new[] { "", "mapped/", "results/", "typed/", "mvc/" })
        {
            await SameAsync($"GET /{way}{FileTree.NameOf(size)} HTTP/1.1", "Host: a", $"Range: {range}");
        }
    }

    [Theory]
    [InlineData("If-Modified-Since: Fri, 02 Jan 2026 03:04:05 GMT")]
    [InlineData("If-Modified-Since: Thu, 01 Jan 2026 03:04:05 GMT")]
    [InlineData("If-Unmodified-Since: Thu, 01 Jan 2026 03:04:05 GMT")]
    [InlineData("If-None-Match: *")]
    [InlineData("If-None-Match: \"x\"")]
    [InlineData("If-None-Match: ETAG")]
    [InlineData("If-Match: \"x\"")]
    [InlineData("If-Match: ETAG")]
    [InlineData("Range: bytes=10-20", "If-Range: ETAG")]
    [InlineData("Range: bytes=10-20", "If-Range: \"x\"")]
    [InlineData("Range: bytes=10-20", "If-Range: Fri, 02 Jan 2026 03:04:05 GMT")]
    [InlineData("Range: bytes=10-20", "If-Range: Thu, 01 Jan 2026 03:04:05 GMT")]
    public async Task Get_Conditional_IsTheSame(params string[] headers)
    {
        string name = FileTree.NameOf(4096);
        RawResponse plain = await SameAsync($"GET /{name} HTTP/1.1", "Host: a");
        string etag = plain.Head.Split('\n').Single(line => line.StartsWith("ETag: ", StringComparison.Ordinal))[6..];
        foreach (string way in new[] { "", "typed/" })
        {
            await SameAsync([$"GET /{way}{name} HTTP/1.1", "Host: a",
                .. headers.Select(header => header.Replace("ETAG", etag, StringComparison.Ordinal))]);
        }
    }

    [Theory]
    [InlineData("/missing.txt")]
    [InlineData("/typed/missing.txt")]
    [InlineData("/send/missing.txt")]
    [InlineData("/send/missing/missing.txt")]
    [InlineData("/send/4096.txt?offset=4097")]
    [InlineData("/send/4096.txt?offset=-1")]
    [InlineData("/send/4096.txt?offset=4096")]
    [InlineData("/send/4096.txt?offset=4095")]
    [InlineData("/send/4096.txt?offset=1&count=4096")]
    [InlineData("/send/4096.txt?offset=1&count=4095")]
    [InlineData("/send/4096.txt?count=0")]
    [InlineData("/send/4096.txt?count=-1")]
    [InlineData("/send/1048576.txt?offset=70000&count=600000")]
    [InlineData("/send/4096.txt?status=404")]
    [InlineData("/send/4096.txt?status=204")]
    [InlineData("/send/4096.txt?status=304")]
    [InlineData("/send/4096.txt?status=205")]
    [InlineData("/throws/missing.txt")]
    [InlineData("/throws/missing%2Fmissing.txt")]
    [InlineData("/throws/-")]
    [InlineData("/throws/4096.txt?offset=4097")]
    [InlineData("/throws/4096.txt?offset=4097&count=1")]
    [InlineData("/throws/4096.txt?offset=-1")]
    [InlineData("/throws/4096.txt?offset=1&count=4096")]
    [InlineData("/throws/4096.txt?count=-1")]
    [InlineData("/announced/4096.txt/4096")]
    [InlineData("/announced/4096.txt/4095")]
    [InlineData("/announced/4096.txt/10")]
    [InlineData("/announced/0.txt/0")]
    [InlineData("/twice/4096.txt/8192")]
    [InlineData("/twice/4096.txt/4096")]
    [InlineData("/twice/4096.txt/6000")]
    [InlineData("/twice/1048576.txt/1572864")]
    [InlineData("/twice/1048576.txt/1048576")]
    public async Task Get_BoundsAndFailures_AreTheSame(string target) => await SameAsync($"GET {target} HTTP/1.1", "Host: a");

    [Fact]
    public async Task Get_SymbolicLinkAndFolder_AreTheSame()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Needs symbolic links.");
        string link = _servers.Files.PathOf("link.txt");
        if (!File.Exists(link))
        {
            File.CreateSymbolicLink(link, _servers.Files.PathOf(FileTree.NameOf(4096)));
        }

        foreach (string target in new[] { "/link.txt", "/typed/link.txt", "/send/link.txt", "/throws/link.txt" })
        {
            await SameAsync($"GET {target} HTTP/1.1", "Host: a");
        }
    }

    [Fact]
    public async Task Get_FileThatSomebodyHasForThemselves_IsTheSame()
    {
        string path = _servers.Files.Add("locked.txt", [1, 2, 3]);
        await using FileStream locked = new(path, FileMode.Open, FileAccess.ReadWrite, FileShare.None);
        foreach (string target in new[] { "/locked.txt", "/typed/locked.txt", "/throws/locked.txt" })
        {
            RawResponse response = await SameAsync($"GET {target} HTTP/1.1", "Host: a");
            Assert.NotEqual(3, response.BodyLength);
        }
    }

    [Fact]
    public async Task Get_ManyOverOneConnection_AreTheSame()
    {
        using Socket expected = await _servers.Plain.ConnectAsync();
        using Socket actual = await _servers.Ours.ConnectAsync();
        await using NetworkStream expectedStream = new(expected);
        await using NetworkStream actualStream = new(actual);
        for (int i = 0; i < 40; i++)
        {
            string[] request = [$"GET /{FileTree.NameOf(FileTree.Sizes[i % FileTree.Sizes.Length])} HTTP/1.1", "Host: a"];
            Assert.Equal(await RawResponse.GetAsync(expectedStream, request), await RawResponse.GetAsync(actualStream, request));
        }
    }

    [Theory]
    [InlineData("/late/4096.txt/4095")]
    [InlineData("/late/4096.txt/10")]
    [InlineData("/late/4096.txt/0")]
    [InlineData("/late/4096.txt/4096")]
    [InlineData("/late/1048576.txt/10")]
    [InlineData("/late/1048576.txt/1048576")]
    public async Task Get_LengthIsSetWhenTheResponseStarts_IsTheSame(string target)
    {
        RawResponse expected = await AskAsync(_servers.Plain, [$"GET {target} HTTP/1.1", "Host: a"]);
        RawResponse actual = await AskAsync(_servers.Ours, [$"GET {target} HTTP/1.1", "Host: a"]);

        // Nothing of a body is out then, and the connection may stay.
        Assert.Equal(expected with { Head = expected.Head.Replace("\nConnection: close", "", StringComparison.Ordinal) }, actual);
    }

    private async Task<RawResponse> SameAsync(params string[] request)
    {
        RawResponse expected = await AskAsync(_servers.Plain, request);
        RawResponse actual = await AskAsync(_servers.Ours, request);
        Assert.Equal(expected, actual);
        return actual;
    }

    private static async Task<RawResponse> AskAsync(FileServer server, string[] request)
    {
        using Socket socket = await server.ConnectAsync();
        await using NetworkStream stream = new(socket);
        return await RawResponse.GetAsync(stream, request);
    }

    public sealed class Servers : IAsyncLifetime
    {
        public FileTree Files { get; } = new();

        public FileServer Plain { get; private set; } = null!;

        public FileServer Ours { get; private set; } = null!;

        public async ValueTask InitializeAsync()
        {
            Plain = await FileServer.StartAsync(Files.Root, withPipelines: false);
            Ours = await FileServer.StartAsync(Files.Root, withPipelines: true);
        }

        public async ValueTask DisposeAsync()
        {
            await Plain.DisposeAsync();
            await Ours.DisposeAsync();
            Files.Dispose();
        }
    }
}
