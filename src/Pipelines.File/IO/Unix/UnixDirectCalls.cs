namespace Pipelines.File.IO;

/// <summary>
/// Linux: O_DIRECT of open(2). It is a flag of the open file description, set for whole blocks and taken away for the rest of a writer's.
/// So the description has to be this file's alone: a handle of the caller's, which may be in use elsewhere, is opened a second time.
/// </summary>
internal sealed unsafe class UnixDirectCalls(UnixCalls calls, SafeFileHandle handle, bool closesHandle, string? path) : DirectCalls
{
    // How far behind the position pages are dropped that were still on their way to the device when it was their turn, bytes.
    private const long DropDistance = 1024 * 1024;

    // Threads that make direct calls at once set the same.
    private volatile bool _isDirect;

    // The first page that was written through the cache to its end, and the end of the last one, file offsets; -1: none. Owned by whoever
    // makes such calls, one at a time.
    private long _firstFilled = -1;
    private long _filledEnd;

    /// <inheritdoc cref="OpenedFile.BeginDirect"/>
    internal static UnixDirectCalls Begin(UnixFile file, UnixCalls calls, bool isWriter, bool isOwn)
    {
        if (!calls.TryGetDirectBlocks(file.Handle, out int offsetBlock, out int memoryBlock))
        {
            // Nobody tells: a multiple of the block of every common device.
            offsetBlock = memoryBlock = DirectFile.LeastBlock;
        }

        if (offsetBlock is <= 0 or > DirectFile.BytesPerCall || memoryBlock is <= 0 or > DirectFile.LeastBlock)
        {
            throw DirectFile.NotSupported(file.Path);
        }

        // A handle that has the flag already is read as it is.
        bool opens = !isOwn && (isWriter || !file.IsDirect);
        SafeFileHandle handle = opens ? OpenAgain(calls, file, isWriter) : file.Handle;
        UnixDirectCalls direct = new(calls, handle, opens, file.Path) { OffsetBlock = offsetBlock, MemoryBlock = memoryBlock };
        try
        {
            direct.SetDirect(true);
            return direct;
        }
        catch
        {
            direct.Dispose();
            throw;
        }
    }

    internal override long Transfer(FileRequestKind kind, bool isDirect, Libc.IoVector* vectors, int count, long offset)
    {
        SetDirect(isDirect);
        long result;
        do
        {
            result = kind == FileRequestKind.Read ? calls.Read(handle, vectors, count, offset, flags: 0)
                : calls.Write(handle, vectors, count, offset, flags: 0);
        }
        while (result == -Libc.EINTR);
        if (result > 0 && !isDirect && (offset + result) % DirectFile.LeastBlock == 0)
        {
            OnPageFilled(offset + result);
        }

        return result >= 0 ? result : throw (isDirect && result == -Libc.EINVAL ? UnixFile.NotWhole(path)
            : FileErrors.FromErrno((int)-result, path));
    }

    internal override Exception? TellCloseError()
    {
        long answer = closesHandle ? calls.CloseCopy(handle) : 0;
        return answer < 0 ? FileErrors.FromErrno((int)-answer, path) : null;
    }

    public override void Dispose()
    {
        DropFilled();
        if (closesHandle)
        {
            handle.Dispose();
        }
    }

    private static SafeFileHandle OpenAgain(UnixCalls calls, UnixFile file, bool isWriter)
    {
        long descriptor = calls.OpenAgain(file.Handle, isWriter);
        return descriptor >= 0 ? new SafeFileHandle((nint)descriptor, ownsHandle: true)
            : throw (descriptor == -Libc.EINVAL ? DirectFile.NotSupported(file.Path) : FileErrors.FromErrno((int)-descriptor, file.Path));
    }

    /// <summary>
    /// Nobody needs the page in the cache any more: it begins to be written, and is dropped when another one is full, as by then it is on
    /// the device.
    /// </summary>
    private void OnPageFilled(long end)
    {
        DropFilled();
        _filledEnd = end;
        _firstFilled = _firstFilled < 0 ? end - DirectFile.LeastBlock : Math.Max(_firstFilled, end - DropDistance);
        calls.WriteCached(handle, end - DirectFile.LeastBlock, DirectFile.LeastBlock, waits: false);
    }

    private void DropFilled()
    {
        if (_firstFilled >= 0)
        {
            calls.DropCached(handle, _firstFilled, _filledEnd - _firstFilled);
        }
    }

    private void SetDirect(bool isDirect)
    {
        if (_isDirect == isDirect)
        {
            return;
        }

        long answer = calls.SetDirect(handle, isDirect);
        if (answer < 0)
        {
            throw answer == -Libc.EINVAL ? DirectFile.NotSupported(path) : FileErrors.FromErrno((int)-answer, path);
        }

        _isDirect = isDirect;
    }
}
