namespace Pipelines.File.IO;

/// <summary>
/// Direct I/O of one file on one operating system, and the writer's calls that go through the page cache. Owned by a
/// <see cref="DirectFile"/>.
/// </summary>
internal abstract class DirectCalls : IDisposable
{
    /// <summary>Offsets and lengths of direct calls must be multiples of this, bytes.</summary>
    internal required int OffsetBlock { get; init; }

    /// <summary>Memory addresses of direct calls must be multiples of this, bytes; at most <see cref="DirectFile.LeastBlock"/>.</summary>
    internal required int MemoryBlock { get; init; }

    /// <summary>
    /// Makes one call on the current thread, which may block, and returns the number of bytes transferred. Several threads may make direct
    /// calls at once, but no call through the page cache may run at the same time. Throws the call's error.
    /// </summary>
    internal abstract unsafe long Transfer(FileRequestKind kind, bool isDirect, Libc.IoVector* vectors, int count, long offset);

    /// <inheritdoc cref="OpenedFile.TellCloseError"/>
    internal virtual Exception? TellCloseError() => null;

    /// <summary>Closes what it has opened. Called when no call is running.</summary>
    public abstract void Dispose();
}
