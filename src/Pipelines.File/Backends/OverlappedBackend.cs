using System.Runtime.Versioning;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Interop;

namespace Pipelines.File.Backends;

/// <summary>
/// Windows: ReadFile and WriteFile with one overlapped for the life of the file, on the runtime's completion port. A read is begun on the caller's thread and
/// finishes there where the system has the data; else its completion goes on with it. Writes and syncs, which Windows may perform within the call, begin on a
/// thread of the pool: a flush never writes.
/// </summary>
/// <remarks>
/// <para>The race between "the call has returned" and "the completion has run" is settled by <see cref="_state"/>, in <see cref="Leave"/> and <see cref="OnCompletion"/>.
/// Two have to come by before an operation is reported: the thread that began it, when it has left (<see cref="Left"/>), and the completion, when the system is done with
/// the memory and the overlapped (<see cref="Arrived"/>). Whoever comes second reports; whoever comes first touches nothing from then on, since the owner may
/// have begun the next operation, or be gone.</para>
/// <para>Which of the two frees the overlapped is no race: the answer of the call says whether a completion comes, and if it comes, it frees.</para>
/// </remarks>
[SupportedOSPlatform("windows")]
internal sealed unsafe class OverlappedBackend : FileBackend, IThreadPoolWorkItem
{
    // The bits of _state.

    /// <summary>The operation is with the system, or on its way there.</summary>
    private const int Issued = 1;

    /// <summary>The thread that began the operation has no more to do with it.</summary>
    private const int Left = 2;

    /// <summary>The completion has run; what came of it is recorded in the operation.</summary>
    private const int Arrived = 4;

    /// <summary>
    /// <see cref="TryCancel"/> came. It stays until the operation is reported, so that one which is not issued yet, or is being issued, is canceled as well.
    /// </summary>
    private const int CancelWanted = 8;

    private static readonly IOCompletionCallback s_onCompletion = OnCompletion;

    private readonly WindowsCalls _calls;
    private readonly ThreadPoolBoundHandle _port;
    private readonly PreAllocatedOverlapped _preallocated;
    private readonly bool _skipsOnSuccess;

    // Interlocked; 0 between operations.
    private int _state;

    // Owned as the operation is. TryCancel reads the address at any time and only ever compares with it.
    private FileOperation? _operation;
    private NativeOverlapped* _overlapped;

    /// <summary>Binds the handle, for ever.</summary>
    /// <param name="handle">Open with FILE_FLAG_OVERLAPPED.</param>
    /// <param name="path">The path that it was opened by; <see langword="null"/> for a handle of the caller's.</param>
    /// <param name="shape">What it is.</param>
    /// <param name="calls">Other calls than the system's, for tests.</param>
    /// <exception cref="ArgumentException">The handle is bound already, or is not for overlapped I/O.</exception>
    internal OverlappedBackend(SafeFileHandle handle, string? path, FileShape shape, WindowsCalls? calls = null)
        : base(handle, path, shape)
    {
        _calls = calls ?? WindowsCalls.Default;
        _port = ThreadPoolBoundHandle.BindHandle(handle);
        _preallocated = PreAllocatedOverlapped.UnsafeCreate(s_onCompletion, this, pinData: null);

        // A pipe of the caller's may be in message mode, where ERROR_MORE_DATA is a success that comes as a failure: it is safe only where a completion always follows.
        _skipsOnSuccess = (path is not null || shape.CanSeek) && _calls.TrySkipCompletionOnSuccess(handle);
    }

    internal override FilePipeBackend Kind => FilePipeBackend.Overlapped;

    // ReadFileScatter would take many, but only pages of memory, and only unbuffered.
    internal override int MaxBuffersPerOperation => 1;

    internal override bool TryPerform(FileOperation operation)
    {
        if (operation.Kind != FileOperationKind.Read)
        {
            return false;
        }

        // A cancellation that came too late for the operation before is not for this one.
        Interlocked.Exchange(ref _state, Issued);
        if (!TryFinish(operation) && (Volatile.Read(ref _state) & Arrived) == 0)
        {
            // This thread has not left yet: it does so in Start.
            return false;
        }

        Interlocked.Exchange(ref _state, 0);
        return true;
    }

    internal override void Start(FileOperation operation)
    {
        FilePipeMetrics.HandedOver(operation.Kind);
        if ((Volatile.Read(ref _state) & Issued) == 0)
        {
            _operation = operation;
            Queue();
        }
        else if (Leave() && Report(operation))
        {
            Queue();
        }
    }

    internal override void TryCancel(FileOperation operation, IFileOperationOwner owner)
    {
        if ((Interlocked.Or(ref _state, CancelWanted) & (Issued | Arrived)) == Issued)
        {
            CancelIssued();
        }
    }

    internal override void Release(bool closeHandle)
    {
        _overlapped = null;
        _preallocated.Dispose();
        _port.Dispose();
        base.Release(closeHandle);
    }

    void IThreadPoolWorkItem.Execute() => PerformAndReport(_operation!);

    private void Queue() => ThreadPool.UnsafeQueueUserWorkItem(this, preferLocal: false);

    /// <summary>Performs the operation, and goes on for as long as the owner has more and the system needs no time.</summary>
    private void PerformAndReport(FileOperation operation)
    {
        do
        {
            bool isFinished;
            if ((Interlocked.Or(ref _state, Issued) & CancelWanted) != 0)
            {
                operation.FinishCanceled();
                isFinished = true;
            }
            else
            {
                isFinished = TryFinish(operation);
            }

            if (!isFinished && !Leave())
            {
                return;
            }
        }
        while (Report(operation));
    }

    /// <summary>The system's answer is there, and nothing of it is under way: tells the owner. What it answers is <see cref="IFileOperationOwner.OnCompleted"/>'s.</summary>
    private bool Report(FileOperation operation)
    {
        // Before the owner is told: from then on a cancellation is for what it does next.
        Interlocked.Exchange(ref _state, 0);
        return operation.Owner!.OnCompleted(operation);
    }

    /// <summary>
    /// The thread that began the operation leaves it. <see langword="true"/>: the completion was here before, and reporting is this thread's.
    /// <see langword="false"/>: the completion will report, or has by now.
    /// </summary>
    private bool Leave()
    {
        int state = Interlocked.Or(ref _state, Left);
        if ((state & Arrived) != 0)
        {
            return true;
        }

        if ((state & CancelWanted) != 0)
        {
            // TryCancel may have come before the call was made. If the next operation is under way by now it is that one which ends, and its owner repeats it.
            CancelIssued();
        }

        return false;
    }

    private static void OnCompletion(uint error, uint transferred, NativeOverlapped* overlapped)
    {
        OverlappedBackend backend = (OverlappedBackend)ThreadPoolBoundHandle.GetNativeOverlappedState(overlapped)!;
        FileOperation operation = backend._operation!;
        backend._port.FreeNativeOverlapped(overlapped);
        backend.Record(operation, (int)error, transferred);
        if ((Interlocked.Or(ref backend._state, Arrived) & Left) != 0 && backend.Report(operation))
        {
            backend.PerformAndReport(operation);
        }
    }

    /// <summary>
    /// Makes the call. <see langword="true"/>: it is finished, and no completion comes. <see langword="false"/>: a completion comes or has come; the
    /// operation is not this thread's any more until <see cref="Leave"/> says so.
    /// </summary>
    private bool TryFinish(FileOperation operation)
    {
        if (operation.Kind == FileOperationKind.Sync)
        {
            Record(operation, Sync(), 0);
            return true;
        }

        NativeOverlapped* overlapped = null;
        int error;
        uint transferred;
        try
        {
            operation.Pin();
            ref readonly TransferBuffer buffer = ref operation.Buffers[0];
            overlapped = _port.AllocateNativeOverlapped(_preallocated);
            long offset = CanSeek ? operation.Offset : 0;
            overlapped->OffsetLow = (int)offset;
            overlapped->OffsetHigh = (int)(offset >> 32);
            _operation = operation;
            _overlapped = overlapped;
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

    private void CancelIssued()
    {
        NativeOverlapped* overlapped = _overlapped;
        if (overlapped is null)
        {
            // Not issued yet, and seen there; or released. CancelIoEx would take null for everything on this handle, the caller's own included.
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
