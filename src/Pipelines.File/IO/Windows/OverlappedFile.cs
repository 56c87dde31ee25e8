using Pipelines.File.Diagnostics;
using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// Windows: ReadFile and WriteFile with one overlapped for the life of the file, on the runtime's completion port. A read is begun on the caller's thread and
/// finishes there where the system has the data; else its completion goes on with it. Writes and syncs, which Windows may perform within the call, are made by
/// the <see cref="WaitingThreads"/>: a flush never writes, and no thread of the application's pool waits for it. A write to a file is waited for there, too, so that its end
/// needs no thread of the pool; one to a pipe, whose other side may stall, ends by its completion.
/// </summary>
[SupportedOSPlatform("windows")]
internal sealed unsafe class OverlappedFile : OpenedFile
{
    /// <summary>Bytes of one view of the system's cache: a read that crosses two costs more.</summary>
    private const int CacheView = 256 * 1024;

    /// <summary>Bytes of a write that more would make no faster.</summary>
    private const int LargestWrite = 512 * 1024;

    private static readonly IOCompletionCallback s_onCompletion = OnCompletion;

    private readonly WindowsCalls _calls;
    private readonly ThreadPoolBoundHandle _port;
    private readonly bool _skipsOnSuccess;

    // Written by whoever performs the one operation under way: whether the next sync has to cover a name, too; whether NtFlushBuffersFileEx has not failed for this file.
    private bool _hasSynced;
    private bool _syncsData = true;

    // Interlocked: the operation that waits to be rented again.
    private OverlappedRequest? _idle;

    /// <summary>Binds the handle, for ever.</summary>
    /// <param name="handle">Open with FILE_FLAG_OVERLAPPED.</param>
    /// <param name="path">The path that it was opened by; <see langword="null"/> for a handle of the caller's.</param>
    /// <param name="properties">What it is.</param>
    /// <param name="calls">Other calls than the system's, for tests.</param>
    /// <exception cref="ArgumentException">The handle is bound already, or is not for overlapped I/O.</exception>
    internal OverlappedFile(SafeFileHandle handle, string? path, FileProperties properties, WindowsCalls? calls = null)
        : base(handle, path, properties)
    {
        _calls = calls ?? WindowsCalls.Default;
        _port = ThreadPoolBoundHandle.BindHandle(handle);

        // A pipe of the caller's may be in message mode, where ERROR_MORE_DATA is a success that comes as a failure: it is safe only where a completion always follows. Drivers of
        // devices need not keep to the skipping.
        _skipsOnSuccess = (properties.CanSeek || (path is not null && _calls.IsPipe(handle))) && _calls.TrySkipCompletionOnSuccess(handle);
    }

    internal override FilePipeBackend Kind => FilePipeBackend.Overlapped;

    // ReadFileScatter would take many, but only pages of memory, and only unbuffered.
    internal override int MaxBuffersPerOperation => 1;

    internal override int ReadAlignment => CanSeek ? CacheView : 1;

    internal override int LargestWriteSegment => LargestWrite;

    internal override DirectCalls BeginDirect(bool isWriter, bool isOwn) => WindowsDirectCalls.Begin(this, _calls, isWriter);

    internal override FileRequest Rent() => Interlocked.Exchange(ref _idle, null) ?? new OverlappedRequest(this, s_onCompletion);

    /// <summary>Takes an operation that is given back.</summary>
    internal void Keep(OverlappedRequest operation) => Interlocked.Exchange(ref _idle, operation)?.Dispose();

    internal override bool TryPerform(FileRequest operation, bool mayWait)
    {
        OverlappedRequest tried = (OverlappedRequest)operation;
        if (operation.Kind != FileRequestKind.Read)
        {
            return mayWait && CanSeek && PerformHere(tried);
        }

        if (Properties.IsReadWithinTheCall || !tried.TryIssue())
        {
            return false;
        }

        if (!TryFinish(tried) && !tried.HasArrived)
        {
            // This thread has not left yet: it does so in Start.
            return false;
        }

        tried.Withdraw();
        return true;
    }

    internal override void Start(FileRequest operation)
    {
        FilePipeMetrics.HandedOver(operation.Kind);
        OverlappedRequest started = (OverlappedRequest)operation;
        if (!started.IsBegun)
        {
            started.Queue();
        }
        else if (Leave(started))
        {
            CompleteHere(started);
        }
    }

    internal override void Cancel(FileRequest operation, int generation)
    {
        OverlappedRequest canceled = (OverlappedRequest)operation;
        if (canceled.TryCancel(generation))
        {
            CancelIssued(canceled);
        }
    }

    internal override void Release(bool closeHandle)
    {
        Interlocked.Exchange(ref _idle, null)?.Dispose();
        _port.Dispose();
        base.Release(closeHandle);
    }

    /// <summary>Performs the operation on a waiting thread, which completes it if it has finished within the call.</summary>
    internal void Perform(OverlappedRequest operation)
    {
        bool isFinished;
        if (operation.TryIssue())
        {
            isFinished = TryFinish(operation);
        }
        else
        {
            operation.FinishCanceled();
            isFinished = true;
        }

        if (isFinished || Leave(operation))
        {
            CompleteHere(operation);
        }
    }

    /// <summary>Performs what is not a read on this thread, which would only wait for another, from beginning to end.</summary>
    private bool PerformHere(OverlappedRequest operation)
    {
        if (operation.TryIssue())
        {
            bool isFinished = TryFinish(operation);
            Debug.Assert(isFinished);
        }
        else
        {
            operation.FinishCanceled();
        }

        operation.Withdraw();
        return true;
    }

    /// <summary>The system's answer is there, and nothing of the operation is under way. On a waiting thread, or on one of the application's pool, which serves the completion port.</summary>
    private static void CompleteHere(OverlappedRequest operation)
    {
        operation.Withdraw();
        operation.Complete();
    }

    /// <summary>The thread that made the call leaves the operation, see <see cref="OverlappedRequest.TryLeave"/>.</summary>
    private bool Leave(OverlappedRequest operation)
    {
        // Before it leaves: until then nobody reports, so that the file is not closed, for the owner's part, while this call still holds its handle.
        if (operation.IsCancelWanted)
        {
            CancelIssued(operation);
        }

        return operation.TryLeave();
    }

    private static void OnCompletion(uint error, uint transferred, NativeOverlapped* overlapped)
    {
        OverlappedRequest operation = OverlappedRequest.Arrive(overlapped);
        OverlappedFile backend = operation.Backend;
        backend._port.FreeNativeOverlapped(overlapped);
        backend._calls.Finish(operation, backend, (int)error, transferred);
        if (operation.TryArrive())
        {
            CompleteHere(operation);
        }
    }

    /// <summary>
    /// Makes the call. <see langword="true"/>: it is finished, and no completion comes. <see langword="false"/>: a completion comes or has come; the
    /// operation is not this thread's any more until <see cref="Leave"/> says so.
    /// </summary>
    private bool TryFinish(OverlappedRequest operation)
    {
        if (operation.Kind == FileRequestKind.Sync)
        {
            _calls.Finish(operation, this, Sync(operation), 0);
            return true;
        }

        if (operation.Kind == FileRequestKind.Step)
        {
            operation.PerformStep();
            return true;
        }

        if (operation.Kind == FileRequestKind.Write && CanSeek)
        {
            WriteAndWait(operation);
            return true;
        }

        NativeOverlapped* overlapped = null;
        int error;
        uint transferred;
        try
        {
            ref readonly TransferBuffer buffer = ref operation.BufferAt(0);
            overlapped = _port.AllocateNativeOverlapped(operation.Preallocated);
            SetOffset(overlapped, operation);
            operation.Overlapped = overlapped;
            operation.Hold(true);
            error = operation.Kind == FileRequestKind.Read
                ? _calls.Read(Handle, buffer.Address, (uint)buffer.Memory.Length, out transferred, overlapped)
                : _calls.Write(Handle, buffer.Address, (uint)buffer.Memory.Length, out transferred, overlapped);
        }
        catch (ObjectDisposedException e)
        {
            // The caller has closed the handle under us: no call was made.
            operation.Hold(false);
            if (overlapped is not null)
            {
                _port.FreeNativeOverlapped(overlapped);
            }

            operation.Finish(e);
            return true;
        }

        if (error == Kernel32.ERROR_IO_PENDING || (error is Kernel32.ERROR_SUCCESS or Kernel32.ERROR_MORE_DATA && !_skipsOnSuccess))
        {
            return false;
        }

        // A failure at once, the end of the file among them, queues no completion, with or without the skipping.
        operation.Hold(false);
        _port.FreeNativeOverlapped(overlapped);
        _calls.Finish(operation, this, error, transferred);
        return true;
    }

    /// <summary>Writes to a file and waits in place for the end, of which the port is not told.</summary>
    private void WriteAndWait(OverlappedRequest operation)
    {
        // It stays until the system is done with it, as this does not return before; whoever cancels only compares its address.
        NativeOverlapped overlapped = default;
        bool isHeld = false;
        try
        {
            // It may be disposed between the two calls: it is closed then when this is done.
            Handle.DangerousAddRef(ref isHeld);
            ref readonly TransferBuffer buffer = ref operation.BufferAt(0);
            SetOffset(&overlapped, operation);
            overlapped.EventHandle = operation.Event;
            operation.Overlapped = &overlapped;
            int error = _calls.Write(Handle, buffer.Address, (uint)buffer.Memory.Length, out uint transferred, &overlapped);
            if (error == Kernel32.ERROR_IO_PENDING)
            {
                if (operation.IsCancelWanted)
                {
                    CancelIssued(operation);
                }

                error = _calls.Wait(Handle.DangerousGetHandle(), &overlapped, out transferred);
            }

            _calls.Finish(operation, this, error, transferred);
        }
        catch (ObjectDisposedException e)
        {
            operation.Finish(e);
        }
        finally
        {
            operation.Overlapped = null;
            if (isHeld)
            {
                Handle.DangerousRelease();
            }
        }
    }

    private void SetOffset(NativeOverlapped* overlapped, FileRequest operation)
    {
        // All ones is the end of the file (WriteFile).
        long offset = !CanSeek ? 0 : Appends && operation.Kind == FileRequestKind.Write ? -1 : operation.Offset;
        overlapped->OffsetLow = (int)offset;
        overlapped->OffsetHigh = (int)(offset >> 32);
    }

    private int Sync(FileRequest operation)
    {
        if (!CanSeek)
        {
            // FlushFileBuffers on a named pipe waits until the other side has read everything, and a device has nothing to flush.
            return Kernel32.ERROR_SUCCESS;
        }

        try
        {
            return _syncsData && (_hasSynced || !IsNew) && TrySyncData(operation) ? Kernel32.ERROR_SUCCESS : SyncAll();
        }
        catch (ObjectDisposedException)
        {
            return Kernel32.ERROR_INVALID_HANDLE;
        }
    }

    /// <summary><see langword="false"/>: this file's system does not know the call, or it has failed, which the other call then tells.</summary>
    private bool TrySyncData(FileRequest operation)
    {
        int status = _calls.SyncData(Handle);
        _syncsData = status == 0;
        if (!_syncsData)
        {
            FilePipeMetrics.FellBack("NtFlushBuffersFileEx", status);
        }

        return _syncsData;
    }

    private int SyncAll()
    {
        int error = _calls.Sync(Handle);
        _hasSynced |= error == Kernel32.ERROR_SUCCESS;
        return error;
    }

    private void CancelIssued(OverlappedRequest operation)
    {
        NativeOverlapped* overlapped = operation.Overlapped;
        if (overlapped is null)
        {
            // The call is about to be made. CancelIoEx would take null for everything on this handle, the caller's own included.
            return;
        }

        try
        {
            _calls.Cancel(Handle, overlapped);
        }
        catch (ObjectDisposedException)
        {
            // It has ended, and the handle is closed.
        }
    }
}
