namespace FilePipelines.Tests;

/// <summary>Memory that a caller has while another thread completes its reader or writer: it is given to nobody else.</summary>
public sealed class MemoryThatIsOutTests : FileTests
{
    private const int Length = 200_000;

    // Sizes that no other test uses, so that what comes back to the pool is what these tests rent next.
    private const int ReaderSegment = 36_864;
    private const int WriterSegment = 40_960;

    /// <summary>How the caller came by its buffer.</summary>
    public enum Taken
    {
        Read,
        ReadAtLeast,
        TryRead,
        AfterPartlyAdvancing,
        CanceledWithBytes,
    }

    [Theory]
    [InlineData(Taken.Read, 0)]
    [InlineData(Taken.Read, 500_000)]
    [InlineData(Taken.ReadAtLeast, 0)]
    [InlineData(Taken.TryRead, 0)]
    [InlineData(Taken.TryRead, 500_000)]
    [InlineData(Taken.AfterPartlyAdvancing, 0)]
    [InlineData(Taken.AfterPartlyAdvancing, 500_000)]
    [InlineData(Taken.CanceledWithBytes, 0)]
    public async Task ReaderComplete_FromAnotherThreadWhileABufferIsOut_LeavesItAsItIs(Taken taken, long readAhead)
    {
        FilePipeReader reader = FilePipeReader.Create(
            _folder.File("f", Pattern.Bytes(Length)), new() { BufferSize = ReaderSegment, PauseReadAheadThreshold = readAhead });
        ReadResult result = await (taken == Taken.ReadAtLeast ? reader.ReadAtLeastAsync(150_000, _stop) : reader.ReadAsync(_stop));
        switch (taken)
        {
            case Taken.TryRead:
                reader.AdvanceTo(result.Buffer.Start);
                Assert.True(reader.TryRead(out result));
                break;
            case Taken.AfterPartlyAdvancing:
                reader.AdvanceTo(result.Buffer.GetPosition(1000));
                result = await reader.ReadAsync(_stop);
                break;
            case Taken.CanceledWithBytes:
                reader.AdvanceTo(result.Buffer.Start);
                reader.CancelPendingRead();
                result = await reader.ReadAsync(_stop);
                Assert.True(result.IsCanceled);
                break;
        }

        byte[] expected = result.Buffer.ToArray();
        Assert.NotEmpty(expected);
        await Task.Run(() => reader.Complete(), _stop);
        await OthersUseThePoolAsync();
        Assert.Equal(expected, result.Buffer.ToArray());
        Assert.Throws<InvalidOperationException>(() => reader.AdvanceTo(result.Buffer.End));
    }

    [Fact]
    public async Task ReaderComplete_AfterTheCallerHasAdvanced_GivesEverythingBack()
    {
        CheckedPool pool = new();
        FilePipeReader reader = FilePipeReader.Create(_folder.File("f", Pattern.Bytes(Length)), new() { BufferSize = 1000, Pool = pool });
        ReadResult result = await reader.ReadAsync(_stop);
        reader.AdvanceTo(result.Buffer.GetPosition(1500), result.Buffer.End);
        await reader.CompleteAsync();
        Assert.Equal(0, pool.Rented);
    }

    [Theory]
    [InlineData(0, false), InlineData(0, true), InlineData(10_000, false), InlineData(10_000, true)]
    public async Task WriterComplete_FromAnotherThreadWhileMemoryIsOut_ItIsNoOtherWriters(int before, bool isFlushed)
    {
        FilePipeWriter writer = FilePipeWriter.Create(
            _folder.File("f"), new() { MinimumBufferSize = WriterSegment, FlushGuarantee = FlushGuarantee.Written });
        if (before > 0)
        {
            Pattern.Fill(writer.GetSpan(before)[..before], 0);
            writer.Advance(before);
        }

        if (isFlushed)
        {
            await writer.FlushAsync(_stop);
        }

        Memory<byte> held = writer.GetMemory();
        await Task.Run(() => writer.Complete(), _stop);
        string path = _folder.File("other");
        FilePipeWriter other = FilePipeWriter.Create(path, new() { MinimumBufferSize = WriterSegment });
        FilePipeReader reader = FilePipeReader.Create(_folder.File("third", Pattern.Bytes(Length)), new() { BufferSize = WriterSegment });
        ReadResult result = await reader.ReadAsync(_stop);
        int length = other.GetMemory().Length;
        Pattern.Fill(other.GetSpan()[..length], 0);

        // The caller of the first one did not know.
        held.Span.Fill(0xEE);
        other.Advance(length);
        await other.CompleteAsync();
        Assert.Equal(Pattern.Bytes(length), File.ReadAllBytes(path));
        Assert.Equal(-1, Pattern.FirstDifference(result.Buffer.ToArray()));
        Assert.Equal(Pattern.Bytes(before), File.ReadAllBytes(_folder.File("f")));
        await reader.CompleteAsync();
    }

    /// <summary>Ways to end a writer while its caller has memory of it.</summary>
    public enum Ending
    {
        Complete,
        CompleteAsync,
        Abort,
        DisposeWithReplace,
        DisposeAsyncWithReplace,
    }

    [Theory]
    [InlineData(Ending.Complete)]
    [InlineData(Ending.CompleteAsync)]
    [InlineData(Ending.Abort)]
    [InlineData(Ending.DisposeWithReplace)]
    [InlineData(Ending.DisposeAsyncWithReplace)]
    public async Task WriterEnds_WhileMemoryOfACallersPoolIsOut_ItIsNotPinnedAndGoesBackWithCompleteOnly(Ending ending)
    {
        CheckedPool pool = new();
        for (int i = 1; i <= 10; i++)
        {
            FilePipeWriter writer = FilePipeWriter.Create(
                _folder.File("f"), new() { Pool = pool, Replace = ending >= Ending.DisposeWithReplace });
            await writer.WriteAsync(Pattern.Bytes(100), _stop);
            Memory<byte> held = writer.GetMemory(1000);
            await Task.Run(
                async () =>
                {
                    switch (ending)
                    {
                        case Ending.Complete:
                            writer.Complete();
                            break;
                        case Ending.Abort:
                            writer.Abort();
                            break;
                        case Ending.DisposeWithReplace:
                            writer.Dispose();
                            break;
                        case Ending.DisposeAsyncWithReplace:
                            await writer.DisposeAsync();
                            break;
                    }

                    await writer.CompleteAsync();
                },
                _stop);

            // Complete belongs to the caller who has the memory; Abort is anybody's, at any moment.
            int kept = ending >= Ending.Abort ? i : 0;
            Assert.Equal((kept, 0, 0, 0), (pool.Rented, pool.Pins, pool.ReturnedTwice, pool.ReturnedPinned));
        }
    }

    /// <summary>Readers and writers that rent whatever the pool has of these sizes, and write to it.</summary>
    private async Task OthersUseThePoolAsync()
    {
        List<FilePipeReader> readers = [];
        for (int i = 0; i < 4; i++)
        {
            FilePipeReader reader = FilePipeReader.Create(
                _folder.File($"other{i}", new byte[Length]), new() { BufferSize = ReaderSegment });
            _ = await reader.ReadAtLeastAsync(Length, _stop);
            readers.Add(reader);
        }

        foreach (FilePipeReader reader in readers)
        {
            await reader.CompleteAsync();
        }
    }
}
