using System.IO.Pipelines;
using FilePipelines.Child;
using Pipelines.File;
using Pipelines.File.IO;
using Pipelines.File.Memory;

namespace FilePipelines.Tests;

/// <summary>The pieces of memory that a reader gives, and how it learns that there are no more.</summary>
public sealed class SegmentTests : IDisposable
{
    private const int Piece = 64 * 1024;

    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public void Dispose() => _folder.Dispose();

    [Theory]
    [InlineData(512)]
    [InlineData(4096)]
    [InlineData(100_000)]
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

    [Fact]
    public async Task AdvanceTo_OverTheWholeFile_HoldsNoMemory()
    {
        FilePipeReader reader = FilePipeReader.Create(_folder.File("f", Pattern.Bytes(1_000_000)), new() { BufferSize = 4096 });
        ReadResult result = await reader.ReadAtLeastAsync(1_000_000, _stop);
        List<FileSegment> segments = [];
        for (FileSegment? segment = (FileSegment?)result.Buffer.Start.GetObject(); segment is not null; segment = segment.NextSegment)
        {
            segments.Add(segment);
        }

        object chain = segments[0].Chain!;
        reader.AdvanceTo(result.Buffer.End);
        Assert.DoesNotContain(segments, segment => segment.Chain == chain);
        await reader.CompleteAsync();
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task ReadAsync_FileHasGrownSinceItWasOpened_GivesAllOfIt(bool waits)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts system calls of Linux.");
        ScriptedCalls calls = new() { OnReadNoWait = _ => waits ? -Libc.EAGAIN : null };
        string path = _folder.File("f", Pattern.Bytes(1000));
        await using FilePipeReader reader = calls.Read(path, new() { Share = FileShare.ReadWrite });
        using (FileStream more = new(path, FileMode.Append, FileAccess.Write, FileShare.ReadWrite))
        {
            more.Write(Pattern.Bytes(5000, 1000));
        }

        Assert.Equal(6000, await PatternFile.ReadToEndAsync(reader));
    }

    [Fact]
    public async Task ReadAsync_InlineCallStopsAtTheLengthOfOpening_IsNotTheEnd()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts system calls of Linux.");
        ScriptedCalls calls = new() { OnReadNoWait = call => call == 1 ? 1000 : null };
        string path = _folder.File("f", Pattern.Bytes(1000));
        await using FilePipeReader reader = calls.Read(path, new() { Share = FileShare.ReadWrite });
        using (FileStream more = new(path, FileMode.Append, FileAccess.Write, FileShare.ReadWrite))
        {
            more.Write(Pattern.Bytes(5000, 1000));
        }

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

    [Fact]
    public async Task ReadAsync_ThatCannotBeGivenUp_KeepsItsMemoryUntilItIsOver()
    {
        using Fifo fifo = Fifo.Create(_folder);
        CheckedPool pool = new();
        FilePipeReader reader = FilePipeReader.Create(fifo.Path, new() { Backend = FilePipeBackend.Portable, Pool = pool });
        ValueTask<ReadResult> pending = reader.ReadAsync(_stop);
        await reader.CompleteAsync();
        Assert.Equal(1, pool.Rented);
        await Assert.ThrowsAsync<InvalidOperationException>(async () => await pending);
        fifo.Write(Pattern.Bytes(1));
        await Eventually.TrueAsync(() => pool.Rented == 0);
        Assert.Equal((0, 0), (pool.ReturnedTwice, pool.ReturnedPinned));
    }
}
