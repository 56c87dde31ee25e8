using Microsoft.Win32.SafeHandles;

namespace Pipelines.File;

/// <summary>Makes the end of a journal that a crash has left an end that can be written on.</summary>
internal static class JournalRecovery
{
    private const int BufferSize = 256 * 1024;

    /// <summary>
    /// Cuts off what stands behind the last whole record, and puts everything on the device. Records that nothing proves to be there are
    /// written again: after a failed sync the page cache has them, and no later sync would write them.
    /// </summary>
    internal static void Mend(string folder, SegmentState last, SegmentTail tail, CancellationToken cancellationToken)
    {
        using SafeFileHandle handle = System.IO.File.OpenHandle(
            last.File.Path, FileMode.Open, FileAccess.ReadWrite, SegmentFile.Share);
        if (tail.Length > 0)
        {
            // Before anything new is written: what is cut off must not come back behind it.
            RandomAccess.SetLength(handle, last.End);
        }

        byte[] buffer = new byte[last.UnprovenAt < last.End ? BufferSize : 0];
        for (long position = last.UnprovenAt; position < last.End;)
        {
            cancellationToken.ThrowIfCancellationRequested();
            int read = RandomAccess.Read(handle, buffer.AsSpan(0, (int)Math.Min(buffer.Length, last.End - position)), position);
            if (read == 0)
            {
                throw new IOException($"The segment has become shorter while it was read: '{last.File.Path}'");
            }

            SegmentFile.Write(handle, buffer.AsSpan(0, read), position, last.File.Path);
            position += read;
        }

        FileSync.Flush(handle);
        FileSync.FlushFolder(folder);
    }
}
