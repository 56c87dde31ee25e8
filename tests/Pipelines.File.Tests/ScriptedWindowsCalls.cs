using System.Runtime.Versioning;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;
using Pipelines.File.Backends;
using Pipelines.File.Interop;

namespace FilePipelinesTests;

/// <summary>
/// The calls of Windows, made to finish in every way that Windows may choose: at once, with or without a completion; later; later, but before the call
/// has returned; or with an error.
/// </summary>
[SupportedOSPlatform("windows")]
internal sealed unsafe class ScriptedWindowsCalls : WindowsCalls
{
    private const nuint StatusPending = 0x103;

    private int _reads;
    private int _writes;

    public bool RefusesToSkip { get; init; }

    /// <summary>Gets the number of the call, from 1.</summary>
    public Func<int, CallFinish> OnRead { get; init; } = _ => CallFinish.Real;

    public Func<int, CallFinish> OnWrite { get; init; } = _ => CallFinish.Real;

    /// <summary>A Win32 error, or 0 to make the call. Gets the number of the write, from 1.</summary>
    public Func<int, int>? WriteError { get; init; }

    /// <summary>As <see cref="WriteError"/>, for reads.</summary>
    public Func<int, int>? ReadError { get; init; }

    /// <summary>Runs on the issuing thread before the call and after it.</summary>
    public Action? BeforeRead { get; set; }

    public Action? AfterRead { get; set; }

    public int Reads => Volatile.Read(ref _reads);

    private SafeFileHandle? Second { get; set; }

    public FilePipeReader Read(string path, FilePipeReaderOptions? options = null)
    {
        options ??= new();
        return FilePipeReader.Create(Backend(path, FileMode.Open, FileAccess.Read), options, leaveOpen: false);
    }

    public FilePipeWriter Write(string path, FilePipeWriterOptions? options = null)
    {
        options ??= new();
        return FilePipeWriter.Create(Backend(path, FileMode.Create, FileAccess.Write), options, leaveOpen: false, isOpenedByPath: true);
    }

    /// <summary>Closes the handle that is not the library's.</summary>
    public void CloseSecond() => Second?.Dispose();

    internal override int Read(SafeFileHandle file, nint buffer, uint count, out uint transferred, NativeOverlapped* overlapped)
    {
        BeforeRead?.Invoke();
        int number = Interlocked.Increment(ref _reads);
        int error = ReadError?.Invoke(number) ?? 0;
        if (error != 0)
        {
            transferred = 0;
            return error;
        }

        CallFinish how = OnRead(number);
        if (how == CallFinish.AtOnce)
        {
            int moved = RandomAccess.Read(Second!, new Span<byte>((void*)buffer, (int)count), OffsetOf(overlapped));
            transferred = (uint)moved;
            error = moved == 0 ? Kernel32.ERROR_HANDLE_EOF : 0;
        }
        else
        {
            error = Finish(how, base.Read(file, buffer, count, out transferred, overlapped), ref transferred, overlapped);
        }

        AfterRead?.Invoke();
        return error;
    }

    internal override int Write(SafeFileHandle file, nint buffer, uint count, out uint transferred, NativeOverlapped* overlapped)
    {
        int number = Interlocked.Increment(ref _writes);
        if (WriteError?.Invoke(number) is int error and not 0)
        {
            transferred = 0;
            return error;
        }

        CallFinish how = OnWrite(number);
        if (how == CallFinish.AtOnce)
        {
            RandomAccess.Write(Second!, new ReadOnlySpan<byte>((void*)buffer, (int)count), OffsetOf(overlapped));
            transferred = count;
            return 0;
        }

        return Finish(how, base.Write(file, buffer, count, out transferred, overlapped), ref transferred, overlapped);
    }

    internal override bool TrySkipCompletionOnSuccess(SafeFileHandle file) => !RefusesToSkip && base.TrySkipCompletionOnSuccess(file);

    private static long OffsetOf(NativeOverlapped* overlapped) => (uint)overlapped->OffsetLow | ((long)overlapped->OffsetHigh << 32);

    private static int Finish(CallFinish how, int error, ref uint transferred, NativeOverlapped* overlapped)
    {
        if (error != Kernel32.ERROR_IO_PENDING || how == CallFinish.Real)
        {
            return error;
        }

        // The overlapped stays where it is for the life of the file, so looking at it does no harm even when the completion has freed it, which makes it 0.
        while (Volatile.Read(ref *(nuint*)&overlapped->InternalLow) == StatusPending)
        {
            Thread.SpinWait(20);
        }

        if (how == CallFinish.CompletionFirst)
        {
            Thread.Sleep(1);
            return error;
        }

        transferred = (uint)overlapped->InternalHigh;
        return 0;
    }

    private OverlappedBackend Backend(string path, FileMode mode, FileAccess access)
    {
        SafeFileHandle handle = OverlappedFile.Open(path, mode, access, FileShare.ReadWrite | FileShare.Delete, FileOptions.None, preallocationSize: 0);
        Second = File.OpenHandle(path, FileMode.Open, access, FileShare.ReadWrite | FileShare.Delete);
        return new OverlappedBackend(handle, path, FileProperties.Of(handle, path), this);
    }
}
