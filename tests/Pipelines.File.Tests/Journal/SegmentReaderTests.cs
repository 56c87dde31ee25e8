namespace FilePipelines.Tests;

/// <summary>A segment that grows and is cut while a reader has read a part of it.</summary>
public sealed class SegmentReaderTests : InAJournal
{
    // Of each record, with its header.
    private const int Size = 1032;
    private const int Start = 4096;

    /// <summary>An append with WriteBehind completes before the file has all of its bytes.</summary>
    [Theory]
    [InlineData(1), InlineData(2), InlineData(3)]
    public async Task ReadAsync_ACommittedRecordIsHalfThere_IsReadWhenItIsWhole(int looks)
    {
        byte[] whole = await MakeAsync(5, 0xA);
        string segment = Assert.Single(Journaled.Segments(_folder));
        await File.WriteAllBytesAsync(segment, whole[..(Start + (2 * Size) + 500)], _stop);
        using SegmentReader reader = SegmentReader.Open(new SegmentFile(0, segment), 0);
        Assert.True(await reader.ReadAsync(5, onlyProven: false, _stop));
        Assert.Equal(2, reader.Next);
        for (int i = 0; i < looks; i++)
        {
            Assert.False(await reader.ReadAsync(5, onlyProven: false, _stop));
        }

        await File.WriteAllBytesAsync(segment, whole, _stop);
        Assert.True(await reader.ReadAsync(5, onlyProven: false, _stop));
        Assert.InRange(reader.Next, 3, 5);
    }

    /// <summary>The segment is sealed while the caller has a batch, and nothing is read again later.</summary>
    [Fact]
    public async Task ReadAsync_ARecordIsHalfReadWhenTheSegmentIsSealed_IsReadAgain()
    {
        byte[] whole = await MakeAsync(5, 0xA);
        string segment = Assert.Single(Journaled.Segments(_folder));
        byte[] half = [.. whole[..(Start + (2 * Size) + 500)], .. new byte[3 * Size - 500]];
        await File.WriteAllBytesAsync(segment, half, _stop);
        using SegmentReader reader = SegmentReader.Open(new SegmentFile(0, segment), 0);
        Assert.True(await reader.ReadAsync(5, onlyProven: false, _stop));
        Assert.Equal(2, reader.Next);
        await File.WriteAllBytesAsync(segment, whole, _stop);
        Assert.True(await reader.ReadAsync(long.MaxValue, onlyProven: false, _stop));
        Assert.InRange(reader.Next, 3, 5);
    }

    /// <summary>The journal has failed and was opened again: other records have got the numbers of those not committed.</summary>
    [Theory]
    [InlineData(5)]
    [InlineData(long.MaxValue)]
    public async Task ReadAsync_OthersAreCommittedThanThoseBehindTheLimit_ReturnsThese(long limit)
    {
        byte[] before = await MakeAsync(5, 0xA);
        string segment = Assert.Single(Journaled.Segments(_folder));
        await File.WriteAllBytesAsync(segment, before[..(Start + (3 * Size))], _stop);
        byte[] after = await MakeAsync(2, 0xB);
        await File.WriteAllBytesAsync(segment, before, _stop);
        using SegmentReader reader = SegmentReader.Open(new SegmentFile(0, segment), 0);
        Assert.True(await reader.ReadAsync(3, onlyProven: false, _stop));
        Assert.Equal(3, reader.Next);
        await File.WriteAllBytesAsync(segment, after, _stop);
        Assert.True(await reader.ReadAsync(limit, onlyProven: false, _stop));
        Assert.InRange(reader.Next, 4, 5);
        Assert.Equal(0xB, reader.Bytes.Span[^1]);
    }

    /// <summary>The writer was gone for long, and then appends the record that was torn once more.</summary>
    [Fact]
    public async Task ReadAsync_ARecordWasTornForLong_IsFoundSoonAfterItIsWhole()
    {
        byte[] whole = await MakeAsync(3, 0xA);
        string segment = Assert.Single(Journaled.Segments(_folder));
        await File.WriteAllBytesAsync(segment, whole[..(Start + (2 * Size) + 500)], _stop);
        using SegmentReader reader = SegmentReader.Open(new SegmentFile(0, segment), 0);
        reader.Chain.Prove(3);
        Assert.True(await reader.ReadAsync(long.MaxValue, onlyProven: true, _stop));
        for (int i = 0; i < 600; i++)
        {
            Assert.False(await reader.ReadAsync(long.MaxValue, onlyProven: true, _stop));
        }

        await File.WriteAllBytesAsync(segment, whole, _stop);
        int looks = 1;
        while (!await reader.ReadAsync(long.MaxValue, onlyProven: true, _stop))
        {
            looks++;
        }

        Assert.InRange(looks, 1, 100);
        Assert.Equal(3, reader.Next);
    }

    /// <summary>Appends records and returns the bytes of the segment, without the statement of a journal that is closed.</summary>
    private async Task<byte[]> MakeAsync(int count, byte value)
    {
        byte[] record = new byte[Size - 32];
        Array.Fill(record, value);
        await using (Journal journal = await Journal.OpenAsync(_folder, new() { PreallocateSegments = false }, _stop))
        {
            for (int i = 0; i < count; i++)
            {
                await journal.AppendAsync(record, _stop);
            }
        }

        byte[] bytes = await File.ReadAllBytesAsync(Assert.Single(Journaled.Segments(_folder)), _stop);
        return bytes[..^32];
    }
}
