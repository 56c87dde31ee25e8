using System.IO.Compression;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.WebUtilities;
using Microsoft.Net.Http.Headers;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>The files of a form, each of which becomes a file whole or not at all.</summary>
[Collection(nameof(AloneCollection))]
public sealed class SectionTests : InARoot
{
    private SaveBodyOptions? _options;
    private long? _readerLimit;
    private long? _requestLimit;
    private volatile string? _answer;
    private volatile bool _isReadingSection;

    public override async ValueTask InitializeAsync()
        => _server = await FileServer.StartAsync(_root, withPipelines: true, after: app => app.MapPost("/form", async context =>
        {
            context.Features.GetRequiredFeature<IHttpMaxRequestBodySizeFeature>().MaxRequestBodySize = _requestLimit;
            StringBuilder answer = new();
            try
            {
                string boundary = HeaderUtilities.RemoveQuotes(MediaTypeHeaderValue.Parse(context.Request.ContentType).Boundary).ToString();
                MultipartReader reader = new(boundary, context.Request.Body, bufferSize: 64 * 1024) { BodyLengthLimit = _readerLimit };
                while (await reader.ReadNextSectionAsync(context.RequestAborted) is { } section)
                {
                    _isReadingSection = true;
                    string name = section.GetContentDispositionHeader()!.FileName.ToString();
                    long length = (await section.SaveSectionAsync(PathOf(name), _options)).Length;
                    answer.Append(CultureInfo.InvariantCulture, $"{name} {length}\n");
                }
            }
            catch (Exception e)
            {
                answer.Append(CultureInfo.InvariantCulture, $"{e.GetType().Name} {(e as BadHttpRequestException)?.StatusCode}");
            }

            _answer = answer.ToString();
            await context.Response.WriteAsync(_answer);
        }));

    [Theory]
    [InlineData(0), InlineData(1), InlineData(65_535), InlineData(65_536), InlineData(5_000_001)]
    public async Task SaveSectionAsync_WholeSections_AreTheFiles(int size)
    {
        byte[] content = FileTree.Content(size);
        byte[] other = FileTree.Content(1234);
        using Counters counters = new();
        Assert.Equal($"a.bin {size}\nb.bin 1234\n", await PostAsync(("a.bin", content), ("b.bin", other)));
        Assert.Equal(content, await File.ReadAllBytesAsync(PathOf("a.bin"), _stop));
        Assert.Equal(other, await File.ReadAllBytesAsync(PathOf("b.bin"), _stop));
        AssertFiles("a.bin", "b.bin");
        Assert.Equal((2, 0), (counters["uploads.saved"], counters["uploads.broken"]));
    }

    [Fact]
    public async Task SaveSectionAsync_LongerThanAllowed_Is413AndLeavesNothing()
    {
        _options = new SaveBodyOptions { MaxLength = 100_000 };
        Assert.Equal("a.bin 100000\nBadHttpRequestException 413",
            await PostAsync(("a.bin", new byte[100_000]), ("b.bin", new byte[100_001])));
        AssertFiles("a.bin");
        _options = null;
        _readerLimit = 1000;
        Assert.Equal("BadHttpRequestException 413", await PostAsync(("c.bin", new byte[1001])));
        _readerLimit = null;
        _requestLimit = 1000;
        Assert.Equal("BadHttpRequestException 413", await PostAsync(("d.bin", new byte[1001])));
        AssertFiles("a.bin");
    }

    [Fact]
    public async Task SaveSectionAsync_NoOverwriteOrNoFolderOrLongName_Throws()
    {
        await File.WriteAllTextAsync(PathOf("a.bin"), "old", _stop);
        _options = new SaveBodyOptions { Overwrite = false, Durable = true };
        Assert.Equal("FileExistsException ", await PostAsync(("a.bin", [1])));
        Assert.Equal("DirectoryNotFoundException ", await PostAsync(("none/a.bin", [1])));
        Assert.Equal("PathTooLongException ", await PostAsync((new string('x', 256), [1])));
        Assert.Equal("b.bin 1\n", await PostAsync(("b.bin", [1])));
        Assert.Equal("old", await File.ReadAllTextAsync(PathOf("a.bin"), _stop));
        AssertFiles("a.bin", "b.bin");
    }

    [Theory]
    [InlineData("0\r\n\r\n", "BadHttpRequestException 400")] // The body ends, the form does not.
    [InlineData("", "BadHttpRequestException 400 or OperationCanceledException ")] // The connection ends, which the server tells by either.
    public async Task SaveSectionAsync_FormBreaksOff_Is400AndKeepsTheOldFile(string rest, string expected)
    {
        await File.WriteAllTextAsync(PathOf("a.bin"), "old", _stop);
        using (Socket socket = await _server.ConnectAsync())
        {
            string part = "--x\r\nContent-Disposition: form-data; name=f; filename=a.bin\r\n\r\n" + new string('y', 200_000);
            await socket.SendAsync(Encoding.ASCII.GetBytes(
                $"POST /form HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=x\r\nTransfer-Encoding: chunked\r\n\r\n"
                + $"{part.Length:x}\r\n{part}\r\n{rest}"), _stop);
            if (rest.Length == 0)
            {
                // If a busy server finds the end before it has begun with the request, it never does.
                await Eventually.TrueAsync(() => _isReadingSection);
                socket.Shutdown(SocketShutdown.Send);
            }

            await Eventually.TrueAsync(() => _answer is not null);
        }

        Assert.Contains(_answer!, expected, StringComparison.Ordinal);
        Assert.Equal("old", await File.ReadAllTextAsync(PathOf("a.bin"), _stop));
        AssertFiles("a.bin");
    }

    [Fact]
    public async Task SaveSectionAsync_BoundaryLineIsMalformed_Is400AndLeavesNothing()
    {
        string body = "--x\r\nContent-Disposition: form-data; name=f; filename=a.bin\r\n\r\nabc\r\n--x" + new string('y', 200) + "\r\n";
        using HttpClient client = _server.CreateClient(HttpVersion.Version11);
        using StringContent content = new(body);
        content.Headers.Remove("Content-Type");
        content.Headers.TryAddWithoutValidation("Content-Type", "multipart/form-data; boundary=x");
        using HttpResponseMessage response = await client.PostAsync("form", content, _stop);
        Assert.Equal("BadHttpRequestException 400", await response.Content.ReadAsStringAsync(_stop));
        AssertFiles();
    }

    [Fact]
    public async Task SaveSectionAsync_PackedBodyIsCorrupt_Is400AndLeavesNothing()
    {
        await using GZipStream packed = new(new MemoryStream([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]), CompressionMode.Decompress);
        MultipartSection section = new() { Body = packed };
        BadHttpRequestException thrown =
            await Assert.ThrowsAsync<BadHttpRequestException>(() => section.SaveSectionAsync(PathOf("f"), cancellationToken: _stop));
        Assert.Equal(StatusCodes.Status400BadRequest, thrown.StatusCode);
        AssertFiles();
    }

    [Theory]
    [InlineData(1), InlineData(7), InlineData(4097)]
    public async Task SaveSectionAsync_BodyInPieces_AreTheFiles(int piece)
    {
        byte[] content = [.. Enumerable.Range(0, 5000)
            .SelectMany(i => i % 7 == 0 ? "\r\n--bound"u8.ToArray() : i % 5 == 0 ? "\r\n--boundar"u8.ToArray() : "\r\r\n-"u8.ToArray())];
        byte[] form = [.. "--boundary\r\n\r\n"u8, .. content, .. "\r\n--boundary\r\nA: b\r\n\r\n"u8, .. content,
            .. "\r\n--boundary--\r\n"u8];
        MultipartReader reader = new("boundary", new PieceStream(form, piece), bufferSize: 128);
        for (int i = 0; i < 2; i++)
        {
            MultipartSection section = (await reader.ReadNextSectionAsync(_stop))!;
            Assert.Equal(content.Length, (await section.SaveSectionAsync(PathOf($"{i}"), cancellationToken: _stop)).Length);
            Assert.Equal(content, await File.ReadAllBytesAsync(PathOf($"{i}"), _stop));
        }

        Assert.Null(await reader.ReadNextSectionAsync(_stop));
    }

    [Fact]
    public async Task SaveSectionAsync_CutAnywhere_IsWholeOrNotThere()
    {
        byte[] form = "--boundary\r\n\r\nabc\r\n--boundary--\r\n"u8.ToArray();
        for (int length = 0; length <= form.Length; length++)
        {
            File.Delete(PathOf("f"));
            MultipartReader reader = new("boundary", new PieceStream(form[..length], 3), bufferSize: 128);
            Exception? error = await Record.ExceptionAsync(
                async () => await (await reader.ReadNextSectionAsync(_stop))!.SaveSectionAsync(PathOf("f"), cancellationToken: _stop));
            Assert.True(!File.Exists(PathOf("f")) || File.ReadAllText(PathOf("f")) == "abc", $"{length} bytes: {error}");
            Assert.True(File.Exists(PathOf("f")) || error is not null, $"{length} bytes");
        }
    }

    [Fact]
    public async Task SaveSectionAsync_LargeFileByCurl_MemoryStaysFlat()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It runs curl.");
        long size = long.TryParse(Environment.GetEnvironmentVariable("PIPELINES_FILE_UPLOAD_BYTES"), CultureInfo.InvariantCulture,
            out long given) ? given : 96 * 1024 * 1024;
        string source = Path.Combine(Directory.CreateTempSubdirectory("file-sending-").FullName, "large.bin");
        try
        {
            byte[] piece = FileTree.Content(1024 * 1024);
            await using (FileStream file = File.Create(source))
            {
                for (long written = 0; written < size; written += piece.Length)
                {
                    BitConverter.TryWriteBytes(piece, written);
                    await file.WriteAsync(piece.AsMemory(0, (int)Math.Min(piece.Length, size - written)), _stop);
                }
            }

            // The first of its kind makes what all of them need.
            Assert.Equal("warm.bin 3000000\n", await PostAsync(("warm.bin", FileTree.Content(3_000_000))));
            long before = GC.GetTotalMemory(forceFullCollection: true);
            long most = before;
            string[] arguments = ["-sS", "--max-time", "500", "-F", $"f=@{source}", $"http://127.0.0.1:{_server.Port}/form"];
            using Process curl = Process.Start(new ProcessStartInfo("curl", arguments) { RedirectStandardOutput = true })!;
            Task<string> answer = curl.StandardOutput.ReadToEndAsync(_stop);
            while (!answer.IsCompleted)
            {
                most = Math.Max(most, GC.GetTotalMemory(forceFullCollection: true));
                await Task.WhenAny(answer, Task.Delay(50, _stop));
            }

            Assert.Equal(string.Create(CultureInfo.InvariantCulture, $"large.bin {size}\n"), await answer);
            TestContext.Current.SendDiagnosticMessage($"{size} bytes, {(most - before) / 1024} KiB more memory");

            // What the writer lets wait, twice, and what the server has on its way.
            Assert.InRange(most - before, long.MinValue, 16 * 1024 * 1024);
            await using FileStream expected = File.OpenRead(source);
            await using FileStream actual = File.OpenRead(PathOf("large.bin"));
            Assert.Equal(await SHA256.HashDataAsync(expected, _stop), await SHA256.HashDataAsync(actual, _stop));
            AssertFiles("large.bin", "warm.bin");
        }
        finally
        {
            Directory.Delete(Path.GetDirectoryName(source)!, recursive: true);
        }
    }

    [Fact]
    public async Task SaveSectionAsync_NotWhatItTakes_Throws()
    {
        MultipartSection section = new() { Body = new MemoryStream([1]) };
        await Assert.ThrowsAsync<ArgumentNullException>(
            () => ((MultipartSection)null!).SaveSectionAsync(PathOf("f"), cancellationToken: _stop));
        await Assert.ThrowsAsync<ArgumentException>(() => section.SaveSectionAsync("", cancellationToken: _stop));
        await Assert.ThrowsAsync<ArgumentOutOfRangeException>(
            () => section.SaveSectionAsync(PathOf("f"), new SaveBodyOptions { MaxLength = -1 }, _stop));
        await Assert.ThrowsAnyAsync<OperationCanceledException>(
            () => section.SaveSectionAsync(PathOf("f"), null, new CancellationToken(true)));
        AssertFiles();
        Assert.Equal(1, (await section.SaveSectionAsync(PathOf("f"), cancellationToken: _stop)).Length);
        AssertFiles("f");
    }

    [Fact]
    public async Task SaveSectionAsync_SectionWasReadInPart_Throws()
    {
        MultipartReader reader = new("b", new MemoryStream(
            "--b\r\nContent-Disposition: form-data; name=a\r\n\r\ncontent\r\n--b--\r\n"u8.ToArray()));
        MultipartSection section = (await reader.ReadNextSectionAsync(_stop))!;
        await section.Body.ReadExactlyAsync(new byte[3], _stop);
        await Assert.ThrowsAsync<InvalidOperationException>(() => section.SaveSectionAsync(PathOf("f"), cancellationToken: _stop));
        AssertFiles();
    }

    [Theory]
    [InlineData("Content-Encoding", "gzip", false)]
    [InlineData("Content-Encoding", "identity", true)]
    [InlineData("Content-Transfer-Encoding", "base64", false)]
    [InlineData("Content-Transfer-Encoding", "quoted-printable", false)]
    [InlineData("Content-Transfer-Encoding", "Binary", true)]
    public async Task SaveSectionAsync_SectionIsEncoded_IsRefused(string header, string value, bool isSaved)
    {
        MultipartSection section = new()
        {
            Body = new MemoryStream([1]),
            Headers = new() { [header] = value, ["Content-Disposition"] = "form-data; name=a" },
        };
        if (isSaved)
        {
            Assert.Equal(1, (await section.SaveSectionAsync(PathOf("f"), cancellationToken: _stop)).Length);
            return;
        }

        BadHttpRequestException e = await Assert.ThrowsAsync<BadHttpRequestException>(
            () => section.SaveSectionAsync(PathOf("f"), cancellationToken: _stop));
        Assert.Equal(StatusCodes.Status415UnsupportedMediaType, e.StatusCode);
        AssertFiles();
        await section.SaveSectionAsync(PathOf("f"), new SaveBodyOptions { KeepContentEncoding = true }, _stop);
        AssertFiles("f");
    }

    private async Task<string> PostAsync(params (string Name, byte[] Content)[] files)
    {
        using MultipartFormDataContent form = [];
        foreach ((string name, byte[] content) in files)
        {
            form.Add(new ByteArrayContent(content), "f", name);
        }

        using HttpClient client = _server.CreateClient(HttpVersion.Version11);
        using HttpResponseMessage response = await client.PostAsync("form", form, _stop);
        return await response.Content.ReadAsStringAsync(_stop);
    }

    private sealed class PieceStream(byte[] content, int piece) : MemoryStream(content)
    {
        public override int Read(byte[] buffer, int offset, int count) => base.Read(buffer, offset, Math.Min(count, piece));

        public override Task<int> ReadAsync(byte[] buffer, int offset, int count, CancellationToken cancellationToken)
            => base.ReadAsync(buffer, offset, Math.Min(count, piece), cancellationToken);

        public override ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellationToken = default)
            => base.ReadAsync(buffer[..Math.Min(buffer.Length, piece)], cancellationToken);
    }
}
