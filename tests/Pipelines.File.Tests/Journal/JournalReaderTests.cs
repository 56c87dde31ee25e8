namespace FilePipelines.Tests;

public sealed class JournalReaderTests : InAJournal
{
    private static readonly JournalOptions s_small = new() { SegmentSize = 16 * 1024 };

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task ReadAsync_FromAnyNumber_BeginsThere(bool isByFolder)
    {
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await Journaled.AppendAsync(journal, 150);
        for (long from = 0; from <= 150; from += 7)
        {
            Assert.Equal(150, await Journaled.ReadAsync(Read(journal, isByFolder, from, follow: false), from));
        }

        foreach (bool follow in new[] { false, true })
        {
            await Assert.ThrowsAsync<ArgumentOutOfRangeException>(
                async () => await Journaled.ReadAsync(Read(journal, isByFolder, 151, follow), 151));
        }
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task ReadAsync_Follow_GetsEveryRecordOnceAndInOrder(bool isByFolder)
    {
        const int Records = 1500;
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        Task[] readers = [.. Enumerable.Range(0, 3).Select(_ => Task.Run(async () =>
        {
            // The token of the loop, beside that of the call.
            using CancellationTokenSource over = CancellationTokenSource.CreateLinkedTokenSource(_stop);
            await using IAsyncEnumerator<JournalBatch> batches = Read(journal, isByFolder, 0, follow: true).GetAsyncEnumerator(over.Token);
            await Journaled.ReadUntilAsync(batches, 0, Records);
        }))];
        for (int i = 0; i < Records / 10; i++)
        {
            await Task.WhenAll(Enumerable.Range(i * 10, 10).Select(n => journal.AppendAsync(Journaled.Record(n), _stop).AsTask()));
        }

        await Task.WhenAll(readers);
    }

    [Fact]
    public async Task ReadAsync_WriteBehind_HasWhatWasAppendedBefore()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, s_small with { FlushGuarantee = FlushGuarantee.WriteBehind }, _stop);
        for (int round = 1; round <= 30; round++)
        {
            await Journaled.AppendAsync(journal, 10);
            Assert.Equal(round * 10, await Journaled.ReadAsync(journal.ReadBatchesAsync(cancellationToken: _stop)));
        }
    }

    [Fact]
    public async Task ReadAsync_TwoEnumerationsOfOneReading_AreIndependent()
    {
        await Journaled.MakeAsync(_folder, 100, s_small);
        IAsyncEnumerable<JournalBatch> reading = JournalReader.Open(_folder).ReadBatchesAsync(cancellationToken: _stop);
        await using IAsyncEnumerator<JournalBatch> first = reading.GetAsyncEnumerator(_stop);
        Assert.True(await first.MoveNextAsync());
        Assert.Equal(100, await Journaled.ReadAsync(reading));
        long next = first.Current.NextSequence;
        Assert.True(await first.MoveNextAsync());
        Assert.Equal(next, first.Current.FirstSequence);
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task ReadAsync_SegmentIsSealedWhileABatchIsHeld_IsReadAgainBehindIt(bool isByFolder)
    {
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await Journaled.AppendAsync(journal, 3);
        await using IAsyncEnumerator<JournalBatch> batches = Read(journal, isByFolder, 0, follow: false).GetAsyncEnumerator(_stop);
        Assert.True(await batches.MoveNextAsync());
        long next = batches.Current.NextSequence;
        await Journaled.AppendAsync(journal, 150);
        while (await batches.MoveNextAsync())
        {
            next = batches.Current.NextSequence;
        }

        Assert.Equal(153, next);
    }

    [Fact]
    public async Task ReadAsync_FollowedJournalIsClosed_EndsAfterTheLastRecord()
    {
        Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        Task<long> reader = Journaled.ReadAsync(journal.ReadBatchesAsync(follow: true, cancellationToken: _stop));
        await Journaled.AppendAsync(journal, 100);
        await journal.DisposeAsync();
        Assert.Equal(100, await reader);
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task ReadAsync_FollowCanceled_ThrowsAtOnce(bool isByFolder)
    {
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        using CancellationTokenSource over = CancellationTokenSource.CreateLinkedTokenSource(_stop);
        Task<long> reader = Journaled.ReadAsync(
            isByFolder ? JournalReader.Open(_folder).ReadBatchesAsync(0, true, over.Token) : journal.ReadBatchesAsync(0, true, over.Token));
        await Journaled.AppendAsync(journal, 3);
        await over.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => reader);
    }

    [Fact]
    public async Task ReadAsync_RecordsAreRemovedBeforeTheyAreRead_Throws()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await Journaled.AppendAsync(journal, 200);
        foreach (bool isByFolder in new[] { false, true })
        {
            await using IAsyncEnumerator<JournalBatch> reader = Read(journal, isByFolder, journal.FirstSequence, false)
                .GetAsyncEnumerator(_stop);
            Assert.True(await reader.MoveNextAsync());
            await journal.TrimBeforeAsync(journal.FirstSequence + 100, _stop);
            JournalRecordsRemovedException e = await Assert.ThrowsAsync<JournalRecordsRemovedException>(async () =>
            {
                while (await reader.MoveNextAsync())
                {
                }
            });
            Assert.Equal(journal.FirstSequence, e.First);
        }
    }

    /// <summary>As RetainBytes does while a reader that follows waits for the next record.</summary>
    [Theory]
    [InlineData(false, false), InlineData(false, true), InlineData(true, false), InlineData(true, true)]
    public async Task ReadAsync_OnlyRecordsThatWereReadAreRemoved_GoesOn(bool isByFolder, bool follow)
    {
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await Journaled.AppendAsync(journal, 5);
        await using IAsyncEnumerator<JournalBatch> reader = Read(journal, isByFolder, 0, follow).GetAsyncEnumerator(_stop);
        do
        {
            Assert.True(await reader.MoveNextAsync());
        }
        while (reader.Current.NextSequence < 5);
        await journal.AppendAsync(new byte[s_small.SegmentSize], _stop);
        await journal.TrimBeforeAsync(5, _stop);
        Assert.Equal(5, journal.FirstSequence);
        Assert.True(await reader.MoveNextAsync());
        Assert.Equal((5, 6), (reader.Current.FirstSequence, reader.Current.NextSequence));
    }

    /// <summary>As after a removal whose sync of the folder has failed: the journal still has the segment in its list.</summary>
    [Theory]
    [InlineData(false, 0), InlineData(false, 1), InlineData(false, 2), InlineData(true, 0), InlineData(true, 1), InlineData(true, 2)]
    public async Task ReadAsync_SegmentIsMissing_BeginsWithTheOldestOrThrows_AndDoesNotTryForEver(bool isByFolder, int removed)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows() && removed == 2, "The segment that is written keeps its name until it is closed.");
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        for (int i = 0; i < 3; i++)
        {
            await journal.AppendAsync(new byte[s_small.SegmentSize], _stop);
        }

        // Windows keeps the name of a file that is open.
        Assert.Equal(2, await journal.ReadSealedSegmentsAsync(follow: true, cancellationToken: _stop).Take(2).CountAsync(_stop));
        File.Delete(Journaled.Segments(_folder)[removed]);
        Task<Exception?> reading = Task.Run(
            async () => await Record.ExceptionAsync(async () =>
            {
                await foreach (JournalBatch batch in Read(journal, isByFolder, removed == 0 ? Journal.Oldest : removed, false))
                {
                    Assert.Equal((1, 0), (batch.FirstSequence, removed));
                    break;
                }
            }), _stop);
        Exception? error = await GrowingFile.Bounded(reading);
        Assert.Equal(removed == 0 || (isByFolder && removed == 2), error is null);
        Assert.True(error is null or IOException, error?.ToString());
    }

    /// <summary>The removed segment had a statement behind the last record, which the reader has not seen.</summary>
    [Fact]
    public async Task ReadAsync_JournalIsClosedAndGoesOnInAnotherSegment_TheRemovedOneIsNoDamage()
    {
        await using IAsyncEnumerator<JournalBatch> reader = await FollowAsync();
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await journal.AppendAsync(new byte[s_small.SegmentSize], _stop);
        await journal.TrimBeforeAsync(1, _stop);
        Assert.True(await reader.MoveNextAsync());
        Assert.Equal((1, 2), (reader.Current.FirstSequence, reader.Current.NextSequence));

        async Task<IAsyncEnumerator<JournalBatch>> FollowAsync()
        {
            await using Journal first = await Journal.OpenAsync(_folder, s_small, _stop);
            await Journaled.AppendAsync(first, 1);
            IAsyncEnumerator<JournalBatch> batches = JournalReader.Open(_folder).ReadBatchesAsync(0, true, _stop).GetAsyncEnumerator(_stop);
            Assert.True(await batches.MoveNextAsync());
            return batches;
        }
    }

    [Fact]
    public async Task Open_WithoutAJournal_WaitsForOne()
    {
        Assert.Throws<DirectoryNotFoundException>(() => JournalReader.Open(_folder));
        Directory.CreateDirectory(_folder);
        Assert.Equal(0, await Journaled.ReadAsync(JournalReader.Open(_folder).ReadBatchesAsync(cancellationToken: _stop)));
        await using IAsyncEnumerator<JournalBatch> reader = JournalReader.Open(_folder)
            .ReadBatchesAsync(0, true, _stop).GetAsyncEnumerator(_stop);
        ValueTask<bool> first = reader.MoveNextAsync();
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await Journaled.AppendAsync(journal, 1);
        Assert.True(await first);
        Assert.Equal((0, 1), (reader.Current.FirstSequence, reader.Current.Count));
    }

    [Fact]
    public async Task ReadAsync_OtherJournalCopiedWhileItIsWritten_SealedSegmentsAreWhole()
    {
        string copy = Directory.CreateDirectory(_temp.File("copy")).FullName;
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await Journaled.AppendAsync(journal, 200);
        string[] sealedSegments = Journaled.Segments(_folder)[..^1];
        Array.ForEach(sealedSegments, path => File.Copy(path, Path.Combine(copy, Path.GetFileName(path))));
        long next = await Journaled.ReadAsync(JournalReader.Open(copy).ReadBatchesAsync(cancellationToken: _stop));
        Assert.Equal(long.Parse(Path.GetFileNameWithoutExtension(Journaled.Segments(_folder)[^1]), CultureInfo.InvariantCulture), next);
        await using Journal restored = await Journal.OpenAsync(copy, s_small, _stop);
        Assert.Equal((next, 0), (restored.NextSequence, restored.CutBytes));
    }

    /// <summary>A power failure tears any of the records that were not synced. The next opening cuts there.</summary>
    [Theory]
    [InlineData(FlushGuarantee.Durable), InlineData(FlushGuarantee.Written)]
    public async Task ReadAsync_FromBehindATornRecord_IsBeyondTheEnd(FlushGuarantee guarantee)
    {
        string copy = Directory.CreateDirectory(_temp.File("copy")).FullName;
        await using (Journal journal = await Journal.OpenAsync(
            _folder, new() { FlushGuarantee = guarantee, PauseAppendThreshold = 64 << 20 }, _stop))
        {
            await Task.WhenAll(Enumerable.Range(0, 60).Select(_ => journal.AppendAsync(new byte[20_000], _stop).AsTask()));
            File.Copy(Journaled.Segments(_folder)[0], Path.Combine(copy, Path.GetFileName(Journaled.Segments(_folder)[0])));
        }

        // The last record says how many before it may not have been on the device: of these one is torn.
        byte[] last = new byte[32];
        using (FileStream file = File.OpenRead(Journaled.Segments(copy)[0]))
        {
            file.Position = 4096 + (59 * 20_032);
            file.ReadExactly(last);
        }

        int torn = 59 - (int)Math.Min(6, BitConverter.ToUInt32(last, 16));
        Journaled.Flip(Journaled.Segments(copy)[0], 4096 + (torn * 20_032) + 100);
        JournalReader reader = JournalReader.Open(copy);
        Assert.Equal(torn, await CountAsync(reader.ReadBatchesAsync(0, false, _stop)));
        Assert.Equal(torn, await CountAsync(reader.ReadBatchesAsync(50, false, _stop)));
        Assert.Equal(0, await CountAsync(reader.ReadBatchesAsync(torn, false, _stop)));
        foreach (bool follow in new[] { false, true })
        {
            for (long from = torn + 1; from <= 60; from++)
            {
                await Assert.ThrowsAsync<ArgumentOutOfRangeException>(
                    async () => await CountAsync(reader.ReadBatchesAsync(from, follow, _stop)));
            }
        }

        await using Journal opened = await Journal.OpenAsync(copy, cancellationToken: _stop);
        Assert.Equal(torn, opened.NextSequence);
    }

    /// <summary>A reader takes at most 256 KiB before it asks for a proof; a batch is proven whole.</summary>
    [Theory]
    [InlineData(false, FlushGuarantee.Durable)]
    [InlineData(true, FlushGuarantee.Durable)]
    [InlineData(false, FlushGuarantee.WriteBehind)]
    [InlineData(true, FlushGuarantee.WriteBehind)]
    public async Task ReadAsync_ByFolder_TheLastBatchIsLong_ReturnsIt(bool follow, FlushGuarantee guarantee)
    {
        await using Journal journal = await Journal.OpenAsync(_folder, new() { FlushGuarantee = guarantee }, _stop);
        await Journaled.AppendAsync(journal, 3);
        await journal.AppendBatchAsync([.. Enumerable.Range(3, 3000).Select(n => (ReadOnlyMemory<byte>)Journaled.Record(n))], null, _stop);
        await journal.SyncAsync();
        await using IAsyncEnumerator<JournalBatch> batches = JournalReader.Open(_folder).ReadBatchesAsync(0, follow, _stop)
            .GetAsyncEnumerator(_stop);
        await Journaled.ReadUntilAsync(batches, 0, 3003);
    }

    /// <summary>The writer was killed, or its device was full, in the midst of a batch. The next opening cuts the batch.</summary>
    [Theory]
    [InlineData(1), InlineData(200)]
    public async Task ReadAsync_ByFolder_ABatchIsCutAfterAPartOfItWasRead_GoesOnWithWhatComesInItsPlace(int count)
    {
        await using (Journal journal = await Journal.OpenAsync(_folder, s_small with { PreallocateSegments = false }, _stop))
        {
            await Journaled.AppendAsync(journal, 3);
            await journal.AppendBatchAsync([new byte[900], new byte[900], new byte[900]], null, _stop);
        }

        string segment = Assert.Single(Journaled.Segments(_folder));
        using (FileStream file = new(segment, FileMode.Open))
        {
            file.SetLength(file.Length - 500);
        }

        await using IAsyncEnumerator<JournalBatch> batches = JournalReader.Open(_folder, TimeSpan.FromMilliseconds(1))
            .ReadBatchesAsync(0, follow: true, _stop).GetAsyncEnumerator(_stop);
        long next = 0;
        while (next < 3)
        {
            Assert.True(await batches.MoveNextAsync());
            next = batches.Current.NextSequence;
        }

        Task<bool> step = batches.MoveNextAsync().AsTask();
        await Task.Delay(100, _stop);
        Assert.False(step.IsCompleted);
        await using Journal opened = await Journal.OpenAsync(_folder, s_small with { PreallocateSegments = false }, _stop);
        Assert.Equal(3, opened.NextSequence);
        await Journaled.AppendAsync(opened, count);
        Assert.True(await GrowingFile.Bounded(step));
        await Journaled.ReadUntilAsync(batches, Journaled.Check(batches.Current, 3), 3 + count);
    }

    /// <summary>A reader that has listed the folder before a repair took the segments behind the damage away.</summary>
    [Fact]
    public async Task ReadAsync_ByFolder_RepairedBehindWhatWasRead_GoesOn()
    {
        await Journaled.MakeAsync(_folder, 150, s_small);
        string[] segments = Journaled.Segments(_folder);
        await using IAsyncEnumerator<JournalBatch> batches = JournalReader.Open(_folder).ReadBatchesAsync(0, false, _stop)
            .GetAsyncEnumerator(_stop);
        Assert.True(await batches.MoveNextAsync());
        Journaled.Flip(segments[1], 4096 + 100);
        JournalRepair repair = await Journal.RepairAsync(_folder, null, _stop);
        long end = repair.Summary.NextSequence;
        await using (Journal journal = await Journal.OpenAsync(_folder, s_small, _stop))
        {
            await Journaled.AppendAsync(journal, 5);
        }

        long next = batches.Current.NextSequence;
        while (await batches.MoveNextAsync())
        {
            Assert.Equal(next, batches.Current.FirstSequence);
            next = batches.Current.NextSequence;
        }

        Assert.Equal(end + 5, next);
    }

    /// <summary>The writer has begun the next segment and trimmed this one, after the reader has asked for a next one.</summary>
    [Fact]
    public async Task ReadAsync_ByFolder_TheSegmentIsRemovedBeforeItIsSynced_GoesOn()
    {
        await using (Journal journal = await Journal.OpenAsync(_folder, s_small, _stop))
        {
            await Journaled.AppendAsync(journal, 3);
            await journal.AppendAsync(new byte[s_small.SegmentSize], _stop);
        }

        // Without the statement at its end, so that nothing proves the last record.
        string first = Journaled.Segments(_folder)[0];
        using (FileStream file = new(first, FileMode.Open))
        {
            file.SetLength(file.Length - 32);
        }

        RemovingSource source = new(new FolderSource(_folder, TimeSpan.FromMilliseconds(1)), () => File.Delete(first));
        List<long> numbers = [];
        await foreach (JournalBatch batch in JournalCursor.ReadAsync(source, 0, null, follow: false, _stop))
        {
            foreach (JournalRecord record in batch)
            {
                numbers.Add(record.Sequence);
            }
        }

        Assert.Equal([0, 1, 2, 3], numbers);
    }

    /// <summary>Records that nothing proves are shown after a sync by the reader: strace shows it.</summary>
    [Fact]
    public async Task ReadAsync_RecordsThatNobodyHasSynced_AreSyncedBeforeTheyAreShown()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, new() { FlushGuarantee = FlushGuarantee.Written }, _stop);
        await Journaled.AppendAsync(journal, 20);
        Assert.NotEmpty(await Journaled.TraceAsync(_temp, "fsync,fdatasync", "fdatasync(", "journalcount", _folder, "20 records"));
    }

    /// <summary>One listing serves all segments that others follow: strace counts.</summary>
    [Fact]
    public async Task ReadAsync_ManySegments_DoesNotListTheFolderForEach()
    {
        await using (Journal journal = await Journal.OpenAsync(_folder, s_small, _stop))
        {
            await Task.WhenAll(Enumerable.Range(0, 400).Select(_ => journal.AppendAsync(new byte[7000], _stop).AsTask()));
        }

        int segments = Journaled.Segments(_folder).Length;
        int listings = (await Journaled.TraceAsync(_temp, "getdents64", $"<{_folder}>", "journalcount", _folder, "400 records")).Length;
        Assert.InRange(listings, 1, segments / 2);
    }

    /// <summary>What another process that follows has read: strace counts.</summary>
    [Fact]
    [Trait("Category", StressTime.Category)]
    public async Task ReadBatchesAsync_Follow_ReadsAtMostTwiceWhatIsWritten()
    {
        const int Commits = 500;
        ChildProcess.SkipUnlessLinux("strace");
        await using Journal journal = await Journal.OpenAsync(_folder, cancellationToken: _stop);
        await journal.AppendAsync(JournalCommands.RecordOf(0, 0), _stop);
        string calls = _temp.File("calls");
        using Process reader = ChildProcess.Start(
            $"exec {ChildProcess.Strace} -qq -y -e trace=pread64 -o '{calls}' " + ChildProcess.Command("journalread", _folder));
        long written = 0;
        for (int i = 0; i < Commits; i++)
        {
            // Each is read before the next one comes.
            Assert.NotNull(await reader.StandardOutput.ReadLineAsync(_stop));
            byte[] record = i == Commits - 1 ? new byte[JournalCommands.LastLength] : JournalCommands.RecordOf(1, i);
            written += record.Length + 32;
            await journal.AppendAsync(record, _stop);
        }

        await reader.WaitForExitAsync(_stop);
        string[] lines = await File.ReadAllLinesAsync(calls, _stop);
        string[] reads = [.. lines.Where(line => line.Contains("pread", StringComparison.Ordinal)
            && line.Contains(".journal>", StringComparison.Ordinal))];
        long read = reads.Sum(line => long.TryParse(line.Split(" = ")[^1], CultureInfo.InvariantCulture, out long bytes) ? bytes : 0);
        TestContext.Current.SendDiagnosticMessage($"{read} bytes read of {written}");

        // Looks that found nothing read 32 bytes each.
        long looks = reads.Count(line => line.EndsWith(" = 32", StringComparison.Ordinal));
        Assert.InRange(read - (looks * 32), 1, 2 * written);
    }

    /// <summary>
    /// A reading stops for a sync where the beginning of a long record is known already, and goes on with that record.
    /// </summary>
    [Theory]
    [InlineData(600), InlineData(660), InlineData(720)]
    public async Task ReadAsync_ByFolder_LongRecordsThatNothingProves_ReadsAllOfThem(int small)
    {
        await using (Journal journal = await Journal.OpenAsync(_folder, new() { PreallocateSegments = false }, _stop))
        {
            // Each group proves the one before.
            for (int i = 0; i < small / 20; i++)
            {
                await Task.WhenAll(Enumerable.Range(0, 20).Select(_ => journal.AppendAsync(new byte[1000], _stop).AsTask()));
            }

            await journal.AppendAsync(new byte[1000], _stop);
        }

        CutStatement();
        JournalOptions written = new() { PreallocateSegments = false, FlushGuarantee = FlushGuarantee.Written };
        await using (Journal journal = await Journal.OpenAsync(_folder, written, _stop))
        {
            for (int i = 0; i < 5; i++)
            {
                await journal.AppendAsync(new byte[300_000], _stop);
            }
        }

        CutStatement();
        Assert.Equal(small + 6, await CountAsync(JournalReader.Open(_folder).ReadBatchesAsync(0, false, _stop)));

        // As a kill leaves it: nothing proves the last records.
        void CutStatement()
        {
            using FileStream file = new(Assert.Single(Journaled.Segments(_folder)), FileMode.Open);
            file.SetLength(file.Length - 32);
        }
    }

    /// <summary>A batch is in memory whole: the memory is not made longer for each piece. strace counts.</summary>
    [Fact]
    public async Task ReadAsync_ALongBatch_IsReadInEverLongerPieces()
    {
        const int Records = 8192;
        await using (Journal journal = await Journal.OpenAsync(_folder, new() { PreallocateSegments = false }, _stop))
        {
            byte[] record = new byte[4064];
            await journal.AppendBatchAsync([.. Enumerable.Repeat<ReadOnlyMemory<byte>>(record, Records)], null, _stop);
        }

        string[] reads = await Journaled.TraceAsync(_temp, "pread64", ".journal>", "journalcount", _folder, $"{Records} records");
        Assert.InRange(reads.Length, 1, 64);
    }

    private static async Task<long> CountAsync(IAsyncEnumerable<JournalBatch> batches)
    {
        long next = 0;
        await foreach (JournalBatch batch in batches)
        {
            next = batch.NextSequence;
        }

        return next;
    }

    private IAsyncEnumerable<JournalBatch> Read(Journal journal, bool isByFolder, long from, bool follow)
        => isByFolder ? JournalReader.Open(_folder, TimeSpan.FromMilliseconds(2)).ReadBatchesAsync(from, follow, _stop)
            : journal.ReadBatchesAsync(from, follow, _stop);

    /// <summary>A folder whose segment is removed directly after the second question for a next one.</summary>
    private sealed class RemovingSource(IJournalSource folder, Action remove) : IJournalSource
    {
        private int _asked;

        public SegmentFile[] Segments => folder.Segments;

        public long? Limit => folder.Limit;

        public SegmentFile? NextOf(SegmentFile segment) => folder.NextOf(segment);

        public bool HasNext(SegmentFile segment, long first)
        {
            if (++_asked > 2)
            {
                return folder.HasNext(segment, first);
            }

            if (_asked == 2)
            {
                remove();
            }

            return false;
        }

        public ValueTask WriteOutAsync() => folder.WriteOutAsync();

        public void ThrowIfFailed() => folder.ThrowIfFailed();

        public ValueTask<bool> WaitAsync(long sequence, int looks, CancellationToken cancellationToken)
            => folder.WaitAsync(sequence, looks, cancellationToken);
    }
}
