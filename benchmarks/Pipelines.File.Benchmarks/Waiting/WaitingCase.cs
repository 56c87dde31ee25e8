using FilePipelinesBenchmarks.Cold;
using FilePipelinesBenchmarks.Files;

namespace FilePipelinesBenchmarks.Waiting;

/// <summary>
/// Operations that each have to wait for the device, many at once: cold reads of 4 KiB, or durable flushes of 512 B to a file each.
/// </summary>
/// <param name="Folder">Where the files of the flushes are.</param>
/// <param name="Reads">What is read, and where; <see langword="null"/> for flushes.</param>
/// <param name="AtOnce">How many operate at once, each one operation after the other.</param>
/// <param name="OperationsEach">How many operations each of them does.</param>
internal sealed record WaitingCase(TemporaryFolder Folder, RandomReadCase? Reads, int AtOnce, int OperationsEach)
{
    /// <summary>Bytes of one flush.</summary>
    internal const int FlushSize = 512;

    internal string PathOf(int worker) => Folder.PathOf($"flushed-{worker}.bin");

    /// <summary>What every run begins with: nothing of the file is in the page cache.</summary>
    internal void Prepare()
    {
        if (Reads is not null)
        {
            PageCache.Evict(Reads.File.Path);
        }
    }

    /// <summary>Checks what a run of flushes has left.</summary>
    internal void Finish()
    {
        for (int worker = 0; Reads is null && worker < AtOnce; worker++)
        {
            if (new FileInfo(PathOf(worker)).Length != (long)OperationsEach * FlushSize)
            {
                throw new InvalidDataException("A file has not got all that was flushed.");
            }
        }
    }
}
