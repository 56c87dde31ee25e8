using Pipelines.File.Memory;

namespace Pipelines.File;

/// <summary>
/// The memory that the library keeps for reuse by readers and writers. A reader or writer with a pool of its own does not use it.
/// </summary>
/// <remarks>
/// After a full garbage collection the library releases the memory that was not used for half a minute, or all unused memory if the process
/// is short of memory.
/// </remarks>
public static class FilePipeMemory
{
    /// <summary>
    /// The maximum amount of unused memory that the library keeps, in bytes; 0 keeps none. The default is a quarter of the memory that this
    /// process may use, at most 1 GiB.
    /// </summary>
    /// <remarks>Memory beyond that is left to the garbage collector. A lower value has an effect at once.</remarks>
    /// <exception cref="ArgumentOutOfRangeException">The value is negative.</exception>
    public static long MaxRetainedBytes
    {
        get => SegmentPool.Shared.MaxRetainedBytes;
        set
        {
            ArgumentOutOfRangeException.ThrowIfNegative(value);
            SegmentPool.Shared.MaxRetainedBytes = value;
        }
    }

    /// <summary>
    /// The amount of unused memory that the library keeps now, in bytes. The counter pipelines.file.pool.retained shows the same.
    /// </summary>
    public static long RetainedBytes => SegmentPool.Shared.RetainedBytes;
}
