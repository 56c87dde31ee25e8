namespace Pipelines.File.IO;

// Calls that concern the page cache. Linux only.
internal static unsafe partial class Libc
{
    /// <summary>
    /// preadv2(2), pwritev2(2), Linux 6.14: pages that the call brings into the page cache are dropped when it is over, or when they have
    /// been written to the device.
    /// </summary>
    internal const int RWF_DONTCACHE = 0x80;

    internal const int POSIX_FADV_RANDOM = 1;
    internal const int POSIX_FADV_SEQUENTIAL = 2;
    internal const int POSIX_FADV_DONTNEED = 4;
    internal const uint SYNC_FILE_RANGE_WAIT_BEFORE = 1;
    internal const uint SYNC_FILE_RANGE_WRITE = 2;
    internal const uint SYNC_FILE_RANGE_WAIT_AFTER = 4;

    /// <summary>The number of cachestat(2), the same on every architecture.</summary>
    internal const nint CacheStatNumber = 451;

    /// <summary>
    /// The members of struct cachestat: the numbers of pages that are cached, dirty, under writeback, evicted, and recently evicted.
    /// </summary>
    internal const int CacheStatusMembers = 5;

    /// <summary>posix_fadvise(2): returns an errno, and does not set errno.</summary>
    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "posix_fadvise")]
    internal static partial int FAdvise(SafeFileHandle file, long offset, long length, int advice);

    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "sync_file_range", SetLastError = true)]
    internal static partial int SyncFileRange(SafeFileHandle file, long offset, long length, uint flags);

    /// <summary>cachestat(2), which no C library declares yet. The range is an offset and a length.</summary>
    [UnsupportedOSPlatform("windows")]
    [LibraryImport(Library, EntryPoint = "syscall", SetLastError = true)]
    internal static partial nint CacheStat(nint number, SafeFileHandle file, long* range, long* pages, nuint flags);
}
