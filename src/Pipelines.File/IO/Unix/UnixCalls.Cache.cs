namespace Pipelines.File.IO;

// The page cache. Linux only.
internal unsafe partial class UnixCalls
{
    /// <summary>preadv2(2) with RWF_DONTCACHE, and with RWF_NOWAIT where it may not wait.</summary>
    internal virtual long ReadUncached(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset, bool mayWait)
        => ReadWith(Libc.RWF_DONTCACHE | (mayWait ? 0 : Libc.RWF_NOWAIT), file, vectors, count, offset);

    /// <summary>pwritev2(2) with RWF_DONTCACHE; a negative offset is the file's own position.</summary>
    internal virtual long WriteUncached(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset)
        => WriteWith(Libc.RWF_DONTCACHE, file, vectors, count, offset);

    /// <summary>
    /// cachestat(2): bytes of whole pages of that part of the file that the page cache holds. Linux 6.5, and EPERM for a file that the
    /// caller neither owns nor may write.
    /// </summary>
    internal virtual long CountCached(SafeFileHandle file, long offset, long length)
    {
        Libc.CacheRange range = new() { Offset = offset, Length = length };
        Libc.CacheStatus status;
        long answer = Answer(Libc.CacheStat(file, &range, &status));
        return answer < 0 ? answer : status.Cached * Environment.SystemPageSize;
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
