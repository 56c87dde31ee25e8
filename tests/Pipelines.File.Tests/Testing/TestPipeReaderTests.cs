namespace FilePipelines.Tests;

/// <summary>The reader for tests of parsers: bytes come as badly as it says.</summary>
public sealed class TestPipeReaderTests
{
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    [Fact]
    public async Task ReadAsync_GivenPieces_BringsOneAReadAndEachInOneSpan()
    {
        TestPipeReader reader = new([new byte[] { 1, 2 }, Array.Empty<byte>(), new byte[] { 3 }, new byte[] { 4, 5, 6 }]);
        int[] lengths = new int[4];
        for (int i = 0; i < 4; i++)
        {
            ReadResult result = await reader.ReadAsync(_stop);
            Assert.True(result.Buffer.IsSingleSegment);
            Assert.Equal(i == 3, result.IsCompleted);
            lengths[i] = (int)result.Buffer.Length;
            reader.AdvanceTo(result.Buffer.End);
        }

        Assert.Equal([2, 1, 3, 0], lengths);
        Assert.Equal(6, reader.Consumed);
    }

    [Fact]
    public async Task ReadAsync_OneByteASegment_PutsEveryByteInASegment()
    {
        TestPipeReader reader = new(Pattern.Bytes(10)) { SegmentSize = 1 };
        ReadResult result = await reader.ReadAsync(_stop);
        int segments = 0;
        foreach (ReadOnlyMemory<byte> memory in result.Buffer)
        {
            Assert.Equal(1, memory.Length);
            segments++;
        }

        Assert.Equal(10, segments);
        Assert.Equal(Pattern.Bytes(10), result.Buffer.ToArray());
    }

    [Fact]
    public async Task ReadAsync_NotAllExamined_GivesTheSameAgain()
    {
        TestPipeReader reader = new(Pattern.Bytes(10)) { PieceSize = 4 };
        ReadResult result = await reader.ReadAsync(_stop);
        reader.AdvanceTo(result.Buffer.Start, result.Buffer.GetPosition(3));
        result = await reader.ReadAsync(_stop);
        Assert.Equal(4, result.Buffer.Length);
        reader.AdvanceTo(result.Buffer.GetPosition(1), result.Buffer.End);
        result = await reader.ReadAsync(_stop);
        Assert.Equal(Pattern.Bytes(7, 1), result.Buffer.ToArray());
        Assert.Equal(1, reader.Consumed);
    }

    [Fact]
    public async Task ReadAsync_Late_IsNotCompleteAtOnce()
    {
        TestPipeReader reader = new(Pattern.Bytes(2)) { PieceSize = 1, IsLate = true };
        Assert.False(reader.TryRead(out _));
        ReadResult result = await reader.ReadAtLeastAsync(2, _stop);
        Assert.Equal(Pattern.Bytes(2), result.Buffer.ToArray());
        reader.AdvanceTo(result.Buffer.Start);
        Assert.True(reader.TryRead(out _));
    }

    [Theory]
    [InlineData(0), InlineData(5), InlineData(10)]
    public async Task ReadAsync_FailsAt_BringsWhatIsBeforeAndThrowsFromThenOn(int offset)
    {
        TestPipeReader reader = new(Pattern.Bytes(10)) { PieceSize = 4, FailsAt = offset, Error = new TimeoutException("asked for") };
        using MemoryStream received = new();
        await Assert.ThrowsAsync<TimeoutException>(() => reader.CopyToAsync(received, _stop));
        Assert.Equal(Pattern.Bytes(offset), received.ToArray());
        await Assert.ThrowsAsync<TimeoutException>(async () => await reader.ReadAsync(_stop));
    }

    [Fact]
    public async Task ReadAsync_FailsBehindTheEnd_Ends()
    {
        TestPipeReader reader = new(Pattern.Bytes(10)) { FailsAt = 11 };
        using MemoryStream received = new();
        await reader.CopyToAsync(received, _stop);
        Assert.Equal(Pattern.Bytes(10), received.ToArray());
    }

    [Fact]
    public async Task AdvanceTo_WholeSegments_OverwritesThem()
    {
        TestPipeReader reader = new(Pattern.Bytes(10)) { SegmentSize = 5 };
        ReadResult result = await reader.ReadAsync(_stop);
        ReadOnlyMemory<byte> kept = result.Buffer.First;
        reader.AdvanceTo(result.Buffer.GetPosition(6));
        Assert.NotEqual(Pattern.Bytes(5), kept.ToArray());
    }

    [Fact]
    public async Task Misuse_OfAnyKind_Throws()
    {
        TestPipeReader reader = new(Pattern.Bytes(10));
        ReadResult result = await reader.ReadAsync(_stop);
        await Assert.ThrowsAsync<InvalidOperationException>(async () => await reader.ReadAsync(_stop));
        SequencePosition end = result.Buffer.End;
        reader.AdvanceTo(end);
        Assert.Throws<InvalidOperationException>(() => reader.AdvanceTo(end));
        reader.CancelPendingRead();
        result = await reader.ReadAsync(_stop);
        Assert.True(result.IsCanceled);
        reader.AdvanceTo(result.Buffer.End);
        Assert.False(reader.IsCompleted);
        reader.Dispose();
        Assert.True(reader.IsCompleted);
        await Assert.ThrowsAsync<InvalidOperationException>(async () => await reader.ReadAsync(_stop));
        Assert.Throws<ArgumentOutOfRangeException>(() => new TestPipeReader(Array.Empty<byte>()) { PieceSize = 0 });
        Assert.Throws<ArgumentOutOfRangeException>(() => new TestPipeReader(Array.Empty<byte>()) { FailsAt = -1 });
        Assert.Throws<ArgumentOutOfRangeException>(() => new TestPipeReader(Array.Empty<byte>()) { SegmentSize = 0 });
        Assert.Throws<ArgumentNullException>(() => new TestPipeReader((IEnumerable<ReadOnlyMemory<byte>>)null!));
    }
}
