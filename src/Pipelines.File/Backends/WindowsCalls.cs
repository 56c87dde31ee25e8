using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Interop;

namespace Pipelines.File.Backends;

/// <summary>
/// The calls of Windows that <see cref="OverlappedBackend"/> makes, each with its Win32 error, 0 for TRUE. Tests replace them to make a call fail, return short,
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

    /// <summary>CancelIoEx. Nothing to cancel is no error that matters: the operation has ended, or is about to be asked for again.</summary>
    internal virtual void Cancel(SafeFileHandle file, NativeOverlapped* overlapped) => _ = Kernel32.CancelIoEx(file, overlapped);

    /// <summary>FlushFileBuffers.</summary>
    internal virtual int Sync(SafeFileHandle file) => Answer(Kernel32.FlushFileBuffers(file));

    /// <summary>SetFileCompletionNotificationModes with FILE_SKIP_COMPLETION_PORT_ON_SUCCESS: whether a call that finishes at once queues no completion from here on.</summary>
    internal virtual bool TrySkipCompletionOnSuccess(SafeFileHandle file)
        => Kernel32.SetFileCompletionNotificationModes(file, Kernel32.FILE_SKIP_COMPLETION_PORT_ON_SUCCESS) != 0;

    // A call that fails and names no error would look like success.
    private static int Answer(int result)
        => result != 0 ? Kernel32.ERROR_SUCCESS : Marshal.GetLastPInvokeError() is int error and not 0 ? error : Kernel32.ERROR_GEN_FAILURE;
}
