namespace Pipelines.File.IO;

// Calls that concern the page cache. Linux only.
internal unsafe partial class UnixCalls
{
    /// <summary>
    /// cachestat(2): the number of bytes, in whole pages, of that part of the file that the page cache holds. Linux 6.5. EPERM if the
    /// caller neither owns the file nor may write it.
    /// </summary>
    internal virtual long CountCached(SafeFileHandle file, long offset, long length)
    {
        long* range = stackalloc long[] { offset, length };
        long* pages = stackalloc long[Libc.CacheStatusMembers];
        long answer = Answer(LibcCalls.CacheStat(Libc.CacheStatNumber, file, range, pages, 0));
        return answer < 0 ? answer : pages[0] * Environment.SystemPageSize;
    }

    /// <summary>
    /// posix_fadvise(2), POSIX_FADV_DONTNEED: drops the pages that are neither dirty nor mapped, and starts writing dirty ones to the
    /// device.
    /// </summary>
    internal virtual void DropCached(SafeFileHandle file, long offset, long length)
    {
        try
        {
            _ = LibcCalls.FAdvise(file, offset, length, Libc.POSIX_FADV_DONTNEED);
        }
        catch (ObjectDisposedException)
        {
            // The caller has closed the handle.
        }
    }

    /// <summary>
    /// sync_file_range(2): starts writing dirty pages to the device; with <paramref name="waits"/> also waits until they are there. It
    /// advances the error cursor of the open file, so a lost byte that it answers is answered by no later fdatasync(2).
    /// </summary>
    internal virtual long WriteCached(SafeFileHandle file, long offset, long length, bool waits)
        => Answer(LibcCalls.SyncFileRange(
            file, offset, length, waits ? Libc.SYNC_FILE_RANGE_WAIT_BEFORE | Libc.SYNC_FILE_RANGE_WRITE | Libc.SYNC_FILE_RANGE_WAIT_AFTER
                : Libc.SYNC_FILE_RANGE_WRITE));
}
