namespace FilePipelines.Tests;

public sealed class JournalConsumerTests : InAJournal
{
    private static readonly JournalOptions s_small = new() { SegmentSize = 8 * 1024, PreallocateSegments = false };

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task ReadBatchesAsync_AfterARestart_GoesOnBehindWhatWasCommitted(bool isByFolder)
    {
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await Journaled.AppendAsync(journal, 100);
        long committed = 0;
        for (int round = 0; round < 5; round++)
        {
            await using JournalConsumer consumer = await OpenAsync(journal, isByFolder);
            Assert.Equal((committed, 100 - committed), (consumer.Position.Sequence, consumer.Behind));
            List<JournalRecordCopy> records = [];
            await foreach (JournalConsumerBatch batch in consumer.ReadBatchesAsync(cancellationToken: _stop))
            {
                Assert.Equal(batch.Count, batch.NextSequence - batch.FirstSequence);
                records.AddRange(batch);
            }

            // May be kept.
            Assert.All(records, record => Assert.Equal(Journaled.Record(record.Sequence), record.Memory.ToArray()));
            Assert.Equal((committed, 100 - committed), (records[0].Sequence, records.Count));
            await consumer.CommitAsync(committed += 17, _stop);
            Assert.Equal(committed, consumer.Position.Sequence);
        }

        Assert.Equal(85, JournalConsumer.Registered(_folder)["mails"].Sequence);
    }

    [Fact]
    public async Task CommitAsync_WhatWasNotReadOrIsBehind_Throws()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await Journaled.AppendAsync(journal, 10);
        await using JournalConsumer consumer = await journal.OpenConsumerAsync("mails", cancellationToken: _stop);
        await Assert.ThrowsAsync<ArgumentOutOfRangeException>(async () => await consumer.CommitAsync(1, _stop));
        await foreach (JournalConsumerBatch _ in consumer.ReadBatchesAsync(cancellationToken: _stop))
        {
        }

        await Assert.ThrowsAsync<ArgumentOutOfRangeException>(async () => await consumer.CommitAsync(11, _stop));
        await consumer.CommitAsync(10, _stop);
        await Assert.ThrowsAsync<ArgumentOutOfRangeException>(async () => await consumer.CommitAsync(9, _stop));
        await consumer.CommitAsync(10, _stop);
        Assert.Equal(0, consumer.Behind);
        Assert.Equal(journal.Position, consumer.Position);
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task TrimBeforeAsync_AConsumerIsBehind_DoesNotPassItUnlessTold(bool isRetention)
    {
        JournalOptions options = isRetention ? s_small with { RetainAge = TimeSpan.Zero } : s_small;
        await using Journal journal = await Journal.OpenAsync(_folder, options, _stop);
        JournalConsumer consumer = await journal.OpenConsumerAsync("mails", cancellationToken: _stop);
        await Journaled.AppendAsync(journal, 100);
        await foreach (JournalConsumerBatch batch in consumer.ReadBatchesAsync(cancellationToken: _stop))
        {
            if (batch.NextSequence > 40)
            {
                await consumer.CommitAsync(40, _stop);
                break;
            }
        }

        await consumer.DisposeAsync();
        await journal.TrimBeforeAsync(100, _stop);
        Assert.InRange(journal.FirstSequence, 1, 40);
        await Journaled.AppendAsync(journal, 100);
        Assert.InRange(journal.FirstSequence, 1, 40);
        await journal.TrimBeforeAsync(200, pastConsumers: true, _stop);
        Assert.True(journal.FirstSequence > 40);
        await Assert.ThrowsAsync<JournalRecordsRemovedException>(
            async () => await JournalConsumer.OpenAsync(_folder, "mails", cancellationToken: _stop));
        JournalConsumer.Remove(_folder, "mails");
        await using JournalConsumer again = await JournalConsumer.OpenAsync(_folder, "mails", cancellationToken: _stop);
        Assert.Equal(journal.FirstSequence, again.Position.Sequence);
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task OpenAsync_IsOpenAlready_IsRefused(bool isByFolder)
    {
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await using (await OpenAsync(journal, isByFolder))
        {
            await Assert.ThrowsAsync<IOException>(async () => await OpenAsync(journal, isByFolder));
            Assert.Throws<IOException>(() => JournalConsumer.Remove(_folder, "mails"));
        }

        await using JournalConsumer again = await OpenAsync(journal, isByFolder);
        foreach (string name in new[] { "", ".", "..", "a/b", "a\\b", "ä", new string('a', 101) })
        {
            await Assert.ThrowsAnyAsync<ArgumentException>(async () => await JournalConsumer.OpenAsync(_folder, name, null, _stop));
        }
    }

    /// <summary>Where the file system ignores case it is refused: it would begin where the other one is.</summary>
    [Fact]
    public async Task OpenAsync_ANameDiffersInCaseAlone_IsAnotherConsumerOrIsRefused()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await Journaled.AppendAsync(journal, 20);
        await using (await journal.OpenConsumerAsync("mails", new() { BeginsAtEnd = true }, _stop))
        {
        }

        if (File.Exists(Path.Combine(_folder, "consumers", "Mails.position")))
        {
            IOException e = await Assert.ThrowsAsync<IOException>(async () => await journal.OpenConsumerAsync("Mails", null, _stop));
            Assert.Contains("ignores case", e.Message, StringComparison.Ordinal);
        }
        else
        {
            await using JournalConsumer other = await journal.OpenConsumerAsync("Mails", null, _stop);
            Assert.Equal(0, other.Position.Sequence);
        }

        await using JournalConsumer again = await journal.OpenConsumerAsync("mails", null, _stop);
        Assert.Equal(20, again.Position.Sequence);
    }

    [Fact]
    public async Task OpenAsync_BeginsAtEnd_GetsOnlyWhatComesLater()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await Journaled.AppendAsync(journal, 50);
        foreach (bool isByFolder in new[] { false, true })
        {
            await using JournalConsumer consumer = isByFolder
                ? await JournalConsumer.OpenAsync(_folder, "f", new() { BeginsAtEnd = true }, _stop)
                : await journal.OpenConsumerAsync("j", new() { BeginsAtEnd = true }, _stop);
            Assert.Equal(journal.Position, consumer.Position);
        }
    }

    /// <summary>What it has processed is not in the journal any more: the real end counts, by folder, too.</summary>
    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task OpenAsync_TheJournalWasRepairedOrItsEndIsTorn_Throws(bool isRepaired)
    {
        await Journaled.MakeAsync(_folder, 100, s_small);
        await using (JournalConsumer consumer = await JournalConsumer.OpenAsync(_folder, "mails", cancellationToken: _stop))
        {
            await foreach (JournalConsumerBatch batch in consumer.ReadBatchesAsync(cancellationToken: _stop))
            {
                await consumer.CommitAsync(batch.NextSequence, _stop);
            }

            Assert.Equal((100, 0), (consumer.Position.Sequence, consumer.Behind));
        }

        string last = Journaled.Segments(_folder)[^1];
        if (isRepaired)
        {
            Journaled.Flip(last, 4096 + 40);
            await Journal.RepairAsync(_folder, cancellationToken: _stop);
        }
        else
        {
            using FileStream cut = new(last, FileMode.Open, FileAccess.ReadWrite);
            cut.SetLength(cut.Length - 40);
        }

        await Assert.ThrowsAsync<JournalChangedException>(
            async () => await JournalConsumer.OpenAsync(_folder, "mails", cancellationToken: _stop));
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await Journaled.AppendAsync(journal, isRepaired ? 60 : 0);
        await Assert.ThrowsAsync<JournalChangedException>(async () => await journal.OpenConsumerAsync("mails", cancellationToken: _stop));
    }

    [Fact]
    public async Task ReadBatchesAsync_Follow_IsToldOfWhatComes()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await using JournalConsumer inside = await OpenAsync(journal, isByFolder: false);
        await using JournalConsumer outside = await JournalConsumer.OpenAsync(_folder, "outside", cancellationToken: _stop);
        Task<long>[] following = [.. new[] { inside, outside }.Select(consumer => Task.Run(async () =>
        {
            await foreach (JournalConsumerBatch batch in consumer.ReadBatchesAsync(follow: true, _stop))
            {
                await consumer.CommitAsync(batch.NextSequence, _stop);
                if (batch.NextSequence == 120)
                {
                    break;
                }
            }

            return consumer.Position.Sequence;
        }))];
        await Journaled.AppendAsync(journal, 120);
        Assert.All(await Task.WhenAll(following), committed => Assert.Equal(120, committed));
    }

    /// <summary>Before a record that is whole there is a torn one, which the next opening cuts: other records get their numbers.</summary>
    [Fact]
    public async Task OpenAsync_BeginsAtEndAndACrashHasTornIt_BeginsBeforeTheTornRecord()
    {
        string copy = Directory.CreateDirectory(_temp.File("copy")).FullName;
        JournalOptions options = new() { PreallocateSegments = false, FlushGuarantee = FlushGuarantee.Written };
        await using (Journal journal = await Journal.OpenAsync(_folder, options, _stop))
        {
            for (int i = 0; i < 20; i++)
            {
                await journal.AppendAsync(new byte[20_000], _stop);
            }

            // As a kill leaves it.
            Journaled.Segments(_folder).ToList().ForEach(path => File.Copy(path, Path.Combine(copy, Path.GetFileName(path))));
        }

        Journaled.Flip(Journaled.Segments(copy)[0], 4096 + (3 * 20_032) + 100);
        await using (JournalConsumer consumer = await JournalConsumer.OpenAsync(copy, "mails", new() { BeginsAtEnd = true }, _stop))
        {
            Assert.Equal(3, consumer.Position.Sequence);
        }

        await using Journal opened = await Journal.OpenAsync(copy, options, _stop);
        Assert.Equal(3, opened.NextSequence);
        await using JournalConsumer again = await opened.OpenConsumerAsync("mails", null, _stop);
        Assert.Equal(0, again.Behind);
    }

    /// <summary>The second reading has not come to the records of the second epoch when the first one's are committed.</summary>
    [Fact]
    public async Task CommitAsync_TwoReadingsOfARepairedJournal_KeepsTheEpochOfTheRecord()
    {
        await Journaled.MakeAsync(_folder, 30, new() { PreallocateSegments = false });
        Journaled.Flip(Journaled.Segments(_folder)[0], 8000);
        JournalRepair repair = await Journal.RepairAsync(_folder, cancellationToken: _stop);
        Assert.InRange(repair.Summary.NextSequence, 2, 29);
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await Journaled.AppendAsync(journal, 5);
        await using (JournalConsumer consumer = await journal.OpenConsumerAsync("mails", null, _stop))
        {
            await foreach (JournalConsumerBatch batch in consumer.ReadBatchesAsync(cancellationToken: _stop))
            {
                if (batch.FirstSequence == 0)
                {
                    await consumer.CommitAsync(1, _stop);
                }
            }

            await foreach (JournalConsumerBatch _ in consumer.ReadBatchesAsync(cancellationToken: _stop))
            {
                break;
            }

            await consumer.CommitAsync(journal.NextSequence, _stop);
            Assert.Equal(journal.Position, consumer.Position);
        }

        await using JournalConsumer again = await journal.OpenConsumerAsync("mails", null, _stop);
        Assert.Equal(0, again.Behind);
    }

    /// <summary>Whoever opens it next would have its commits overwritten by a late one.</summary>
    [Fact]
    public async Task DisposeAsync_ACommitIsUnderWay_WaitsForIt()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await Journaled.AppendAsync(journal, 20);
        for (int next = 1; next <= 20; next++)
        {
            JournalConsumer consumer = await OpenAsync(journal, isByFolder: false);
            await foreach (JournalConsumerBatch _ in consumer.ReadBatchesAsync(cancellationToken: _stop))
            {
            }

            Task commit = consumer.CommitAsync(next, _stop).AsTask();
            await consumer.DisposeAsync();
            Assert.Equal(next, JournalConsumer.Registered(_folder)["mails"].Sequence);
            await commit;
            await Assert.ThrowsAsync<ObjectDisposedException>(async () => await consumer.CommitAsync(20, _stop));
            consumer.Dispose();
        }
    }

    [Theory]
    [InlineData("")]
    [InlineData("rubbish\n")]
    [InlineData("0f8e6c1b3a5d4e7f9a2b4c6d8e0f1a2b:1:2")]
    [InlineData("0f8e6c1b3a5d4e7f9a2b4c6d8e0f1a2b:1:2\n", false)]
    [InlineData("next", false)]
    public async Task OpenAsync_ThePositionIsDamagedOrAheadOrOfAnotherJournal_IsToldAndNothingIsTrimmed(string text, bool isDamage = true)
    {
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await (await OpenAsync(journal, isByFolder: false)).DisposeAsync();
        await Journaled.AppendAsync(journal, 100);
        string path = Path.Combine(_folder, "consumers", "mails.position");
        await File.WriteAllTextAsync(path, text == "next" ? (journal.Position with { Sequence = 101 }) + "\n" : text, _stop);
        foreach (bool isByFolder in new[] { false, true })
        {
            Exception? error = await Record.ExceptionAsync(async () => await OpenAsync(journal, isByFolder));
            Assert.IsType(isDamage ? typeof(InvalidJournalException) : typeof(JournalChangedException), error);
        }

        if (isDamage)
        {
            await Assert.ThrowsAsync<InvalidJournalException>(async () => await journal.TrimBeforeAsync(100, _stop));
            Assert.Equal(0, journal.FirstSequence);
        }

        JournalConsumer.Remove(_folder, "mails");
        await using JournalConsumer anew = await OpenAsync(journal, isByFolder: true);
        Assert.Equal(100, anew.Behind);
    }

    [Fact]
    public async Task OpenAsync_SegmentsAreTrimmedMeanwhile_BeginsWithTheOldestThatIsThere()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        Task trimming = Task.Run(
            async () =>
            {
                while (journal.NextSequence < 400)
                {
                    await Journaled.AppendAsync(journal, 20);
                    await journal.TrimBeforeAsync(long.MaxValue, pastConsumers: true, _stop);
                }
            }, _stop);
        for (int i = 0; !trimming.IsCompleted; i++)
        {
            try
            {
                await using JournalConsumer consumer = await JournalConsumer.OpenAsync(_folder, $"consumer-{i}", null, _stop);
                Assert.Equal(journal.Id, consumer.Position.Id);
            }
            catch (JournalRecordsRemovedException)
            {
                // Ten times in turn.
            }
        }

        await trimming;
    }

    /// <summary>
    /// On Btrfs a listing that has begun does not have a name that is replaced behind it, and each commit replaces one.
    /// </summary>
    [Fact]
    public async Task TrimBeforeAsync_AConsumerCommitsMeanwhile_DoesNotPassIt()
    {
        using LoopDisk disk = LoopDisk.Make("btrfs", 128L << 20);
        string folder = disk.PathOf("journal");
        await using Journal journal = await Journal.OpenAsync(folder, s_small, _stop);
        await Journaled.AppendAsync(journal, 100);
        using SlowPosition slow = SlowPosition.Make(folder, journal.Position);

        // One call does not list all of them.
        for (int i = 0; i < 2000; i++)
        {
            await File.WriteAllBytesAsync(Path.Combine(folder, "consumers", $"left-behind-{i}"), [], _stop);
        }

        await using JournalConsumer consumer = await JournalConsumer.OpenAsync(folder, "mails", cancellationToken: _stop);
        await foreach (JournalConsumerBatch _ in consumer.ReadBatchesAsync(cancellationToken: _stop))
        {
        }

        Task trim = Task.Run(async () => await journal.TrimBeforeAsync(long.MaxValue, _stop), _stop);
        await slow.IsReadAsync();
        await consumer.CommitAsync(1, _stop);
        slow.Tell();
        await trim;
        Assert.Equal(0, journal.FirstSequence);
        Assert.Equal(99, consumer.Behind);
    }

    /// <summary>The trim has looked for consumers before there was one.</summary>
    [Fact]
    public async Task OpenConsumerAsync_WhileSegmentsAreTrimmed_BeginsWithTheOldestThatStays()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await Journaled.AppendAsync(journal, 100);
        using SlowPosition slow = SlowPosition.Make(_folder, journal.Position);
        Task trim = Task.Run(async () => await journal.TrimBeforeAsync(long.MaxValue, _stop), _stop);
        await slow.IsReadAsync();
        Task<JournalConsumer> opening = Task.Run(async () => await OpenAsync(journal, isByFolder: false));

        // It waits for the segment that is being removed, or else it is open by now.
        await Task.WhenAny(opening, Task.Delay(500, _stop));
        slow.Tell();
        await trim;
        await using JournalConsumer consumer = await opening;
        await Journaled.AppendAsync(journal, 1);
        Assert.Equal(journal.FirstSequence, consumer.Position.Sequence);
        await foreach (JournalConsumerBatch batch in consumer.ReadBatchesAsync(cancellationToken: _stop))
        {
            await consumer.CommitAsync(batch.NextSequence, _stop);
        }

        Assert.Equal(0, consumer.Behind);
    }

    /// <summary>The device may take long to register one.</summary>
    [Fact]
    public async Task TrimBeforeAsync_CanceledWhileAConsumerIsRegistered_RemovesNothing()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await Journaled.AppendAsync(journal, 100);
        TaskCompletionSource registered = new();
        Task registering = journal.BetweenRemovalsAsync((_, _) => new ValueTask(registered.Task), default, _stop).AsTask();
        using CancellationTokenSource cancel = CancellationTokenSource.CreateLinkedTokenSource(_stop);
        Task trim = journal.TrimBeforeAsync(long.MaxValue, cancel.Token).AsTask();

        // It waits for the consumer by now, or else it has not begun.
        await Task.Delay(500, _stop);
        await cancel.CancelAsync();
        await Task.WhenAny(trim, Task.Delay(Eventually.Limit, _stop));
        registered.SetResult();
        await registering;
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => trim);
        Assert.Equal(0, journal.FirstSequence);
    }

    private async Task<JournalConsumer> OpenAsync(Journal journal, bool isByFolder)
        => isByFolder ? await JournalConsumer.OpenAsync(_folder, "mails", cancellationToken: _stop)
            : await journal.OpenConsumerAsync("mails", cancellationToken: _stop);

    /// <summary>The file of a consumer that takes as long to read as the test likes, the first time.</summary>
    private sealed class SlowPosition : IDisposable
    {
        private readonly string _path;
        private readonly string _text;
        private FileStream? _writeEnd;

        private SlowPosition(string path, string text) => (_path, _text) = (path, text);

        public static SlowPosition Make(string folder, JournalPosition position)
        {
            Assert.SkipUnless(OperatingSystem.IsLinux(), "It takes a FIFO.");
            string path = Path.Combine(Directory.CreateDirectory(Path.Combine(folder, "consumers")).FullName, "slow.position");
            Fifo.MakeAt(path);
            return new SlowPosition(path, position + "\n");
        }

        public void Dispose() => _writeEnd?.Dispose();

        /// <summary>Completes when somebody reads it, who waits from then on. Later readers find a file.</summary>
        public async Task IsReadAsync()
        {
            // Waits for the other end (fifo(7)).
            _writeEnd = await Task.Run(() => new FileStream(_path, FileMode.Open, FileAccess.Write, FileShare.ReadWrite, bufferSize: 0));
            await File.WriteAllTextAsync(_path + ".new", _text);
            File.Move(_path + ".new", _path, overwrite: true);
        }

        public void Tell()
        {
            _writeEnd!.Write(Encoding.ASCII.GetBytes(_text));
            _writeEnd.Dispose();
        }
    }
}
