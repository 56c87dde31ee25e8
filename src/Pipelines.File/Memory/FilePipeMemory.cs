using Pipelines.File.Memory;

namespace Pipelines.File;

/// <summary>
/// The memory that the library keeps for reuse: the pool behind readers and writers without a pool of their own, and behind <see cref="PooledMemoryStream"/>.
/// After a full garbage collection it lets go of what nobody has needed for half a minute, or of everything where memory is short.
/// </summary>
public static class FilePipeMemory
{
    /// <summary>
    /// The most that is kept while nobody uses it, bytes, beside 4,096 for each thread that uses it; 0 keeps nothing. What is given back beyond that is left to the
    /// garbage collector. Lowering it has an effect at once. Default: a quarter of the memory that this process may use, at most 1 GiB.
    /// </summary>
    /// <exception cref="ArgumentOutOfRangeException">It is negative.</exception>
    public static long MaxRetainedBytes
    {
        get => SegmentPool.Shared.MaxRetainedBytes;
        set
        {
            ArgumentOutOfRangeException.ThrowIfNegative(value);
            SegmentPool.Shared.MaxRetainedBytes = value;
        }
    }

    /// <summary>How much is kept at the moment, bytes, and nobody uses, beside what threads keep. The counter pipelines.file.pool.retained shows the same.</summary>
    public static long RetainedBytes => SegmentPool.Shared.RetainedBytes;
}
