namespace FilePipelines.AspNetCore.Tests;

/// <summary>
/// The same comparison where the bytes on the wire are framed or encrypted, on the test host, and around middleware that wraps the body.
/// </summary>
public sealed class ProtocolComparisonTests : IClassFixture<ProtocolComparisonTests.SharedFiles>
{
    private readonly FileTree _files;

    public ProtocolComparisonTests(SharedFiles files) => _files = files.Files;

    public enum Way
    {
        Http2,
        Tls,
        TlsHttp2,
        TestHost,
        BeforeCompression,
        AfterCompression,
    }

    public static TheoryData<Way> Ways() => [.. Enum.GetValues<Way>()];

    [Theory]
    [MemberData(nameof(Ways))]
    public Task Get_AnySizeAndRange_IsTheSame(Way way) => SameAsync(way, FileTree.Sizes);

    // The test host keeps what it sends in memory of 4 KiB pieces; and brotli takes its time.
    [Theory]
    [InlineData(Way.Http2), InlineData(Way.Tls), InlineData(Way.TlsHttp2), InlineData(Way.BeforeCompression)]
    [Trait("Category", StressTime.Category)]
    public Task Get_LargeFile_IsTheSame(Way way)
    {
        _files.AddLarge();
        return SameAsync(way, [FileTree.Large]);
    }

    private async Task SameAsync(Way way, int[] sizes)
    {
        await using FileServer plain = await StartAsync(way, withPipelines: false);
        await using FileServer ours = await StartAsync(way, withPipelines: true);
        using HttpClient plainClient = plain.CreateClient(VersionOf(way));
        using HttpClient ourClient = ours.CreateClient(VersionOf(way));
        foreach (int size in sizes)
        {
            bool isLarge = size == FileTree.Large;
            string name = FileTree.NameOf(size);
            byte[] content = FileTree.Content(size);
            foreach (string folder in new[] { "", "mapped/", "results/", "typed/", "send/", "around/" })
            {
                ClientResponse response = await SameAsync(HttpMethod.Get, folder + name);
                if (folder != "around/")
                {
                    Assert.Equal((size, Convert.ToHexString(SHA256.HashData(content))), (response.BodyLength, response.BodyHash));
                }

                if (isLarge)
                {
                    break;
                }
            }

            await SameAsync(HttpMethod.Head, name);
            await SameAsync(HttpMethod.Head, "typed/" + name);
            foreach (string range in new[] { "bytes=0-0", "bytes=1-100", "bytes=-70000", "bytes=4000-", "bytes=0-0,2-3", "bytes=999999999-",
                string.Create(CultureInfo.InvariantCulture, $"bytes={size}-") })
            {
                await SameAsync(HttpMethod.Get, name, $"Range: {range}");
            }

            await SameAsync(HttpMethod.Get, name, "If-None-Match: *");
            if (!isLarge)
            {
                ClientResponse compressed = await SameAsync(HttpMethod.Get, name, "Accept-Encoding: gzip");
                Assert.Equal(way is Way.BeforeCompression or Way.AfterCompression,
                    compressed.Head.Contains("Content-Encoding: gzip", StringComparison.Ordinal));
            }
        }

        foreach (string target in new[] { "missing.txt", "throws/missing.txt", "throws/-", "throws/4096.txt?offset=4097",
            "throws/4096.txt?offset=1&count=4096", "send/4096.txt?offset=4095", "send/4096.txt?status=404" })
        {
            await SameAsync(HttpMethod.Get, target);
        }

        async Task<ClientResponse> SameAsync(HttpMethod method, string target, params string[] headers)
        {
            ClientResponse expected = await ClientResponse.GetAsync(plainClient, method, target, headers);
            ClientResponse actual = await ClientResponse.GetAsync(ourClient, method, target, headers);
            Assert.Equal(expected, actual);
            return actual;
        }
    }

    private Task<FileServer> StartAsync(Way way, bool withPipelines) => FileServer.StartAsync(
        _files.Root,
        withPipelines,
        listen: endpoint =>
        {
            endpoint.Protocols = way is Way.Http2 or Way.TlsHttp2 ? HttpProtocols.Http2 : HttpProtocols.Http1;
            if (way is Way.Tls or Way.TlsHttp2)
            {
                endpoint.UseHttps(TestCertificate.Instance);
            }
        },
        services: services => services.AddResponseCompression(compression => compression.EnableForHttps = true),
        before: app => CompressIf(way == Way.AfterCompression, app),
        after: app => CompressIf(way == Way.BeforeCompression, app),
        onTestHost: way == Way.TestHost);

    private static void CompressIf(bool condition, IApplicationBuilder app)
    {
        if (condition)
        {
            app.UseResponseCompression();
        }
    }

    private static Version VersionOf(Way way) => way is Way.Http2 or Way.TlsHttp2 ? HttpVersion.Version20 : HttpVersion.Version11;

    public sealed class SharedFiles : IDisposable
    {
        public FileTree Files { get; } = new();

        public void Dispose() => Files.Dispose();
    }
}
