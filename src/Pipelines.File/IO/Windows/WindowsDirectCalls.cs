namespace Pipelines.File.IO;

/// <summary>
/// Windows: the file is opened a second time, by its handle, with FILE_FLAG_NO_BUFFERING. Whole blocks go there, and the rest of a writer's
/// to the first handle. So each of the two has to let others do what the other one does: <see cref="FileOpening.ShareFor"/>.
/// </summary>
[SupportedOSPlatform("windows")]
internal sealed unsafe class WindowsDirectCalls(WindowsCalls calls, SafeFileHandle cached, SafeFileHandle direct, string? path)
    : DirectCalls
{
    // Set when a call of this thread ends.
    [ThreadStatic]
    private static ManualResetEvent? s_ended;

    /// <inheritdoc cref="OpenedFile.BeginDirect"/>
    internal static WindowsDirectCalls Begin(OverlappedFile file, WindowsCalls calls, bool isWriter)
    {
        int error = calls.OpenUnbuffered(file.Handle, isWriter, out SafeFileHandle direct);
        return error switch
        {
            // A multiple of the sector of every common device.
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

        // ReadFileScatter would take many pieces, but only of a page each.
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
