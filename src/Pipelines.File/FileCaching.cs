namespace Pipelines.File;

/// <summary>What the page cache of the system, which all programs share, keeps of a file that is read or written.</summary>
public enum FileCaching
{
    /// <summary>What the system thinks best: mostly all of it, for as long as nobody else needs the memory. The default.</summary>
    Keep,

    /// <summary>
    /// As little as can be, for a large file that is read or written once: what other programs have in the cache stays there. Pages of the file that were cached before stay as well. A hint, which
    /// changes nothing but where the system can do it: Linux, for regular files, unless <see cref="FilePipeBackend.Portable"/> is asked for.
    /// </summary>
    /// <remarks>
    /// <para>Reading: pages are dropped behind the position in steps of 8 MiB (posix_fadvise(2), POSIX_FADV_DONTNEED) where none of the step's were cached before (cachestat(2), Linux 6.5). Where some
    /// were, or the system does not tell, each read has RWF_DONTCACHE (preadv2(2), Linux 6.14), by which the kernel tells page by page. Where it has neither, all are dropped.</para>
    /// <para>Writing: writes of 64 KiB and more have RWF_DONTCACHE, which has the kernel write them to the device at once and then drop them. Where that is not known, and for smaller writes, each
    /// step of 8 MiB is given to the device when it is full, and dropped when the next one is (sync_file_range(2)). Up to 16 MiB of a file stay that no sync follows.</para>
    /// </remarks>
    DropBehind,
}
