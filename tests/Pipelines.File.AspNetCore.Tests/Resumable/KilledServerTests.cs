using System.Diagnostics;
using System.Globalization;
using System.Net;
using System.Net.Sockets;

namespace FileSendingTests.Resumable;

/// <summary>Resumable uploads to a server that is killed at any moment.</summary>
public sealed class KilledServerTests : IDisposable
{
    private readonly string _root = Directory.CreateTempSubdirectory("resumable-").FullName;
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    // Guarded by itself: the server that runs now.
    private readonly Lock _serverLock = new();
    private Process? _server;
    private int _port;

    public void Dispose()
    {
        _server?.Kill();
        _server?.WaitForExit();
        _server?.Dispose();
        Directory.Delete(_root, recursive: true);
    }

    [Fact]
    [Trait("Category", "Long")]
    public async Task Uploads_ToAServerThatIsKilledAgainAndAgain_AreWhole()
    {
        const int Count = 8;
        Restart();
        int kills = 0;
        using CancellationTokenSource done = CancellationTokenSource.CreateLinkedTokenSource(_stop);
        Task killer = Task.Run(
            async () =>
            {
                while (!done.IsCancellationRequested)
                {
                    await Task.Delay(Random.Shared.Next(200, 1200), CancellationToken.None);
                    Restart();
                    kills++;
                }
            },
            CancellationToken.None);
        try
        {
            await Task.WhenAll(Enumerable.Range(0, Count).Select(UploadAsync)).WaitAsync(TimeSpan.FromMinutes(2), _stop);
        }
        finally
        {
            await done.CancelAsync();
            await killer;
        }

        Assert.NotEqual(0, kills);
        for (int i = 0; i < Count; i++)
        {
            Assert.Equal(ContentOf(i), await File.ReadAllBytesAsync(Path.Combine(TusChild.SavedOf(_root), $"{i}"), _stop));
        }

        Assert.Equal(Count, Directory.EnumerateFileSystemEntries(TusChild.SavedOf(_root)).Count());

        // Those of which the client was not told.
        Assert.All(Directory.EnumerateFiles(TusChild.UnfinishedOf(_root), "*.part"), path => Assert.Equal(0, new FileInfo(path).Length));
    }

    [Fact]
    public async Task Upload_ThatHasItsNameWhenTheServerDies_IsFinishedByTheNextRequest()
    {
        Restart();
        using HttpClient client = new();
        TusAnswer answer = await TusAnswer.SendAsync(
            client, "POST", UploadsOf(), null, ("Upload-Length", "5"), ("Upload-Metadata", "filename bmFtZQ=="));
        Uri upload = new(UploadsOf(), answer["Location"]);
        await Assert.ThrowsAnyAsync<HttpRequestException>(() => TusAnswer.SendAsync(
            client, "PATCH", upload, new ByteArrayContent("hello"u8.ToArray()), ("Upload-Offset", "0"), ("X-Die", "1")));
        string saved = Path.Combine(TusChild.SavedOf(_root), "name");
        Assert.Equal("hello", await File.ReadAllTextAsync(saved, _stop));
        Restart();
        upload = new Uri(UploadsOf(), upload.AbsolutePath);
        Assert.Equal("4", (await TusAnswer.SendAsync(client, "HEAD", upload, null))["Upload-Offset"]);

        // The file is published: no client changes it any more.
        answer = await TusAnswer.SendAsync(client, "PATCH", upload, new ByteArrayContent("X"u8.ToArray()), ("Upload-Offset", "4"));
        Assert.Equal((204, "5"), (answer.Status, answer["Upload-Offset"]));
        Assert.Equal("hello", await File.ReadAllTextAsync(saved, _stop));
        Assert.Single(Directory.EnumerateFiles(TusChild.UnfinishedOf(_root)));
    }

    private static byte[] ContentOf(int number)
    {
        byte[] content = new byte[500_000 + (number * 100_003)];
        new Random(number).NextBytes(content);
        return content;
    }

    private Uri UploadsOf() => new($"http://127.0.0.1:{_port}/uploads");

    private void Restart()
    {
        lock (_serverLock)
        {
            _server?.Kill();
            _server?.WaitForExit();
            _server?.Dispose();
            _server = TusChild.Start(_root, ref _port);
        }
    }

    // What a client does: asks for the offset, and sends the rest, slowly, until all is there.
    private async Task UploadAsync(int number)
    {
        byte[] content = ContentOf(number);
        using HttpClient client = new();
        Uri? upload = null;
        long told = 0;
        while (true)
        {
            try
            {
                if (upload is null)
                {
                    string name = Convert.ToBase64String(System.Text.Encoding.ASCII.GetBytes($"{number}"));
                    TusAnswer created = await TusAnswer.SendAsync(client, "POST", UploadsOf(), null,
                        ("Upload-Length", $"{content.Length}"), ("Upload-Metadata", $"filename {name}"));
                    Assert.Equal(201, created.Status);
                    upload = new Uri(UploadsOf(), created["Location"]);
                }

                TusAnswer head = await TusAnswer.SendAsync(client, "HEAD", upload, null);
                Assert.Equal(200, head.Status);
                long offset = long.Parse(head["Upload-Offset"], CultureInfo.InvariantCulture);
                Assert.True(offset >= told, $"{offset} after {told} was told");
                if (offset == content.Length)
                {
                    return;
                }

                int length = (int)Math.Min(200_000, content.Length - offset);
                using SlowContent body = new(content, (int)offset, length);
                TusAnswer answer = await TusAnswer.SendAsync(client, "PATCH", upload, body, ("Upload-Offset", $"{offset}"));
                if (answer.Status == 204)
                {
                    told = long.Parse(answer["Upload-Offset"], CultureInfo.InvariantCulture);
                    Assert.Equal(offset + length, told);
                }
                else
                {
                    Assert.Contains(answer.Status, (int[])[409, 423]);
                }
            }
            catch (Exception e) when (e is HttpRequestException or IOException or SocketException)
            {
                // It is being killed, or starts again.
                await Task.Delay(20, _stop);
            }
        }
    }

    private sealed class SlowContent(byte[] content, int offset, int length) : HttpContent
    {
        protected override async Task SerializeToStreamAsync(Stream stream, TransportContext? context)
        {
            foreach (ReadOnlyMemory<byte> piece in content.AsMemory(offset, length).ToArray().Chunk(20_000))
            {
                await stream.WriteAsync(piece);
                await stream.FlushAsync();
                await Task.Delay(5);
            }
        }

        protected override bool TryComputeLength(out long total)
        {
            total = length;
            return true;
        }
    }
}
