using System.Buffers.Binary;
using Microsoft.Win32.SafeHandles;

namespace Pipelines.File;

/// <summary>
/// What stands behind the last whole record of a segment. A crash explains it, unless an intact header stands further behind that says that
/// the missing one was on the device before it was written.
/// </summary>
/// <param name="Length">How many bytes stand there, up to the last one that is not zero.</param>
/// <param name="Proven">All records before this number were on the device, say intact headers there; 0 if there is none.</param>
internal readonly record struct SegmentTail(long Length, long Proven)
{
    /// <summary>Looks once at each of the bytes behind the last whole record. Waits for the device.</summary>
    /// <param name="file">The segment.</param>
    /// <param name="seed">The CRC of its header.</param>
    /// <param name="end">The file offset behind the last whole record.</param>
    /// <param name="next">The number of the next one.</param>
    /// <param name="cancellationToken">Ends it.</param>
    internal static SegmentTail Read(SegmentFile file, uint seed, long end, long next, CancellationToken cancellationToken)
    {
        using SafeFileHandle handle = SegmentFile.OpenToRead(file.Path);
        using FileWindow window = new(handle, file, cancellationToken);
        long mostRecords = ((RandomAccess.GetLength(handle) - end) / RecordHeader.Length) + 1;
        long length = 0;
        long proven = 0;
        for (long position = end; ;)
        {
            ReadOnlySpan<byte> bytes = window.At(position, RecordHeader.Length);
            if (bytes.LastIndexOfAnyExcept((byte)0) is >= 0 and int last)
            {
                length = position + last + 1 - end;
                int start = 0;
                for (; start + RecordHeader.Length <= bytes.Length; start += 8)
                {
                    // Most places are none, by their number alone.
                    if ((ulong)(BinaryPrimitives.ReadInt64LittleEndian(bytes[(start + 24)..]) - next) <= (ulong)mostRecords)
                    {
                        RecordHeader header = RecordHeader.Read(bytes[start..]);
                        if (header.IsPossible && header.Proven > proven && header.IsOf(bytes[start..], seed, position + start))
                        {
                            proven = header.Proven;
                        }
                    }
                }
            }

            if (bytes.Length < RecordHeader.Length)
            {
                return new SegmentTail(length, proven);
            }

            // A header that crosses two pieces is seen whole in the second.
            position += (bytes.Length - RecordHeader.Length + 8) & ~7;
        }
    }
}
