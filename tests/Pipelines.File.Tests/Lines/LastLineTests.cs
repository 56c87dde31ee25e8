namespace FilePipelines.Tests;

/// <summary>A reader that begins at the last lines of a file.</summary>
public sealed class LastLineTests : FileTests
{
    [Theory]
    [InlineData("", 3, 0)]
    [InlineData("one line", 1, 0)]
    [InlineData("one line", 3, 0)]
    [InlineData("one line\n", 1, 0)]
    [InlineData("a\nb\nc\n", 2, 2)]
    [InlineData("a\nb\nc", 2, 2)]
    [InlineData("a\nb\nc\n", 0, 6)]
    [InlineData("\n\n\n", 2, 1)]
    [InlineData("a\r\nb\r\n", 1, 3)]
    public async Task OpenLastLinesAsync_Lines_BeginsAtThem(string text, int count, int position)
    {
        await using FilePipeReader reader = await FilePipeReader.OpenLastLinesAsync(
            _folder.File("f", Encoding.Latin1.GetBytes(text)), count, cancellationToken: _stop);
        Assert.Equal(position, reader.Position);
        Assert.Equal(text.Length, reader.Length);
    }

    [Fact]
    public async Task OpenLastLinesAsync_LinesOfManyBlocks_AreFound()
    {
        string text = string.Concat(Enumerable.Range(0, 200_000).Select(i => $"{i}\n"));
        string path = _folder.File("f", Encoding.Latin1.GetBytes(text));
        foreach (int count in new[] { 1, 1000, 150_000, 199_999, 200_000, 200_001 })
        {
            Assert.Equal(LineWays.Split(text).TakeLast(count),
                await LineWays.LinesAsync(await FilePipeReader.OpenLastLinesAsync(path, count, cancellationToken: _stop)));
        }

        path = _folder.File("long", Encoding.Latin1.GetBytes("a\n" + new string('x', 1_000_000)));
        Assert.Equal(1_000_000,
            (await LineWays.LinesAsync(await FilePipeReader.OpenLastLinesAsync(path, 1, cancellationToken: _stop)))[0].Length);
    }

    [Fact]
    public async Task OpenLastLinesAsync_Followed_GivesWhatIsAppendedToo()
    {
        using GrowingFile file = new(_folder.File("log"), "a\nb\n");
        await using FilePipeReader reader = await FilePipeReader.OpenLastLinesAsync(file.Path, 1, GrowingFile.Options(), _stop);
        await GrowingFile.ExpectAsync(reader, "b\n");
        file.Append("c\n");
        await GrowingFile.ExpectAsync(reader, "c\n");
    }

    [Fact]
    public async Task OpenLastLinesAsync_WhatCannotSeek_IsAClearErrorAtOnce()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "FIFOs and /proc are Linux's.");
        string fifo = Fifo.Make(_folder, "fifo");
        foreach (string path in new[] { fifo, "/proc/self/status", "/dev/zero" })
        {
            NotSupportedException e = await Assert.ThrowsAsync<NotSupportedException>(
                () => FilePipeReader.OpenLastLinesAsync(path, 1, cancellationToken: _stop).AsTask());
            Assert.Contains(path, e.Message, StringComparison.Ordinal);
            e = Assert.Throws<NotSupportedException>(() => FilePartitions.AtLineEnds(path, 2));
            Assert.Contains(path, e.Message, StringComparison.Ordinal);
        }
    }

    [Fact]
    public async Task OpenLastLinesAsync_BadArgument_Throws()
    {
        string path = _folder.File("f", "a\n"u8.ToArray());
        await Assert.ThrowsAsync<ArgumentException>(() => FilePipeReader.OpenLastLinesAsync("", 1, cancellationToken: _stop).AsTask());
        await Assert.ThrowsAsync<ArgumentOutOfRangeException>(
            () => FilePipeReader.OpenLastLinesAsync(path, -1, cancellationToken: _stop).AsTask());
        await Assert.ThrowsAsync<ArgumentException>(() => FilePipeReader.OpenLastLinesAsync(path, 1, new() { Offset = 1 }, _stop).AsTask());
        await Assert.ThrowsAsync<FileNotFoundException>(
            () => FilePipeReader.OpenLastLinesAsync(_folder.File("none"), 1, cancellationToken: _stop).AsTask());
        await Assert.ThrowsAsync<UnauthorizedAccessException>(
            () => FilePipeReader.OpenLastLinesAsync(_folder.Path, 1, cancellationToken: _stop).AsTask());
    }
}
