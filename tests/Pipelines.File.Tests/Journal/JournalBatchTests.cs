namespace FilePipelines.Tests;

/// <summary>Batches that are appended whole, conditions and full queues; and batches that are read and kept too long.</summary>
public sealed class JournalBatchTests : InAJournal
{
    [Fact]
    public async Task AppendBatchAsync_CutAnywhere_IsThereWholeOrNotAtAll()
    {
        await using (Journal journal = await Journal.OpenAsync(_folder, cancellationToken: _stop))
        {
            await Journaled.AppendAsync(journal, 2);
            Assert.Equal(2, await journal.AppendBatchAsync(Records(2, 5), null, _stop));
            Assert.Equal(7, await journal.AppendBatchAsync(Records(7, 1), 7, _stop));
            Assert.Equal(8, journal.NextSequence);
            Assert.Equal(8, await Journaled.ReadAsync(journal.ReadBatchesAsync(cancellationToken: _stop)));
        }

        string segment = Assert.Single(Journaled.Segments(_folder));
        byte[] whole = await File.ReadAllBytesAsync(segment, _stop);
        HashSet<long> counts = [];
        for (int length = whole.Length; length >= 4096; length -= 11)
        {
            await File.WriteAllBytesAsync(segment, whole[..length], _stop);
            long read = await Journaled.ReadAsync(JournalReader.Open(_folder).ReadBatchesAsync(cancellationToken: _stop));
            await using Journal journal = await Journal.OpenAsync(_folder, cancellationToken: _stop);
            Assert.Equal(read, journal.NextSequence);
            counts.Add(read);
        }

        Assert.Equal([0, 1, 2, 7, 8], counts.Order());
    }

    /// <summary>Records that were acknowledged after a batch stand behind the damaged one of its records.</summary>
    [Theory]
    [InlineData(0), InlineData(1), InlineData(2)]
    public async Task OpenAsync_ARecordOfABatchIsDamaged_IsToldAndNothingIsCut(int damaged)
    {
        await using (Journal journal = await Journal.OpenAsync(_folder, cancellationToken: _stop))
        {
            await journal.AppendBatchAsync([new byte[1000], new byte[1000], new byte[1000]], null, _stop);
            await journal.AppendAsync(new byte[1000], _stop);
        }

        string segment = Assert.Single(Journaled.Segments(_folder));
        Journaled.Flip(segment, 4096 + (damaged * 1032) + 100);
        InvalidJournalException e = await Assert.ThrowsAsync<InvalidJournalException>(
            async () => await Journal.OpenAsync(_folder, cancellationToken: _stop));
        Assert.Equal((4096, 0), (e.Offset, e.Sequence));
        await Assert.ThrowsAsync<InvalidJournalException>(
            () => Journaled.ReadAsync(JournalReader.Open(_folder).ReadBatchesAsync(cancellationToken: _stop)));
    }

    [Fact]
    public async Task AppendBatchAsync_LongerThanASegment_GetsOneOfItsOwn()
    {
        JournalOptions options = new() { SegmentSize = 8 * 1024 };
        await using Journal journal = await Journal.OpenAsync(_folder, options, _stop);
        for (int i = 0; i < 5; i++)
        {
            Assert.Equal(i * 30, await journal.AppendBatchAsync(Records(i * 30, 30), null, _stop));
        }

        Assert.Equal(150, await Journaled.ReadAsync(JournalReader.Open(_folder).ReadBatchesAsync(cancellationToken: _stop)));
        Assert.Equal(150, await Journaled.ReadAsync(journal.ReadBatchesAsync(37, cancellationToken: _stop), 37));
        Assert.Equal(5, Journaled.Segments(_folder).Length);
    }

    [Fact]
    public async Task AppendBatchAsync_OthersHaveCome_AppendsNothing()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, new() { PauseAppendThreshold = 1 }, _stop);
        Task<long>[] racing = [.. Enumerable.Range(0, 10).Select(_ => journal.AppendBatchAsync([new byte[10]], 0, _stop).AsTask())];
        int appended = 0;
        foreach (Task<long> one in racing)
        {
            JournalConflictException? e = await Record.ExceptionAsync(() => one) as JournalConflictException;
            appended += e is null ? 1 : 0;
            Assert.True(e is null or { ExpectedSequence: 0, NextSequence: 1 }, e?.Message);
        }

        Assert.Equal((1, 1), (appended, journal.NextSequence));
        await Assert.ThrowsAsync<JournalConflictException>(async () => await journal.AppendBatchAsync([new byte[10]], 2, _stop));
        Assert.Equal(1, await journal.AppendBatchAsync([new byte[10]], 1, _stop));
        await Assert.ThrowsAsync<ArgumentException>(async () => await journal.AppendBatchAsync([], null, _stop));
    }

    /// <summary>The token is canceled when the journal has refused the batch, and before its caller is told.</summary>
    [Fact]
    public async Task AppendBatchAsync_CanceledWhenOthersHaveCome_NeverAppears()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, new() { PauseAppendThreshold = 1 }, _stop);
        for (int i = 0; i < 50; i++)
        {
            using CancellationTokenSource source = new();
            Task<long> first = journal.AppendAsync(new byte[10], _stop).AsTask();
            Task<long> second = journal.AppendBatchAsync([new byte[10]], i, source.Token).AsTask();

            // Not a wait that yields: the thread that tells the caller would come first.
            while (!first.IsCompleted && !_stop.IsCancellationRequested)
            {
            }

            source.Cancel();
            Exception? e = await Record.ExceptionAsync(() => second);
            Assert.True(e is JournalConflictException or JournalAppendCanceledException { MayAppear: false }, $"Round {i}: {e}");
            Assert.Equal(i, await first);
        }

        Assert.Equal(50, journal.NextSequence);
    }

    [Fact]
    public async Task TryAppend_TheQueueIsFull_ReturnsFalseAndAppendsNothing()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, new() { PauseAppendThreshold = 10_000 }, _stop);
        List<ValueTask<long>> appended = [];
        int refused = 0;
        for (int i = 0; i < 2000; i++)
        {
            if (journal.TryAppend(new byte[3000], out ValueTask<long> one))
            {
                appended.Add(one);
            }
            else
            {
                refused++;
            }
        }

        for (int i = 0; i < appended.Count; i++)
        {
            Assert.Equal(i, await appended[i]);
        }

        Assert.True(refused > 0);
        Assert.Equal(appended.Count, journal.NextSequence);
        Assert.True(journal.TryAppend(new byte[1], out ValueTask<long> last));
        Assert.Equal(appended.Count, await last);
    }

    /// <summary>No reader could have its headers in memory.</summary>
    [Fact]
    public async Task AppendBatchAsync_ItsHeadersHaveMoreThan1GiB_IsRefused()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, cancellationToken: _stop);
        await Assert.ThrowsAsync<ArgumentException>(async () => await journal.AppendBatchAsync(new ManyEmpty(1 << 26), null, _stop));
        Assert.Equal(0, await journal.AppendBatchAsync(new ManyEmpty(1000), null, _stop));
        Assert.Equal(1000, journal.NextSequence);
    }

    [Fact]
    public async Task AppendBatchAsync_ManyExpectTheSameNumber_OneOfThemGetsIt()
    {
        await using Journal journal = await Journal.OpenAsync(
            _folder, new() { SegmentSize = 8 * 1024, PreallocateSegments = false, PauseAppendThreshold = 2000 }, _stop);
        for (int round = 0; round < 20; round++)
        {
            long next = journal.NextSequence;
            int length = round + 1;
            Exception?[] errors = await Task.WhenAll(Enumerable.Range(0, 50).Select(_ => Task.Run(
                async () => await Record.ExceptionAsync(async () => Assert.Equal(next, await journal.AppendBatchAsync(
                    [.. Enumerable.Repeat(new ReadOnlyMemory<byte>(new byte[300]), length)], next, _stop))), _stop)));
            Assert.Single(errors, error => error is null);
            Assert.Equal(49, errors.OfType<JournalConflictException>().Count());
            Assert.Equal(next + length, journal.NextSequence);
        }
    }

    /// <summary>In release builds, too.</summary>
    [Fact]
    public async Task Batch_UsedAfterTheNextStep_ThrowsAndItsCopyDoesNot()
    {
        JournalOptions options = new() { SegmentSize = 8 * 1024 };
        await Journaled.MakeAsync(_folder, 60, options);
        List<JournalBatch> kept = [];
        List<JournalBatch> copies = [];
        List<JournalRecordCopy> records = [];
        await foreach (JournalBatch batch in JournalReader.Open(_folder).ReadBatchesAsync(cancellationToken: _stop))
        {
#pragma warning disable PF0002 // The test is about what the rule warns of.
            kept.Add(batch);
#pragma warning restore PF0002
            copies.Add(batch.Copy());
            foreach (JournalRecord record in batch)
            {
                records.Add(record.Copy());
            }
        }

        Assert.True(kept.Count > 1);
        Assert.All(kept, batch =>
        {
            Assert.Throws<InvalidOperationException>(() => batch.GetEnumerator());
            Assert.Throws<InvalidOperationException>(() => batch.Copy());
        });
        long next = 0;
        foreach (JournalBatch batch in copies)
        {
            foreach (JournalRecord record in batch)
            {
                Assert.Equal(next, record.Sequence);
                Assert.Equal(Journaled.Record(next), record.ToArray());
                Assert.Equal(Journaled.Record(next), records[(int)next].Memory.ToArray());
                next++;
            }
        }

        Assert.Equal(60, next);
    }

    [Fact]
    public async Task Record_UsedAfterTheNextStep_Throws()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, new() { SegmentSize = 8 * 1024 }, _stop);
        await Journaled.AppendAsync(journal, 60);
        await using IAsyncEnumerator<JournalBatch> batches = journal.ReadBatchesAsync(cancellationToken: _stop).GetAsyncEnumerator(_stop);
        Assert.True(await batches.MoveNextAsync());
        Use(batches);

        static void Use(IAsyncEnumerator<JournalBatch> batches)
        {
            JournalBatch.Enumerator records = batches.Current.GetEnumerator();
            Assert.True(records.MoveNext());
            JournalRecord record = records.Current;
            Assert.Equal(Journaled.Record(0), record.ToArray());
            Assert.True(batches.MoveNextAsync().AsTask().GetAwaiter().GetResult());
            bool hasThrown = false;
            try
            {
                _ = record.Span;
            }
            catch (InvalidOperationException)
            {
                hasThrown = true;
            }

            Assert.True(hasThrown);
        }
    }

    private static ReadOnlyMemory<byte>[] Records(long first, int count)
        => [.. Enumerable.Range(0, count).Select(i => (ReadOnlyMemory<byte>)Journaled.Record(first + i))];

    private sealed class ManyEmpty(int count) : IReadOnlyList<ReadOnlyMemory<byte>>
    {
        public int Count => count;

        public ReadOnlyMemory<byte> this[int index] => default;

        public IEnumerator<ReadOnlyMemory<byte>> GetEnumerator() => Enumerable.Repeat(ReadOnlyMemory<byte>.Empty, count).GetEnumerator();

        System.Collections.IEnumerator System.Collections.IEnumerable.GetEnumerator() => GetEnumerator();
    }
}
