using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// One open file, and how its bytes are transferred: the boundary between the reader or writer and the operating system. It knows neither
/// of them, only requests.
/// </summary>
internal abstract class OpenedFile(SafeFileHandle handle, string? path, FileProperties properties)
{
    /// <summary>A file of at most this many bytes is written, closed or freed in less time than a hop to another thread takes.</summary>
    internal const int ShortFile = 64 * 1024;

    // Owned by whoever performs the one running request: the name of a new file is on the device.
    private bool _isNameSynced;

    internal SafeFileHandle Handle { get; } = handle;

    /// <summary>The path that the file was opened by; <see langword="null"/> for a handle of the caller's.</summary>
    internal string? GivenPath { get; } = path;

    /// <summary>The properties of the file at opening.</summary>
    internal FileProperties Properties { get; } = properties;

    /// <summary>Whether opening has made the file, so that its name may not be on the device yet.</summary>
    internal bool IsNew { get; set; }

    internal bool CanSeek => Properties.CanSeek;

    /// <summary>Whether the file is open for appending: every write goes to the end of the file, and its offset is ignored.</summary>
    internal bool Appends { get; set; }

    /// <summary>
    /// Whether the file is standard input or output, whose position other processes share. If <see cref="EndOfLastWrite"/> is known, writes
    /// go to that position and move it; else the owner sets the position at the end.
    /// </summary>
    internal bool SharesPosition { get; set; }

    /// <summary>
    /// Whether opening has taken a lock (flock(2)) that closing gives up before: a process that was just forked has the open file until it
    /// runs its own program, and would keep the lock.
    /// </summary>
    internal bool IsLocked { get; set; }

    /// <summary>
    /// The file offset, in bytes, after the last write that appended or used the shared position; -1 if unknown. Set by whoever performs
    /// the write, before it completes.
    /// </summary>
    internal virtual long EndOfLastWrite => -1;

    internal abstract FilePipeBackend Kind { get; }

    /// <summary>The identity of the file; <see langword="default"/> if the system does not report it.</summary>
    /// <exception cref="ObjectDisposedException">The file is closed, and opening did not ask for its identity.</exception>
    internal virtual FileIdentity Identity => Properties.IdentityOf(Handle);

    /// <summary>The Unix system calls; tests replace them.</summary>
    private protected virtual UnixCalls Calls => UnixCalls.Default;

    /// <inheritdoc cref="FileStatus.Ask"/>
    internal FileStatus? AskStatus() => Calls.AskStatus(Handle);

    /// <summary>The path for messages: as given, or as the system reports it; <see langword="null"/> if unknown.</summary>
    internal string? Path => GivenPath ?? FileProperties.PathOf(Handle);

    /// <summary>The maximum number of buffers that one call transfers; the others are left for the next call.</summary>
    internal abstract int MaxBuffersPerOperation { get; }

    /// <summary>
    /// Whether every write ends, by itself or soon after <see cref="Cancel"/>. If not (a pipe whose reader stalls, with a call that cannot
    /// be canceled), nobody waits for a running write once the writer is aborted.
    /// </summary>
    internal virtual bool EndsWrites => true;

    /// <summary>
    /// Whether every read ends so. If not, nobody waits for a running read once the reader is completed.
    /// </summary>
    internal virtual bool EndsReads => true;

    /// <summary>Whether nothing can come behind the offset, so that a read that reaches it has found the end.</summary>
    internal virtual bool EndsAt(long offset) => false;

    /// <summary>
    /// Reads by one call of the runtime's, which does not know the path of a file that the library has opened itself: errors name it.
    /// </summary>
    internal int ReadHere(Span<byte> bytes, long offset)
    {
        try
        {
            return RandomAccess.Read(Handle, bytes, offset);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            throw FileErrors.WithPath(e, Path);
        }
    }

    /// <summary>Rents a request for this file. Whoever rents it calls <see cref="Return"/>.</summary>
    internal virtual FileRequest Rent() => FileRequest.Rent();

    /// <summary>Takes a request back, while the file does not perform it.</summary>
    internal virtual void Return(FileRequest request) => request.Return();

    /// <summary>
    /// Performs the request on this thread if it does not have to wait or, with <paramref name="mayWait"/>, if it ends by itself: a FIFO
    /// whose other side is idle does not. Returns whether it is over, and its result recorded. Never throws. If it is not over, the system
    /// may have begun it, so the owner must then run it (<see cref="Run"/>), whatever happens in between.
    /// </summary>
    internal bool TryPerform(FileRequest request, bool mayWait = false)
    {
        try
        {
            return TryPerformCore(request, mayWait);
        }
        catch (Exception e)
        {
            // Every exception is the result: one that is thrown here would leave the owner in the middle, or end a waiting thread and the
            // process. The caller may have closed the handle under us, or the C library may lack a call.
            request.Finish(FileErrors.WithPath(e, Path));
            return true;
        }
    }

    /// <summary>Performs the request as <see cref="TryPerform"/> does. An exception is its result.</summary>
    private protected abstract bool TryPerformCore(FileRequest request, bool mayWait);

    /// <summary>
    /// Has the request performed by a thread that may block, also if <see cref="TryPerform"/> has begun it. Its end is told to the owner,
    /// when the system does not use the memory any more, maybe within this call. <see cref="FileRequest.Transferred"/>,
    /// <see cref="FileRequest.Error"/> and <see cref="FileRequest.IsCanceled"/> are the result. Never throws.
    /// </summary>
    internal virtual void Run(FileRequest request, IRequestOwner owner)
    {
        request.BeginRun(this, owner);
        PerformElsewhere(request);
    }

    /// <summary>
    /// Has another thread perform a request that runs. That thread completes it exactly once; within this call if the request was canceled,
    /// or cannot wait. Called without a lock.
    /// </summary>
    internal virtual void PerformElsewhere(FileRequest request) => request.Queue();

    /// <summary>Performs a request that runs, on a thread that may block, and completes it, unless it has to wait.</summary>
    internal virtual void Perform(FileRequest request)
    {
        if (TryPerform(request, mayWait: true))
        {
            request.Complete();
        }
        else
        {
            PerformWhenReady(request);
        }
    }

    /// <summary>Has a request that runs wait without a thread, until <see cref="OnReady"/> is called.</summary>
    internal virtual void PerformWhenReady(FileRequest request) => request.Queue();

    /// <summary>
    /// Called when the file that the request waits for may be ready. It may run on the poller's thread, so it does not block.
    /// </summary>
    internal virtual void OnReady(FileRequest request) => request.Queue();

    /// <summary>
    /// Asks a read or write to end early. Any thread may call it at any time, also before the request has begun or after it has ended. It
    /// is completed exactly once all the same, as canceled if no byte was transferred.
    /// </summary>
    /// <remarks>
    /// Requests are reused, and this call may come so late that it meets the next use, even of another owner. So an owner whose request is
    /// canceled without being asked for runs it again.
    /// </remarks>
    internal virtual void Cancel(FileRequest request)
    {
        // A blocking call of .NET's cannot be canceled.
    }

    /// <summary>
    /// Performs a step or a sync, on a thread that may block, and returns <see langword="true"/>: it is over. The first sync of a new file
    /// also syncs its folder, without which the name may be lost.
    /// </summary>
    private protected bool PerformStep(FileRequest request)
    {
        try
        {
            request.Step?.Invoke();
            if (request.Kind == FileRequestKind.Sync)
            {
                Sync();
                if (IsNew && !_isNameSynced)
                {
                    FolderSync.SyncOf(Calls, Handle, GivenPath);
                    _isNameSynced = true;
                }
            }

            request.Finish(0);
        }
        catch (Exception e)
        {
            request.Finish(e);
        }

        return true;
    }

    /// <summary>Syncs the bytes, or throws.</summary>
    private protected virtual void Sync()
    {
        if (Calls.SyncData(Handle, Properties) is < 0 and long answer)
        {
            throw FileErrors.FromErrno((int)-answer, Path);
        }
    }

    /// <summary>
    /// Returns the error that closing the file would report: some network file systems report lost bytes only there (close(2): EIO,
    /// EDQUOT). <see langword="null"/> if there is none, or if the system does not report it. May block.
    /// </summary>
    internal Exception? TellCloseError()
        => !OperatingSystem.IsWindows() && Calls.TellClose(Handle, Properties) is < 0 and long answer
            ? FileErrors.FromErrno((int)-answer, Path) : null;

    /// <summary>
    /// Makes the pages of later reads and writes leave the page cache, if the system supports that. Called before the first operation.
    /// </summary>
    /// <param name="isWriter">Whether the file is written, and not read.</param>
    internal virtual void DropBehind(bool isWriter)
    {
    }

    /// <summary>Throws if the offset is not 0 and the file cannot seek; the file is released first.</summary>
    /// <param name="offset">The offset, bytes.</param>
    /// <param name="options">The type whose Offset it is, for the message.</param>
    /// <param name="closeHandle">Whether releasing closes the file.</param>
    /// <exception cref="NotSupportedException">The offset is not 0, and the file cannot seek.</exception>
    internal void RequireOffset(long offset, string options, bool closeHandle)
    {
        if (offset != 0 && !CanSeek)
        {
            // Before the release: the path may come from the open handle.
            NotSupportedException exception = new($"The file cannot seek, so {options}.Offset has to be 0: '{Path}'");
            Release(closeHandle);
            throw exception;
        }
    }

    /// <summary>Sets the position that other processes share (standard input and output). Does nothing if the file cannot seek.</summary>
    internal void SetPosition(long position) => _ = Seek(position, SeekOrigin.Begin);

    /// <summary>Gets the position that other processes share; 0 if there is none.</summary>
    internal long GetPosition() => Math.Max(0, Seek(0, SeekOrigin.Current));

    /// <summary>
    /// Releases what the back end holds, and closes the file if <paramref name="closeHandle"/> says so. Called when no operation is
    /// running.
    /// </summary>
    internal virtual void Release(bool closeHandle)
    {
        if (closeHandle)
        {
            if (IsLocked && !OperatingSystem.IsWindows())
            {
                _ = Calls.Lock(Handle, Libc.LOCK_UN);
            }

            Handle.Dispose();
        }
    }

    /// <summary>
    /// Whether closing the file here may take long, so that a waiting thread is to do it: the file is a server's, a block device, or was
    /// deleted, so that the system frees its blocks. (On Linux; elsewhere the system does not tell.)
    /// </summary>
    /// <param name="isShort">Whether it has <see cref="ShortFile"/> bytes at most, so that deleted or not is the same.</param>
    internal bool IsClosedElsewhere(bool isShort = false)
    {
        if (!OperatingSystem.IsLinux() || !CanSeek || WaitingThreads.Current is not null
            || Properties is { IsRegular: true, KnownLength: null })
        {
            return false;
        }

        try
        {
            return !LocalFileSystems.TakeWrites(Properties)
                || (!isShort && FileStatus.TryGet(Handle, Libc.STATX_NLINK, out Libc.FileStatus status) && status.Links == 0);
        }
        catch (ObjectDisposedException)
        {
            // The caller has closed it.
            return false;
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
        else if (CanSeek)
        {
            position = LibcCalls.LSeek(Handle, offset, origin);
        }

        return position;
    }
}
