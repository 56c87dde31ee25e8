namespace Pipelines.File.AspNetCore;

/// <summary>How files are sent through file pipelines. It is read once, when the middleware is added.</summary>
public sealed class FilePipelinesOptions
{
    /// <summary>The default of <see cref="SegmentSize"/>, bytes.</summary>
    internal const int DefaultSegmentSize = 64 * 1024;

    /// <summary>The largest <see cref="SegmentSize"/>, bytes.</summary>
    internal const int MaxSegmentSize = 1024 * 1024;

    /// <summary>
    /// Bytes that are read and flushed at a time, 4,096 to 1 MiB; 65,536 by default. A slow client holds about this much beyond the server's own write buffer limit.
    /// </summary>
    public int SegmentSize { get; set; } = DefaultSegmentSize;

    /// <summary>Sends of fewer bytes than this are left to the server; 0, the default, leaves none.</summary>
    public long MinimumSize { get; set; }

    /// <exception cref="ArgumentOutOfRangeException">A value is out of its range.</exception>
    internal void Validate()
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(SegmentSize, 4096);
        ArgumentOutOfRangeException.ThrowIfGreaterThan(SegmentSize, MaxSegmentSize);
        ArgumentOutOfRangeException.ThrowIfNegative(MinimumSize);
    }
}
