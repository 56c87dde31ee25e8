namespace Pipelines.File.IO;

/// <summary>
/// Windows: the file is opened a second time, by its handle, with FILE_FLAG_NO_BUFFERING. Whole blocks use that handle, and a writer's
/// other bytes the first one. So the share mode of each handle must allow the access of the other: <see cref="FileOpening.ShareFor"/>.
/// </summary>
[SupportedOSPlatform("windows")]
internal sealed unsafe class WindowsDirectCalls(WindowsCalls calls, SafeFileHandle cached, SafeFileHandle direct, string? path)
    : DirectCalls
{
    // Set when a call of the current thread ends.
    [ThreadStatic]
    private static ManualResetEvent? s_ended;

    /// <inheritdoc cref="OpenedFile.BeginDirect"/>
    internal static WindowsDirectCalls Begin(OverlappedFile file, WindowsCalls calls, bool isWriter)
    {
        int error = calls.OpenUnbuffered(file.Handle, isWriter, out SafeFileHandle direct);
        return error switch
        {
            // LeastBlock is a multiple of the sector of every common device.
            Kernel32.ERROR_SUCCESS
                => new(calls, file.Handle, direct, file.Path) { OffsetBlock = DirectFile.LeastBlock, MemoryBlock = DirectFile.LeastBlock },
            Kernel32.ERROR_INVALID_PARAMETER or Kernel32.ERROR_NOT_SUPPORTED or Kernel32.ERROR_INVALID_FUNCTION
                => throw DirectFile.NotSupported(file.Path),
            _ => throw FileErrors.FromWin32(error, file.Path),
        };
    }

    internal override long Transfer(FileRequestKind kind, bool isDirect, Libc.IoVector* vectors, int count, long offset)
    {
        SafeFileHandle handle = isDirect ? direct : cached;
        s_ended ??= new ManualResetEvent(initialState: false);

        // ReadFileScatter takes several buffers, but only of one page each.
        long moved = 0;
        for (int i = 0; i < count; i++)
        {
            NativeOverlapped overlapped;
            int error = calls.Begin(kind, handle, vectors[i].Base, (uint)vectors[i].Length, offset + moved, &overlapped, s_ended);
            error = error == Kernel32.ERROR_IO_PENDING ? calls.Wait(handle, &overlapped) : error;
            if (error is not (Kernel32.ERROR_SUCCESS or Kernel32.ERROR_HANDLE_EOF) && moved == 0)
            {
                throw FileErrors.FromWin32(error, path);
            }

            moved += error == Kernel32.ERROR_SUCCESS ? overlapped.InternalHigh : 0;
            if (error != Kernel32.ERROR_SUCCESS || overlapped.InternalHigh < vectors[i].Length)
            {
                break;
            }
        }

        return moved;
    }

    public override void Dispose() => direct.Dispose();
}
