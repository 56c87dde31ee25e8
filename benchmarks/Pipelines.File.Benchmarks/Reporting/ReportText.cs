namespace FilePipelinesBenchmarks.Reporting;

/// <summary>Why this library loses where it does: shown beside the rows that lose, and only where one does.</summary>
internal static class ReportText
{
    internal const string ReadReason =
        "**Reading.** With buffers of 64 and 256 KiB the copy out of the page cache is nearly all of the time, the same for every way, and there are few calls left to save: `pread(2)` alone is no faster. What is left is luck with the alignment of an array, and the cache: "
        + "a `FilePipeReader` brings up to 256 KiB a call, and a program that touches every byte finds part of that in the L2 cache no longer. "
        + "**Read-ahead** copies on a second core, and the program then fetches the bytes from there: it pays where the program has work to do meanwhile or the file is not in the page cache, and costs where neither is so.";

    internal const string WriteReason =
        "**Writing.** From 64 KiB a flush on, a write of its own is already large, and `FilePipeWriter` copies the bytes once more, into its segments. "
        + "`written` is one system call and one wait a flush, as `PipeWriter.Create` is, which is its fair comparison: the baseline's `Write` of 512 B fills a buffer of 4 KiB and has given nothing to the system yet, "
        + "and a `Write` of an array hands the system the caller's own memory where a pipe has copied it first. Who does not need the bytes to be written at every flush should not ask for it.";

    internal const string DurableReason =
        "**Durable flushes.** One after the other, each is a sync, and the device takes most of the time; `FlushAsync` hands the sync to another thread and comes back, which `Flush(true)` does not: it blocks its thread. Flushes that wait together share one sync.";

    internal const string ReplaceReason =
        "**Replacing.** `CompleteAsync` hands its calls to another thread and comes back on one of the pool, `Complete` makes them on its own. Beside the calls of the baseline the library looks at the file that it has opened.";

    internal const string ParseReason =
        "**Parsers.** Where parsing takes most of the time, all ways that give bytes are alike.";

    internal const string CopyReason =
        "**Copying.** A reader and a writer of this library let the kernel copy (`copy_file_range`), as `File.Copy` does. On this file system that takes a little longer than a loop over a buffer that stays in the cache; "
        + "on one that can share blocks nothing is copied at all. They do it on a thread of the pool, and a small file pays for the way there and back. Through memory, every byte is copied twice.";

    internal const string SmallReason =
        "**Small files.** Nearly all of it is open and close, which every way needs; the rest is noise of about a microsecond.";

    internal const string MemoryReason =
        "**Memory.** An array of 85,000 bytes and more is a large object, and the collector gives the pages of large objects back to the system when none of them lives: where `ToArray` makes one of 100 kB to 1 MB again and again, fetching its pages anew is most of the time, for every way. "
        + "`RecyclableMemoryStream` keeps its blocks among the large objects, which happens to keep pages there; this library's lie on the pinned heap. "
        + "Into a file, opening and closing it are most of the time for little content, and a writer's drain on another thread is one more way there and back.";

    internal const string ColdSequentialReason =
        "**Cold, sequential.** The kernel reads ahead for every way, and the device decides; its spread is as wide as the difference.";

    internal const string ColdRandomReason =
        "**Cold, random.** A read that has to wait is tried once without waiting before it is handed over.";
}
