using Microsoft.Win32.SafeHandles;

namespace Pipelines.File;

/// <summary>
/// What stands behind the last whole record of a segment. A crash explains it, unless an intact record stands further behind that says that
/// the missing one was on the device before it was written.
/// </summary>
/// <param name="Length">How many bytes stand there, up to the last one that is not zero.</param>
/// <param name="Proven">All records before this number were on the device, say intact records there; 0 if there is none.</param>
internal readonly record struct SegmentTail(long Length, long Proven)
{
    private const int BufferSize = 1024 * 1024;

    /// <summary>Looks at the bytes behind the last whole record.</summary>
    /// <param name="state">The segment as far as its records follow each other.</param>
    internal static SegmentTail Read(SegmentState state)
    {
        using SafeFileHandle handle = SegmentFile.OpenToRead(state.File.Path);
        byte[] buffer = new byte[BufferSize];
        long length = 0;
        long proven = 0;
        long end = RandomAccess.GetLength(handle);
        for (long position = state.End; position < end;)
        {
            int read = SegmentFile.Read(handle, buffer, position);
            if (read == 0)
            {
                break;
            }

            ReadOnlySpan<byte> bytes = buffer.AsSpan(0, read);
            if (bytes.LastIndexOfAnyExcept((byte)0) is >= 0 and int last)
            {
                length = position + last + 1 - state.End;
                proven = Math.Max(proven, ProvenIn(bytes, handle, position, state, end));
            }

            // A header that crosses two pieces is seen whole in the second.
            position += read < buffer.Length ? read : (read - RecordHeader.Length) & ~7;
        }

        return new SegmentTail(length, proven);
    }

    private static long ProvenIn(ReadOnlySpan<byte> bytes, SafeFileHandle handle, long position, SegmentState state, long end)
    {
        long proven = 0;
        for (int start = 0; start + RecordHeader.Length <= bytes.Length; start += 8)
        {
            RecordHeader header = RecordHeader.Read(bytes[start..]);
            if (header.IsPossible && header.Sequence >= state.Next && header.Proven > proven
                && header.Sequence - state.Next <= (end - state.End) / RecordHeader.Length
                && header.Size <= end - position - start && IsIntact(header, handle, position + start, state.Header.Seed))
            {
                proven = header.Proven;
            }
        }

        return proven;
    }

    private static bool IsIntact(RecordHeader header, SafeFileHandle handle, long position, uint seed)
    {
        byte[] record = new byte[(int)header.Size];
        return SegmentFile.Read(handle, record, position) == record.Length && header.IsIntact(record, seed);
    }
}
