using System.Buffers;
using System.IO.Pipelines;
using FilePipelinesChild;
using Pipelines.File;
using Pipelines.File.Testing;

namespace FilePipelinesTests;

/// <summary>Records of a format of one's own, and what is said of bytes that are none.</summary>
public sealed class ReadRecordsTests : IDisposable
{
    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public void Dispose() => _folder.Dispose();

    [Fact]
    public async Task ReadRecordsAsync_BytesCutAnywhere_GivesEveryRecord()
    {
        byte[] bytes = Records(200);
        foreach (TestPipeReader reader in (TestPipeReader[])
        [
            new(bytes), new(bytes) { SegmentSize = 1 }, new(bytes) { PieceSize = 1 },
            new(bytes) { PieceSize = 3, SegmentSize = 2, IsLate = true },
        ])
        {
            List<(int, string)> records = await reader.ReadRecordsAsync<(int, string)>(
                TryTake, cancellationToken: _stop).ToListAsync(_stop);
            Assert.Equal(Enumerable.Range(0, 200).Select(i => (i, $"name {i}")), records);
            Assert.True(reader.IsCompleted);
            Assert.Equal(bytes.Length, reader.Consumed);
        }
    }

    [Fact]
    public async Task ReadRecordsAsync_DamagedLength_SaysWhereAndReadsNoFurther()
    {
        // The length of the 101st name becomes 700 MB.
        byte[] good = Records(100);
        byte[] damaged = [.. good, 100, 0, 0, 0, 0x80, 0x9C, 0xE4, 0xCD, 0x02, .. Pattern.Bytes(5_000_000)];
        string path = _folder.File("f", damaged);
        FilePipeReader reader = FilePipeReader.Create(path);
        int count = 0;
        InvalidRecordException error = await Assert.ThrowsAsync<InvalidRecordException>(async () =>
        {
            await foreach ((int, string) _ in reader.ReadRecordsAsync<(int, string)>(TryTake, leaveOpen: true, cancellationToken: _stop))
            {
                count++;
            }
        });
        Assert.Equal((100, good.Length, false), (count, error.Offset, error.IsCutOff));
        Assert.Contains($"{good.Length}", error.Message, StringComparison.Ordinal);

        // The reader goes on with the record that is none.
        Assert.Equal(good.Length, reader.Position);
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task ReadRecordsAsync_EndWithinARecord_IsCutOff()
    {
        byte[] bytes = Records(3);
        TestPipeReader reader = new(bytes.AsMemory(0, bytes.Length - 1)) { IsLate = true };
        InvalidRecordException error = await Assert.ThrowsAsync<InvalidRecordException>(
            async () => await reader.ReadRecordsAsync<(int, string)>(TryTake, cancellationToken: _stop).ToListAsync(_stop));
        Assert.True(error.IsCutOff);
        Assert.Equal(Records(2).Length, error.Offset);
        Assert.True(reader.IsCompleted);
    }

    [Fact]
    public async Task ReadRecordsAsync_ParserThatAlwaysWantsMore_HoldsNoMoreThanMaxLengthAndOneRead()
    {
        TestPipeReader reader = new(Pattern.Bytes(1_000_000)) { PieceSize = 1000 };
        long most = 0;
        InvalidRecordException error = await Assert.ThrowsAsync<InvalidRecordException>(async () => await reader.ReadRecordsAsync(
            (ref SequenceReader<byte> bytes, out int record) =>
            {
                record = 0;
                most = Math.Max(most, bytes.Length);
                return OperationStatus.NeedMoreData;
            },
            maxLength: 10_000,
            cancellationToken: _stop).ToListAsync(_stop));
        Assert.Equal((11_000, 0, false), (most, error.Offset, error.IsCutOff));
        Assert.Contains("10000", error.Message, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData(1)]
    [InlineData(1000)]
    public async Task ReadRecordsAsync_RecordLongerThanMaxLength_IsRefusedHoweverItComes(int pieceSize)
    {
        byte[] bytes = Records(3);
        int first = Records(1).Length;
        TestPipeReader reader = new(bytes) { PieceSize = pieceSize };
        InvalidRecordException error = await Assert.ThrowsAsync<InvalidRecordException>(
            async () => await reader.ReadRecordsAsync<(int, string)>(
                TryTake, maxLength: first - 1, cancellationToken: _stop).ToListAsync(_stop));
        Assert.Equal((0, false), (error.Offset, error.IsCutOff));
        Assert.Contains("longer", error.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task ReadRecordsAsync_ReaderCompletedWithinTheLoop_Ends()
    {
        TestPipeReader reader = new(Records(3));
        await foreach ((int, string) _ in reader.ReadRecordsAsync<(int, string)>(TryTake, cancellationToken: _stop))
        {
            await reader.CompleteAsync();
            break;
        }
    }

    [Fact]
    public async Task ReadRecordsAsync_LeftByBreak_GoesOnBehindTheRecord()
    {
        byte[] bytes = Records(10);
        TestPipeReader reader = new(bytes);
        await foreach ((int, string) _ in reader.ReadRecordsAsync<(int, string)>(TryTake, leaveOpen: true, cancellationToken: _stop))
        {
            break;
        }

        Assert.Equal(Records(1).Length, reader.Consumed);
        Assert.Equal(9, await reader.ReadRecordsAsync<(int, string)>(TryTake, cancellationToken: _stop).CountAsync(_stop));
        Assert.True(reader.IsCompleted);
    }

    [Fact]
    public async Task ReadRecordsAsync_CanceledOrFailingRead_Throws()
    {
        byte[] bytes = Records(10);
        TestPipeReader reader = new(bytes) { FailsAt = 30, PieceSize = 10 };
        await Assert.ThrowsAsync<IOException>(
            async () => await reader.ReadRecordsAsync<(int, string)>(TryTake, cancellationToken: _stop).CountAsync(_stop));
        TestPipeReader canceled = new(bytes);
        canceled.CancelPendingRead();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(
            async () => await canceled.ReadRecordsAsync<(int, string)>(TryTake, cancellationToken: _stop).CountAsync(_stop));
        Assert.True(canceled.IsCompleted);
    }

    [Fact]
    public async Task ReadRecordsAsync_ParserThatTakesNothing_Throws()
    {
        TestPipeReader reader = new(new byte[10]);
        await Assert.ThrowsAsync<InvalidOperationException>(async () => await reader.ReadRecordsAsync(
            (ref SequenceReader<byte> _, out int record) =>
            {
                record = 0;
                return OperationStatus.Done;
            },
            cancellationToken: _stop).CountAsync(_stop));
        Assert.Throws<ArgumentOutOfRangeException>(
            () => reader.ReadRecordsAsync<(int, string)>(TryTake, maxLength: 0, cancellationToken: _stop));
    }

    [Theory]
    [InlineData(new byte[] { 3, 65, 66, 67 }, OperationStatus.Done, "ABC")]
    [InlineData(new byte[] { 0 }, OperationStatus.Done, "")]
    [InlineData(new byte[] { 3, 65, 66 }, OperationStatus.NeedMoreData, null)]
    [InlineData(new byte[] { }, OperationStatus.NeedMoreData, null)]
    [InlineData(new byte[] { 0x80 }, OperationStatus.NeedMoreData, null)]
    [InlineData(new byte[] { 0x80, 0x01 }, OperationStatus.InvalidData, null)]
    [InlineData(new byte[] { 11 }, OperationStatus.InvalidData, null)]
    [InlineData(new byte[] { 10 }, OperationStatus.NeedMoreData, null)]
    [InlineData(new byte[] { 0xFF, 0xFF, 0xFF, 0xFF, 0x0F }, OperationStatus.InvalidData, null)]
    [InlineData(new byte[] { 0x80, 0x80, 0x80, 0x80, 0x80 }, OperationStatus.InvalidData, null)]
    public void ReadString_WithALimit_TellsWhatIsMissingFromWhatIsWrong(byte[] bytes, OperationStatus expected, string? value)
    {
        SequenceReader<byte> reader = new(new ReadOnlySequence<byte>(bytes));
        Assert.Equal(expected, reader.ReadString(maxBytes: 10, out string? read));
        Assert.Equal(value, read);
        Assert.Equal(expected == OperationStatus.Done ? bytes.Length : 0, reader.Consumed);
    }

    private static byte[] Records(int count)
    {
        ArrayBufferWriter<byte> writer = new();
        for (int i = 0; i < count; i++)
        {
            writer.WriteInt32LittleEndian(i);
            writer.WriteString($"name {i}");
        }

        return writer.WrittenSpan.ToArray();
    }

    private static OperationStatus TryTake(ref SequenceReader<byte> reader, out (int, string) record)
    {
        record = default;
        if (!reader.TryReadInt32LittleEndian(out int id))
        {
            return OperationStatus.NeedMoreData;
        }

        OperationStatus status = reader.ReadString(maxBytes: 100, out string? name);
        record = (id, name!);
        return status;
    }
}
