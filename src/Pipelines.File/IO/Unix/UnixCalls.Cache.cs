namespace Pipelines.File.IO;

// The page cache. Linux only.
internal unsafe partial class UnixCalls
{
    /// <summary>
    /// cachestat(2): bytes of whole pages of that part of the file that the page cache holds. Linux 6.5, and EPERM for a file that the
    /// caller neither owns nor may write.
    /// </summary>
    internal virtual long CountCached(SafeFileHandle file, long offset, long length)
    {
        long* range = stackalloc long[] { offset, length };
        long* pages = stackalloc long[Libc.CacheStatusMembers];
        long answer = Answer(Libc.CacheStat(Libc.CacheStatNumber, file, range, pages, 0));
        return answer < 0 ? answer : pages[0] * Environment.SystemPageSize;
    }

    /// <summary>
    /// posix_fadvise(2), POSIX_FADV_DONTNEED: pages that are neither dirty nor mapped by anybody leave the page cache, dirty ones begin to
    /// be written.
    /// </summary>
    internal virtual void DropCached(SafeFileHandle file, long offset, long length)
    {
        try
        {
            _ = Libc.FAdvise(file, offset, length, Libc.POSIX_FADV_DONTNEED);
        }
        catch (ObjectDisposedException)
        {
            // The caller has closed the handle.
        }
    }

    /// <summary>sync_file_range(2): begins to write dirty pages to the device, or waits until they are there.</summary>
    internal virtual void WriteCached(SafeFileHandle file, long offset, long length, bool waits)
        => Libc.SyncFileRange(
            file, offset, length, waits ? Libc.SYNC_FILE_RANGE_WAIT_BEFORE | Libc.SYNC_FILE_RANGE_WRITE | Libc.SYNC_FILE_RANGE_WAIT_AFTER
                : Libc.SYNC_FILE_RANGE_WRITE);
}
