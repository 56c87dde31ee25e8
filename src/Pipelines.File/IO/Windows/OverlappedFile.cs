using Pipelines.File.Diagnostics;
using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// Windows: ReadFile and WriteFile with one OVERLAPPED for the life of the file. A read begins on the caller's thread and finishes there if
/// the system has the data; otherwise a waiting thread waits for its end. Windows may perform writes and syncs within the call, so waiting
/// threads make them: a flush never writes on its caller's thread, and no thread of the application's pool waits. A read of a pipe may last
/// as long as the other side likes, so it is awaited by a registered wait of the runtime's instead of a waiting thread.
/// </summary>
/// <remarks>
/// Every call has an event with its low bit set, so no completion port gets a packet, whatever the handle is bound to
/// (GetQueuedCompletionStatus). One thread waits for the end, once. Windows cancels the calls of a thread that ends. A read that was
/// canceled so is run again by its owner, and a thread that has begun a write waits for its end.
/// </remarks>
/// <param name="handle">The handle, open with FILE_FLAG_OVERLAPPED.</param>
/// <param name="path">The path that the file was opened by; <see langword="null"/> for a handle of the caller's.</param>
/// <param name="properties">The properties of the file at opening.</param>
/// <param name="calls">The system calls; tests replace them.</param>
[SupportedOSPlatform("windows")]
internal sealed unsafe class OverlappedFile(SafeFileHandle handle, string? path, FileProperties properties, WindowsCalls? calls = null)
    : OpenedFile(handle, path, properties)
{
    private readonly WindowsCalls _calls = calls ?? WindowsCalls.Default;

    // The OVERLAPPED of the one running operation, for the life of the file. Pinned: its address never changes.
    private readonly NativeOverlapped[] _overlapped = GC.AllocateArray<NativeOverlapped>(1, pinned: true);

    // The call is running, and nobody waits for its end yet. Owned as the operation is.
    private bool _isBegun;

    // Written by whoever performs the one running operation. _hasSynced: FlushFileBuffers has succeeded, which covers a new file's name.
    // _syncsData: NtFlushBuffersFileEx has not failed for this file.
    private bool _hasSynced;
    private bool _syncsData = true;

    internal override FilePipeBackend Kind => FilePipeBackend.Overlapped;

    /// <summary>Set when a call ends.</summary>
    internal ManualResetEvent Ended { get; } = new(initialState: false);

    // ReadFileScatter takes more, but only whole pages, and only unbuffered.
    internal override int MaxBuffersPerOperation => 1;

    // A read of a pipe is not waited for here, only begun.
    private protected override bool TryPerformCore(FileRequest request, bool mayWait)
    {
        bool reads = request.Kind == FileRequestKind.Read;
        return (mayWait || (reads && !Properties.IsReadWithinTheCall)) && TryFinish(request, waits: mayWait && (CanSeek || !reads));
    }

    internal override void PerformElsewhere(FileRequest operation)
    {
        if (CanSeek || operation.Kind != FileRequestKind.Read)
        {
            operation.Queue();
        }
        else if (_isBegun)
        {
            PerformWhenReady(operation);
        }
        else
        {
            // Not on this thread: the caller may start the next operation after this call. A pool thread does not end while a read that it
            // has begun is pending.
            ThreadPool.UnsafeQueueUserWorkItem(static started => ((IWaitingCall)started).Perform(), operation, preferLocal: false);
        }
    }

    internal override void Cancel(FileRequest request)
    {
        request.IsCancelWanted = true;
        Interlocked.MemoryBarrier();
        CancelCall();
    }

    internal override void Release(bool closeHandle)
    {
        // Otherwise the finalizer would close the event, and many files have as many events.
        Ended.Dispose();
        base.Release(closeHandle);
    }

    /// <summary>Makes a pool thread complete the running read when it ends.</summary>
    internal override void PerformWhenReady(FileRequest request)
        => ThreadPool.UnsafeRegisterWaitForSingleObject(
            Ended, static (read, _) => ((FileRequest)read!).OnReady(), request, Timeout.Infinite, executeOnlyOnce: true);

    internal override void OnReady(FileRequest request)
    {
        TryFinish(request, waits: true);
        request.Complete();
    }

    private NativeOverlapped* Overlapped => (NativeOverlapped*)Unsafe.AsPointer(ref _overlapped[0]);

    /// <summary>
    /// Makes the call, unless it has begun, and records the result. Returns <see langword="false"/> if it is running and
    /// <paramref name="waits"/> is not set.
    /// </summary>
    private bool TryFinish(FileRequest operation, bool waits)
    {
        try
        {
            int error = _isBegun ? Kernel32.ERROR_IO_PENDING : Begin(operation);
            _isBegun = error == Kernel32.ERROR_IO_PENDING && !waits;
            if (_isBegun)
            {
                return false;
            }

            Finish(operation, error == Kernel32.ERROR_IO_PENDING ? _calls.Wait(Handle, Overlapped) : error);
        }
        catch (ObjectDisposedException e)
        {
            // The caller has closed the handle under us; no call is under way.
            operation.Finish(e);
        }

        return true;
    }

    private int Begin(FileRequest operation)
    {
        Overlapped->InternalHigh = 0;
        if (operation.Kind is not (FileRequestKind.Read or FileRequestKind.Write))
        {
            return Kernel32.ERROR_SUCCESS;
        }

        if (operation.IsCancelWanted)
        {
            return Kernel32.ERROR_OPERATION_ABORTED;
        }

        // An offset of all ones means the end of the file (WriteFile).
        long offset = !CanSeek ? 0 : Appends && operation.Kind == FileRequestKind.Write ? -1 : operation.Offset;
        ref readonly TransferBuffer buffer = ref operation.BufferAt(0);
        int error = _calls.Begin(operation.Kind, Handle, buffer.Address, (uint)buffer.Memory.Length, offset, Overlapped, Ended);
        if (error == Kernel32.ERROR_IO_PENDING && operation.IsCancelWanted)
        {
            // A cancellation sets the flag first and calls CancelIoEx then, which may have found no call yet.
            CancelCall();
        }

        return error;
    }

    /// <summary>Records the result of the call.</summary>
    private void Finish(FileRequest operation, int error)
    {
        bool reads = operation.Kind == FileRequestKind.Read;
        long transferred = Overlapped->InternalHigh;
        switch (error)
        {
            case Kernel32.ERROR_SUCCESS when operation.Kind is FileRequestKind.Step or FileRequestKind.Sync:
                PerformStep(operation);
                break;
            case Kernel32.ERROR_SUCCESS when reads && transferred == 0 && !CanSeek && WindowsCalls.IsPipeThatGoesOn(Handle):
                // Somebody has written 0 bytes into the pipe. That is a message, and not the end: the owner runs the read again.
                operation.FinishCanceled();
                break;
            case Kernel32.ERROR_SUCCESS:
            case Kernel32.ERROR_MORE_DATA when reads:
            case Kernel32.ERROR_OPERATION_ABORTED when transferred > 0:
                // The driver of a serial port reports the bytes that were transferred before the cancellation.
                operation.Finish(transferred);
                break;
            case Kernel32.ERROR_HANDLE_EOF or Kernel32.ERROR_BROKEN_PIPE or Kernel32.ERROR_PIPE_NOT_CONNECTED when reads:
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

    private protected override void Sync()
    {
        // FlushFileBuffers on a named pipe waits until the other side has read everything; a device has nothing to flush.
        if (!CanSeek)
        {
            return;
        }

        if (_syncsData && (_hasSynced || !IsNew))
        {
            int status = _calls.SyncData(Handle);
            if (status == 0)
            {
                return;
            }

            // The file system does not support the call, or the sync has failed: FlushFileBuffers reports it then.
            _syncsData = false;
            FilePipeMetrics.FellBack("NtFlushBuffersFileEx", status);
        }

        int error = _calls.Sync(Handle);
        if (error != Kernel32.ERROR_SUCCESS)
        {
            throw FileErrors.FromWin32(error, Path);
        }

        _hasSynced = true;
    }

    private void CancelCall()
    {
        try
        {
            _calls.Cancel(Handle, Overlapped);
        }
        catch (ObjectDisposedException)
        {
            // The call has ended, or ends with the handle.
        }
    }
}
