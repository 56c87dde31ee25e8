using Pipelines.File.Reading;
using Pipelines.File.Writing;

namespace Pipelines.File.IO;

/// <summary>
/// The seam between the contract and the operating system: one open file, and how its bytes are moved. It knows neither reader nor writer,
/// only operations.
/// </summary>
internal abstract class OpenedFile(SafeFileHandle handle, string? path, FileProperties properties)
{
    internal SafeFileHandle Handle { get; } = handle;

    /// <summary>The path that it was opened by; <see langword="null"/> for a handle of the caller's.</summary>
    internal string? GivenPath { get; } = path;

    /// <summary>What the file was when it was opened.</summary>
    internal FileProperties Properties { get; } = properties;

    /// <summary>Whether opening has made the file, so that its name is as new as its bytes.</summary>
    internal bool IsNew { get; set; }

    internal bool CanSeek => Properties.CanSeek;

    /// <summary>Open for appending: writes go to the end of the file, whatever offset they name.</summary>
    internal bool Appends { get; init; }

    /// <summary>
    /// Standard input or output: other processes go on at the position of the open file. Where <see cref="EndOfLastWrite"/> is known,
    /// writes go to that position and move it; else the owner sets it in the end.
    /// </summary>
    internal bool SharesPosition { get; init; }

    /// <summary>
    /// Where the last write that named no offset of its own has ended, file offset in bytes; -1 where the system does not tell. Written by
    /// whoever performs the write, before it is reported.
    /// </summary>
    internal virtual long EndOfLastWrite => -1;

    internal abstract FilePipeBackend Kind { get; }

    /// <summary>Which file it is; <see langword="default"/> where the system does not tell.</summary>
    /// <exception cref="ObjectDisposedException">The file is closed, and opening did not tell.</exception>
    internal virtual FileIdentity Identity => Properties.IdentityOf(Handle);

    /// <summary>The path for messages: as given, or as the system tells it; <see langword="null"/> where nobody knows.</summary>
    internal string? Path => GivenPath ?? FileProperties.PathOf(Handle);

    /// <summary>How many of an operation's buffers one call moves; the others stay as they are.</summary>
    internal abstract int MaxBuffersPerOperation { get; }

    /// <summary>
    /// Whether every write ends, by itself or soon after <see cref="Cancel"/>. Where not (a pipe whose other side stalls, and that cannot
    /// be given up), nobody waits for its end once the writer is aborted. A read always does.
    /// </summary>
    internal virtual bool EndsWrites => true;

    /// <summary>
    /// What the length of a read has to be a multiple of, bytes, also where the file ends before: more than 1 for direct I/O.
    /// </summary>
    internal virtual int ReadGranularity => 1;

    /// <summary>
    /// Where reads had better begin: at multiples of this, bytes. A first read that begins elsewhere ends at the next one.
    /// </summary>
    internal virtual int ReadAlignment => 1;

    /// <summary>
    /// Whether it is read or written past the page cache, so that memory had better begin at a multiple of
    /// <see cref="DirectFile.LeastBlock"/>.
    /// </summary>
    internal virtual bool IsDirect => false;

    /// <summary>Bytes that one read asks for where the file has as many. Chosen by measurement: docs/tuning.md.</summary>
    internal virtual int BytesPerRead => ReadBuffer.BytesPerRead;

    /// <summary>Bytes that one write takes at most. Chosen likewise.</summary>
    internal virtual int BytesPerWrite => WriteLoop.BytesPerWrite;

    /// <summary>
    /// The bytes up to which a writer's segments grow with what waits to be written, where a write takes one segment only; 0: they do not
    /// grow.
    /// </summary>
    internal virtual int LargestWriteSegment => 0;

    /// <summary>A request for this file, which whoever rents it gives back with <see cref="FileRequest.Return"/>.</summary>
    internal virtual FileRequest Rent() => FileRequest.Rent();

    /// <summary>
    /// Performs the operation on the caller's thread if that takes no waiting, or, with <paramref name="mayWait"/>, if it ends by itself.
    /// <see langword="false"/>: it is not finished, and may be with the system already, so its owner must <see cref="Start"/> it, whatever
    /// happens in between.
    /// </summary>
    internal abstract bool TryPerform(FileRequest operation, bool mayWait = false);

    /// <summary>
    /// Performs the request, or what <see cref="TryPerform"/> has begun of it, on a thread that may wait. Over when the system is done with
    /// its memory: <see cref="FileRequest.Transferred"/>,
    /// <see cref="FileRequest.Error"/> and <see cref="FileRequest.IsCanceled"/> tell what came of it. Never throws.
    /// </summary>
    /// <remarks>
    /// It begins when it is awaited, once. The continuation runs inline on the thread that performed the call, or on that of who canceled
    /// it; it may run the next request, which the same thread performs when the continuation has returned. So it must not wait for anything
    /// but by such a request: it may be on the poller's thread.
    /// </remarks>
    internal virtual ValueTask RunAsync(FileRequest request) => request.RunBy(this);

    /// <summary>
    /// Has the request performed on another thread, which completes it exactly once; what has finished meanwhile, or was canceled, is
    /// completed here. Called when
    /// <see cref="RunAsync"/> is awaited, without a lock.
    /// </summary>
    internal virtual void Start(FileRequest operation) => operation.Queue();

    /// <summary>
    /// Performs a request that was queued, on a thread that may wait, and completes it, unless something else has yet to happen.
    /// </summary>
    internal virtual void Perform(FileRequest request) => throw new NotSupportedException();

    /// <summary>The descriptor that the request has waited for is ready. On the poller's thread, so this does not wait.</summary>
    internal virtual void OnReady(FileRequest request) => request.Queue();

    /// <summary>
    /// Asks for a started operation to end early; may come from any thread, at any moment, also before it is started or after it has ended.
    /// Whatever happens, it is still reported once, as canceled if nothing has moved. An owner whose operation is canceled although nobody
    /// asked for it starts it again.
    /// </summary>
    /// <param name="operation">Left alone where it serves another purpose by now: operations are reused, and this may come late.</param>
    /// <param name="generation">Its <see cref="FileRequest.Generation"/> when the owner decided to cancel it.</param>
    internal abstract void Cancel(FileRequest operation, int generation);

    /// <summary>Puts the name of the file on the device, waiting for it. On a thread that may wait; throws what it fails with.</summary>
    internal virtual void SyncFolder() => FolderSync.Perform(Path);

    /// <summary>
    /// Opens what <see cref="SyncFolder"/> needs, so that it needs no further descriptor. Throws what it fails with, and leaves the file
    /// open.
    /// </summary>
    internal virtual void OpenFolder()
    {
    }

    /// <summary>
    /// What closing the file will fail with, which is how some network file systems tell of bytes that they have lost (close(2): EIO,
    /// EDQUOT); <see langword="null"/>: nothing, or the system does not tell. May wait.
    /// </summary>
    internal virtual Exception? TellCloseError() => null;

    /// <summary>
    /// Has pages that are read or written from now on leave the page cache, where the system can do that. Before the first operation.
    /// </summary>
    /// <param name="isWriter">Whether it is written, and not read.</param>
    internal virtual void DropBehind(bool isWriter)
    {
    }

    /// <summary>The calls that pass the page cache. Before the first operation.</summary>
    /// <param name="isWriter">Whether it is written, and not read.</param>
    /// <param name="isOwn">Whether nobody else has what was opened; else the file is opened a second time.</param>
    /// <exception cref="NotSupportedException">The file system has no direct I/O, or this library has none for the back end.</exception>
    /// <exception cref="IOException">It could not be opened a second time.</exception>
    /// <exception cref="UnauthorizedAccessException">The same, where the system denies access.</exception>
    internal virtual DirectCalls BeginDirect(bool isWriter, bool isOwn)
        => throw DirectFile.NotHere(Kind, Path);

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

    /// <summary>
    /// Moves the position that the open file shares with other processes, for standard input and output. A file that cannot seek has none.
    /// </summary>
    internal void SetPosition(long position) => _ = Seek(position, SeekOrigin.Begin);

    /// <summary>The position that the open file shares with other processes; 0 where it has none.</summary>
    internal long GetPosition() => Math.Max(0, Seek(0, SeekOrigin.Current));

    /// <summary>Releases what the back end holds, and closes the file if that is asked for. No operation is under way.</summary>
    internal virtual void Release(bool closeHandle)
    {
        if (closeHandle)
        {
            Handle.Dispose();
        }
    }

    // The numbers of SeekOrigin are those of lseek(2) and of SetFilePointerEx.
    private long Seek(long offset, SeekOrigin origin)
    {
        long position = 0;
        if (CanSeek && OperatingSystem.IsWindows())
        {
            _ = Kernel32.SetFilePointerEx(Handle, offset, out position, origin);
        }
        else if (CanSeek && Environment.Is64BitProcess)
        {
            position = Libc.LSeek(Handle, offset, origin);
        }

        return position;
    }
}
