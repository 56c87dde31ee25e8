namespace Pipelines.File;

/// <summary>What the page cache of the system keeps of a file that is read or written. All programs share this cache.</summary>
public enum FileCaching
{
    /// <summary>The system decides: usually it keeps all of the file until another program needs the memory. This is the default.</summary>
    Keep,

    /// <summary>
    /// As little of the file as possible, so that the cache keeps the files of other programs. Use it for a large file that is read or
    /// written once. Pages of the file that were cached when it was opened stay. It is a hint: it has an effect on regular files on Linux,
    /// unless <see cref="FilePipeBackend.Portable"/> is used.
    /// </summary>
    /// <remarks>
    /// <para>Reading: the pages behind the position are dropped in steps of 8 MiB (posix_fadvise(2), POSIX_FADV_DONTNEED). A step of which
    /// some pages were cached when the file was opened stays whole (cachestat(2), Linux 6.5; of a file of more than 8 GiB, a thousandth of
    /// it instead of a step). If the system does not report that, all pages are dropped.</para>
    /// <para>Writing: each step of 8 MiB is sent to the device when it is full, and dropped when the next one is full (sync_file_range(2)).
    /// If no sync follows, up to 16 MiB of a file stay in the cache.</para>
    /// </remarks>
    DropBehind,
}
