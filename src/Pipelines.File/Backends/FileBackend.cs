using Microsoft.Win32.SafeHandles;

namespace Pipelines.File.Backends;

/// <summary>
/// The seam between the contract and the operating system: one open file, and how its bytes are moved. It knows neither reader nor writer, only operations.
/// One reader or writer gives it one operation at a time; a reader and a writer never share one.
/// </summary>
internal abstract class FileBackend
{
    private readonly string? _path;

    protected FileBackend(SafeFileHandle handle, string? path, FileShape shape)
    {
        Handle = handle;
        _path = path;
        Shape = shape;
    }

    internal SafeFileHandle Handle { get; }

    /// <summary>What the file was when it was opened.</summary>
    internal FileShape Shape { get; }

    internal bool CanSeek => Shape.CanSeek;

    internal abstract FilePipeBackend Kind { get; }

    /// <summary>The path for messages: as given, or as the system tells it; <see langword="null"/> where nobody knows.</summary>
    internal string? Path => _path ?? FileShape.PathOf(Handle);

    /// <summary>How many of an operation's buffers one call fills; the others stay as they are.</summary>
    internal abstract int MaxBuffersPerOperation { get; }

    /// <summary>
    /// Performs the operation on the caller's thread if that takes no waiting. <see langword="false"/>: it is not finished, and may be with the system already, so
    /// its owner must <see cref="Start"/> it, whatever happens in between.
    /// </summary>
    internal abstract bool TryPerform(FileOperation operation);

    /// <summary>
    /// Performs the operation, or what <see cref="TryPerform"/> has begun of it, on another thread and reports it to its owner exactly once; what has finished
    /// meanwhile is reported here. The caller holds no lock.
    /// </summary>
    internal abstract void Start(FileOperation operation);

    /// <summary>Whether <see cref="Perform"/> can be used: every wait ends by itself, as it does for a file on a disk.</summary>
    internal virtual bool CanBlock => false;

    /// <summary>Performs the operation on this thread, waiting as long as it takes, and does not report it. For callers that block anyway.</summary>
    internal virtual void Perform(FileOperation operation) => throw new NotSupportedException();

    /// <summary>
    /// Asks for a started operation to end early; may come from any thread, at any moment, also after it has ended. Whatever happens, it is still reported once,
    /// as canceled if nothing has moved.
    /// </summary>
    /// <param name="operation">Not touched where it serves another owner by now: operations are pooled, and this may come late.</param>
    /// <param name="owner">Whose operation is meant.</param>
    internal virtual void TryCancel(FileOperation operation, IFileOperationOwner owner)
    {
    }

    /// <summary>Whether <see cref="FileOperationKind.Copy"/> to that file may work.</summary>
    internal virtual bool CanCopyTo(FileBackend destination) => false;

    /// <summary>Refuses an offset where the file has none, and releases what the back end holds.</summary>
    /// <param name="offset">The offset that is asked for, bytes.</param>
    /// <param name="options">The type whose Offset it is, for the message.</param>
    /// <param name="closeHandle">Whether the file is closed then: where nobody else has it.</param>
    /// <exception cref="NotSupportedException">It is not 0, and the file cannot seek.</exception>
    internal void RequireOffset(long offset, string options, bool closeHandle)
    {
        if (offset != 0 && !CanSeek)
        {
            // The path may have to be asked of the open handle.
            NotSupportedException exception = new($"The file cannot seek, so {options}.Offset has to be 0: '{Path}'");
            Release(closeHandle);
            throw exception;
        }
    }

    /// <summary>Releases what the back end holds, and closes the file if that is asked for. No operation is under way.</summary>
    internal virtual void Release(bool closeHandle)
    {
        if (closeHandle)
        {
            Handle.Dispose();
        }
    }
}
