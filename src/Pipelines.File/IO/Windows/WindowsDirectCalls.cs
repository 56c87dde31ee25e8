namespace Pipelines.File.IO;

/// <summary>
/// Windows: the file is opened a second time, by its handle, with FILE_FLAG_NO_BUFFERING. Whole blocks go there, and the rest of a writer's
/// to the first handle. So each of the two has to let others do what the other one does: <see cref="FileOpening.ShareFor"/>.
/// </summary>
[SupportedOSPlatform("windows")]
internal sealed unsafe class WindowsDirectCalls : DirectCalls
{
    // What a call of this thread waits for.
    [ThreadStatic]
    private static ManualResetEvent? s_event;

    private readonly WindowsCalls _calls;
    private readonly SafeFileHandle _cached;
    private readonly SafeFileHandle _direct;
    private readonly string? _path;

    private WindowsDirectCalls(WindowsCalls calls, SafeFileHandle cached, SafeFileHandle direct, string? path)
    {
        _calls = calls;
        _cached = cached;
        _direct = direct;
        _path = path;
    }

    /// <inheritdoc cref="OpenedFile.BeginDirect"/>
    internal static WindowsDirectCalls Begin(OverlappedFile file, WindowsCalls calls, bool isWriter)
    {
        int error = calls.OpenUnbuffered(file.Handle, isWriter, out SafeFileHandle direct);
        return error switch
        {
            // A multiple of the sector of every common device.
            Kernel32.ERROR_SUCCESS => new(calls, file.Handle, direct, file.Path) { OffsetBlock = DirectFile.LeastBlock, MemoryBlock = DirectFile.LeastBlock },
            Kernel32.ERROR_INVALID_PARAMETER or Kernel32.ERROR_NOT_SUPPORTED or Kernel32.ERROR_INVALID_FUNCTION => throw DirectFile.NotSupported(file.Path),
            _ => throw FileErrors.FromWin32(error, file.Path),
        };
    }

    internal override long Transfer(FileRequestKind kind, bool isDirect, Libc.IoVector* vectors, int count, long offset)
    {
        // ReadFileScatter would take many pieces, but only of a page each.
        long moved = 0;
        for (int i = 0; i < count; i++)
        {
            int error = Transfer(kind, isDirect ? _direct : _cached, vectors[i], offset + moved, out uint transferred);
            if (error is not (Kernel32.ERROR_SUCCESS or Kernel32.ERROR_HANDLE_EOF) && moved == 0)
            {
                throw FileErrors.FromWin32(error, _path);
            }

            moved += error == Kernel32.ERROR_SUCCESS ? transferred : 0;
            if (error != Kernel32.ERROR_SUCCESS || transferred < vectors[i].Length)
            {
                break;
            }
        }

        return moved;
    }

    public override void Dispose() => _direct.Dispose();

    private int Transfer(FileRequestKind kind, SafeFileHandle handle, Libc.IoVector vector, long offset, out uint transferred)
    {
        // The lowest bit keeps the end from the completion port that the first handle is bound to (GetQueuedCompletionStatus).
        NativeOverlapped overlapped = new()
        {
            OffsetLow = (int)offset,
            OffsetHigh = (int)(offset >> 32),
            EventHandle = (s_event ??= new ManualResetEvent(initialState: false)).SafeWaitHandle.DangerousGetHandle() | 1,
        };
        bool isHeld = false;
        try
        {
            // It may be disposed between the two calls: it is closed then when this is done.
            handle.DangerousAddRef(ref isHeld);
            int error = kind == FileRequestKind.Read
                ? _calls.Read(handle, vector.Base, (uint)vector.Length, out transferred, &overlapped)
                : _calls.Write(handle, vector.Base, (uint)vector.Length, out transferred, &overlapped);
            return error == Kernel32.ERROR_IO_PENDING ? _calls.Wait(handle.DangerousGetHandle(), &overlapped, out transferred) : error;
        }
        finally
        {
            if (isHeld)
            {
                handle.DangerousRelease();
            }
        }
    }
}
