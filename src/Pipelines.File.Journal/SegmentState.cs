namespace Pipelines.File;

/// <summary>What a segment has, as far as its records follow each other.</summary>
/// <param name="File">The segment.</param>
/// <param name="Header">Its header.</param>
/// <param name="End">The file offset behind the last record or statement.</param>
/// <param name="Next">The number of the next record.</param>
/// <param name="Crc">The CRC of the last record or statement.</param>
/// <param name="Proven">All records before this number are on the device, say later ones.</param>
internal sealed record SegmentState(SegmentFile File, SegmentHeader Header, long End, long Next, uint Crc, long Proven)
{
    // A thread fills this much memory while another checks.
    private const long ReadAhead = 2 * 1024 * 1024;

    /// <summary>Reads a segment up to the first byte that is no record.</summary>
    /// <param name="file">The segment.</param>
    /// <param name="header">Its header.</param>
    /// <param name="isAhead">
    /// Whether another thread reads ahead. Where every processor has a segment to check, the bytes would only leave its cache.
    /// </param>
    /// <param name="onRead">Told how many more bytes are checked.</param>
    /// <param name="cancellationToken">Ends it.</param>
    internal static async ValueTask<SegmentState> ReadAsync(
        SegmentFile file, SegmentHeader header, bool isAhead, Action<long>? onRead, CancellationToken cancellationToken)
    {
        RecordChain chain = new(header.Seed, header.First, header.Previous);
        SegmentReader reader = await SegmentReader.OpenAsync(
            file.Path, JournalFormat.HeaderLength, chain, isAhead ? ReadAhead : 0, cancellationToken).ConfigureAwait(false);
        await using (reader.ConfigureAwait(false))
        {
            while (await reader.ReadAsync(long.MaxValue, onlyProven: false, cancellationToken).ConfigureAwait(false))
            {
                onRead?.Invoke(reader.Bytes.Length);
            }

            return new SegmentState(file, header, reader.Position, chain.Sequence, chain.Crc, chain.Proven);
        }
    }
}
