namespace FilePipelines.AspNetCore.Tests;

/// <summary>
/// Kestrel's minimum data rate: whoever is served without the library is served with it, and whoever takes nothing is cut off by both.
/// </summary>
[Collection(nameof(AloneCollection))]
[Trait("Category", StressTime.Category)]
public sealed class RateTests : InARoot
{
    private const int Size = 16 * 1024 * 1024;

    private static readonly bool[] s_withoutAndWith = [false, true];

    public RateTests() => File.WriteAllBytes(Path.Combine(_root, "f.txt"), FileTree.Content(Size));

    [Fact]
    public async Task Get_ClientThatPauses_IsServedAsWithoutTheLibrary()
    {
        // All at once, as they do nothing but wait. What the kernel's buffers take at once is minutes of this rate, and the pause is much
        // longer than the grace period.
        (string Target, string Version, int BufferSize)[] ways =
        [
            ("f.txt", "HTTP/1.1", 64 * 1024),
            ("f.txt", "HTTP/1.1", 1024 * 1024),
            ("send/f.txt", "HTTP/1.1", 64 * 1024),
            ("send/f.txt", "HTTP/1.0", 64 * 1024),
        ];
        string[] cutOff = await FindAsync(ways, async (way, withPipelines) =>
        {
            await using FileServer server = await StartAsync(withPipelines, bytesPerSecond: 16 * 1024, way.BufferSize);
            using Socket socket = await AskAsync(server, $"GET /{way.Target} {way.Version}");
            await Task.Delay(TimeSpan.FromSeconds(9), _stop);
            await using NetworkStream stream = new(socket);
            RawResponse response = await RawResponse.ReadAsync(stream);
            return response is not { IsWhole: true, BodyLength: Size };
        });
        Assert.Empty(cutOff);
    }

    [Fact]
    public async Task Get_ClientThatPausesInTheThirdResponse_HasTheCreditOfTheOthers()
    {
        bool[] answers = await Task.WhenAll(s_withoutAndWith.Select(async withPipelines =>
        {
            await using FileServer server = await StartAsync(withPipelines, bytesPerSecond: 1024 * 1024, 64 * 1024);
            using Socket socket = await AskAsync(server, "GET /f.txt HTTP/1.1");
            await using NetworkStream stream = new(socket);
            Assert.True((await RawResponse.ReadAsync(stream)).IsWhole);
            Assert.True((await RawResponse.GetAsync(stream, "GET /f.txt HTTP/1.1", "Host: a")).IsWhole);
            await stream.WriteAsync("GET /f.txt HTTP/1.1\r\nHost: a\r\n\r\n"u8.ToArray(), _stop);
            await Task.Delay(TimeSpan.FromSeconds(9), _stop);
            return (await RawResponse.ReadAsync(stream)).IsWhole;
        }));
        Assert.Equal([true, true], answers);
    }

    [Fact]
    public async Task Get_ClientThatStops_IsCutOffAsWithoutTheLibrary()
    {
        string[] served = await FindAsync(["f.txt", "send/f.txt"], async (target, withPipelines) =>
        {
            await using FileServer server = await StartAsync(withPipelines, bytesPerSecond: 4 * 1024 * 1024, 64 * 1024);
            using Socket socket = await AskAsync(server, $"GET /{target} HTTP/1.1");
            await Eventually.TrueAsync(() => server.Log.Lines.Any(line => line.Contains("minimum data rate", StringComparison.Ordinal)));
            await using NetworkStream stream = new(socket);
            return (await RawResponse.ReadAsync(stream)).IsWhole;
        });
        Assert.Empty(served);
    }

    /// <summary>The ways, each without and with the library, of which that is so.</summary>
    private static async Task<string[]> FindAsync<T>(T[] ways, Func<T, bool, Task<bool>> isSoAsync)
    {
        string?[] found = await Task.WhenAll(ways.SelectMany(way => s_withoutAndWith.Select(async withPipelines =>
            await isSoAsync(way, withPipelines) ? $"{way}, {(withPipelines ? "with" : "without")}" : null)));
        return [.. found.OfType<string>()];
    }

    private static async Task<Socket> AskAsync(FileServer server, string request)
    {
        Socket socket = await server.ConnectAsync();
        await socket.SendAsync(System.Text.Encoding.ASCII.GetBytes(request + "\r\nHost: a\r\n\r\n"), TestContext.Current.CancellationToken);
        return socket;
    }

    private Task<FileServer> StartAsync(bool withPipelines, int bytesPerSecond, int segmentSize)
        => FileServer.StartAsync(
            _root,
            withPipelines,
            configureKestrel: kestrel =>
                kestrel.Limits.MinResponseDataRate = new MinDataRate(bytesPerSecond, gracePeriod: TimeSpan.FromSeconds(1.1)),
            options: new FilePipelinesOptions { BufferSize = segmentSize },
            logsFrom: LogLevel.Debug);
}
