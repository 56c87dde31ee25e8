using Pipelines.File.Diagnostics;
using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// Windows: ReadFile and WriteFile with one overlapped for the life of the file. A read is begun on the caller's thread and finishes there
/// where the system has the data; else a waiting thread waits for its end. Writes and syncs, which Windows may perform within the call, are
/// made by the waiting threads: a flush never writes, and no thread of the application's pool waits for it. A read of a pipe may wait for
/// as long as the other side likes, so no thread of its own waits for that, but the runtime's registered waits.
/// </summary>
/// <remarks>
/// Every call has an event with its low bit set, so no completion port is told of its end, whoever the handle is bound to
/// (GetQueuedCompletionStatus): the end is always waited for, once, and by one thread. Windows cancels what a thread has begun when that
/// thread ends. Whoever asked for a read that was canceled so asks again, and no thread ends before a write of its own does.
/// </remarks>
/// <param name="handle">Open with FILE_FLAG_OVERLAPPED.</param>
/// <param name="path">The path that it was opened by; <see langword="null"/> for a handle of the caller's.</param>
/// <param name="properties">What it is.</param>
/// <param name="calls">Other calls than the system's, for tests.</param>
[SupportedOSPlatform("windows")]
internal sealed unsafe class OverlappedFile(SafeFileHandle handle, string? path, FileProperties properties, WindowsCalls? calls = null)
    : OpenedFile(handle, path, properties)
{
    private readonly WindowsCalls _calls = calls ?? WindowsCalls.Default;

    // Of the one operation under way, for the life of the file. Its address never changes.
    private readonly NativeOverlapped[] _overlapped = GC.AllocateArray<NativeOverlapped>(1, pinned: true);

    // Its call is under way, and nobody waits for its end yet. Owned as the operation is.
    private bool _isBegun;

    // Written by whoever performs the one operation under way: whether the next sync has to cover a name, too; whether NtFlushBuffersFileEx
    // has not failed for this file.
    private bool _hasSynced;
    private bool _syncsData = true;

    internal override FilePipeBackend Kind => FilePipeBackend.Overlapped;

    /// <summary>Is set when a call ends.</summary>
    internal ManualResetEvent Ended { get; } = new(initialState: false);

    // ReadFileScatter would take many, but only pages of memory, and only unbuffered.
    internal override int MaxBuffersPerOperation => 1;

    // One view of the system's cache: a read that crosses two costs more.
    internal override int ReadAlignment => CanSeek ? 256 * 1024 : 1;

    // More would make no write faster.
    internal override int LargestWriteSegment => 512 * 1024;

    internal override DirectCalls BeginDirect(bool isWriter, bool isOwn) => WindowsDirectCalls.Begin(this, _calls, isWriter);

    internal override bool TryPerform(FileRequest operation, bool mayWait)
        => operation.Kind == FileRequestKind.Read
            ? !Properties.IsReadWithinTheCall && TryFinish(operation, waits: false)
            : mayWait && CanSeek && TryFinish(operation, waits: true);

    internal override void Start(FileRequest operation)
    {
        if (CanSeek || operation.Kind != FileRequestKind.Read)
        {
            operation.Queue();
        }
        else if (_isBegun)
        {
            AwaitEnd(operation);
        }
        else
        {
            // Not within this call, whose caller may start the next one; and the threads of the pool do not end while a read that they have
            // begun waits.
            ThreadPool.UnsafeQueueUserWorkItem(static started => ((IWaitingCall)started).Perform(), operation, preferLocal: false);
        }
    }

    internal override void Cancel(FileRequest operation, int generation)
    {
        lock (_overlapped)
        {
            if (operation.Generation != generation)
            {
                return;
            }

            operation.CanceledGeneration = generation;
        }

        CancelCall();
    }

    internal override void Release(bool closeHandle)
    {
        // The event would be the finalizer's, and many files have as many.
        Ended.Dispose();
        base.Release(closeHandle);
    }

    /// <summary>
    /// Performs the operation, or waits for the end of what was begun of it, and completes it. On a waiting thread; for a read of a pipe,
    /// which is not waited for here, on one of the pool.
    /// </summary>
    internal override void Perform(FileRequest request)
    {
        if (TryFinish(request, waits: CanSeek || request.Kind != FileRequestKind.Read))
        {
            request.Complete();
        }
        else
        {
            AwaitEnd(request);
        }
    }

    internal override void OnReady(FileRequest request)
    {
        TryFinish(request, waits: true);
        request.Complete();
    }

    private NativeOverlapped* Overlapped => (NativeOverlapped*)Unsafe.AsPointer(ref _overlapped[0]);

    /// <summary>Has a read that is under way completed by a thread of the pool when it ends.</summary>
    private void AwaitEnd(FileRequest operation)
        => ThreadPool.UnsafeRegisterWaitForSingleObject(
            Ended, static (read, _) => ((FileRequest)read!).OnReady(), operation, Timeout.Infinite, executeOnlyOnce: true);

    /// <summary>
    /// Makes the call, unless that was done, and records what came of it. <see langword="false"/>: it is under way, and is not waited for.
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
        if (operation.IsCancelWanted)
        {
            return Kernel32.ERROR_OPERATION_ABORTED;
        }

        if (operation.Kind is not (FileRequestKind.Read or FileRequestKind.Write))
        {
            return operation.Kind == FileRequestKind.Sync ? Sync() : Kernel32.ERROR_SUCCESS;
        }

        // All ones is the end of the file (WriteFile).
        long offset = !CanSeek ? 0 : Appends && operation.Kind == FileRequestKind.Write ? -1 : operation.Offset;
        ref readonly TransferBuffer buffer = ref operation.BufferAt(0);
        int error = _calls.Begin(operation.Kind, Handle, buffer.Address, (uint)buffer.Memory.Length, offset, Overlapped, Ended);
        if (error == Kernel32.ERROR_IO_PENDING && operation.IsCancelWanted)
        {
            // Whoever canceled it may have found no call: it looks for one only after it has said so.
            CancelCall();
        }

        return error;
    }

    /// <summary>Records what the answer of a call means.</summary>
    private void Finish(FileRequest operation, int error)
    {
        bool reads = operation.Kind == FileRequestKind.Read;
        long transferred = Overlapped->InternalHigh;
        switch (error)
        {
            case Kernel32.ERROR_SUCCESS when operation.Kind == FileRequestKind.Step:
                operation.PerformStep();
                break;
            case Kernel32.ERROR_SUCCESS when reads && transferred == 0 && !CanSeek && WindowsCalls.IsPipeThatGoesOn(Handle):
                // Somebody has written nothing into the pipe, which is a message, and no end of it: the owner asks again.
                operation.FinishCanceled();
                break;
            case Kernel32.ERROR_SUCCESS:
            case Kernel32.ERROR_MORE_DATA when reads:
            case Kernel32.ERROR_OPERATION_ABORTED when transferred > 0:
                // The driver of a serial port counts what has moved until it was called off.
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

    private int Sync()
    {
        if (!CanSeek)
        {
            // FlushFileBuffers on a named pipe waits until the other side has read everything, and a device has nothing to flush.
            return Kernel32.ERROR_SUCCESS;
        }

        if (_syncsData && (_hasSynced || !IsNew))
        {
            int status = _calls.SyncData(Handle);
            if (status == 0)
            {
                return Kernel32.ERROR_SUCCESS;
            }

            // This file's system does not know the call, or it has failed, which the other call then tells.
            _syncsData = false;
            FilePipeMetrics.FellBack("NtFlushBuffersFileEx", status);
        }

        int error = _calls.Sync(Handle);
        _hasSynced |= error == Kernel32.ERROR_SUCCESS;
        return error;
    }

    private void CancelCall()
    {
        try
        {
            _calls.Cancel(Handle, Overlapped);
        }
        catch (ObjectDisposedException)
        {
            // It has ended, or does so with the handle.
        }
    }
}
