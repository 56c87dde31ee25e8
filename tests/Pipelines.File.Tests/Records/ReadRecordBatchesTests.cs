using System.Buffers.Binary;

namespace FilePipelines.Tests;

/// <summary>Records of a format of one's own, and what is said of bytes that are none.</summary>
public sealed class ReadRecordBatchesTests : FileTests
{
    /// <summary>A record is the length of its text, a byte; the text; and the sum of its bytes.</summary>
    private const int MaxText = 200;

    private enum Leaving
    {
        AtTheEnd,
        WithinABatch,
        BeforeABatch,
    }

    [Fact]
    public async Task ReadRecordBatchesAsync_CurrentIsAskedForWithoutABatch_IsEmptyAndTheNextIsWhole()
    {
        await using IAsyncEnumerator<RecordBatch<string>> batches = new TestPipeReader(Records("a", "b"))
            .ReadRecordBatchesAsync<string>(TryTake, cancellationToken: _stop).GetAsyncEnumerator(_stop);
        Assert.Equal(0, batches.Current.Count);
        Assert.True(await batches.MoveNextAsync());
        Assert.Equal(2, batches.Current.Count);
        Assert.Equal(["a", "b"], TextsOf(batches.Current));
    }

    [Fact]
    public void ReadRecordBatchesAsync_AnyRecordsCutAnywhere_GivesThemAndTheirOffsets()
        => Prop.ForAll(
            Gen.ListOf(Gen.Choose(0, MaxText)).ToArbitrary(), Gen.Choose(1, 700).ToArbitrary(), Gen.Choose(0, 2).ToArbitrary(),
            (lengths, size, leaving) => CheckAsync([.. lengths], size, (Leaving)leaving).GetAwaiter().GetResult())
            .Check(Config.QuickThrowOnFailure.WithMaxTest(200).WithEndSize(60));

    [Fact]
    public async Task ReadRecordBatchesAsync_ParserThatWantsToSeeTheNextRecord_GivesEveryRecord()
    {
        // It looks at two bytes behind the record, unless the pipe ends there: so it is asked for less than it has seen.
        byte[] bytes = [.. Records([.. Enumerable.Repeat("ab", 100)]), 0, 0];
        for (int size = 1; size < 20; size++)
        {
            int count = 0;
            TestPipeReader reader = new(bytes) { SegmentSize = size };
            await foreach (RecordBatch<int> batch in reader.ReadRecordBatchesAsync<int>(
                (ReadOnlySpan<byte> rest, out int consumed, out int record) =>
                {
                    consumed = 4;
                    record = 1;
                    return rest.Length < 6 ? OperationStatus.NeedMoreData : OperationStatus.Done;
                },
                continueAt: e => e.IsCutOff ? long.MaxValue : null,
                cancellationToken: _stop))
            {
                foreach (int record in batch)
                {
                    count += record;
                }
            }

            Assert.Equal(100, count);
        }
    }

    [Fact]
    public async Task ReadRecordBatchesAsync_RefStruct_RefersToTheBytes()
    {
        ReadOnlySequence<byte> bytes = new(Records("one", "two"));
        List<string> texts = [];
        await foreach (RecordBatch<TextRecord> batch
            in PipeReader.Create(bytes).ReadRecordBatchesAsync<TextRecord>(TryTakeSpan, cancellationToken: _stop))
        {
            foreach (TextRecord record in batch)
            {
                Assert.True(record.Text.Overlaps(bytes.FirstSpan));
                texts.Add(Encoding.ASCII.GetString(record.Text));
            }
        }

        Assert.Equal(["one", "two"], texts);
    }

    [Theory]
    [InlineData(1), InlineData(7), InlineData(4096)]
    public async Task ReadRecordBatchesAsync_ParserThatIsAStruct_DoesWhatADelegateDoes(int size)
    {
        string[] texts = [.. Enumerable.Range(0, 100).Select(i => $"name {i}")];
        byte[] bytes = [.. Records(texts), 255];
        List<string> read = [];
        List<RecordBatch<TextRecord, TextParser>> copies = [];
        RecordBatch<TextRecord, TextParser> last = default;
        long end = 0;
        InvalidRecordException error = await Assert.ThrowsAsync<InvalidRecordException>(async () =>
        {
            await foreach (RecordBatch<TextRecord, TextParser> batch in new TestPipeReader(bytes) { SegmentSize = size, PieceSize = size }
                .ReadRecordBatchesAsync<TextRecord, TextParser>(default, MaxText + 2, cancellationToken: _stop))
            {
                int before = read.Count;
                foreach (LocatedRecord<TextRecord> record in batch.WithOffsets())
                {
                    Assert.Equal((end, end + record.Record.Text.Length + 2), (record.Offset, record.EndOffset));
                    end = record.EndOffset;
                    read.Add(Encoding.ASCII.GetString(record.Record.Text));
                }

                Assert.Equal(batch.Count, read.Count - before);
                copies.Add(batch.Copy());
#pragma warning disable PF0002 // The test is about what the rule warns of.
                last = batch;
#pragma warning restore PF0002
            }
        });
        Assert.Equal(bytes.Length - 1, error.Offset);
        Assert.Equal(texts, read);
        Assert.Throws<InvalidOperationException>(() => last.Count);
        read.Clear();
        foreach (RecordBatch<TextRecord, TextParser> copy in copies)
        {
            foreach (TextRecord record in copy)
            {
                read.Add(Encoding.ASCII.GetString(record.Text));
            }
        }

        Assert.Equal(texts, read);
    }

    [Fact]
    public void ReadRecordBatchesAsync_ParserThatIsAStructAndAWrongArgument_Throws()
    {
        TestPipeReader reader = new(Records("a"));
        Assert.Throws<ArgumentNullException>(
            () => ((PipeReader)null!).ReadRecordBatchesAsync<TextRecord, TextParser>(default, cancellationToken: _stop));
        Assert.Throws<ArgumentOutOfRangeException>(
            () => reader.ReadRecordBatchesAsync<TextRecord, TextParser>(default, maxLength: 0, cancellationToken: _stop));
    }

    [Fact]
    public async Task ReadRecordBatchesAsync_Batch_IsValidUntilTheNextStep()
    {
        Pipe pipe = new();
        await pipe.Writer.WriteAsync(Records("a", "b"), _stop);
        await using IAsyncEnumerator<RecordBatch<string>> batches = pipe.Reader
            .ReadRecordBatchesAsync<string>(TryTake, cancellationToken: _stop).GetAsyncEnumerator(_stop);
        Assert.True(await batches.MoveNextAsync());
        RecordBatch<string> first = batches.Current;
        Assert.Equal(["a", "b"], TextsOf(first));
        Assert.Equal(["a", "b"], TextsOf(first));
        await pipe.Writer.WriteAsync(Records("c"), _stop);
        Assert.True(await batches.MoveNextAsync());
        Assert.Equal(["c"], TextsOf(batches.Current));
        Assert.Throws<InvalidOperationException>(() => TextsOf(first));
        await batches.DisposeAsync();
        Assert.Empty(TextsOf(default));
    }

    [Fact]
    public async Task ReadRecordBatchesAsync_LoopThatGoesOnBehindAStepThatWasNotAwaited_ThrowsAndTakesNothingFromTheNextBatch()
    {
        TestPipeReader reader = new([Records("a", "b"), Records("c", "d")]);
        await using IAsyncEnumerator<RecordBatch<string>> batches = reader
            .ReadRecordBatchesAsync<string>(TryTake, cancellationToken: _stop).GetAsyncEnumerator(_stop);
        Assert.True(await batches.MoveNextAsync());
        Assert.Throws<InvalidOperationException>(GoOn);
        Assert.Equal(["c", "d"], TextsOf(batches.Current));
        Assert.False(await batches.MoveNextAsync());

        void GoOn()
        {
            RecordBatch<string, RecordBatch<string>.DelegateParser>.Enumerator records = batches.Current.GetEnumerator();
            Assert.True(records.MoveNext());
            Assert.True(batches.MoveNextAsync().AsTask().IsCompletedSuccessfully);
            records.MoveNext();
        }
    }

    [Fact]
    public async Task ReadRecordBatchesAsync_DamagedLength_SaysWhereInTheFileAndReadsNoFurther()
    {
        byte[] good = Records([.. Enumerable.Repeat("text", 100)]);
        string path = _folder.File("f", [.. "before"u8, .. good, 255, .. Pattern.Bytes(5_000_000)]);
        FilePipeReader reader = FilePipeReader.Create(path, new() { Offset = 6 });
        List<string> texts = [];
        InvalidRecordException error = await Assert.ThrowsAsync<InvalidRecordException>(() => TextsAsync(reader, texts, leaveOpen: true));
        Assert.Equal((100, 6 + good.Length, false), (texts.Count, error.Offset, error.IsCutOff));
        Assert.Contains($"byte {6 + good.Length} is invalid", error.Message, StringComparison.Ordinal);

        // The reader goes on with the record that is none.
        Assert.Equal(error.Offset, reader.Position);
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task ReadRecordBatchesAsync_DamagedRecords_AreLeftOutWhereTheCallerSaysSo()
    {
        byte[] damaged = Records("two");
        damaged[1]++;
        byte[] bytes = [.. Records("one"), .. damaged, 255, 255, .. Records("three"), .. Records("torn")[..^1]];
        long first = Records("one").Length;
        long second = first + damaged.Length;
        long torn = second + 2 + Records("three").Length;
        foreach (int size in Enumerable.Range(1, bytes.Length))
        {
            foreach (bool isLate in new[] { false, true })
            {
                List<long> offsets = [];
                List<string> texts = [];
                TestPipeReader reader = new(bytes) { SegmentSize = size, PieceSize = isLate ? 2 : bytes.Length, IsLate = isLate };
                await TextsAsync(reader, texts, continueAt: e =>
                {
                    offsets.Add(e.Offset);
                    Assert.Equal(e.Offset == torn, e.IsCutOff);
                    return e.IsCutOff ? long.MaxValue : e.Offset == first ? second : e.Offset + 1;
                });
                Assert.Equal(["one", "three"], texts);
                Assert.Equal([first, second, second + 1, torn], offsets);
                Assert.True(reader.IsCompleted);
            }
        }
    }

    [Fact]
    public async Task ReadRecordBatchesAsync_DamagedLengthThatReachesBeyondTheEnd_GivesTheRecordsBehindIt()
    {
        // The first byte is the length of a record that the end would cut off.
        byte[] bytes = [MaxText, MaxText, .. Records("one", "two")];
        foreach (int size in Enumerable.Range(1, bytes.Length))
        {
            List<string> texts = [];
            await TextsAsync(new TestPipeReader(bytes) { SegmentSize = size }, texts, continueAt: e => e.Offset + 1);
            Assert.Equal(["one", "two"], texts);
        }
    }

    [Theory]
    [InlineData(1), InlineData(100)]
    public async Task ReadRecordBatchesAsync_SkippedEnd_IsNotShownToTheParser(int size)
    {
        TestPipeReader reader = new(new byte[50]) { SegmentSize = size };
        await foreach (RecordBatch<int> batch in reader.ReadRecordBatchesAsync<int>(
            (ReadOnlySpan<byte> bytes, out int consumed, out int record) =>
            {
                consumed = record = 0;
                return bytes.IsEmpty ? OperationStatus.InvalidData : OperationStatus.NeedMoreData;
            },
            continueAt: _ => long.MaxValue,
            cancellationToken: _stop))
        {
            Assert.Fail("There is no record.");
        }

        Assert.True(reader.IsCompleted);
    }

    [Fact]
    public async Task ReadRecordBatchesAsync_ContinueFarBehind_SkipsReads()
    {
        byte[] bytes = [255, .. new byte[100_000], .. Records("found")];
        foreach (int size in new[] { 1000, 70_000 })
        {
            List<string> texts = [];
            FilePipeReader reader = FilePipeReader.Create(_folder.File("f", bytes), new() { BufferSize = size });
            await TextsAsync(reader, texts, continueAt: _ => 100_001);
            Assert.Equal(["found"], texts);
        }
    }

    [Fact]
    public async Task ReadRecordBatchesAsync_ContinueAtTheSameOffset_Throws()
    {
        TestPipeReader reader = new((byte[])[255, 255]);
        await Assert.ThrowsAsync<ArgumentOutOfRangeException>(() => TextsAsync(reader, [], continueAt: e => e.Offset));
        Assert.True(reader.IsCompleted);
    }

    [Theory]
    [InlineData(0, 5, true)]
    [InlineData(1, 5, false)]
    public async Task ReadRecordBatchesAsync_PartThatCutsARecord_DoesNotBlameTheFile(long offset, long length, bool isCutOff)
    {
        string path = _folder.File("f", [4, 255, 255, 255, 255, 252]);
        FilePipeReader reader = FilePipeReader.Create(path, new() { Offset = offset, Length = length });
        InvalidRecordException error = await Assert.ThrowsAsync<InvalidRecordException>(() => TextsAsync(reader));
        Assert.Equal(isCutOff, error.IsCutOff);
        Assert.Contains("begin and end where a record does", error.Message, StringComparison.Ordinal);
        error = await Assert.ThrowsAsync<InvalidRecordException>(
            () => TextsAsync(FilePipeReader.Create(_folder.File("g", Records("one")[..^1]))));
        Assert.True(error.IsCutOff);
        Assert.DoesNotContain("part", error.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task ReadRecordBatchesAsync_ParserThatAlwaysWantsMore_HoldsNoMoreThanMaxLengthAndOneRead()
    {
        TestPipeReader reader = new(Pattern.Bytes(1_000_000)) { PieceSize = 1000 };
        long most = 0;
        await using IAsyncEnumerator<RecordBatch<int>> batches = reader.ReadRecordBatchesAsync(
            (ReadOnlySpan<byte> bytes, out int consumed, out int record) =>
            {
                consumed = record = 0;
                most = Math.Max(most, bytes.Length);
                return OperationStatus.NeedMoreData;
            },
            maxLength: 10_000,
            cancellationToken: _stop).GetAsyncEnumerator(_stop);
        for (int i = 0; i < 2; i++)
        {
            InvalidRecordException error = await Assert.ThrowsAsync<InvalidRecordException>(async () => await batches.MoveNextAsync());
            Assert.Equal((11_000, 0, false), (most, error.Offset, error.IsCutOff));
            Assert.Contains("10000", error.Message, StringComparison.Ordinal);
        }
    }

    [Theory]
    [InlineData(true, true), InlineData(true, false), InlineData(false, true)]
    public async Task ReadRecordBatchesAsync_LongRecord_IsScannedAFewTimes(bool saysHowMuch, bool isFile)
    {
        // A length of 4 bytes, and a parser that looks at all bytes that it gets.
        const int Length = 8 << 20;
        byte[] bytes = new byte[4 + Length + 4 + 3];
        BinaryPrimitives.WriteInt32LittleEndian(bytes, 4 + Length);
        BinaryPrimitives.WriteInt32LittleEndian(bytes.AsSpan(4 + Length), 7);
        PipeReader reader = isFile ? FilePipeReader.Create(_folder.File("f", bytes), new() { BufferSize = 4096 })
            : new TestPipeReader(bytes) { PieceSize = 4096 };
        long scanned = 0;
        List<int> lengths = [];
        await foreach (RecordBatch<int> batch in reader.ReadRecordBatchesAsync<int>(
            (ReadOnlySpan<byte> rest, out int consumed, out int record) =>
            {
                consumed = 4;
                if (!BinaryPrimitives.TryReadInt32LittleEndian(rest, out record))
                {
                    return OperationStatus.NeedMoreData;
                }

                scanned += Math.Min(rest.Length, record);
                consumed = record <= rest.Length || saysHowMuch ? record : 0;
                return record <= rest.Length ? OperationStatus.Done : OperationStatus.NeedMoreData;
            },
            maxLength: 2 * Length,
            cancellationToken: _stop))
        {
            foreach (int length in batch)
            {
                lengths.Add(length);
            }
        }

        Assert.Equal([4 + Length, 7], lengths);
        Assert.InRange(scanned, Length, (saysHowMuch ? 3L : 5L) * Length);
    }

    [Fact]
    public async Task ReadRecordBatchesAsync_ParserThatWantsMoreThanMaxLength_ReadsNoFurther()
    {
        TestPipeReader reader = new(new byte[1_000_000]) { PieceSize = 1000 };
        InvalidRecordException error = await Assert.ThrowsAsync<InvalidRecordException>(async () =>
        {
            await foreach (RecordBatch<int> batch in reader.ReadRecordBatchesAsync(
                (ReadOnlySpan<byte> bytes, out int consumed, out int record) =>
                {
                    record = bytes.Length;
                    consumed = 10_001;
                    return bytes.Length > 1000 ? throw new InvalidOperationException("It was asked again.") : OperationStatus.NeedMoreData;
                },
                maxLength: 10_000,
                cancellationToken: _stop))
            {
                Assert.Fail("There is no record.");
            }
        });
        Assert.Contains("10000", error.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task ReadRecordBatchesAsync_LiveSource_GivesARecordOfAParserThatSaysNothingAtOnce()
    {
        Pipe pipe = new();
        await using IAsyncEnumerator<RecordBatch<string>> batches = pipe.Reader
            .ReadRecordBatchesAsync<string>(TryTakeWithoutLength, cancellationToken: _stop).GetAsyncEnumerator(_stop);
        Task<bool> next = batches.MoveNextAsync().AsTask();
        byte[] record = Records("some text");
        foreach (byte one in record)
        {
            await pipe.Writer.WriteAsync(new[] { one }, _stop);
        }

        Assert.True(await next);
        Assert.Equal(["some text"], TextsOf(batches.Current));
    }

    [Fact]
    public async Task Copy_OfABatch_IsValidBehindTheStepAndTheLoop()
    {
        byte[] bytes = [.. Records("a", "b"), .. Records("c"), 255];
        TestPipeReader reader = new([bytes.AsMemory(0, 6), bytes.AsMemory(6)]);
        List<(RecordBatch<string> Copy, RecordBatch<string> Batch, long Offset)> kept = [];
        await Assert.ThrowsAsync<InvalidRecordException>(async () =>
        {
            await foreach (RecordBatch<string> batch in reader.ReadRecordBatchesAsync<string>(TryTake, cancellationToken: _stop))
            {
                foreach (LocatedRecord<string> first in batch.WithOffsets())
                {
                    kept.Add((batch.Copy(), batch, first.Offset));
                    break;
                }
            }
        });
        Assert.Equal([2, 1], kept.Select(one => one.Copy.Count));
        Assert.Equal(["a", "b", "c"], kept.SelectMany(one => TextsOf(one.Copy)));
        foreach ((RecordBatch<string> copy, RecordBatch<string> batch, long offset) in kept)
        {
            Assert.Throws<InvalidOperationException>(() => batch.Count);
            Assert.Throws<InvalidOperationException>(() => batch.Copy());
            Assert.Throws<InvalidOperationException>(() => TextsOf(batch));
            foreach (LocatedRecord<string> first in copy.WithOffsets())
            {
                Assert.Equal(offset, first.Offset);
                break;
            }
        }

        Assert.Equal((0, 0), (default(RecordBatch<string>).Count, default(RecordBatch<string>).Copy().Count));
    }

    [Fact]
    public async Task Count_BeforeAndWithinALoop_IsTheNumberOfWholeRecordsAndChangesNothing()
    {
        byte[] bytes = [.. Records("a", "b", "c"), 200];
        TestPipeReader reader = new(bytes);
        await foreach (RecordBatch<string> batch
            in reader.ReadRecordBatchesAsync<string>(TryTake, leaveOpen: true, cancellationToken: _stop))
        {
            Assert.Equal(3, batch.Count);
            foreach (string text in batch)
            {
                Assert.Equal(("a", 3), (text, batch.Count));
                break;
            }

            break;
        }

        Assert.Equal(Records("a").Length, reader.Consumed);
    }

    [Theory]
    [InlineData(1), InlineData(1000)]
    public async Task ReadRecordBatchesAsync_RecordLongerThanMaxLength_IsRefusedHoweverItComes(int pieceSize)
    {
        byte[] bytes = Records("a", "longer", "b");
        List<string> texts = [];
        InvalidRecordException error = await Assert.ThrowsAsync<InvalidRecordException>(
            () => TextsAsync(new TestPipeReader(bytes) { PieceSize = pieceSize }, texts, maxLength: 7));
        Assert.Equal((1, Records("a").Length, false), (texts.Count, error.Offset, error.IsCutOff));
        Assert.Contains("longer", error.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task ReadRecordBatchesAsync_ReaderCompletedWithinTheLoop_Ends()
    {
        TestPipeReader reader = new(Records("a", "b"));
        await foreach (RecordBatch<string> batch in reader.ReadRecordBatchesAsync<string>(TryTake, cancellationToken: _stop))
        {
            await reader.CompleteAsync();
            break;
        }
    }

    [Fact]
    public async Task ReadRecordBatchesAsync_CanceledOrFailingRead_Throws()
    {
        byte[] bytes = Records([.. Enumerable.Repeat("text", 10)]);
        await Assert.ThrowsAsync<IOException>(() => TextsAsync(new TestPipeReader(bytes) { FailsAt = 30, PieceSize = 10 }));
        TestPipeReader canceled = new(bytes);
        canceled.CancelPendingRead();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => TextsAsync(canceled));
        Assert.True(canceled.IsCompleted);
    }

    [Theory]
    [InlineData(0), InlineData(-1), InlineData(11)]
    public async Task ReadRecordBatchesAsync_ParserThatConsumesWhatIsNotThere_Throws(int taken)
    {
        TestPipeReader reader = new(new byte[10]);
        await Assert.ThrowsAsync<InvalidOperationException>(async () =>
        {
            await foreach (RecordBatch<int> batch in reader.ReadRecordBatchesAsync(
                (ReadOnlySpan<byte> _, out int consumed, out int record) =>
                {
                    consumed = record = taken;
                    return OperationStatus.Done;
                },
                cancellationToken: _stop))
            {
                Assert.Fail("There is no record.");
            }
        });
        Assert.True(reader.IsCompleted);
        Assert.Throws<ArgumentOutOfRangeException>(
            () => reader.ReadRecordBatchesAsync<string>(TryTake, maxLength: 0, cancellationToken: _stop));
        Assert.Throws<ArgumentNullException>(() => reader.ReadRecordBatchesAsync<int>(null!, cancellationToken: _stop));
    }

    [Fact]
    public async Task ReadRecordBatchesAsync_ParserThatChangesItsMind_Throws()
    {
        int calls = 0;
        await Assert.ThrowsAsync<InvalidOperationException>(async () =>
        {
            await foreach (RecordBatch<int> batch in new TestPipeReader(new byte[10]).ReadRecordBatchesAsync(
                (ReadOnlySpan<byte> _, out int consumed, out int record) =>
                {
                    consumed = record = 1;
                    return calls++ == 0 ? OperationStatus.Done : OperationStatus.NeedMoreData;
                },
                cancellationToken: _stop))
            {
                foreach (int record in batch)
                {
                    Assert.Fail("The parser says that it is incomplete.");
                }
            }
        });
    }

    [Fact]
    public void ReadRecordBatchesAsync_WithoutWaiting_AllocatesNothingForARecord()
    {
        string path = _folder.File("f", Records([.. Enumerable.Repeat("0123456789", 100_000)]));
        long allocated = Warm.Least(enough: 5_000, () =>
        {
            long before = GC.GetAllocatedBytesForCurrentThread();
            ValueTask<int> count = CountAsync(path);
            Assert.Equal(100_000, count.IsCompleted ? count.GetAwaiter().GetResult() : count.AsTask().GetAwaiter().GetResult());
            return GC.GetAllocatedBytesForCurrentThread() - before;
        });
        Assert.InRange(allocated, 0, 5_000);

        static async ValueTask<int> CountAsync(string path)
        {
            int records = 0;
            await foreach (RecordBatch<TextRecord> batch in FilePipeReader.Create(path)
                .ReadRecordBatchesAsync<TextRecord>(TryTakeSpan, cancellationToken: TestContext.Current.CancellationToken))
            {
                foreach (TextRecord record in batch)
                {
                    records++;
                }
            }

            return records;
        }
    }

    private static byte[] Records(params string[] texts)
        => [.. texts.SelectMany(text => (byte[])[(byte)text.Length, .. Encoding.ASCII.GetBytes(text), (byte)text.Sum(one => one)])];

    private static OperationStatus TryTakeSpan(ReadOnlySpan<byte> bytes, out int consumed, out TextRecord record)
    {
        record = default;
        consumed = bytes.Length == 0 ? 0 : bytes[0] + 2;
        if (bytes.Length == 0 || (bytes[0] <= MaxText && bytes.Length < consumed))
        {
            return OperationStatus.NeedMoreData;
        }

        if (bytes[0] > MaxText)
        {
            return OperationStatus.InvalidData;
        }

        int sum = 0;
        foreach (byte one in bytes[1..(consumed - 1)])
        {
            sum += one;
        }

        record = new() { Text = bytes[1..(consumed - 1)] };
        return bytes[consumed - 1] == (byte)sum ? OperationStatus.Done : OperationStatus.InvalidData;
    }

    private static OperationStatus TryTake(ReadOnlySpan<byte> bytes, out int consumed, out string record)
    {
        OperationStatus status = TryTakeSpan(bytes, out consumed, out TextRecord text);
        record = Encoding.ASCII.GetString(text.Text);
        return status;
    }

    private static OperationStatus TryTakeWithoutLength(ReadOnlySpan<byte> bytes, out int consumed, out string record)
    {
        OperationStatus status = TryTake(bytes, out consumed, out record);
        consumed = status == OperationStatus.Done ? consumed : 0;
        return status;
    }

    private static List<string> TextsOf(RecordBatch<string> batch)
    {
        List<string> texts = [];
        foreach (string text in batch)
        {
            texts.Add(text);
        }

        return texts;
    }

    private async Task<List<string>> TextsAsync(PipeReader reader, List<string>? texts = null, int maxLength = 1000,
        bool leaveOpen = false, Func<InvalidRecordException, long?>? continueAt = null)
    {
        texts ??= [];
        await foreach (RecordBatch<string> batch
            in reader.ReadRecordBatchesAsync<string>(TryTake, maxLength, leaveOpen, continueAt, _stop))
        {
            texts.AddRange(TextsOf(batch));
        }

        return texts;
    }

    /// <summary>Reads some records, leaves the reader, and reads the rest.</summary>
    private async Task CheckAsync(int[] lengths, int size, Leaving leaving)
    {
        string[] texts = [.. lengths.Select((length, i) => new string((char)('a' + (i % 26)), length))];
        string path = _folder.File("f", [0, 0, .. Records(texts)]);
        foreach (PipeReader reader in (PipeReader[])
        [
            FilePipeReader.Create(path, new() { Offset = 2, BufferSize = size, Pool = new CheckedPool() }),
            new TestPipeReader(Records(texts)) { SegmentSize = size, PieceSize = size + 1, IsLate = size % 2 == 0 },
        ])
        {
            long offset = reader is FilePipeReader ? 2 : 0;
            List<string> given = [];
            await foreach (RecordBatch<string> batch in reader.ReadRecordBatchesAsync<string>(TryTake, 1000, leaveOpen: true, null, _stop))
            {
                if (leaving == Leaving.BeforeABatch && given.Count > lengths.Length / 3)
                {
                    break;
                }

                foreach (LocatedRecord<string> record in batch.WithOffsets())
                {
                    Assert.Equal((offset, offset + record.Record.Length + 2), (record.Offset, record.EndOffset));
                    offset = record.EndOffset;
                    given.Add(record.Record);
                    if (leaving == Leaving.WithinABatch && given.Count == lengths.Length / 2)
                    {
                        break;
                    }
                }

                if (leaving == Leaving.WithinABatch && given.Count >= lengths.Length / 2)
                {
                    break;
                }
            }

            await TextsAsync(reader, given);
            Assert.Equal(texts, given);
        }
    }

    private readonly ref struct TextRecord
    {
        public ReadOnlySpan<byte> Text { get; init; }
    }

    private readonly struct TextParser : IRecordParser<TextRecord>
    {
        public OperationStatus Parse(ReadOnlySpan<byte> bytes, out int consumed, out TextRecord record)
            => TryTakeSpan(bytes, out consumed, out record);
    }
}
