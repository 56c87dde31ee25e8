namespace FilePipelines.AspNetCore.Tests.Resumable;

/// <summary>Resumable uploads to a server that is killed at any moment.</summary>
public sealed class KilledServerTests : IDisposable
{
    private readonly string _root = Directory.CreateTempSubdirectory("resumable-").FullName;
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    // Guarded by itself: the server that runs now.
    private readonly Lock _serverLock = new();
    private Process? _server;
    private int _port;

    // Interlocked: how often a client was told that its bytes are kept.
    private int _answers;

    public void Dispose()
    {
        _server?.Kill();
        _server?.WaitForExit();
        _server?.Dispose();
        Directory.Delete(_root, recursive: true);
    }

    [Fact]
    [Trait("Category", "Long")]
    public async Task Uploads_AHundredAtOnce_BrokenOffAtRandom_ToAServerThatIsKilled_AreWhole()
    {
        // PIPELINES_FILE_UPLOADS=1000 is a long run.
        int count = int.TryParse(Environment.GetEnvironmentVariable("PIPELINES_FILE_UPLOADS"), CultureInfo.InvariantCulture, out int many)
            ? many : 100;
        int kills = Math.Max(3, count / 25);
        Restart();
        Task[] uploads = [.. Enumerable.Range(0, count).Select(UploadAsync)];
        Task all = Task.WhenAll(uploads);

        // There are nearly as many answers as uploads, so nearly each kill comes, in the middle of others: an answer may be lost with its
        // server, and the upload be whole.
        int answers = 0;
        for (int i = 0; i < kills; i++)
        {
            answers += Random.Shared.Next(1, Math.Max(2, count / kills));
            await Eventually.TrueAsync(() => Volatile.Read(ref _answers) >= answers || all.IsCompleted || _server!.HasExited);
            Assert.False(_server!.HasExited, $"The server has ended by itself after {_answers} answers.");
            if (!all.IsCompleted)
            {
                Restart();
            }
        }

        await all.WaitAsync(Eventually.Limit * kills, _stop);
        for (int i = 0; i < count; i++)
        {
            byte[] saved = await File.ReadAllBytesAsync(Path.Combine(TusChild.SavedOf(_root), $"{i}"), _stop);
            Assert.Equal(Convert.ToHexString(SHA256.HashData(ContentOf(i))), Convert.ToHexString(SHA256.HashData(saved)));
        }

        Assert.Equal(count, Directory.EnumerateFileSystemEntries(TusChild.SavedOf(_root)).Count());
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
        byte[] content = new byte[1 + (number * 100_003 % 400_000)];
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

    // What a client does: asks for the offset, and sends the rest, until all is there.
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
                int end = Random.Shared.Next(3) == 0 ? Random.Shared.Next(length) : length;
                using BrokenContent body = new(content, (int)offset, length, end);
                TusAnswer answer = await TusAnswer.SendAsync(client, "PATCH", upload, body, ("Upload-Offset", $"{offset}"));
                if (answer.Status == 204)
                {
                    told = long.Parse(answer["Upload-Offset"], CultureInfo.InvariantCulture);
                    Assert.Equal(offset + length, told);
                    Interlocked.Increment(ref _answers);
                }
                else
                {
                    Assert.Contains(answer.Status, (int[])[409, 423]);
                }
            }
            catch (Exception e) when (e is HttpRequestException or IOException or SocketException)
            {
                // It is being killed, starts again, or this client has broken off.
                await Task.Delay(20, _stop);
            }
        }
    }

    // Breaks off where it ends before its length.
    private sealed class BrokenContent(byte[] content, int offset, int length, int end) : HttpContent
    {
        protected override async Task SerializeToStreamAsync(Stream stream, TransportContext? context)
        {
            foreach (byte[] piece in content.AsMemory(offset, end).ToArray().Chunk(20_000))
            {
                await stream.WriteAsync(piece);
                await stream.FlushAsync();
            }

            if (end < length)
            {
                throw new IOException("The client breaks off.");
            }
        }

        protected override bool TryComputeLength(out long total)
        {
            total = length;
            return true;
        }
    }
}
