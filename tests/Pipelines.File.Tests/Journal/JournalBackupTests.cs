namespace FilePipelines.Tests;

/// <summary>Copies of a journal that is written, and the segments that are sealed meanwhile.</summary>
public sealed class JournalBackupTests : InAJournal
{
    private static readonly JournalOptions s_small = new() { SegmentSize = 8 * 1024, PreallocateSegments = false };

    /// <summary>It has all records up to the place that it returns, and nothing behind it, which could have gaps.</summary>
    [Theory]
    [InlineData(FlushGuarantee.Durable, 64 * 1024)]
    [InlineData(FlushGuarantee.WriteBehind, 64 * 1024)]
    [InlineData(FlushGuarantee.WriteBehind, 64 * 1024 * 1024)]
    public async Task BackupAsync_WhileRecordsAreAppended_IsExactlyWhatThereIsBeforeItsPlace(FlushGuarantee guarantee, int segmentSize)
    {
        await using Journal journal = await Journal.OpenAsync(
            _folder, new() { SegmentSize = segmentSize, FlushGuarantee = guarantee }, _stop);

        // Each copy has a share of its own: an appender without a bound would make the copies as large as the machine is fast.
        using SemaphoreSlim shares = new(0);
        using CancellationTokenSource enough = CancellationTokenSource.CreateLinkedTokenSource(_stop);
        Task appending = Task.Run(
            async () =>
            {
                while (!enough.IsCancellationRequested)
                {
                    await shares.WaitAsync(_stop);
                    await Journaled.AppendAsync(journal, 10);
                }
            }, _stop);
        try
        {
            for (int i = 0; i < Rounds.Of(10, 100); i++)
            {
                shares.Release(200);
                string copy = _temp.File($"copy-{i}");
                JournalPosition end = await journal.BackupAsync(copy, _stop);
                JournalSummary summary = await Journal.VerifyAsync(copy, cancellationToken: _stop);
                Assert.Equal((0, end.Sequence, 0), (summary.FirstSequence, summary.NextSequence, summary.TornBytes));
                Assert.Equal(end.Sequence, await Journaled.ReadAsync(JournalReader.Open(copy).ReadBatchesAsync(cancellationToken: _stop)));
                await using (Journal opened = await Journal.OpenAsync(copy, s_small, _stop))
                {
                    Assert.Equal(end with { Epoch = opened.Position.Epoch }, opened.Position);
                    await Journaled.AppendAsync(opened, 3);
                }

                Directory.Delete(copy, recursive: true);
            }
        }
        finally
        {
            await enough.CancelAsync();
            shares.Release();
            await appending;
        }
    }

    [Fact]
    public async Task BackupAsync_TheFolderHasAJournalOrThisOneHasFailedOrIsClosed_Throws()
    {
        Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await Journaled.AppendAsync(journal, 100);
        await journal.TrimBeforeAsync(50, _stop);
        string copy = _temp.File("copy");
        Assert.Equal(journal.Position, await journal.BackupAsync(copy, _stop));
        Assert.Equal(journal.FirstSequence, (await Journal.VerifyAsync(copy, cancellationToken: _stop)).FirstSequence);
        await Assert.ThrowsAsync<IOException>(async () => await journal.BackupAsync(copy, _stop));
        await Assert.ThrowsAsync<IOException>(async () => await journal.BackupAsync(_folder, _stop));
        await journal.DisposeAsync();
        await Assert.ThrowsAsync<ObjectDisposedException>(async () => await journal.BackupAsync(_temp.File("late"), _stop));
    }

    [Theory]
    [InlineData(0), InlineData(47)]
    public async Task ReadSealedSegmentsAsync_Follow_TellsOfEachOnceWhenNothingIsWrittenToItAnyMore(long from)
    {
        Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        Task<List<(JournalSegment Segment, byte[] Bytes)>> following = Task.Run(
            async () =>
            {
                List<(JournalSegment, byte[])> told = [];
                await foreach (JournalSegment segment in journal.ReadSealedSegmentsAsync(from, follow: true, _stop))
                {
                    told.Add((segment, await File.ReadAllBytesAsync(segment.Path, _stop)));
                }

                return told;
            }, _stop);
        await Journaled.AppendAsync(journal, 200);
        await journal.DisposeAsync();
        List<(JournalSegment Segment, byte[] Bytes)> all = await following;
        long next = all[0].Segment.FirstSequence;
        Assert.True(next <= from && from < all[0].Segment.NextSequence);
        foreach ((JournalSegment segment, byte[] bytes) in all)
        {
            Assert.Equal(next, segment.FirstSequence);
            Assert.Equal(bytes, await File.ReadAllBytesAsync(segment.Path, _stop));
            next = segment.NextSequence;
        }

        // All but the one that was written last.
        Assert.Equal(Journaled.Segments(_folder)[^1], Path.Combine(_folder, $"{next:D20}.journal"));
    }
}
