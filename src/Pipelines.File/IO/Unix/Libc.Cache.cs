namespace Pipelines.File.IO;

// The page cache. Linux only.
internal static unsafe partial class Libc
{
    /// <summary>
    /// preadv2(2), pwritev2(2), Linux 6.14: pages that the call brings into the page cache leave it when it is over, or when they are
    /// written.
    /// </summary>
    internal const int RWF_DONTCACHE = 0x80;

    internal const int POSIX_FADV_RANDOM = 1;
    internal const int POSIX_FADV_SEQUENTIAL = 2;
    internal const int POSIX_FADV_DONTNEED = 4;
    internal const uint SYNC_FILE_RANGE_WAIT_BEFORE = 1;
    internal const uint SYNC_FILE_RANGE_WRITE = 2;
    internal const uint SYNC_FILE_RANGE_WAIT_AFTER = 4;

    // The same on every architecture. No C library declares the call yet.
    private const nint CacheStatNumber = 451;

    /// <summary>struct cachestat_range of cachestat(2), bytes.</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal struct CacheRange
    {
        internal long Offset;
        internal long Length;
    }

    /// <summary>struct cachestat of cachestat(2), pages.</summary>
    [StructLayout(LayoutKind.Sequential)]
    internal struct CacheStatus
    {
        internal long Cached;
        internal long Dirty;
        internal long UnderWriteback;
        internal long Evicted;
        internal long RecentlyEvicted;
    }

    internal static nint CacheStat(SafeFileHandle file, CacheRange* range, CacheStatus* status)
        => SystemCall(CacheStatNumber, file, range, status, 0);

    /// <summary>posix_fadvise(2): answers an errno, and sets none.</summary>
    [LibraryImport(Library, EntryPoint = "posix_fadvise")]
    internal static partial int FAdvise(SafeFileHandle file, long offset, long length, int advice);

    [LibraryImport(Library, EntryPoint = "sync_file_range", SetLastError = true)]
    internal static partial int SyncFileRange(SafeFileHandle file, long offset, long length, uint flags);

    [LibraryImport(Library, EntryPoint = "syscall", SetLastError = true)]
    private static partial nint SystemCall(nint number, SafeFileHandle file, CacheRange* range, CacheStatus* status, nuint flags);
}
