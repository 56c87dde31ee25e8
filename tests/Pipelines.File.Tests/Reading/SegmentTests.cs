using Pipelines.File.Memory;

namespace FilePipelines.Tests;

/// <summary>The pieces of memory that a reader gives, and how it learns that there are no more.</summary>
public sealed class SegmentTests : FileTests
{
    private const int Piece = 64 * 1024;

    [Theory]
    [InlineData(512), InlineData(4096), InlineData(100_000)]
    public async Task ReadAsync_OwnPool_GivesPiecesOfAtLeast64KiB(int bufferSize)
    {
        await using FilePipeReader reader = FilePipeReader.Create(
            _folder.File("f", Pattern.Bytes(1_000_000)), new() { BufferSize = bufferSize });
        ReadResult result = await reader.ReadAtLeastAsync(200_000, _stop);
        Assert.InRange(result.Buffer.First.Length, Math.Max(Piece, bufferSize), int.MaxValue);
        reader.AdvanceTo(result.Buffer.End);
    }

    [Fact]
    public async Task ReadAsync_BufferSizeUnder512_GivesPiecesOfThatSize()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "A call fills one piece only there.");
        await using FilePipeReader reader = FilePipeReader.Create(_folder.File("f", Pattern.Bytes(100_000)), new() { BufferSize = 511 });
        ReadResult result = await reader.ReadAsync(_stop);
        Assert.Equal(511, result.Buffer.First.Length);
        reader.AdvanceTo(result.Buffer.End);
    }

    [Fact]
    public async Task ReadAsync_SmallFile_GivesASmallPiece()
    {
        await using FilePipeReader reader = FilePipeReader.Create(_folder.File("f", Pattern.Bytes(1000)), new() { BufferSize = 4096 });
        ReadResult result = await reader.ReadAsync(_stop);
        Assert.Equal(1024, ((FileSegment)result.Buffer.Start.GetObject()!).PooledSize);
        reader.AdvanceTo(result.Buffer.End);
    }

    [Theory]
    [InlineData("inline")]
    [InlineData("handed over")]
    [InlineData("inline up to the length of opening")]
    public async Task ReadAsync_FileHasGrownSinceItWasOpened_GivesAllOfIt(string how)
    {
        ScriptedCalls calls =
            new() { OnReadNoWait = call => how == "handed over" ? -Libc.EAGAIN : how == "inline" || call > 1 ? null : 1000 };
        string path = _folder.File("f", Pattern.Bytes(1000));
        await using FilePipeReader reader = calls.Read(path, new() { Share = FileShare.ReadWrite });
        PatternFile.Append(path, 5000, 1000);

        Assert.Equal(6000, await PatternFile.ReadToEndAsync(reader));
    }

    [Fact]
    public async Task Complete_DuringAPendingRead_SaysSo()
    {
        using Fifo fifo = Fifo.Create(_folder);
        FilePipeReader reader = FilePipeReader.Create(fifo.Path);
        ValueTask<ReadResult> pending = reader.ReadAsync(_stop);
        reader.Complete();
        InvalidOperationException e = await Assert.ThrowsAsync<InvalidOperationException>(async () => await pending);
        Assert.Equal("The reader was completed while this read was pending.", e.Message);
        e = await Assert.ThrowsAsync<InvalidOperationException>(async () => await reader.ReadAsync(_stop));
        Assert.Equal("Reading is not allowed after the reader was completed.", e.Message);
    }
}
