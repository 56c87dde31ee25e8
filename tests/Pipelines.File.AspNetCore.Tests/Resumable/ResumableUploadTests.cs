namespace FilePipelines.AspNetCore.Tests.Resumable;

/// <summary>The tus protocol 1.0.0, request by request.</summary>
public sealed class ResumableUploadTests : UploadsInAFolder
{
    private readonly ManualTime _time = new();
    private readonly ConcurrentQueue<string> _completed = [];

    [Fact]
    public async Task Options_TellsWhatTheServerCan()
    {
        await StartAsync(maxLength: 1000);
        TusAnswer answer = await Server.SendAsync("OPTIONS", Server.Uploads, null, ("Tus-Resumable", ""));
        Assert.Equal((204, "1.0.0", "1.0.0", "1000", "sha1,sha256"), (answer.Status, answer["Tus-Version"], answer["Tus-Resumable"],
            answer["Tus-Max-Size"], answer["Tus-Checksum-Algorithm"]));
        Assert.Equal("creation,creation-with-upload,creation-defer-length,expiration,checksum,checksum-trailer,termination,concatenation",
            answer["Tus-Extension"]);
    }

    [Theory]
    [InlineData(0, 1), InlineData(1, 1), InlineData(100, 3), InlineData(5_000_001, 1), InlineData(5_000_001, 4)]
    public async Task Upload_InAnyPieces_IsTheFile(int length, int pieces)
    {
        await StartAsync();
        byte[] content = FileTree.Content(length);
        Uri upload = await Server.CreateAsync(length, ("Upload-Metadata", "filename ZsO8ci50eHQ=,empty"));
        int size = Math.Max(1, (length + pieces - 1) / pieces);
        for (int offset = 0; offset < length; offset += size)
        {
            TusAnswer head = await Server.HeadAsync(upload);
            Assert.Equal((200, $"{offset}", $"{length}", "filename ZsO8ci50eHQ=,empty", "no-store"), (head.Status, head["Upload-Offset"],
                head["Upload-Length"], head["Upload-Metadata"], head["Cache-Control"]));
            byte[] piece = content[offset..Math.Min(length, offset + size)];
            TusAnswer answer = await Server.PatchAsync(upload, offset, piece);
            Assert.Equal((204, $"{offset + piece.Length}", "1.0.0"), (answer.Status, answer["Upload-Offset"], answer["Tus-Resumable"]));
            Assert.NotEmpty(answer["Upload-Expires"]);
        }

        Assert.Equal(length, await Server.OffsetAsync(upload));
        Assert.Equal([$"für.txt, , {length}, {Convert.ToHexString(SHA256.HashData(content))}"], _completed);
        Assert.Equal(content, await File.ReadAllBytesAsync(Saved, _stop));
        Assert.Single(Directory.EnumerateFileSystemEntries(Folder));
        Assert.Equal(2, Directory.EnumerateFileSystemEntries(Root).Count());
    }

    [Fact]
    public async Task Creation_WithUpload_TakesTheFirstBytes()
    {
        await StartAsync();
        TusAnswer answer = await Server.SendAsync("POST", Server.Uploads, "hello "u8.ToArray(), ("Upload-Length", "11"));
        Assert.Equal((201, "6"), (answer.Status, answer["Upload-Offset"]));
        Uri upload = new(Server.Address, answer["Location"]);
        Assert.Equal("11", (await Server.PatchAsync(upload, 6, "world"u8.ToArray()))["Upload-Offset"]);
        Assert.Equal("hello world", await File.ReadAllTextAsync(Saved, _stop));

        answer = await Server.SendAsync("POST", Server.Uploads, "whole"u8.ToArray(), ("Upload-Length", "5"));
        Assert.Equal((201, "5"), (answer.Status, answer["Upload-Offset"]));
        Assert.Equal("whole", await File.ReadAllTextAsync(Saved, _stop));
    }

    [Fact]
    public async Task Creation_WithDeferredLength_TakesTheLengthLater()
    {
        await StartAsync(maxLength: 100);
        Uri upload = await Server.CreateAsync(null, ("Upload-Defer-Length", "1"));
        Assert.Equal("3", (await Server.PatchAsync(upload, 0, "abc"u8.ToArray()))["Upload-Offset"]);
        TusAnswer head = await Server.HeadAsync(upload);
        Assert.Equal(("1", "", "3"), (head["Upload-Defer-Length"], head["Upload-Length"], head["Upload-Offset"]));
        Assert.Equal(413, (await Server.PatchAsync(upload, 3, [], ("Upload-Length", "101"))).Status);
        Assert.Equal(204, (await Server.PatchAsync(upload, 3, "d"u8.ToArray(), ("Upload-Length", "5"))).Status);
        Assert.Equal(400, (await Server.PatchAsync(upload, 4, "e"u8.ToArray(), ("Upload-Length", "6"))).Status);
        Assert.Equal("5", (await Server.HeadAsync(upload))["Upload-Length"]);
        Assert.Equal(204, (await Server.PatchAsync(upload, 4, "e"u8.ToArray())).Status);
        Assert.Equal("abcde", await File.ReadAllTextAsync(Saved, _stop));

        // All bytes came before the length.
        upload = await Server.CreateAsync(null, ("Upload-Defer-Length", "1"));
        await Server.PatchAsync(upload, 0, "xyz"u8.ToArray());
        Assert.Equal("3", (await Server.PatchAsync(upload, 3, [], ("Upload-Length", "3")))["Upload-Offset"]);
        Assert.Equal("xyz", await File.ReadAllTextAsync(Saved, _stop));
    }

    [Theory]
    [InlineData("Tus-Resumable", "0.2.2", 412)]
    [InlineData("Tus-Resumable", "", 412)]
    [InlineData("Upload-Length", "", 400)]
    [InlineData("Upload-Length", "-1", 400)]
    [InlineData("Upload-Length", "1e3", 400)]
    [InlineData("Upload-Length", "99999999999999999999", 400)]
    [InlineData("Upload-Length", "1001", 413)]
    [InlineData("Upload-Defer-Length", "1", 400)]
    [InlineData("Upload-Metadata", "name ???", 400)]
    [InlineData("Upload-Metadata", "a YQ==,a YQ==", 400)]
    [InlineData("Upload-Metadata", "a YQ== b", 400)]
    [InlineData("Upload-Metadata", ",", 400)]
    [InlineData("Upload-Concat", "whatever", 400)]
    [InlineData("Upload-Concat", "final;", 400)]
    [InlineData("Upload-Concat", "final;/uploads/../../etc/passwd", 400)]
    [InlineData("Upload-Concat", "final;/uploads/0123456789abcdef0123456789abcdef", 400)]
    public async Task Creation_ThatIsWrong_IsRefused(string name, string value, int status)
    {
        await StartAsync(maxLength: 1000);
        TusAnswer answer = await Server.PostAsync(10, (name, value));
        Assert.Equal((status, "1.0.0"), (answer.Status, answer["Tus-Resumable"]));
        Assert.Empty(Directory.EnumerateFileSystemEntries(Folder));
    }

    [Fact]
    public async Task Patch_ThatIsWrong_ChangesNothing()
    {
        await StartAsync();
        Uri upload = await Server.CreateAsync(10);
        await Server.PatchAsync(upload, 0, "abc"u8.ToArray());
        Assert.Equal(409, (await Server.PatchAsync(upload, 0, "abc"u8.ToArray())).Status);
        Assert.Equal(409, (await Server.PatchAsync(upload, 4, "abc"u8.ToArray())).Status);
        Assert.Equal(400, (await Server.SendAsync("PATCH", upload, "abc"u8.ToArray())).Status);
        Assert.Equal(415, (await Server.PatchAsync(upload, 3, "abc"u8.ToArray(), ("Content-Type", "text/plain"))).Status);
        Assert.Equal(415, (await Server.PatchAsync(upload, 3, "abc"u8.ToArray(), ("Content-Encoding", "gzip"))).Status);
        Assert.Equal(412, (await Server.PatchAsync(upload, 3, "abc"u8.ToArray(), ("Tus-Resumable", "2.0.0"))).Status);
        Assert.Equal(413, (await Server.PatchAsync(upload, 3, new byte[8])).Status);
        Assert.Equal(404, (await Server.PatchAsync(new Uri(Server.Uploads + "/0123456789abcdef0123456789abcdef"), 0, [1])).Status);
        foreach (string id in (string[])["..", "x", "%2e%2e%2fsaved.bin", "0123456789ABCDEF0123456789ABCDEF", "%00"])
        {
            Assert.Contains((await Server.HeadAsync(new Uri(Server.Uploads + "/" + id))).Status, (int[])[400, 404]);
        }

        Assert.Equal(405, (await Server.SendAsync("GET", upload, null)).Status);
        Assert.Equal(405, (await Server.SendAsync("PUT", Server.Uploads, null)).Status);
        Assert.Equal(3, await Server.OffsetAsync(upload));
        Assert.Equal(204, (await Server.PatchAsync(upload, 3, "defghij"u8.ToArray())).Status);
        Assert.Equal("abcdefghij", await File.ReadAllTextAsync(Saved, _stop));
        Assert.Equal(409, (await Server.PatchAsync(upload, 10, "k"u8.ToArray())).Status);
        Assert.Equal(204, (await Server.PatchAsync(upload, 10, [])).Status);
    }

    [Fact]
    public async Task MethodOverride_IsTheMethod()
    {
        await StartAsync();
        Uri upload = await Server.CreateAsync(3);
        Assert.Equal(204, (await Server.SendAsync(
            "POST", upload, "abc"u8.ToArray(), ("Upload-Offset", "0"), ("X-HTTP-Method-Override", "PATCH"))).Status);
        Assert.Equal("abc", await File.ReadAllTextAsync(Saved, _stop));
    }

    [Theory]
    [InlineData("sha1"), InlineData("sha256")]
    public async Task Checksum_ThatIsWrong_DiscardsTheBody(string algorithm)
    {
        await StartAsync();
        Uri upload = await Server.CreateAsync(6);
        Assert.Equal(204, (await Server.PatchAsync(upload, 0, "abc"u8.ToArray(), ("Upload-Checksum", Sum("abc")))).Status);
        Assert.Equal(460, (await Server.PatchAsync(upload, 3, "xyz"u8.ToArray(), ("Upload-Checksum", Sum("def")))).Status);
        Assert.Equal(400, (await Server.PatchAsync(upload, 3, "xyz"u8.ToArray(), ("Upload-Checksum", "crc1 AAAA"))).Status);
        Assert.Equal(400, (await Server.PatchAsync(upload, 3, "xyz"u8.ToArray(), ("Upload-Checksum", algorithm))).Status);
        Assert.Equal(3, await Server.OffsetAsync(upload));
        Assert.False(File.Exists(Saved));
        Assert.Equal(204, (await Server.PatchAsync(upload, 3, "def"u8.ToArray(), ("Upload-Checksum", Sum("def")))).Status);
        Assert.Equal("abcdef", await File.ReadAllTextAsync(Saved, _stop));

        string Sum(string text) => $"{algorithm} " + Convert.ToBase64String(CryptographicOperations.HashData(
            algorithm == "sha1" ? HashAlgorithmName.SHA1 : HashAlgorithmName.SHA256, Encoding.ASCII.GetBytes(text)));
    }

    [Theory]
    [InlineData(true, true, 204)]
    [InlineData(true, false, 460)]
    [InlineData(false, true, 204)]
    [InlineData(false, false, 460)]
    public async Task Checksum_AsATrailer_IsThatOfTheBody(bool isAnnounced, bool isRight, int status)
    {
        await StartAsync();
        Uri upload = await Server.CreateAsync(6);
        string sum = Convert.ToBase64String(SHA256.HashData(isRight ? "abc"u8 : "abd"u8));
        await using NetworkStream connection = await Server.ConnectAsync();
        await WriteAsync(connection, $"PATCH {upload.AbsolutePath} HTTP/1.1\r\nHost: a\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\n"
            + $"Content-Type: application/offset+octet-stream\r\nTransfer-Encoding: chunked\r\n"
            + (isAnnounced ? "Trailer: Upload-Checksum\r\n" : "") + $"\r\n3\r\nabc\r\n0\r\nUpload-Checksum: sha256 {sum}\r\n\r\n");
        Assert.StartsWith($"HTTP/1.1 {status}", (await RawResponse.ReadAsync(connection)).Head, StringComparison.Ordinal);
        Assert.Equal(isRight ? 3 : 0, await Server.OffsetAsync(upload));
    }

    [Fact]
    public async Task Body_WithChecksumThatBreaksOff_IsNotKept()
    {
        await StartAsync();
        Uri upload = await Server.CreateAsync(300_000);
        await BreakOffAsync(upload, 0, 300_000, new byte[200_000], $"Upload-Checksum: sha1 {Convert.ToBase64String(new byte[20])}\r\n");
        Assert.Equal(204, (await Server.PatchAsync(upload, 0, new byte[1])).Status);
        Assert.Equal(1, await Server.OffsetAsync(upload));
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Body_ThatBreaksOffAgainAndAgain_GoesOn(bool isDurable)
    {
        await StartAsync(isDurable: isDurable);
        byte[] content = FileTree.Content(1_000_000);
        Uri upload = await Server.CreateAsync(content.Length);
        Random random = new(1);
        long kept = 0;
        for (int i = 0; i < 10; i++)
        {
            long offset = kept;
            byte[] piece = content.AsSpan((int)offset, random.Next(1, 90_000)).ToArray();
            bool isWritten = i % 2 == 0;
            await BreakOffAsync(upload, offset, content.Length - offset, piece, "", isWritten ? offset + piece.Length : 0);
            kept = await Server.OffsetAsync(upload);

            // Kestrel does not give out the bytes that come last before the end.
            Assert.InRange(kept, isWritten ? offset + piece.Length : offset, offset + piece.Length);
        }

        Assert.Equal(204, (await Server.PatchAsync(upload, kept, content[(int)kept..])).Status);
        Assert.Equal(content, await File.ReadAllBytesAsync(Saved, _stop));
    }

    [Fact]
    public async Task SecondRequest_WhileOneSends_TakesOver_AndHeadDoesNot()
    {
        await StartAsync();
        Uri upload = await Server.CreateAsync(10);
        NetworkStream first = await SendUntilHeldAsync(upload);

        // It reads its body when the first bytes are written.
        await Eventually.TrueAsync(() => new FileInfo(Path.Combine(Folder, upload.Segments[^1] + ".part")).Length == 3);
        Assert.Equal(200, (await Server.HeadAsync(upload)).Status);
        Assert.False(first.DataAvailable);
        Assert.Equal(409, (await Server.PatchAsync(upload, 11, [])).Status);
        Assert.Contains(" 423 ", (await RawResponse.ReadAsync(first)).Head, StringComparison.Ordinal);
        await first.DisposeAsync();
        long kept = await Server.OffsetAsync(upload);
        Assert.InRange(kept, 0, 3);
        Assert.Equal(204, (await Server.PatchAsync(upload, kept, "abcdefghij"u8[(int)kept..].ToArray())).Status);
        Assert.Equal("abcdefghij", await File.ReadAllTextAsync(Saved, _stop));
    }

    [Fact]
    public async Task ManyRequestsAtOnce_ForOneUpload_WriteEachByteOnce()
    {
        await StartAsync();
        byte[] content = FileTree.Content(200_000);
        Uri upload = await Server.CreateAsync(content.Length);
        await Task.WhenAll(Enumerable.Range(0, 8).Select(async _ =>
        {
            for (long offset = 0; offset < content.Length; offset = await Server.OffsetAsync(upload))
            {
                byte[] piece = content.AsSpan((int)offset, (int)Math.Min(7777, content.Length - offset)).ToArray();
                Assert.Contains((await Server.PatchAsync(upload, offset, piece)).Status, (int[])[204, 409, 423]);
            }
        }));
        Assert.Equal(content, await File.ReadAllBytesAsync(Saved, _stop));
        Assert.Single(_completed);
    }

    [Fact]
    public async Task ChunkedBody_ThatIsTooLong_IsRefused_AndTheUploadGoesOn()
    {
        await StartAsync();
        Uri upload = await Server.CreateAsync(4);
        await using (NetworkStream connection = await Server.ConnectAsync())
        {
            await WriteAsync(connection, $"PATCH {upload.AbsolutePath} HTTP/1.1\r\nHost: a\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\n"
                + "Content-Type: application/offset+octet-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n");
            Assert.StartsWith("HTTP/1.1 413", (await RawResponse.ReadAsync(connection)).Head, StringComparison.Ordinal);
        }

        Assert.Equal(0, await Server.OffsetAsync(upload));
        Assert.Equal(204, (await Server.PatchAsync(upload, 0, "abcd"u8.ToArray())).Status);
        Assert.Equal("abcd", await File.ReadAllTextAsync(Saved, _stop));
    }

    [Fact]
    public async Task Delete_RemovesTheUpload()
    {
        await StartAsync();
        Uri upload = await Server.CreateAsync(10);
        await Server.PatchAsync(upload, 0, [1]);
        Assert.Equal(204, (await Server.SendAsync("DELETE", upload, null)).Status);
        Assert.Equal(404, (await Server.HeadAsync(upload)).Status);
        Assert.Equal(404, (await Server.SendAsync("DELETE", upload, null)).Status);
        Assert.Empty(Directory.EnumerateFileSystemEntries(Folder));

        upload = await Server.CreateAsync(1);
        await Server.PatchAsync(upload, 0, [1]);
        Assert.Equal(204, (await Server.SendAsync("DELETE", upload, null)).Status);
        Assert.True(File.Exists(Saved));
        Assert.Empty(Directory.EnumerateFileSystemEntries(Folder));
    }

    [Fact]
    public async Task Concatenation_IsThePartsInOrder()
    {
        await StartAsync();
        Uri[] parts = await Task.WhenAll(Enumerable.Range(0, 3).Select(_ => Server.CreateAsync(5, ("Upload-Concat", "partial"))));
        foreach ((Uri part, string text) in parts.Zip((string[])["hello", " tus ", "world"]))
        {
            Assert.Equal(400, (await Server.PostAsync(null, ("Upload-Concat", Final(parts)))).Status);
            Assert.Equal(204, (await Server.PatchAsync(part, 0, Encoding.ASCII.GetBytes(text))).Status);
            TusAnswer told = await Server.HeadAsync(part);
            Assert.Equal(("partial", "5"), (told["Upload-Concat"], told["Upload-Offset"]));
        }

        Assert.Empty(_completed);
        Assert.Equal(400, (await Server.PostAsync(15, ("Upload-Concat", Final(parts)))).Status);
        Uri final = await Server.CreateAsync(null, ("Upload-Concat", Final(parts)), ("Upload-Metadata", "filename YQ=="));
        Assert.Equal("hello tus world", await File.ReadAllTextAsync(Saved, _stop));
        TusAnswer head = await Server.HeadAsync(final);
        Assert.Equal((200, "15", "15", Final(parts)), (head.Status, head["Upload-Offset"], head["Upload-Length"], head["Upload-Concat"]));
        Assert.Equal(403, (await Server.PatchAsync(final, 15, [1])).Status);

        // A part may be used again, but each once.
        await Server.CreateAsync(null, ("Upload-Concat", Final([parts[1], parts[0], parts[2]])));
        Assert.Equal(400, (await Server.PostAsync(null, ("Upload-Concat", Final([parts[1], parts[0], parts[1]])))).Status);
        Assert.Equal(" tus helloworld", await File.ReadAllTextAsync(Saved, _stop));
        Assert.Equal(400, (await Server.PostAsync(null, ("Upload-Concat", Final([final])))).Status);

        static string Final(Uri[] parts) => "final;" + string.Join(' ', parts.Select(part => part.AbsolutePath));
    }

    [Fact]
    public async Task Expiry_RemovesWhatNobodyFinished()
    {
        await StartAsync();
        Uri upload = await Server.CreateAsync(10);
        Uri finished = await Server.CreateAsync(0);
        _time.Advance(TimeSpan.FromHours(23));
        TusAnswer answer = await Server.PatchAsync(upload, 0, "abc"u8.ToArray());
        Assert.Equal(_time.GetUtcNow().AddDays(1).UtcDateTime, DateTime.Parse(answer["Upload-Expires"], CultureInfo.InvariantCulture,
            DateTimeStyles.AdjustToUniversal), TimeSpan.FromMinutes(10));
        _time.Advance(TimeSpan.FromHours(23));
        Assert.Equal(3, await Server.OffsetAsync(upload));
        Assert.Equal(410, (await Server.HeadAsync(finished)).Status);
        _time.Advance(TimeSpan.FromHours(1.1));
        Assert.Equal(410, (await Server.HeadAsync(upload)).Status);
        Assert.Equal(410, (await Server.PatchAsync(upload, 3, "d"u8.ToArray())).Status);

        // One that is being sent stays, and so does what is no upload.
        Uri another = await Server.CreateAsync(10);
        await using NetworkStream sending = await SendUntilHeldAsync(another);
        _time.Advance(TimeSpan.FromDays(2));
        string foreign = Path.Combine(Folder, "notes.txt");
        await File.WriteAllTextAsync(foreign, "mine", _stop);
        string orphan = Path.Combine(Folder, "0123456789abcdef0123456789abcdef.part");
        await File.WriteAllTextAsync(orphan, "abc", _stop);
        File.SetLastWriteTimeUtc(orphan, DateTime.UtcNow.AddDays(-2));
        using (UploadStore store = new(new ResumableUploadOptions { Folder = Folder }, _time))
        {
            store.Sweep();
        }

        string id = another.Segments[^1];
        Assert.Equal([$"{id}.json", $"{id}.lock", $"{id}.part", "notes.txt"],
            Directory.EnumerateFiles(Folder).Select(Path.GetFileName).Order(StringComparer.Ordinal)!);
        await WriteAsync(sending, "defghij");
        Assert.StartsWith("HTTP/1.1 204", (await RawResponse.ReadAsync(sending)).Head, StringComparison.Ordinal);
    }

    [Fact]
    public async Task MaxTotalLength_IsThatOfAllUnfinishedUploads()
    {
        Server = await TusServer.StartAsync(new ResumableUploadOptions { Folder = Folder, MaxTotalLength = 100 }, _time);
        Uri first = await Server.CreateAsync(60);
        Assert.Equal(507, (await Server.PostAsync(41)).Status);
        Assert.Equal(507, (await Server.PostAsync(long.MaxValue)).Status);
        Uri second = await Server.CreateAsync(null, ("Upload-Defer-Length", "1"));
        Assert.Equal(204, (await Server.PatchAsync(second, 0, new byte[30])).Status);
        Assert.Equal(507, (await Server.PatchAsync(second, 30, new byte[11])).Status);
        Assert.Equal(507, (await Server.PatchAsync(second, 30, [], ("Upload-Length", "41"))).Status);
        await Server.DisposeAsync();

        Server = await TusServer.StartAsync(new ResumableUploadOptions { Folder = Folder, MaxTotalLength = 100 }, _time);
        first = new Uri(Server.Address, first.AbsolutePath);
        Assert.Equal(507, (await Server.PostAsync(11)).Status);
        Assert.Equal(204, (await Server.SendAsync("DELETE", first, null)).Status);
        Uri third = await Server.CreateAsync(70);
        Assert.Equal(507, (await Server.PostAsync(1)).Status);
        Assert.Equal(204, (await Server.PatchAsync(third, 0, new byte[70])).Status);
        Assert.Equal(201, (await Server.PostAsync(70)).Status);
    }

    [Fact]
    public async Task NoOnCompleted_LeavesTheFileUnderItsId()
    {
        Server = await TusServer.StartAsync(new ResumableUploadOptions { Folder = Folder }, _time);
        Uri upload = await Server.CreateAsync(3);
        await Server.PatchAsync(upload, 0, "abc"u8.ToArray());
        string path = Path.Combine(Folder, upload.Segments[^1]);
        Assert.Equal("abc", await File.ReadAllTextAsync(path, _stop));
        _time.Advance(TimeSpan.FromDays(2));
        using UploadStore store = new(new ResumableUploadOptions { Folder = Folder }, _time);
        store.Sweep();
        Assert.Equal((string[])[path], Directory.EnumerateFileSystemEntries(Folder));

        upload = await Server.CreateAsync(0);
        Assert.Equal(204, (await Server.SendAsync("DELETE", upload, null)).Status);
        Assert.Equal((string[])[path], Directory.EnumerateFileSystemEntries(Folder));
    }

    [Fact]
    public async Task Inspect_RefusesOrFails()
    {
        Exception? exception = null;
        bool isRight = false;
        Server = await TusServer.StartAsync(new ResumableUploadOptions
        {
            Folder = Folder,
            Hash = HashAlgorithmName.SHA256,
            InspectAsync = async (upload, stop) =>
            {
                Assert.Equal(SHA256.HashData("abc"u8), upload.Hash.ToArray());
                Assert.Equal(3, (await upload.Reader.ReadAtLeastAsync(3, stop)).Buffer.Length);
                return exception is null ? isRight : throw exception;
            },
            OnCompletedAsync = async (upload, stop) => await upload.SaveAsync(Saved, cancellationToken: stop),
        });
        Assert.Equal(422, (await SendAsync()).Status);
        Assert.Empty(Directory.EnumerateFileSystemEntries(Folder));
        exception = new BadHttpRequestException("no", 403);
        Assert.Equal((403, "no"), ((await SendAsync()).Status, (await SendAsync()).Text));
        Assert.Empty(Directory.EnumerateFileSystemEntries(Folder));

        // The scanner does not work; the client goes on when it does.
        exception = new TimeoutException();
        Uri upload = await Server.CreateAsync(3);
        Assert.Equal(503, (await Server.PatchAsync(upload, 0, "abc"u8.ToArray())).Status);
        Assert.Equal(2, await Server.OffsetAsync(upload));
        (exception, isRight) = (null, true);
        Assert.Equal(204, (await Server.PatchAsync(upload, 2, "c"u8.ToArray())).Status);
        Assert.Equal("abc", await File.ReadAllTextAsync(Saved, _stop));

        async Task<TusAnswer> SendAsync() => await Server.PatchAsync(await Server.CreateAsync(3), 0, "abc"u8.ToArray());
    }

    [Fact]
    public async Task OnRequest_MayRefuseEachRequest()
    {
        string? user = "anna";
        Server = await TusServer.StartAsync(new ResumableUploadOptions
        {
            Folder = Folder,
            OnRequestAsync = (upload, _) => upload.Metadata["user"] == user ? ValueTask.CompletedTask
                : throw new BadHttpRequestException($"{upload.HttpContext.Request.Method} is not for you.", 403),
        });
        Uri upload = await Server.CreateAsync(3, ("Upload-Metadata", "user YW5uYQ=="));
        user = "berta";
        Assert.Equal((403, "POST is not for you."), ((await Server.PostAsync(3, ("Upload-Metadata", "user YW5uYQ=="))).Status,
            (await Server.PostAsync(3, ("Upload-Metadata", "user YW5uYQ=="))).Text));
        Assert.Equal(403, (await Server.HeadAsync(upload)).Status);
        Assert.Equal(403, (await Server.PatchAsync(upload, 0, [1])).Status);
        Assert.Equal(403, (await Server.SendAsync("DELETE", upload, null)).Status);
        user = "anna";
        Assert.Equal(0, await Server.OffsetAsync(upload));
    }

    [Fact]
    public async Task Http2_DoesTheSame()
    {
        await StartAsync(protocols: HttpProtocols.Http2);
        using HttpClient client = new()
        {
            DefaultRequestVersion = System.Net.HttpVersion.Version20,
            DefaultVersionPolicy = HttpVersionPolicy.RequestVersionExact,
        };
        TusAnswer answer = await TusAnswer.SendAsync(client, "POST", Server.Uploads, null, ("Upload-Length", "300000"));
        Uri upload = new(Server.Address, answer["Location"]);
        byte[] content = FileTree.Content(300_000);
        answer = await TusAnswer.SendAsync(client, "PATCH", upload, new ByteArrayContent(content), ("Upload-Offset", "0"));
        Assert.Equal((204, "300000", ""), (answer.Status, answer["Upload-Offset"], answer.Text));
        Assert.Equal(content, await File.ReadAllBytesAsync(Saved, _stop));
    }

    [Fact]
    public async Task MoreThan4GiB_AreRightAtTheEnd()
    {
        const long Begin = (5L << 30) + 1;
        await StartAsync(hash: false);
        Uri upload = await Server.CreateAsync(Begin + 3);
        using (Microsoft.Win32.SafeHandles.SafeFileHandle part = File.OpenHandle(PartOf(upload), access: FileAccess.Write))
        {
            RandomAccess.SetLength(part, Begin);
        }

        string state = await File.ReadAllTextAsync(StateOf(upload), _stop);
        state = state.Replace("\"offset\":0", $"\"offset\":{Begin}", StringComparison.Ordinal);
        await File.WriteAllTextAsync(StateOf(upload), state, _stop);
        Assert.Equal(Begin, await Server.OffsetAsync(upload));
        Assert.Equal($"{Begin + 3}", (await Server.PatchAsync(upload, Begin, "end"u8.ToArray()))["Upload-Offset"]);
        Assert.Equal(Begin + 3, new FileInfo(Saved).Length);
        await using FilePipeReader reader = FilePipeReader.Create(Saved, new FilePipeReaderOptions { Offset = Begin });
        Assert.Equal("end", Encoding.ASCII.GetString((await reader.ReadAtLeastAsync(3, _stop)).Buffer.FirstSpan));
    }

    private string StateOf(Uri upload) => Path.Combine(Folder, upload.Segments[^1] + ".json");

    private string PartOf(Uri upload) => Path.Combine(Folder, upload.Segments[^1] + ".part");

    private async Task StartAsync(
        long? maxLength = null, bool isDurable = false, bool hash = true, HttpProtocols protocols = HttpProtocols.Http1AndHttp2)
        => Server = await TusServer.StartAsync(new ResumableUploadOptions
        {
            Folder = Folder,
            MaxLength = maxLength,
            Durable = isDurable,
            Hash = hash ? HashAlgorithmName.SHA256 : null,
            OnCompletedAsync = async (upload, stop) =>
            {
                SavedFile saved = await upload.SaveAsync(Saved, cancellationToken: stop);
                _completed.Enqueue($"{upload.Metadata.GetValueOrDefault("filename")}, {upload.Metadata.GetValueOrDefault("empty")}, "
                    + $"{saved.Length}, {Convert.ToHexString(upload.Hash.Span)}");
            },
        }, _time, protocols: protocols);

    private static ValueTask WriteAsync(NetworkStream connection, string text)
        => connection.WriteAsync(Encoding.ASCII.GetBytes(text), TestContext.Current.CancellationToken);

    /// <summary>Sends the first 3 of 10 bytes, until that request has the upload.</summary>
    private async Task<NetworkStream> SendUntilHeldAsync(Uri upload)
    {
        NetworkStream first = null!;

        // The second request has an offset that is wrong, so it writes nothing if it comes first. But then the first may be the one that is
        // refused, and is sent again.
        await Eventually.TrueAsync(async () =>
        {
            first = await SendPartAsync(upload, 0, 10, "abc"u8.ToArray(), "");
            while (!first.DataAvailable)
            {
                if (IsHeld(upload))
                {
                    return true;
                }
            }

            await first.DisposeAsync();
            return false;
        });
        return first;
    }

    // As another process asks. It may get the lock before the request does, which is refused then.
    private bool IsHeld(Uri upload)
    {
        using FileLock? turn = FileLock.TryAcquire(Path.Combine(Folder, upload.Segments[^1] + ".lock"));
        return turn is null;
    }

    /// <summary>Sends the head of a PATCH and a part of its body.</summary>
    private async Task<NetworkStream> SendPartAsync(Uri upload, long offset, long length, byte[] part, string headers)
    {
        NetworkStream connection = await Server.ConnectAsync();
        await WriteAsync(connection, $"PATCH {upload.AbsolutePath} HTTP/1.1\r\nHost: a\r\nTus-Resumable: 1.0.0\r\n"
            + $"Upload-Offset: {offset}\r\nContent-Type: application/offset+octet-stream\r\nContent-Length: {length}\r\n{headers}\r\n");
        await connection.WriteAsync(part, _stop);
        return connection;
    }

    /// <summary>
    /// Sends a part of a body, goes away when the server has written <paramref name="written"/> bytes, and waits until the server has
    /// noticed.
    /// </summary>
    private async Task BreakOffAsync(Uri upload, long offset, long length, byte[] part, string headers, long written = 0)
    {
        // A client that goes away early may be gone before the application has been given its request.
        int begun = Server.Begun;
        await using NetworkStream connection = await SendPartAsync(upload, offset, length, part, headers);
        await Eventually.TrueAsync(() => Task.FromResult(Server.Begun > begun && new FileInfo(PartOf(upload)).Length >= written));
        connection.Socket.Shutdown(SocketShutdown.Send);
        try
        {
            await connection.CopyToAsync(Stream.Null, _stop);
        }
        catch (IOException)
        {
            // The server resets the connection.
        }

        await Eventually.TrueAsync(() => Task.FromResult(Server.Ended == Server.Begun));
    }
}
