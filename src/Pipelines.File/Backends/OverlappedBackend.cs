using System.Runtime.Versioning;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Interop;

namespace Pipelines.File.Backends;

/// <summary>
/// Windows: ReadFile and WriteFile with one overlapped for the life of the file, on the runtime's completion port. A read is begun on the caller's thread and
/// finishes there where the system has the data; else its completion goes on with it. Writes and syncs, which Windows may perform within the call, are begun by
/// the <see cref="Waiting.WaitingThreads"/>: a flush never writes, and no thread of the application's pool waits for it.
/// </summary>
[SupportedOSPlatform("windows")]
internal sealed unsafe class OverlappedBackend : FileBackend
{
    private static readonly IOCompletionCallback s_onCompletion = OnCompletion;

    private readonly WindowsCalls _calls;
    private readonly ThreadPoolBoundHandle _port;
    private readonly bool _skipsOnSuccess;

    // Interlocked: the operation that waits to be rented again.
    private OverlappedOperation? _idle;

    /// <summary>Binds the handle, for ever.</summary>
    /// <param name="handle">Open with FILE_FLAG_OVERLAPPED.</param>
    /// <param name="path">The path that it was opened by; <see langword="null"/> for a handle of the caller's.</param>
    /// <param name="properties">What it is.</param>
    /// <param name="calls">Other calls than the system's, for tests.</param>
    /// <exception cref="ArgumentException">The handle is bound already, or is not for overlapped I/O.</exception>
    internal OverlappedBackend(SafeFileHandle handle, string? path, FileProperties properties, WindowsCalls? calls = null)
        : base(handle, path, properties)
    {
        _calls = calls ?? WindowsCalls.Default;
        _port = ThreadPoolBoundHandle.BindHandle(handle);

        // A pipe of the caller's may be in message mode, where ERROR_MORE_DATA is a success that comes as a failure: it is safe only where a completion always follows.
        _skipsOnSuccess = (path is not null || properties.CanSeek) && _calls.TrySkipCompletionOnSuccess(handle);
    }

    internal override FilePipeBackend Kind => FilePipeBackend.Overlapped;

    // ReadFileScatter would take many, but only pages of memory, and only unbuffered.
    internal override int MaxBuffersPerOperation => 1;

    internal override FileOperation Rent(IFileOperationOwner owner)
    {
        OverlappedOperation operation = Interlocked.Exchange(ref _idle, null) ?? new OverlappedOperation(this, s_onCompletion);
        operation.Lend(owner);
        return operation;
    }

    /// <summary>Takes an operation that is given back.</summary>
    internal void Keep(OverlappedOperation operation) => Interlocked.Exchange(ref _idle, operation)?.Preallocated.Dispose();

    internal override bool TryPerform(FileOperation operation, bool mayWait)
    {
        OverlappedOperation tried = (OverlappedOperation)operation;
        if (operation.Kind != FileOperationKind.Read || !tried.TryIssue())
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

    internal override void Start(FileOperation operation)
    {
        FilePipeMetrics.HandedOver(operation.Kind);
        OverlappedOperation started = (OverlappedOperation)operation;
        if (!started.IsBegun)
        {
            started.Queue();
        }
        else if (Leave(started))
        {
            ReportHere(started);
        }
    }

    internal override void Cancel(FileOperation operation, int generation)
    {
        OverlappedOperation canceled = (OverlappedOperation)operation;
        if (canceled.TryCancel(generation))
        {
            CancelIssued(canceled);
        }
    }

    internal override void Release(bool closeHandle)
    {
        Interlocked.Exchange(ref _idle, null)?.Preallocated.Dispose();
        _port.Dispose();
        base.Release(closeHandle);
    }

    /// <summary>Performs the operation on a waiting thread. <see langword="true"/>: it has finished within the call, and the owner has more.</summary>
    internal bool PerformAndReport(OverlappedOperation operation)
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

        if (!isFinished && !Leave(operation))
        {
            return false;
        }

        // The system's answer is there, and nothing of it is under way.
        operation.Withdraw();
        return operation.Report();
    }

    /// <summary>Tells the owner, on a thread of the application's, as the runtime's completion port is served by its pool. What comes next may wait, and goes to a waiting thread.</summary>
    private static void ReportHere(OverlappedOperation operation)
    {
        operation.Withdraw();
        if (operation.Owner!.OnCompleted(operation))
        {
            operation.Queue();
        }
    }

    /// <summary>The thread that made the call leaves the operation, see <see cref="OverlappedOperation.TryLeave"/>.</summary>
    private bool Leave(OverlappedOperation operation)
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
        OverlappedOperation operation = (OverlappedOperation)ThreadPoolBoundHandle.GetNativeOverlappedState(overlapped)!;
        OverlappedBackend backend = operation.Backend;
        backend._port.FreeNativeOverlapped(overlapped);
        backend.Record(operation, (int)error, transferred);
        if (operation.TryArrive())
        {
            ReportHere(operation);
        }
    }

    /// <summary>
    /// Makes the call. <see langword="true"/>: it is finished, and no completion comes. <see langword="false"/>: a completion comes or has come; the
    /// operation is not this thread's any more until <see cref="Leave"/> says so.
    /// </summary>
    private bool TryFinish(OverlappedOperation operation)
    {
        if (operation.Kind == FileOperationKind.Sync)
        {
            Record(operation, Sync(), 0);
            return true;
        }

        if (operation.Kind == FileOperationKind.Step)
        {
            operation.PerformStep();
            return true;
        }

        NativeOverlapped* overlapped = null;
        int error;
        uint transferred;
        try
        {
            ref readonly TransferBuffer buffer = ref operation.Buffers[0];
            overlapped = _port.AllocateNativeOverlapped(operation.Preallocated);
            // All ones is the end of the file (WriteFile).
            long offset = !CanSeek ? 0 : Appends && operation.Kind == FileOperationKind.Write ? -1 : operation.Offset;
            overlapped->OffsetLow = (int)offset;
            overlapped->OffsetHigh = (int)(offset >> 32);
            operation.Overlapped = overlapped;
            error = operation.Kind == FileOperationKind.Read
                ? _calls.Read(Handle, buffer.Address, (uint)buffer.Memory.Length, out transferred, overlapped)
                : _calls.Write(Handle, buffer.Address, (uint)buffer.Memory.Length, out transferred, overlapped);
        }
        catch (ObjectDisposedException e)
        {
            // The caller has closed the handle under us: no call was made.
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
        _port.FreeNativeOverlapped(overlapped);
        Record(operation, error, transferred);
        return true;
    }

    private int Sync()
    {
        if (!CanSeek)
        {
            // FlushFileBuffers on a named pipe waits until the other side has read everything, and a device has nothing to flush.
            return Kernel32.ERROR_SUCCESS;
        }

        try
        {
            return _calls.Sync(Handle);
        }
        catch (ObjectDisposedException)
        {
            return Kernel32.ERROR_INVALID_HANDLE;
        }
    }

    private void Record(FileOperation operation, int error, uint transferred)
    {
        switch (error)
        {
            case Kernel32.ERROR_SUCCESS:
            case Kernel32.ERROR_MORE_DATA when operation.Kind == FileOperationKind.Read:
                operation.Finish(transferred);
                break;
            case Kernel32.ERROR_HANDLE_EOF or Kernel32.ERROR_BROKEN_PIPE when operation.Kind == FileOperationKind.Read:
                operation.Finish(0);
                break;
            case Kernel32.ERROR_OPERATION_ABORTED:
                operation.FinishCanceled();
                break;
            default:
                operation.Finish(FileErrors.FromWin32(error, Path));
                break;
        }
    }

    private void CancelIssued(OverlappedOperation operation)
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
