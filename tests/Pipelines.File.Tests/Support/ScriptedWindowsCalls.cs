using System.Collections.Concurrent;
using System.Runtime.Versioning;

namespace FilePipelines.Tests;

/// <summary>
/// The calls of Windows, made to finish in every way that Windows may choose: at once, with or without a completion; later; later, but
/// before the call has returned; or with an error.
/// </summary>
[SupportedOSPlatform("windows")]
internal sealed unsafe class ScriptedWindowsCalls : WindowsCalls
{
    private const nuint StatusPending = 0x103;

    private int _reads;
    private int _writes;
    private int _waits;

    /// <summary>Gets the number of the call, from 1.</summary>
    public Func<int, CallFinish> OnRead { get; init; } = _ => CallFinish.Real;

    public Func<int, CallFinish> OnWrite { get; init; } = _ => CallFinish.Real;

    /// <summary>A Win32 error, or 0 to make the call. Gets the number of the write, from 1.</summary>
    public Func<int, int>? WriteError { get; init; }

    /// <summary>As <see cref="WriteError"/>, for reads.</summary>
    public Func<int, int>? ReadError { get; init; }

    /// <summary>The bytes that <see cref="ReadError"/> and <see cref="WriteError"/> have moved nevertheless.</summary>
    public uint MovedBeforeError { get; init; }

    /// <summary>What the file is said to be beside what it is.</summary>
    public FileAttributes Attributes { get; init; }

    /// <summary>An NTSTATUS for each data-only sync, from 1; 0 for success.</summary>
    public Func<int, int> SyncDataStatus { get; init; } = _ => 0;

    /// <summary>What a rename by handle answers; <see langword="null"/>: what the system does.</summary>
    public Func<int, int?>? RenameError { get; init; }

    /// <summary>As <see cref="RenameError"/>, for one by name.</summary>
    public Func<int, int?>? MoveError { get; init; }

    /// <summary>Whether the folder may not be synced.</summary>
    public bool RefusesFolders { get; init; }

    /// <summary>The reads and writes: where, how many bytes, and on which thread.</summary>
    public ConcurrentQueue<(bool Reads, long Offset, uint Count, Thread Thread)> Transfers { get; } = new();

    /// <summary>The calls of other kinds, by name.</summary>
    public ConcurrentQueue<string> Calls { get; } = new();

    /// <summary>Runs on the issuing thread before the call and after it.</summary>
    public Action? BeforeRead { get; set; }

    public Action? AfterRead { get; set; }

    public int Reads => Volatile.Read(ref _reads);

    /// <summary>Writes that were waited for in place.</summary>
    public int Waits => Volatile.Read(ref _waits);

    private SafeFileHandle? Second { get; set; }

    public FilePipeReader Read(string path, FilePipeReaderOptions? options = null)
    {
        options ??= new();
        return FilePipeReader.Create(Backend(path, FileMode.Open, FileAccess.Read), options, leaveOpen: false);
    }

    public FilePipeWriter Write(string path, FilePipeWriterOptions? options = null, bool isNew = false)
    {
        options ??= new();
        OverlappedFile backend = Backend(path, options.Mode, FileAccess.Write);
        backend.IsNew = isNew;
        return FilePipeWriter.Create(backend, options, leaveOpen: false, isOpenedByPath: true);
    }

    /// <summary>Closes the handle that is not the library's.</summary>
    public void CloseSecond() => Second?.Dispose();

    internal override int Read(SafeFileHandle file, nint buffer, uint count, NativeOverlapped* overlapped)
    {
        BeforeRead?.Invoke();
        int number = Interlocked.Increment(ref _reads);
        Transfers.Enqueue((true, OffsetOf(overlapped), count, Thread.CurrentThread));
        int error = ReadError?.Invoke(number) ?? 0;
        if (error != 0)
        {
            overlapped->InternalHigh = (nint)Math.Min(count, MovedBeforeError);
            new Span<byte>((void*)buffer, (int)overlapped->InternalHigh).Fill(1);
            return error;
        }

        CallFinish how = OnRead(number);
        if (how == CallFinish.AtOnce)
        {
            int moved = RandomAccess.Read(Second!, new Span<byte>((void*)buffer, (int)count), OffsetOf(overlapped));
            overlapped->InternalHigh = moved;
            error = moved == 0 ? Kernel32.ERROR_HANDLE_EOF : 0;
        }
        else
        {
            error = Finish(how, base.Read(file, buffer, count, overlapped), overlapped);
        }

        AfterRead?.Invoke();
        return error;
    }

    internal override int Write(SafeFileHandle file, nint buffer, uint count, NativeOverlapped* overlapped)
    {
        int number = Interlocked.Increment(ref _writes);
        Transfers.Enqueue((false, OffsetOf(overlapped), count, Thread.CurrentThread));
        if (WriteError?.Invoke(number) is int error and not 0)
        {
            overlapped->InternalHigh = (nint)Math.Min(count, MovedBeforeError);
            return error;
        }

        CallFinish how = OnWrite(number);
        if (how == CallFinish.AtOnce)
        {
            RandomAccess.Write(Second!, new ReadOnlySpan<byte>((void*)buffer, (int)count), OffsetOf(overlapped));
            overlapped->InternalHigh = (nint)count;
            return 0;
        }

        return Finish(how, base.Write(file, buffer, count, overlapped), overlapped);
    }

    internal override int Wait(SafeFileHandle file, NativeOverlapped* overlapped)
    {
        Interlocked.Increment(ref _waits);
        return base.Wait(file, overlapped);
    }

    internal override FileAttributes AttributesOf(SafeFileHandle file) => Attributes | base.AttributesOf(file);

    internal override int Sync(SafeFileHandle file)
    {
        Calls.Enqueue(nameof(Sync));
        return base.Sync(file);
    }

    internal override int SyncData(SafeFileHandle file)
    {
        Calls.Enqueue(nameof(SyncData));
        return SyncDataStatus(Calls.Count(static call => call == nameof(SyncData)));
    }

    internal override int SyncFolder(string path)
    {
        Calls.Enqueue(nameof(SyncFolder));
        return RefusesFolders ? Kernel32.ERROR_ACCESS_DENIED : base.SyncFolder(path);
    }

    internal override int Rename(SafeFileHandle file, string to, bool replaces)
    {
        Calls.Enqueue(nameof(Rename));
        return RenameError?.Invoke(Calls.Count(static call => call == nameof(Rename))) ?? base.Rename(file, to, replaces);
    }

    internal override int Move(string from, string to, bool replaces)
    {
        Calls.Enqueue(nameof(Move));
        return MoveError?.Invoke(Calls.Count(static call => call == nameof(Move))) ?? base.Move(from, to, replaces);
    }

    private static long OffsetOf(NativeOverlapped* overlapped) => (uint)overlapped->OffsetLow | ((long)overlapped->OffsetHigh << 32);

    private static int Finish(CallFinish how, int error, NativeOverlapped* overlapped)
    {
        if (error != Kernel32.ERROR_IO_PENDING || how == CallFinish.Real)
        {
            return error;
        }

        while (Volatile.Read(ref *(nuint*)&overlapped->InternalLow) == StatusPending)
        {
            Thread.SpinWait(20);
        }

        return error;
    }

    private OverlappedFile Backend(string path, FileMode mode, FileAccess access)
    {
        SafeFileHandle handle = File.OpenHandle(path, mode, access, FileShare.ReadWrite | FileShare.Delete, FileOptions.Asynchronous);
        Second = File.OpenHandle(path, FileMode.Open, access, FileShare.ReadWrite | FileShare.Delete);
        return new OverlappedFile(handle, path, FileProperties.OfWindows(handle, path, this), this);
    }
}
