using Microsoft.Win32.SafeHandles;

namespace Pipelines.File;

/// <summary>A segment by its name.</summary>
/// <param name="First">The number of its first record.</param>
/// <param name="Path">The file.</param>
internal sealed record SegmentFile(long First, string Path)
{
    // EFBIG.
    private const int FileTooLarge = 27;

    /// <summary>Segments may be read, written and removed while they are open.</summary>
    internal const FileShare Share = FileShare.ReadWrite | FileShare.Delete;

    /// <summary>The segments of a folder, in order.</summary>
    internal static SegmentFile[] In(string folder)
    {
        List<SegmentFile> segments = [];
        foreach (string path in Directory.EnumerateFiles(folder, "*" + JournalFormat.Extension))
        {
            if (JournalFormat.TryParseName(System.IO.Path.GetFileName(path), out long first))
            {
                segments.Add(new SegmentFile(first, path));
            }
        }

        segments.Sort(static (a, b) => a.First.CompareTo(b.First));
        return [.. segments];
    }

    /// <summary>The first one behind <paramref name="segment"/>; <see langword="null"/> if there is none.</summary>
    internal static SegmentFile? Next(SegmentFile[] segments, SegmentFile segment)
        => Array.Find(segments, other => other.First > segment.First);

    /// <summary>
    /// The segment before <paramref name="next"/> that a listing has missed between it and <paramref name="last"/>; <see langword="null"/>
    /// if there is none. A listing is no snapshot: of two segments that begin meanwhile it may have the second alone.
    /// </summary>
    internal static SegmentFile? Missed(SegmentFile last, SegmentFile next, long before)
    {
        string path = System.IO.Path.Combine(System.IO.Path.GetDirectoryName(next.Path)!, JournalFormat.NameOf(before));
        return before > last.First && before < next.First && System.IO.File.Exists(path) ? new SegmentFile(before, path) : null;
    }

    /// <summary>Opens a segment to read it, without the lock of .NET's readers, which on SMB would keep the writer from writing.</summary>
    internal static SafeFileHandle OpenToRead(string path) => SharedFile.Open(path).Handle;

    /// <summary>Whether zeros that are written ahead make commits shorter: on file systems of Linux that write in place.</summary>
    internal static bool GainsByZeros(string folder)
    {
        try
        {
            return OperatingSystem.IsLinux()
                && new DriveInfo(folder).DriveFormat is "ext2" or "ext3" or "ext4" or "xfs" or "jfs" or "overlay" or "overlayfs";
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException or ArgumentException)
        {
            return false;
        }
    }

    /// <summary>Reads bytes. Returns how many there are: fewer only at the end of the file. One call may return fewer.</summary>
    internal int Read(SafeFileHandle handle, Span<byte> bytes, long position)
    {
        try
        {
            int length = 0;
            while (length < bytes.Length && RandomAccess.Read(handle, bytes[length..], position + length) is > 0 and int more)
            {
                length += more;
            }

            return length;
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            throw Named(e);
        }
    }

    /// <summary>An error that names the segment: <see cref="RandomAccess"/> does not know the path of <see cref="OpenToRead"/>.</summary>
    internal Exception Named(Exception error)
        => error.Message.Contains(Path, StringComparison.Ordinal) ? error
            : error is UnauthorizedAccessException ? new UnauthorizedAccessException($"Access to the path '{Path}' is denied.", error)
            : new IOException($"{error.Message} : '{Path}'", error) { HResult = error.HResult };

    /// <summary>
    /// Writes bytes. For a file that may not be that long (EFBIG) <see cref="RandomAccess"/> blames an argument, and names no file.
    /// </summary>
    /// <exception cref="IOException">They cannot be written.</exception>
    internal static void Write(SafeFileHandle handle, ReadOnlySpan<byte> bytes, long position, string path)
    {
        try
        {
            RandomAccess.Write(handle, bytes, position);
        }
        catch (ArgumentOutOfRangeException e)
        {
            throw new IOException($"The file may not be that long: '{path}'", e) { HResult = FileTooLarge };
        }
    }

    /// <summary>Puts what the system has of the file on the device. A process that only reads may do so, too (fsync(2)).</summary>
    internal static void Sync(string path)
    {
        // FlushFileBuffers asks for a handle that may write.
        using SafeFileHandle handle = OperatingSystem.IsWindows()
            ? System.IO.File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite, Share) : OpenToRead(path);
        FileSync.Flush(handle);
    }
}
