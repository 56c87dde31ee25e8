namespace FilePipelines.Tests;

/// <summary>Calls of a journal that meet each other.</summary>
public sealed class JournalRaceTests : InAJournal
{
    private static readonly JournalOptions s_small = new() { SegmentSize = 8 * 1024, PreallocateSegments = false };

    [Fact]
    public async Task DisposeAsync_RecordsArePendingAndReadersFollow_EachReaderGetsAllAndEnds()
    {
        int rounds = Rounds.Of(60, 300);
        for (int round = 0; round < rounds; round++)
        {
            Journal journal = await Journal.OpenAsync(_folder, cancellationToken: _stop);
            long first = journal.NextSequence;
            Task<long>[] readers = [.. Enumerable.Range(0, 3).Select(_ => Task.Run(
                () => Journaled.ReadAsync(journal.ReadBatchesAsync(first, follow: true, _stop), first), _stop))];
            Task<long>[] appends = [.. Enumerable.Range(0, round % 4)
                .Select(i => journal.AppendAsync(Journaled.Record(first + i), _stop).AsTask())];
            await journal.DisposeAsync();
            foreach (Task<long> reader in readers)
            {
                Assert.Equal(first + appends.Length, await GrowingFile.Bounded(reader));
            }

            await Task.WhenAll(appends);
        }
    }

    [Fact]
    public async Task DisposeAsync_WhileSegmentsAreTrimmed_NothingIsRemovedLater()
    {
        Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await Task.WhenAll(Enumerable.Range(0, Rounds.Of(60, 200)).Select(_ => journal.AppendAsync(new byte[8000], _stop).AsTask()));
        Task trim = journal.TrimBeforeAsync(long.MaxValue, _stop).AsTask();
        await Task.WhenAny(trim, Task.Run(() => SpinWait.SpinUntil(() => journal.FirstSequence > 0), _stop));
        await journal.DisposeAsync();
        string[] left = Journaled.Segments(_folder);
        _ = await Record.ExceptionAsync(() => trim);
        Assert.Equal(left, Journaled.Segments(_folder));
    }

    [Fact]
    public async Task TrimBeforeAsync_WhileRetainBytesRemoves_DoesNotFailTheJournal()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, s_small with { RetainBytes = 1 << 30 }, _stop);
        int count = Rounds.Of(60, 300);
        Task<long>[] appends = [.. Enumerable.Range(0, count).Select(_ => journal.AppendAsync(new byte[8000], _stop).AsTask())];
        Task all = Task.WhenAll(appends);
        while (!all.IsCompleted)
        {
            await journal.TrimBeforeAsync(long.MaxValue, _stop);
        }

        await all;
        Assert.Null(journal.Error);
    }

    /// <summary>As after a removal whose sync of the folder has failed, or that somebody else has made.</summary>
    [Fact]
    public async Task RetainBytes_OldestSegmentIsGoneAlready_DoesNotFailTheJournal()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, s_small with { RetainBytes = 20_000 }, _stop);
        await journal.AppendAsync(new byte[8000], _stop);
        await journal.AppendAsync(new byte[8000], _stop);
        File.Delete(Journaled.Segments(_folder)[0]);
        for (int i = 0; i < 10; i++)
        {
            await journal.AppendAsync(new byte[8000], _stop);
        }

        Assert.True(SpinWait.SpinUntil(() => Journaled.Segments(_folder).Length <= 3 || journal.Error is not null, Eventually.Limit));
        Assert.Null(journal.Error);
    }

    [Fact]
    public async Task VerifyAsync_WhileRecordsAreAppendedAndTrimmed_FindsNoDamage()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, new JournalOptions { SegmentSize = 1 << 20 }, _stop);
        using CancellationTokenSource enough = CancellationTokenSource.CreateLinkedTokenSource(_stop);
        Task appending = Task.Run(
            async () =>
            {
                while (!enough.IsCancellationRequested)
                {
                    await Journaled.AppendAsync(journal, 20);
                    await journal.TrimBeforeAsync(journal.NextSequence, _stop);
                }
            }, _stop);
        try
        {
            int rounds = Rounds.Of(60, 300);
            for (int i = 0; i < rounds; i++)
            {
                long committed = journal.NextSequence - 1;
                Assert.True((await Journal.VerifyAsync(_folder, cancellationToken: _stop)).NextSequence >= committed);
            }
        }
        finally
        {
            await enough.CancelAsync();
            await appending;
        }
    }

    /// <summary>
    /// A listing is no snapshot: of two segments that begin meanwhile it may have the second alone. Other names make it take long, as many
    /// segments do.
    /// </summary>
    [Fact]
    public async Task ReadAsync_SegmentsBeginWhileTheFolderIsListed_MissesNone()
    {
        const int Others = 30_000;
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Elsewhere 30,000 files take long, and may be listed another way.");
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        for (int i = 0; i < Others; i++)
        {
            await File.WriteAllBytesAsync(Path.Combine(_folder, $"other-{i}"), [], _stop);
        }

        int count = Rounds.Of(150, 1500);
        Task appending = Task.Run(
            async () =>
            {
                for (int i = 0; i < count; i++)
                {
                    await journal.AppendAsync(new byte[8000], _stop);
                }
            }, _stop);
        JournalReader reader = JournalReader.Open(_folder, TimeSpan.FromMilliseconds(1));
        long next = 0;
        await foreach (JournalBatch batch in reader.ReadBatchesAsync(follow: true, cancellationToken: _stop))
        {
            Assert.Equal(next, batch.FirstSequence);
            next = batch.NextSequence;
            if (next == count)
            {
                break;
            }
        }

        await appending;
    }

    [Fact]
    [Trait("Category", StressTime.Category)]
    public async Task AppendAsync_RecordOf1GiB_ReadsBack()
    {
        const int Length = 1 << 30;
        Assert.SkipUnless(Rounds.AreMany, "A GiB takes long: PIPELINES_FILE_LONG=1.");
        byte[] record = GC.AllocateUninitializedArray<byte>(Length);
        await using (Journal journal = await Journal.OpenAsync(
            _folder, new JournalOptions { MaxRecordLength = Length, FlushGuarantee = FlushGuarantee.Written }, _stop))
        {
            await journal.AppendAsync(record, _stop);
        }

        JournalSummary summary = await Journal.VerifyAsync(_folder, cancellationToken: _stop);
        Assert.Equal(1, summary.NextSequence);
    }
}
