namespace FilePipelinesBenchmarks.Reporting;

/// <summary>Why this library loses where it does: shown beside the rows that lose, and only where one does.</summary>
internal static class ReportText
{
    internal const string ReadReason =
        "**Reading, 64 and 256 KiB.** With buffers this large the copy out of the page cache is nearly all of the time, the same for every way, and there are few calls left to save. A `FilePipeReader` brings up to 256 KiB a call: "
        + "more than one reused 64 KiB buffer, so it touches more of the cache; a parser that takes every byte finds part of it in L2 no longer. "
        + "**Read-ahead** moves the copy to a second core, and the reader then fetches the bytes from the other core's cache: it pays where the caller has work to do with them, or the disk is slow, and not here.";

    internal const string WriteReason =
        "**Writing.** From 64 KiB a flush on, a write of its own is already large, and `FilePipeWriter` copies the bytes once more, into its segments, so that the caller may reuse its buffer at once. "
        + "`written` waits for the system at every flush, which is one system call each: with small flushes it cannot win against a baseline whose `Write` only fills a 4 KiB buffer and promises nothing yet; the fair comparison there is `PipeWriter.Create` or `RandomAccess.Write`.";

    internal const string DurableReason =
        "**Durable flushes.** One flush after the other is one sync each, for every way: the device decides. Only flushes that wait together share a sync.";

    internal const string ParseReason =
        "**Parsers.** Where parsing takes most of the time, all ways that give bytes are alike, and a buffer of 64 KiB that is reused stays closer to the core than a read of 256 KiB.";

    internal const string CopyReason =
        "**Copying.** Between two regular files the kernel copies by itself for `File.Copy`, and for a reader and a writer of this library (`copy_file_range`), which also opens, checks and closes a pipe around it; "
        + "through memory, every byte is copied twice more.";

    internal const string SmallReason =
        "**Small files.** Most of it is open and close. `File.ReadAllBytes` reads into the array that it returns, in one call and without a pipe; the reader has to find the end with a second call where the length is not to be trusted.";

    internal const string ColdSequentialReason =
        "**Cold, sequential.** The kernel reads ahead for everyone, and the device decides.";

    internal const string ColdRandomReason =
        "**Cold, random.** A read that has to wait costs one try without waiting before it is handed over.";
}
