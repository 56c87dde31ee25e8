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

    /// <summary>cachestat(2). The same on every architecture.</summary>
    internal const nint CacheStatNumber = 451;

    /// <summary>struct cachestat: how many pages are cached, dirty, under writeback, evicted, and evicted recently.</summary>
    internal const int CacheStatusMembers = 5;

    /// <summary>posix_fadvise(2): answers an errno, and sets none.</summary>
    [LibraryImport(Library, EntryPoint = "posix_fadvise")]
    internal static partial int FAdvise(SafeFileHandle file, long offset, long length, int advice);

    [LibraryImport(Library, EntryPoint = "sync_file_range", SetLastError = true)]
    internal static partial int SyncFileRange(SafeFileHandle file, long offset, long length, uint flags);

    /// <summary>cachestat(2), which no C library declares yet, of that offset and length.</summary>
    [LibraryImport(Library, EntryPoint = "syscall", SetLastError = true)]
    internal static partial nint CacheStat(nint number, SafeFileHandle file, long* range, long* pages, nuint flags);
}
