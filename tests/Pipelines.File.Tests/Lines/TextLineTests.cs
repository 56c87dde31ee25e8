namespace FilePipelines.Tests;

/// <summary>Lines as text: every encoding of .NET itself, marks, and what is left of the reader.</summary>
public sealed class TextLineTests : FileTests
{
    private const string Text = "na\u00efve\r\n\n\u0a0a\u0d0d\u010a\r\r\n\ud83d\ude00 last";

    private static readonly string[] s_lines = ["na\u00efve", "", "\u0a0a\u0d0d\u010a\r", "\ud83d\ude00 last"];

    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task ReadLinesAsync_CutAnywhere_GivesTheLinesWithoutTheMark(bool isMarked)
    {
        Encoding encoding = Encoding.UTF8;
        byte[] mark = isMarked ? encoding.GetPreamble() : [];
        string path = _folder.File("f", [.. mark, .. encoding.GetBytes(Text)]);
        for (int size = 1; size <= 60; size++)
        {
            foreach (PipeReader reader in LineWays.ReadersOf(path, size))
            {
                Assert.Equal(s_lines, await ReadAsync(reader, encoding));
            }
        }

        Assert.Empty(await ReadAsync(PipeReader.Create(new ReadOnlySequence<byte>(mark)), encoding));
        Assert.Equal([""],
            await ReadAsync(PipeReader.Create(new ReadOnlySequence<byte>([.. mark, .. encoding.GetBytes("\r\n")])), encoding));
    }

    [Fact]
    public async Task ReadLinesAsync_BatchesOfShortLinesOfLongOnesAndOfOtherCharacters_GivesTheLines()
    {
        // Each kind fills some batches: a batch of short ASCII lines is decoded at once, and the others are not.
        string[][] kinds =
        [
            ["", "short", "a longer line of ASCII", "cr\r in it"],
            [new string('l', 1000), "", new string('m', 3000)],
            ["na\u00efve", "", "\ud83d\ude00"],
        ];
        List<string> lines = [.. Enumerable.Range(0, 6).SelectMany(
            i => Enumerable.Repeat(kinds[i % 3], 300_000 / kinds[i % 3].Sum(line => line.Length + 1)).SelectMany(kind => kind))];
        foreach (string end in (string[])["\n", "\r\n"])
        {
            string path = _folder.File("f", Encoding.UTF8.GetBytes(string.Join(end, lines)));
            Assert.Equal(lines, await ReadAsync(FilePipeReader.Create(path), null));
        }
    }

    [Fact]
    public async Task ReadLinesAsync_NoEncoding_IsUtf8()
    {
        string path = _folder.File("f", [.. "\u00e9\n"u8, 0xff, .. "\n"u8]);
        Assert.Equal(["\u00e9", "\ufffd"], await ReadAsync(FilePipeReader.Create(path), null));
        await Assert.ThrowsAsync<DecoderFallbackException>(
            () => ReadAsync(FilePipeReader.Create(path), new UTF8Encoding(false, throwOnInvalidBytes: true)));
    }

    [Theory]
    [InlineData("us-ascii"), InlineData("iso-8859-1")]
    public async Task ReadLinesAsync_StrictEncodingWithoutAMark_GivesTheLines(string name)
    {
        Encoding strict = Encoding.GetEncoding(name, EncoderFallback.ExceptionFallback, DecoderFallback.ExceptionFallback);
        Assert.Equal(["a", "b"], await ReadAsync(FilePipeReader.Create(_folder.File("f", "a\r\nb"u8.ToArray())), strict));
    }

    [Fact]
    public async Task ReadLinesAsync_MarkInTheMiddleOfAFile_IsText()
    {
        string path = _folder.File("f", "a\n\ufeffb\n"u8.ToArray());
        Assert.Equal(["\ufeffb"], await ReadAsync(FilePipeReader.Create(path, new() { Offset = 2 }), null));
        Assert.Equal(["a", "\ufeffb"], await ReadAsync(FilePipeReader.Create(path), null));
    }

    [Theory]
    [InlineData("utf-8"), InlineData("iso-8859-1")]
    public async Task ReadLinesAsync_LongLine_ThrowsAfterTheLinesBeforeAndGivesTheMemoryBack(string name)
    {
        Encoding encoding = Encoding.GetEncoding(name);
        foreach (string end in new[] { "", "\n" })
        {
            CheckedPool pool = new();
            FilePipeReader reader = FilePipeReader.Create(
                _folder.File("f", encoding.GetBytes("a\n1234567890" + end)), new() { Pool = pool, BufferSize = 5 });
            List<string> lines = [];
            LineTooLongException e = await Assert.ThrowsAsync<LineTooLongException>(async () =>
            {
                await foreach (string line in reader.ReadLinesAsync(encoding, maxLength: 8, cancellationToken: _stop))
                {
                    lines.Add(line);
                }
            });
            Assert.Equal(["a"], lines);
            Assert.Equal((2, 8), (e.LineNumber, e.MaxLength));
            Assert.Equal(0, pool.Rented);
        }
    }

    [Theory]
    [InlineData("utf-8"), InlineData("iso-8859-1")]
    public async Task ReadLinesAsync_LeaveOpen_GoesOnBehindTheLine(string name)
    {
        Encoding encoding = Encoding.GetEncoding(name);
        FilePipeReader reader = FilePipeReader.Create(_folder.File("f", encoding.GetBytes("a\r\nb\nc")));
        await foreach (string line in reader.ReadLinesAsync(encoding, leaveOpen: true, cancellationToken: _stop))
        {
            Assert.Equal("a", line);
            break;
        }

        Assert.Equal(encoding.GetByteCount("a\r\n"), reader.Position);
        Assert.Equal(["b", "c"], await ReadAsync(reader, encoding));
        Assert.True(reader.OpenedFile.Handle.IsClosed);
    }

    [Fact]
    public void ReadLinesAsync_BadArgument_Throws()
    {
        Assert.Throws<ArgumentNullException>(() => ((PipeReader)null!).ReadLinesAsync(cancellationToken: _stop));
        foreach (Encoding encoding in new[] { Encoding.Unicode, Encoding.BigEndianUnicode, Encoding.UTF32 })
        {
            Assert.Throws<NotSupportedException>(
                () => PipeReader.Create(ReadOnlySequence<byte>.Empty).ReadLinesAsync(encoding, cancellationToken: _stop));
        }

        Assert.Throws<ArgumentOutOfRangeException>(
            () => PipeReader.Create(ReadOnlySequence<byte>.Empty).ReadLinesAsync(maxLength: -1, cancellationToken: _stop));
    }

    private async Task<List<string>> ReadAsync(PipeReader reader, Encoding? encoding)
    {
        List<string> lines = [];
        await foreach (string line in reader.ReadLinesAsync(encoding, cancellationToken: _stop))
        {
            lines.Add(line);
        }

        return lines;
    }
}
