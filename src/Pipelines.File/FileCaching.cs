namespace Pipelines.File;

/// <summary>What the page cache of the system keeps of a file that is read or written. All programs share this cache.</summary>
public enum FileCaching
{
    /// <summary>The system decides: usually it keeps all of the file until another program needs the memory. This is the default.</summary>
    Keep,

    /// <summary>
    /// As little of the file as possible, so that the cache keeps the files of other programs. Use it for a large file that is read or
    /// written once. Pages of the file that were cached before stay. It is a hint: it has an effect on regular files on Linux, unless
    /// <see cref="FilePipeBackend.Portable"/> is used.
    /// </summary>
    /// <remarks>
    /// <para>Reading: the pages behind the position are dropped in steps of 8 MiB (posix_fadvise(2), POSIX_FADV_DONTNEED) if none of a step
    /// was cached before (cachestat(2), Linux 6.5). If some pages were cached, or the system does not tell, each read uses RWF_DONTCACHE
    /// (preadv2(2), Linux 6.14), and the kernel decides page by page. If the kernel has neither call, all pages are dropped.</para>
    /// <para>Writing: writes of 64 KiB and more use RWF_DONTCACHE, so the kernel writes them to the device at once and then drops them. For
    /// smaller writes, and if the kernel does not know the flag, each step of 8 MiB is sent to the device when it is full, and dropped when
    /// the next one is full (sync_file_range(2)). If no sync follows, up to 16 MiB of a file stay in the cache.</para>
    /// </remarks>
    DropBehind,
}
