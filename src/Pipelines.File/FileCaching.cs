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

    /// <summary>
    /// Nothing: bytes move between the device and your memory, past the cache (O_DIRECT of open(2), FILE_FLAG_NO_BUFFERING of CreateFileW).
    /// It is for programs that read or write much more than the machine has memory. It is not a hint: if a file cannot be read or written
    /// that way, opening it throws <see cref="NotSupportedException"/>, which names the file. On systems other than Linux and Windows, and
    /// with <see cref="FilePipeBackend.Portable"/>, this is <see cref="PlatformNotSupportedException"/>.
    /// </summary>
    /// <remarks>
    /// <para>The kernel then neither reads ahead nor collects writes. So the reader reads ahead by itself, with
    /// <see cref="FilePipeReaderOptions.ReadsInFlight"/> calls of 512 KiB at once, and buffers up to four times as much. The writer writes
    /// up to 512 KiB a call, one call after the other; <see cref="FilePipeWriterOptions.WritesInFlight"/> asks for more at once.</para>
    /// <para>Offsets, lengths, buffers and flushes may have any size. The device takes whole blocks of 4,096 bytes. When bytes that do not
    /// fill a block are read, they are copied. When they are written, at the beginning and at the end of what a flush hands over, they go
    /// through the cache. So flush seldom, or multiples of 4,096 bytes.</para>
    /// <para>A memory pool of yours has to give memory whose address is a multiple of 4,096. If it does not, the first read, or the first
    /// call of the writer that needs memory, throws <see cref="ArgumentException"/>.</para>
    /// <para>Files and block devices support it. Standard streams, <see cref="FileMode.Append"/> and
    /// <see cref="FilePipeReaderOptions.Follow"/> throw <see cref="ArgumentException"/>. Pipes and files of /proc throw
    /// <see cref="NotSupportedException"/>.</para>
    /// <para>A handle of yours keeps its flags, because the file is opened a second time. On Linux that is done by /proc/self/fd. When the
    /// second descriptor is closed, the file loses the locks that your process has set by fcntl(2), which is what
    /// <see cref="FileStream.Lock"/> does. On Windows a handle needs <see cref="FilePipeBackend.Overlapped"/>, and has to share what it is
    /// open for. A file that is opened by path is opened twice on Windows, too (ReOpenFile). So <see cref="FileShare.Read"/> is added to
    /// what a reader shares, and <see cref="FileShare.Write"/> to what a writer shares.</para>
    /// </remarks>
    Direct,
}
