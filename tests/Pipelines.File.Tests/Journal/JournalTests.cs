using System.Text.Json;

namespace FilePipelines.Tests;

public sealed class JournalTests : InAJournal
{
    [Fact]
    public async Task AppendAsync_OneAfterTheOther_ReadsBackInOrder()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, cancellationToken: _stop);
        Assert.Equal(0, journal.FirstSequence);
        Assert.Equal(0, journal.NextSequence);
        await Journaled.AppendAsync(journal, 200);
        Assert.Equal(200, journal.NextSequence);
        Assert.Equal(200, await Journaled.ReadAsync(journal.ReadBatchesAsync(cancellationToken: _stop)));
        Assert.Equal(200, await Journaled.ReadAsync(JournalReader.Open(_folder).ReadBatchesAsync(cancellationToken: _stop)));
    }

    [Theory]
    [InlineData(FlushGuarantee.Durable, true)]
    [InlineData(FlushGuarantee.Durable, false)]
    [InlineData(FlushGuarantee.Written, true)]
    [InlineData(FlushGuarantee.WriteBehind, false)]
    public async Task AppendAsync_ManyAtOnce_EachOnceOverSeveralSegments(FlushGuarantee guarantee, bool preallocates)
    {
        const int Producers = 16;
        const int Each = 200;
        JournalOptions options = new() { SegmentSize = 64 * 1024, FlushGuarantee = guarantee, PreallocateSegments = preallocates };
        long[][] sequences;
        await using (Journal journal = await Journal.OpenAsync(_folder, options, _stop))
        {
            sequences = await Task.WhenAll(Enumerable.Range(0, Producers).Select(producer => Task.Run(async () =>
            {
                long[] mine = new long[Each];
                for (int i = 0; i < Each; i++)
                {
                    mine[i] = await journal.AppendAsync(JournalCommands.RecordOf(producer, i), _stop);
                }

                return mine;
            })));
        }

        Assert.Equal(Enumerable.Range(0, Producers * Each).Select(i => (long)i), sequences.SelectMany(mine => mine).Order());
        Assert.All(sequences, mine => Assert.Equal(mine.Order(), mine));
        Assert.True(Journaled.Segments(_folder).Length > 10);
        byte[][] expected = new byte[Producers * Each][];
        for (int producer = 0; producer < Producers; producer++)
        {
            for (int i = 0; i < Each; i++)
            {
                expected[sequences[producer][i]] = JournalCommands.RecordOf(producer, i);
            }
        }

        AssertSame(expected, await ToArraysAsync(JournalReader.Open(_folder).ReadBatchesAsync(cancellationToken: _stop)));
        Assert.DoesNotContain(Directory.GetFiles(_folder), path => Path.GetFileName(path) == "next");
    }

    [Fact]
    public async Task AppendAsync_WithoutAwaiting_KeepsTheOrderOfTheCalls()
    {
        JournalOptions options = new() { SegmentSize = 32 * 1024, PauseAppendThreshold = 4096 };
        await using Journal journal = await Journal.OpenAsync(_folder, options, _stop);
        Task<long>[] appends = [.. Enumerable.Range(0, 3000).Select(i => journal.AppendAsync(Journaled.Record(i), _stop).AsTask())];
        Assert.Equal(Enumerable.Range(0, 3000).Select(i => (long)i), await Task.WhenAll(appends));
        Assert.Equal(3000, await Journaled.ReadAsync(journal.ReadBatchesAsync(cancellationToken: _stop)));
    }

    [Fact]
    public async Task AppendAsync_Callback_WritesTheRecordWithoutAnArrayOfTheCallers()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, cancellationToken: _stop);
        long first = await journal.AppendAsync(
            "hello",
            static (output, state) =>
            {
                using Utf8JsonWriter json = new(output);
                JsonSerializer.Serialize(json, state);
            },
            _stop);
        long second = await journal.AppendAsync(
            200_000,
            static (output, length) =>
            {
                for (int i = 0; i < length; i += 1000)
                {
                    output.Write(Pattern.Bytes(1000, i));
                }
            },
            _stop);
        byte[][] records = await ToArraysAsync(journal.ReadBatchesAsync(cancellationToken: _stop));
        Assert.Equal((0, 1), (first, second));
        Assert.Equal("\"hello\""u8.ToArray(), records[0]);
        Assert.Equal(Pattern.Bytes(200_000), records[1]);
    }

    [Fact]
    public async Task AppendAsync_CallbackThatThrows_AppendsNothing()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, new() { MaxRecordLength = 1000 }, _stop);
        await Assert.ThrowsAsync<InvalidDataException>(async () => await journal.AppendAsync(
            0,
            static (output, _) =>
            {
                output.Write(new byte[10]);
                throw new InvalidDataException();
            },
            _stop));
        await Assert.ThrowsAsync<ArgumentOutOfRangeException>(
            async () => await journal.AppendAsync(0, static (output, _) => output.Write(new byte[1001]), _stop));
        await Assert.ThrowsAsync<ArgumentOutOfRangeException>(async () => await journal.AppendAsync(new byte[1001], _stop));
        Assert.Equal(0, await journal.AppendAsync(new byte[1000], _stop));
    }

    [Theory]
    [InlineData(0)]
    [InlineData(1)]
    [InlineData(7)]
    [InlineData(8)]
    [InlineData(65_511)]
    [InlineData(65_512)]
    [InlineData(65_513)]
    [InlineData(262_144)]
    [InlineData(3_000_001)]
    public async Task AppendAsync_AnyLength_ReadsBackAsWritten(int length)
    {
        byte[][] records = [.. Enumerable.Range(0, 5).Select(i => Pattern.Bytes(length, i))];
        await using (Journal journal = await Journal.OpenAsync(_folder, new() { SegmentSize = 100_000 }, _stop))
        {
            foreach (byte[] record in records)
            {
                await journal.AppendAsync(record, _stop);
            }

            AssertSame(records, await ToArraysAsync(journal.ReadBatchesAsync(cancellationToken: _stop)));
        }

        AssertSame(records, await ToArraysAsync(JournalReader.Open(_folder).ReadBatchesAsync(cancellationToken: _stop)));
    }

    [Fact]
    public async Task OpenAsync_SecondWriter_IsRefused()
    {
        Journal first = await Journal.OpenAsync(_folder, cancellationToken: _stop);
        IOException refused = await Assert.ThrowsAsync<IOException>(async () => await Journal.OpenAsync(_folder, cancellationToken: _stop));
        Assert.Contains("open for writing already", refused.Message, StringComparison.Ordinal);
        await first.DisposeAsync();
        await using Journal second = await Journal.OpenAsync(_folder, cancellationToken: _stop);
    }

    [Fact]
    public async Task OpenAsync_AgainAndAgain_GoesOnBehindTheLastRecord()
    {
        for (int i = 0; i < 10; i++)
        {
            await using Journal journal = await Journal.OpenAsync(_folder, new() { SegmentSize = 16 * 1024 }, _stop);
            Assert.Equal(i * 20, journal.NextSequence);
            Assert.Equal(0, journal.CutBytes);
            await Journaled.AppendAsync(journal, 20);
        }

        Assert.Equal(200, await Journaled.ReadAsync(JournalReader.Open(_folder).ReadBatchesAsync(cancellationToken: _stop)));
        JournalSummary summary = await Journal.VerifyAsync(_folder, cancellationToken: _stop);
        Assert.Equal((0, 200, 0), (summary.FirstSequence, summary.NextSequence, summary.TornBytes));
    }

    [Fact]
    public async Task AppendAsync_AfterDispose_Throws()
    {
        Journal journal = await Journal.OpenAsync(_folder, cancellationToken: _stop);
        ValueTask<long> append = journal.AppendAsync(new byte[10], _stop);
        await journal.DisposeAsync();
        await journal.DisposeAsync();
        Assert.Equal(0, await append);
        await Assert.ThrowsAsync<ObjectDisposedException>(async () => await journal.AppendAsync(new byte[10], _stop));
        await Assert.ThrowsAsync<ObjectDisposedException>(async () => await journal.TrimBeforeAsync(0, _stop));
    }

    [Fact]
    public async Task AppendAsync_Canceled_SaysWhetherTheRecordMayAppear()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, cancellationToken: _stop);
        JournalAppendCanceledException early = await Assert.ThrowsAsync<JournalAppendCanceledException>(
            async () => await journal.AppendAsync(new byte[10], new CancellationToken(canceled: true)));
        Assert.False(early.MayAppear);
        Assert.Equal(0, journal.NextSequence);

        // The first record waits for the first blocks of the segment.
        await Journaled.AppendAsync(journal, 1);
        int mayAppear = 0;
        int never = 0;
        for (int i = 0; i < 200; i++)
        {
            using CancellationTokenSource source = new();
            Task<long> append = journal.AppendAsync(Journaled.Record(journal.NextSequence), source.Token).AsTask();
            await source.CancelAsync();
            try
            {
                await append;
            }
            catch (JournalAppendCanceledException e)
            {
                Assert.Equal(source.Token, e.CancellationToken);
                mayAppear += e.MayAppear ? 1 : 0;
                never += e.MayAppear ? 0 : 1;
            }
        }

        await Journaled.AppendAsync(journal, 1);
        Assert.True(mayAppear > 0);
        Assert.Equal(202 - never, await Journaled.ReadAsync(journal.ReadBatchesAsync(cancellationToken: _stop)));
    }

    [Fact]
    public async Task AppendAsync_CanceledWhileItWaitsForRoom_NeverAppears()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, new() { PauseAppendThreshold = 1 }, _stop);
        int never = 0;
        for (int i = 0; i < 50; i++)
        {
            using CancellationTokenSource source = new();
            ValueTask<long> first = journal.AppendAsync(new byte[] { 1 }, _stop);
            Task<long> second = journal.AppendAsync(new byte[] { 2 }, source.Token).AsTask();
            await source.CancelAsync();
            try
            {
                await second;
            }
            catch (JournalAppendCanceledException e) when (!e.MayAppear)
            {
                never++;
            }
            catch (JournalAppendCanceledException)
            {
            }

            await first;
        }

        long next = await journal.AppendAsync(new byte[] { 3 }, _stop);
        byte[][] records = await ToArraysAsync(journal.ReadBatchesAsync(cancellationToken: _stop));
        Assert.Equal(next + 1, records.Length);
        Assert.Equal(50, records.Count(record => record[0] == 1));
        Assert.Equal(50 - never, records.Count(record => record[0] == 2));
        Assert.True(never > 0);
    }

    [Fact]
    public async Task TrimBeforeAsync_RemovesWholeSegmentsOnly()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, new() { SegmentSize = 16 * 1024 }, _stop);
        await Journaled.AppendAsync(journal, 300);
        int segments = Journaled.Segments(_folder).Length;
        await journal.TrimBeforeAsync(150, _stop);
        Assert.InRange(journal.FirstSequence, 1, 150);
        Assert.InRange(Journaled.Segments(_folder).Length, 1, segments - 1);
        Assert.Equal(
            300, await Journaled.ReadAsync(journal.ReadBatchesAsync(Journal.Oldest, cancellationToken: _stop), journal.FirstSequence));
        Assert.Equal(300, await Journaled.ReadAsync(JournalReader.Open(_folder).ReadBatchesAsync(200, cancellationToken: _stop), 200));
        await journal.TrimBeforeAsync(long.MaxValue, _stop);
        Assert.Single(Journaled.Segments(_folder));
        await Journaled.AppendAsync(journal, 100);
        long first = journal.FirstSequence;
        await journal.DisposeAsync();
        await using Journal again = await Journal.OpenAsync(_folder, cancellationToken: _stop);
        Assert.Equal((first, 400), (again.FirstSequence, again.NextSequence));
    }

    /// <summary>Each closing writes a statement, so a segment without a record is longer than its header.</summary>
    [Theory]
    [InlineData(0, false), InlineData(0, true), InlineData(3, false), InlineData(3, true)]
    public async Task AppendAsync_LongRecordIsTheFirstOfASegmentThatWasClosed_StaysInIt(int before, bool trims)
    {
        JournalOptions options = new() { SegmentSize = 8 * 1024 };
        byte[] record = new byte[options.SegmentSize];
        await using (Journal journal = await Journal.OpenAsync(_folder, options, _stop))
        {
            for (int i = 0; i < before; i++)
            {
                await journal.AppendAsync(record, _stop);
            }
        }

        if (before > 0)
        {
            // As a crash leaves the journal when the next segment has its name and no record yet.
            string last = Journaled.Segments(_folder)[^1];
            await File.WriteAllBytesAsync(last, (await File.ReadAllBytesAsync(last, _stop))[..4096], _stop);
            await using Journal closed = await Journal.OpenAsync(_folder, options, _stop);
        }

        await using (Journal journal = await Journal.OpenAsync(_folder, options, _stop))
        {
            Assert.Equal(Math.Max(before, 1) - 1, await journal.AppendAsync(record, _stop));
            if (trims)
            {
                await journal.TrimBeforeAsync(long.MaxValue, _stop);
            }
        }

        await using Journal again = await Journal.OpenAsync(_folder, options, _stop);
        Assert.Equal(Math.Max(before, 1), again.NextSequence);
        byte[][] read = await ToArraysAsync(again.ReadBatchesAsync(Journal.Oldest, cancellationToken: _stop));
        Assert.Equal(again.NextSequence - again.FirstSequence, read.Length);
        Assert.All(read, one => Assert.Equal(record, one));
    }

    [Fact]
    public async Task RetainBytes_RemovesTheOldestSegments()
    {
        JournalOptions options = new() { SegmentSize = 16 * 1024, RetainBytes = 50_000 };
        await using (Journal journal = await Journal.OpenAsync(_folder, options, _stop))
        {
            await Journaled.AppendAsync(journal, 500);
        }

        // Also removes what was not removed before the journal was closed.
        await using Journal again = await Journal.OpenAsync(_folder, options, _stop);
        Assert.InRange(Journaled.Segments(_folder).Sum(path => new FileInfo(path).Length), 20_000, 50_000);
        Assert.True(again.FirstSequence > 300);
        Assert.Equal(500, await Journaled.ReadAsync(again.ReadBatchesAsync(Journal.Oldest, cancellationToken: _stop), again.FirstSequence));
    }

    [Fact]
    public async Task RetainAge_RemovesSegmentsWhoseRecordsAreOlder()
    {
        await Journaled.MakeAsync(_folder, 300, new() { SegmentSize = 16 * 1024 });
        await using (Journal kept = await Journal.OpenAsync(_folder, new() { RetainAge = TimeSpan.FromHours(1) }, _stop))
        {
            Assert.Equal(0, kept.FirstSequence);
        }

        await using (Journal kept = await Journal.OpenAsync(_folder, new() { RetainAge = TimeSpan.MaxValue }, _stop))
        {
            Assert.Equal(0, kept.FirstSequence);
        }

        await using Journal journal = await Journal.OpenAsync(_folder, new() { RetainAge = TimeSpan.Zero }, _stop);
        Assert.Single(Journaled.Segments(_folder));
        Assert.Equal(300, journal.NextSequence);
    }

    [Fact]
    public async Task Options_OutOfRange_Throw()
    {
        Assert.Throws<ArgumentOutOfRangeException>(() => new JournalOptions { SegmentSize = 100 });
        Assert.Throws<ArgumentOutOfRangeException>(() => new JournalOptions { MaxRecordLength = 0 });
        Assert.Throws<ArgumentOutOfRangeException>(() => new JournalOptions { MaxRecordLength = int.MaxValue });
        Assert.Throws<ArgumentOutOfRangeException>(() => new JournalOptions { FlushGuarantee = (FlushGuarantee)7 });
        Assert.Throws<ArgumentOutOfRangeException>(() => new JournalOptions { PauseAppendThreshold = 0 });
        Assert.Throws<ArgumentOutOfRangeException>(() => new JournalOptions { RetainBytes = -1 });
        Assert.Throws<ArgumentOutOfRangeException>(() => new JournalOptions { RetainAge = TimeSpan.FromTicks(-1) });
        await using Journal journal = await Journal.OpenAsync(_folder, cancellationToken: _stop);
        Assert.Throws<ArgumentOutOfRangeException>(() => journal.ReadBatchesAsync(-2, cancellationToken: _stop));
        Assert.Contains("healthy", journal.ToString(), StringComparison.Ordinal);
    }

    /// <summary>Assert.Equal takes seconds for megabytes in arrays of arrays, and minutes under Wine.</summary>
    private static void AssertSame(byte[][] expected, byte[][] actual)
    {
        Assert.Equal(expected.Length, actual.Length);
        for (int i = 0; i < expected.Length; i++)
        {
            Assert.Equal(expected[i], actual[i]);
        }
    }

    private static async Task<byte[][]> ToArraysAsync(IAsyncEnumerable<JournalBatch> batches)
    {
        List<byte[]> records = [];
        await foreach (JournalBatch batch in batches)
        {
            foreach (JournalRecord record in batch)
            {
                records.Add(record.Span.ToArray());
            }
        }

        return [.. records];
    }
}
