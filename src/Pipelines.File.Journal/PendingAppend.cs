namespace Pipelines.File;

/// <summary>Records that are to be appended together, copied out of the caller's memory.</summary>
/// <param name="Buffer">Their bytes, one behind the other.</param>
/// <param name="Ends">Where each of them ends in the buffer; <see langword="null"/> if there is only one.</param>
/// <param name="Crcs">The CRC of each of them; <see langword="null"/> if there is only one.</param>
/// <param name="Crc">The CRC of the only one.</param>
/// <param name="Expected">The number that the first one must get; <see langword="null"/>: any.</param>
internal readonly record struct PendingAppend(RecordBuffer Buffer, int[]? Ends, uint[]? Crcs, uint Crc, long? Expected)
{
    internal int Count => Ends?.Length ?? 1;

    /// <summary>The bytes that they take in a segment.</summary>
    internal long Size
    {
        get
        {
            if (Ends is null)
            {
                return JournalFormat.SizeOf(Buffer.Length);
            }

            long size = 0;
            for (int i = 0; i < Ends.Length; i++)
            {
                size += JournalFormat.SizeOf(LengthOf(i));
            }

            return size;
        }
    }

    internal ReadOnlySpan<byte> this[int index] => Ends is null ? Buffer.Written.Span
        : Buffer.Written.Span.Slice(index == 0 ? 0 : Ends[index - 1], LengthOf(index));

    internal uint CrcOf(int index) => Crcs is null ? Crc : Crcs[index];

    private int LengthOf(int index) => Ends![index] - (index == 0 ? 0 : Ends[index - 1]);
}
