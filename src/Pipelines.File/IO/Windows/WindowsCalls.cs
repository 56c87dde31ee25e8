namespace Pipelines.File.IO;

/// <summary>
/// The system calls of <see cref="OverlappedFile"/>. Each returns its Win32 error, 0 for TRUE. Tests override them to make a call fail,
/// return less, or finish at once.
/// </summary>
internal unsafe class WindowsCalls
{
    internal static WindowsCalls Default { get; } = new();

    /// <summary>
    /// Begins one call. The lowest bit of its event is set, so that no completion port gets a packet (GetQueuedCompletionStatus).
    /// </summary>
    [SupportedOSPlatform("windows")]
    internal int Begin(FileRequestKind kind, SafeFileHandle file, nint buffer, uint count, long offset, NativeOverlapped* overlapped,
        ManualResetEvent ended)
    {
        *overlapped = new NativeOverlapped
        {
            OffsetLow = (int)offset,
            OffsetHigh = (int)(offset >> 32),
            EventHandle = ended.SafeWaitHandle.DangerousGetHandle() | 1,
        };
        return kind == FileRequestKind.Read ? Read(file, buffer, count, overlapped) : Write(file, buffer, count, overlapped);
    }

    /// <summary>ReadFile. If the call has ended, the OVERLAPPED has the number of bytes.</summary>
    internal virtual int Read(SafeFileHandle file, nint buffer, uint count, NativeOverlapped* overlapped)
        => Answer(Kernel32.ReadFile(file, buffer, count, null, overlapped));

    /// <summary>WriteFile, in the same way.</summary>
    internal virtual int Write(SafeFileHandle file, nint buffer, uint count, NativeOverlapped* overlapped)
        => Answer(Kernel32.WriteFile(file, buffer, count, null, overlapped));

    /// <summary>
    /// GetOverlappedResult: waits for a call that returned ERROR_IO_PENDING. It waits for the event, so the caller may have closed the
    /// handle.
    /// </summary>
    [SupportedOSPlatform("windows")]
    internal virtual int Wait(SafeFileHandle file, NativeOverlapped* overlapped)
    {
        int error;
        do
        {
            uint transferred;
            error = Answer(Kernel32.GetOverlappedResult(file.DangerousGetHandle(), overlapped, &transferred, wait: 1));
        }
        while (Volatile.Read(ref *(nint*)&overlapped->InternalLow) == Kernel32.STATUS_PENDING);
        return error;
    }

    /// <summary>
    /// CancelIoEx. Errors are ignored: if no call was found, the operation has ended, or has not begun and looks for the cancellation
    /// itself.
    /// </summary>
    internal virtual void Cancel(SafeFileHandle file, NativeOverlapped* overlapped) => _ = Kernel32.CancelIoEx(file, overlapped);

    /// <summary>FlushFileBuffers.</summary>
    internal virtual int Sync(SafeFileHandle file) => Answer(Kernel32.FlushFileBuffers(file));

    /// <summary>
    /// NtFlushBuffersFileEx with FLUSH_FLAGS_FILE_DATA_SYNC_ONLY, the fdatasync(2) of NTFS: writes the bytes, and the metadata that is
    /// needed to find them. Returns an NTSTATUS, 0 for success.
    /// </summary>
    internal virtual int SyncData(SafeFileHandle file)
    {
        nint* status = stackalloc nint[NtDll.StatusMembers];
        return NtDll.HasFlushBuffersFileEx ? NtDll.FlushBuffersFileEx(file, NtDll.FLUSH_FLAGS_FILE_DATA_SYNC_ONLY, null, 0, status)
            : NtDll.STATUS_NOT_IMPLEMENTED;
    }

    /// <summary>
    /// SetFileInformationByHandle with FileRenameInfoEx and FILE_RENAME_FLAG_POSIX_SEMANTICS: works even if others have the replaced file
    /// open.
    /// </summary>
    internal virtual int Rename(SafeFileHandle file, string to, bool replaces)
    {
        byte[] bytes = new byte[sizeof(Kernel32.FileRenameInformation) + (to.Length * sizeof(char))];
        fixed (byte* start = bytes)
        {
            Kernel32.FileRenameInformation* information = (Kernel32.FileRenameInformation*)start;
            information->Flags = Kernel32.FILE_RENAME_FLAG_POSIX_SEMANTICS | (replaces ? Kernel32.FILE_RENAME_FLAG_REPLACE_IF_EXISTS : 0);
            information->NameBytes = (uint)(to.Length * sizeof(char));
            to.CopyTo(new Span<char>(&information->Name, to.Length));

            // A rename needs the right DELETE, which the handle for writing lacks.
            using SafeFileHandle renamable = Kernel32.ReOpenFile(file, Kernel32.DELETE, (uint)(FileShare.ReadWrite | FileShare.Delete), 0);
            return renamable.IsInvalid ? Marshal.GetLastPInvokeError()
                : Answer(Kernel32.SetFileInformationByHandle(renamable, Kernel32.FileRenameInfoEx, start, (uint)bytes.Length));
        }
    }

    /// <summary>MoveFileExW with MOVEFILE_WRITE_THROUGH, never to another volume.</summary>
    internal virtual int Move(string from, string to, bool replaces)
        => Answer(Kernel32.MoveFileEx(from, to, Kernel32.MOVEFILE_WRITE_THROUGH | (replaces ? Kernel32.MOVEFILE_REPLACE_EXISTING : 0)));

    /// <summary>FlushFileBuffers of a folder, if the user may do that.</summary>
    internal virtual int SyncFolder(string path)
    {
        using SafeFileHandle folder = Kernel32.CreateFile(
            path, Kernel32.GENERIC_WRITE, (uint)(FileShare.ReadWrite | FileShare.Delete), null, (uint)FileMode.Open,
            Kernel32.FILE_FLAG_BACKUP_SEMANTICS, 0);
        return folder.IsInvalid ? Marshal.GetLastPInvokeError() : Answer(Kernel32.FlushFileBuffers(folder));
    }

    /// <summary>GetFileInformationByHandleEx with FileBasicInfo; 0 if the file has no attributes.</summary>
    internal virtual FileAttributes AttributesOf(SafeFileHandle file)
    {
        try
        {
            return System.IO.File.GetAttributes(file);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            return 0;
        }
    }

    /// <summary>NtQueryInformationFile with FileModeInformation: whether it was opened with FILE_FLAG_NO_BUFFERING.</summary>
    internal static bool IsUnbuffered(SafeFileHandle file)
    {
        nint* status = stackalloc nint[NtDll.StatusMembers];
        uint mode;
        return NtDll.QueryInformationFile(file, status, &mode, sizeof(uint), NtDll.FileModeInformation) == 0
            && (mode & NtDll.FILE_NO_INTERMEDIATE_BUFFERING) != 0;
    }

    /// <summary>PeekNamedPipe: whether the handle is a pipe that has not ended. <see langword="false"/> for a socket.</summary>
    internal static bool IsPipeThatGoesOn(SafeFileHandle file) => Kernel32.PeekNamedPipe(file, null, 0, null, null, null) != 0;

    // A failed call without an error code would look like success.
    private static int Answer(int result)
        => result != 0 ? Kernel32.ERROR_SUCCESS : Marshal.GetLastPInvokeError() is int error and not 0 ? error : Kernel32.ERROR_GEN_FAILURE;
}
