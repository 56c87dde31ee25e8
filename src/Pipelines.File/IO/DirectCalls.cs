namespace Pipelines.File.IO;

/// <summary>
/// How one system moves bytes of one file past its page cache, and the rest of a writer's through it. It belongs to a
/// <see cref="DirectFile"/>.
/// </summary>
internal abstract class DirectCalls : IDisposable
{
    /// <summary>What offsets and lengths have to be multiples of, bytes.</summary>
    internal required int OffsetBlock { get; init; }

    /// <summary>What addresses have to be multiples of, bytes: <see cref="DirectFile.LeastBlock"/> at most.</summary>
    internal required int MemoryBlock { get; init; }

    /// <summary>
    /// Makes one call in place, which may wait: the bytes that moved. Any number of threads may make direct calls at once, and while they
    /// do nobody makes one that is not. Throws what it fails with.
    /// </summary>
    internal abstract unsafe long Transfer(FileRequestKind kind, bool isDirect, Libc.IoVector* vectors, int count, long offset);

    /// <inheritdoc cref="OpenedFile.TellCloseError"/>
    internal virtual Exception? TellCloseError() => null;

    /// <summary>Closes what was opened for it. No call is under way.</summary>
    public abstract void Dispose();
}
