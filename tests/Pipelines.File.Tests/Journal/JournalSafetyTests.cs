using System.Buffers.Binary;
using System.Text.RegularExpressions;
using Microsoft.Extensions.Logging;

namespace FilePipelines.Tests;

/// <summary>What other writers, callers, clocks and contents of records do to a journal.</summary>
public sealed partial class JournalSafetyTests : InAJournal
{
    private const int HeaderLength = 4096;

    private static readonly JournalOptions s_small = new() { SegmentSize = 8 * 1024, PreallocateSegments = false };

    /// <summary>A journal compares the path of its lock with its lock once in a tick of this clock, some milliseconds.</summary>
    private async Task TickIsOver()
    {
        long now = Environment.TickCount64;
        while (Environment.TickCount64 == now)
        {
            await Task.Delay(1, _stop);
        }
    }

    [GeneratedRegex("""\.journal>, ""(?:\.\.\.)?, ([0-9]+), ([0-9]+)""")]
    private static partial Regex JournalWrite();

    private static long Number(Group digits) => long.Parse(digits.ValueSpan, CultureInfo.InvariantCulture);

    [Theory]
    [InlineData("")]
    [InlineData("DOTNET_SYSTEM_IO_DISABLEFILELOCKING=1")]
    public async Task OpenAsync_AnotherProcessWrites_IsRefusedWhateverTheRuntimesOwnLocksAre(string environment)
    {
        ChildProcess.SkipUnlessLinux();
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        (int status, string output, string error) = await ChildProcess.RunAsync(
            $"{environment} exec " + ChildProcess.Command("journalopen", _folder));
        Assert.NotEqual(0, status);
        Assert.Contains("open for writing already", output + error, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData(10), InlineData(5000)]
    public async Task AppendAsync_TheLockWasRemovedAndAnotherWriterHasCome_LosesNothingThatWasAcknowledged(int length)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "An open file keeps its name there.");
        Journal first = await Journal.OpenAsync(_folder, s_small, _stop);
        Assert.Equal(0, await first.AppendAsync(new byte[length], _stop));
        File.Delete(Path.Combine(_folder, "lock"));
        Journal second = await Journal.OpenAsync(_folder, s_small, _stop);
        Assert.Equal(1, await second.AppendAsync(new byte[length], _stop));
        await TickIsOver();
        for (int i = 0; i < 3; i++)
        {
            await Assert.ThrowsAsync<IOException>(async () => await first.AppendAsync(new byte[length], _stop));
        }

        Assert.Contains("lock", first.Error!.Message, StringComparison.Ordinal);
        await first.DisposeAsync();
        Assert.Equal(2, await second.AppendAsync(new byte[length], _stop));
        await second.DisposeAsync();
        Assert.Equal(3, (await Journal.VerifyAsync(_folder, cancellationToken: _stop)).NextSequence);
    }

    [Fact]
    public async Task AppendAsync_TheFolderWasMovedAndAnotherJournalIsInItsPlace_HarmsNeither()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "A folder with open files keeps its name there.");
        Journal first = await Journal.OpenAsync(_folder, s_small, _stop);
        long acknowledged = 0;
        for (int i = 0; i < 3; i++)
        {
            acknowledged = await first.AppendAsync(new byte[1000], _stop);
        }

        string moved = _temp.File("moved");
        Directory.Move(_folder, moved);
        await using (Journal second = await Journal.OpenAsync(_folder, s_small, _stop))
        {
            await Record.ExceptionAsync(async () =>
            {
                for (int i = 0; i < 9; i++)
                {
                    acknowledged = await first.AppendAsync(new byte[1000], _stop);
                }
            });
            await Record.ExceptionAsync(async () => await first.TrimBeforeAsync(long.MaxValue, _stop));
            for (int i = 0; i < 20; i++)
            {
                await second.AppendAsync(new byte[1000], _stop);
            }
        }

        await first.DisposeAsync();
        Assert.Equal(20, (await Journal.VerifyAsync(_folder, cancellationToken: _stop)).NextSequence);
        Assert.True((await Journal.VerifyAsync(moved, cancellationToken: _stop)).NextSequence > acknowledged);
    }

    /// <summary>Both have a file that becomes their next segment, with the same path.</summary>
    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task DisposeAsync_TheFolderWasMovedAndAnotherJournalIsInItsPlace_LeavesTheNextSegmentOfTheOther(bool hasPrepared)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "A folder with open files keeps its name there.");
        JournalOptions options = new() { SegmentSize = 64 * 1024 };
        Journal first = await Journal.OpenAsync(_folder, options, _stop);
        await first.AppendAsync(new byte[hasPrepared ? 30_000 : 1000], _stop);
        await first.AppendAsync(new byte[1000], _stop);
        Directory.Move(_folder, _temp.File("moved"));
        await using Journal second = await Journal.OpenAsync(_folder, options, _stop);
        await second.AppendAsync(new byte[hasPrepared ? 30_000 : 1000], _stop);
        await second.AppendAsync(new byte[1000], _stop);
        await Record.ExceptionAsync(async () => await first.AppendAsync(new byte[30_000], _stop));
        await Record.ExceptionAsync(async () => await first.AppendAsync(new byte[30_000], _stop));
        await first.DisposeAsync();
        for (int i = 0; i < 20; i++)
        {
            await second.AppendAsync(new byte[30_000], _stop);
        }

        Assert.Equal(22, (await Journal.VerifyAsync(_folder, cancellationToken: _stop)).NextSequence);
    }

    /// <summary>An append that waits, and whose caller has given its memory back.</summary>
    [Fact]
    public async Task AppendAsync_TheCallersMemoryThrowsLater_ConcernsNobody()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, new() { PauseAppendThreshold = 1 }, _stop);
        Task<long>[] before = [.. Enumerable.Range(0, 20).Select(_ => journal.AppendAsync(new byte[1000], _stop).AsTask())];
        using FlightyMemory memory = new();
        Task<long> waiting = journal.AppendAsync(memory.Memory, _stop).AsTask();
        memory.IsGone = true;
        await Assert.ThrowsAsync<ObjectDisposedException>(async () => await journal.AppendAsync(memory.Memory, _stop));
        await Task.WhenAll(before);
        await waiting;
        await journal.AppendAsync(new byte[10], _stop);
        Assert.Null(journal.Error);
    }

    [Fact]
    public async Task AppendAsync_TheCallersMemoryChangesAtOnce_AppendsWhatItWas()
    {
        await using Journal journal = await Journal.OpenAsync(_folder, new() { PauseAppendThreshold = 2000 }, _stop);
        byte[] record = new byte[1000];
        List<Task<long>> appends = [];
        for (int i = 0; i < 50; i++)
        {
            Array.Fill(record, (byte)i);
            appends.Add(journal.AppendAsync(record, _stop).AsTask());
        }

        await Task.WhenAll(appends);
        int next = 0;
        await foreach (JournalBatch batch in journal.ReadBatchesAsync(cancellationToken: _stop))
        {
            foreach (JournalRecord one in batch)
            {
                Assert.Equal((byte)next++, Assert.Single(one.ToArray().Distinct()));
            }
        }

        Assert.Equal(50, next);
    }

    /// <summary>Each 8 bytes look like the header of a later record that reaches to the end.</summary>
    [Fact]
    public async Task OpenAsync_ATornRecordIsFullOfHeaders_LooksOnceAtEachByte()
    {
        byte[] record = new byte[16 << 20];
        for (int i = 0; i + 32 <= record.Length; i += 32)
        {
            BinaryPrimitives.WriteInt32LittleEndian(record.AsSpan(i + 4), record.Length - i);
            BinaryPrimitives.WriteInt64LittleEndian(record.AsSpan(i + 24), 2);
        }

        await using (Journal journal = await Journal.OpenAsync(_folder, new() { MaxRecordLength = record.Length }, _stop))
        {
            await journal.AppendAsync(new byte[8], _stop);
            await journal.AppendAsync(record, _stop);
        }

        using (FileStream segment = new(Journaled.Segments(_folder)[0], FileMode.Open))
        {
            segment.SetLength(segment.Length - 64);
        }

        Task<Journal> opening = Task.Run(async () => await Journal.OpenAsync(_folder, cancellationToken: _stop));
        await using Journal again = await GrowingFile.Bounded(opening);
        Assert.Equal(1, again.NextSequence);
        Assert.InRange(again.CutBytes, record.Length / 2, record.Length + 64);
    }

    [Fact]
    public async Task OpenAsync_SomeRecordsAreNotProven_WritesOnlyThoseAgain()
    {
        ChildProcess.SkipUnlessLinux("strace");
        await using (Journal journal = await Journal.OpenAsync(_folder, cancellationToken: _stop))
        {
            for (int i = 0; i < 50; i++)
            {
                await journal.AppendAsync(new byte[10_000], _stop);
            }
        }

        using (FileStream segment = new(Journaled.Segments(_folder)[0], FileMode.Open))
        {
            // As a kill leaves it: without the statement of a journal that is closed.
            segment.SetLength(segment.Length - 32);
        }

        // Without the bytes, and whether the call ends in the same line or not: pwrite64(52<name>, ""..., length, offset
        (long Length, long Offset)[] writes = [.. (await Journaled.TraceAsync(_temp, "pwrite64", "", "journalopen", _folder, "50 0"))
            .Select(static line => JournalWrite().Match(line)).Where(static write => write.Success)
            .Select(static write => (Number(write.Groups[1]), Number(write.Groups[2]))).Where(static write => write.Item1 > 0)];
        Assert.NotEmpty(writes);
        Assert.All(writes, static write => Assert.True(write.Offset > 49 * 10_000, $"{write}"));
    }

    [Fact]
    public async Task RetainAge_ASegmentIsOfATimeThatLiesAhead_DoesNotStopIt()
    {
        await Journaled.MakeAsync(_folder, 200, s_small);
        string[] segments = Journaled.Segments(_folder);
        byte[] bytes = await File.ReadAllBytesAsync(segments[2], _stop);
        BinaryPrimitives.WriteInt64LittleEndian(bytes.AsSpan(48), DateTimeOffset.UtcNow.AddYears(10).ToUnixTimeMilliseconds());
        BinaryPrimitives.WriteUInt32LittleEndian(bytes.AsSpan(76), Crc32C.Append(0, bytes.AsSpan(0, 76)));
        await File.WriteAllBytesAsync(segments[2], bytes, _stop);
        await using Journal journal = await Journal.OpenAsync(_folder, s_small with { RetainAge = TimeSpan.Zero }, _stop);
        Assert.Single(Journaled.Segments(_folder));
    }

    [Theory]
    [InlineData(32, -1L)]
    [InlineData(40, 1000L)]
    [InlineData(48, long.MaxValue)]
    public async Task OpenAsync_AHeaderSaysWhatCannotBeAndItsCrcIsRight_NamesTheFile(int offset, long value)
    {
        await Journaled.MakeAsync(_folder, 5);
        string segment = Journaled.Segments(_folder)[0];
        byte[] bytes = await File.ReadAllBytesAsync(segment, _stop);
        BinaryPrimitives.WriteInt64LittleEndian(bytes.AsSpan(offset), value);
        BinaryPrimitives.WriteUInt32LittleEndian(bytes.AsSpan(76), Crc32C.Append(0, bytes.AsSpan(0, 76)));
        await File.WriteAllBytesAsync(segment, bytes, _stop);
        InvalidJournalException e = await Assert.ThrowsAsync<InvalidJournalException>(
            async () => await Journal.OpenAsync(_folder, cancellationToken: _stop));
        Assert.Equal(segment, e.Path);
    }

    [Fact]
    public async Task OpenAsync_ADanglingLinkHasASegmentsName_IsAnErrorThatNamesIt()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Making a link needs a privilege there.");
        await Journaled.MakeAsync(_folder, 5);
        string link = Path.Combine(_folder, $"{5:D20}.journal");
        File.CreateSymbolicLink(link, _temp.File("nowhere"));
        foreach (Func<Task> call in new Func<Task>[]
        {
            async () => await Journal.OpenAsync(_folder, cancellationToken: _stop),
            async () => await Journal.VerifyAsync(_folder, cancellationToken: _stop),
            async () => await Journaled.ReadAsync(JournalReader.Open(_folder).ReadBatchesAsync(cancellationToken: _stop)),
        })
        {
            Exception? error = await GrowingFile.Bounded(Task.Run(async () => await Record.ExceptionAsync(call), _stop));
            Assert.True(error is IOException or InvalidJournalException, error?.ToString());
        }
    }

    /// <summary>A provider of logs that was disposed may throw.</summary>
    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task OpenAsync_TheLoggerThrows_TheJournalGoesOn(bool isWhenAsked)
    {
        JournalOptions options = s_small with { Logger = new ThrowingLogger(isWhenAsked), RetainBytes = 20_000 };
        for (int round = 0; round < 2; round++)
        {
            await using Journal journal = await Journal.OpenAsync(_folder, options, _stop);
            await Journaled.AppendAsync(journal, 100);
            Assert.Null(journal.Error);
        }

        Assert.Equal(200, (await Journal.VerifyAsync(_folder, cancellationToken: _stop)).NextSequence);
    }

    /// <summary>Nothing that was appended comes back as something else: it is there, or its damage is told.</summary>
    [Fact]
    [Trait("Category", StressTime.Category)]
    public async Task ReadBatchesAsync_AnyBitIsFlipped_NothingIsAlteredSilently()
    {
        await using (Journal journal = await Journal.OpenAsync(_folder, s_small, _stop))
        {
            await journal.AppendAsync(Journaled.Record(0), _stop);
            await journal.AppendBatchAsync([Journaled.Record(1), Journaled.Record(2)], null, _stop);
        }

        string segment = Assert.Single(Journaled.Segments(_folder));
        byte[] bytes = await File.ReadAllBytesAsync(segment, _stop);
        int told = 0;
        for (int bit = 0; bit < bytes.Length * 8; bit++)
        {
            // Of the zeros of the header's page only some.
            if (bit is > 100 * 8 and < (HeaderLength - 1) * 8 && bit % 509 != 0)
            {
                continue;
            }

            bytes[bit / 8] ^= (byte)(1 << (bit % 8));
            await File.WriteAllBytesAsync(segment, bytes, _stop);
            try
            {
                Assert.Equal(3, await Journaled.ReadAsync(JournalReader.Open(_folder).ReadBatchesAsync(cancellationToken: _stop)));
            }
            catch (InvalidJournalException)
            {
                told++;
            }

            bytes[bit / 8] ^= (byte)(1 << (bit % 8));
        }

        // All but the zeros behind records.
        Assert.InRange(told, (bytes.Length - HeaderLength - 64) * 8, bytes.Length * 8);
    }

    /// <summary>As a kill leaves it: nothing stands behind the batch that says that it was on the device.</summary>
    [Fact]
    [Trait("Category", StressTime.Category)]
    public async Task ReadBatchesAsync_AnyBitOfABatchAtTheEndIsFlipped_ItIsThereWholeOrNotAtAll()
    {
        await using (Journal journal = await Journal.OpenAsync(_folder, s_small with { PreallocateSegments = false }, _stop))
        {
            await journal.AppendAsync(Journaled.Record(0), _stop);
            await journal.AppendBatchAsync([Journaled.Record(1), Journaled.Record(2), Journaled.Record(3)], null, _stop);
        }

        string segment = Assert.Single(Journaled.Segments(_folder));
        byte[] bytes = (await File.ReadAllBytesAsync(segment, _stop))[..^32];
        SortedDictionary<long, int> counts = [];

        // One in five, which are bits of every place in a byte, or all.
        int step = Rounds.Of(5, 1);
        for (int bit = HeaderLength * 8; bit < bytes.Length * 8; bit += step)
        {
            bytes[bit / 8] ^= (byte)(1 << (bit % 8));
            await File.WriteAllBytesAsync(segment, bytes, _stop);
            bytes[bit / 8] ^= (byte)(1 << (bit % 8));
            long there;
            try
            {
                there = (await Journal.VerifyAsync(_folder, cancellationToken: _stop)).NextSequence;
            }
            catch (InvalidJournalException)
            {
                there = -1;
            }

            counts[there] = counts.GetValueOrDefault(there) + 1;
            for (long from = 0; from <= 3; from++)
            {
                long read;
                try
                {
                    read = await Journaled.ReadAsync(JournalReader.Open(_folder).ReadBatchesAsync(from, cancellationToken: _stop), from);
                }
                catch (InvalidJournalException)
                {
                    read = -1;
                }
                catch (ArgumentOutOfRangeException) when (there < from)
                {
                    read = there;
                }

                Assert.Equal(there, read);
            }
        }

        // The batch is cut, with the record before if that is damaged and not proven; or the batch says that it was on the device.
        Assert.All(counts.Keys, there => Assert.Contains(there, (long[])[-1, 0, 1, 4]));
        Assert.True(counts[1] > 3 * 32 * 8 / step, string.Join(' ', counts));
    }

    private sealed class ThrowingLogger(bool isWhenAsked) : ILogger
    {
        public IDisposable? BeginScope<TState>(TState state)
            where TState : notnull => throw new ObjectDisposedException(nameof(ThrowingLogger));

        public bool IsEnabled(LogLevel logLevel) => isWhenAsked ? throw new ObjectDisposedException(nameof(ThrowingLogger)) : true;

        public void Log<TState>(
            LogLevel logLevel, EventId eventId, TState state, Exception? exception, Func<TState, Exception?, string> formatter)
            => throw new ObjectDisposedException(nameof(ThrowingLogger));
    }

    private sealed class FlightyMemory : MemoryManager<byte>
    {
        private readonly byte[] _bytes = new byte[100];

        public bool IsGone { get; set; }

        public override Span<byte> GetSpan() => IsGone ? throw new ObjectDisposedException(nameof(FlightyMemory)) : _bytes;

        public override MemoryHandle Pin(int elementIndex = 0) => throw new NotSupportedException();

        public override void Unpin()
        {
        }

        protected override void Dispose(bool disposing) => IsGone = true;
    }
}
