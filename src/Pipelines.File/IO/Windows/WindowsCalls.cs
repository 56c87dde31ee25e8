namespace Pipelines.File.IO;

/// <summary>
/// The calls of Windows that <see cref="OverlappedFile"/> makes, each with its Win32 error, 0 for TRUE. Tests replace them to make a call fail, return short,
/// or finish at once where the system would not.
/// </summary>
internal unsafe partial class WindowsCalls
{
    internal static WindowsCalls Default { get; } = new();

    /// <summary>ReadFile; <paramref name="transferred"/> counts only where the answer is 0.</summary>
    internal virtual int Read(SafeFileHandle file, nint buffer, uint count, out uint transferred, NativeOverlapped* overlapped)
    {
        uint moved = 0;
        int error = Answer(Kernel32.ReadFile(file, buffer, count, &moved, overlapped));
        transferred = moved;
        return error;
    }

    /// <summary>WriteFile; <paramref name="transferred"/> counts only where the answer is 0.</summary>
    internal virtual int Write(SafeFileHandle file, nint buffer, uint count, out uint transferred, NativeOverlapped* overlapped)
    {
        uint moved = 0;
        int error = Answer(Kernel32.WriteFile(file, buffer, count, &moved, overlapped));
        transferred = moved;
        return error;
    }

    /// <summary>GetOverlappedResult: waits for a call that was answered with ERROR_IO_PENDING, and whose overlapped has an event.</summary>
    [SupportedOSPlatform("windows")]
    internal virtual int Wait(nint file, NativeOverlapped* overlapped, out uint transferred)
    {
        uint moved = 0;
        int error;
        do
        {
            error = Answer(Kernel32.GetOverlappedResult(file, overlapped, &moved, wait: 1));
        }
        while (Volatile.Read(ref *(nint*)&overlapped->InternalLow) == Kernel32.STATUS_PENDING);
        transferred = moved;
        return error;
    }

    /// <summary>CancelIoEx. Nothing to cancel is no error that matters: the operation has ended, or is about to be asked for again.</summary>
    internal virtual void Cancel(SafeFileHandle file, NativeOverlapped* overlapped) => _ = Kernel32.CancelIoEx(file, overlapped);

    /// <summary>FlushFileBuffers.</summary>
    internal virtual int Sync(SafeFileHandle file) => Answer(Kernel32.FlushFileBuffers(file));

    /// <summary>
    /// NtFlushBuffersFileEx with FLUSH_FLAGS_FILE_DATA_SYNC_ONLY, fdatasync(2) for NTFS: the bytes, and of the metadata what is needed to find them. An NTSTATUS, 0 for success.
    /// </summary>
    internal virtual int SyncData(SafeFileHandle file)
    {
        if (!NtDll.HasFlushBuffersFileEx)
        {
            return NtDll.STATUS_NOT_IMPLEMENTED;
        }

        NtDll.IoStatusBlock status;
        return NtDll.FlushBuffersFileEx(file, NtDll.FLUSH_FLAGS_FILE_DATA_SYNC_ONLY, null, 0, &status);
    }

    /// <summary>SetFileCompletionNotificationModes with FILE_SKIP_COMPLETION_PORT_ON_SUCCESS: whether a call that finishes at once queues no completion from here on.</summary>
    internal virtual bool TrySkipCompletionOnSuccess(SafeFileHandle file)
        => Kernel32.SetFileCompletionNotificationModes(file, Kernel32.FILE_SKIP_COMPLETION_PORT_ON_SUCCESS) != 0;

    /// <summary>Records what the answer of a read, write or sync means.</summary>
    /// <param name="operation">What was asked for.</param>
    /// <param name="file">The file.</param>
    /// <param name="error">The Win32 error, 0 for success.</param>
    /// <param name="transferred">Bytes that have moved.</param>
    internal void Finish(FileRequest operation, OpenedFile file, int error, uint transferred)
    {
        bool reads = operation.Kind == FileRequestKind.Read;
        bool isNothing = false;
        if (error == Kernel32.ERROR_SUCCESS && reads && transferred == 0 && !file.CanSeek)
        {
            try
            {
                isNothing = IsPipeThatGoesOn(file.Handle);
            }
            catch (ObjectDisposedException e)
            {
                // The caller has closed the handle under us.
                operation.Finish(e);
                return;
            }
        }

        switch (error)
        {
            case Kernel32.ERROR_SUCCESS when isNothing:
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
                operation.Finish(FileErrors.FromWin32(error, file.Path));
                break;
        }
    }

    // A call that fails and names no error would look like success.
    private static int Answer(int result)
        => result != 0 ? Kernel32.ERROR_SUCCESS : Marshal.GetLastPInvokeError() is int error and not 0 ? error : Kernel32.ERROR_GEN_FAILURE;
}
