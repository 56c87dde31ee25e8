namespace Pipelines.File.IO;

/// <summary>
/// Linux: direct I/O by O_DIRECT of open(2). The flag belongs to the open file description; it is set for whole blocks, and cleared for a
/// writer's other bytes. So nobody else may use the description: a handle of the caller's is opened a second time, unless it is only read
/// and has the flag already.
/// </summary>
internal sealed unsafe class UnixDirectCalls(UnixCalls calls, SafeFileHandle handle, bool closesHandle, string? path) : DirectCalls
{
    // A dropped range begins at most so many bytes before the last filled page: pages that were still being written when they were dropped
    // first are dropped again.
    private const long DropDistance = 1024 * 1024;

    // volatile: threads that make direct calls at once all write the same value.
    private volatile bool _isDirect;

    // File offsets: the start of the first and the end of the last page that was filled through the cache and may have to be dropped; -1:
    // none. Owned by the thread that makes cached calls; there is one at a time.
    private long _firstFilled = -1;
    private long _filledEnd;

    /// <inheritdoc cref="OpenedFile.BeginDirect"/>
    internal static UnixDirectCalls Begin(UnixFile file, UnixCalls calls, bool isWriter, bool isOwn)
    {
        if (!calls.TryGetDirectBlocks(file.Handle, out int offsetBlock, out int memoryBlock))
        {
            // The system does not report it, so this is a multiple of the block of every common device.
            offsetBlock = memoryBlock = DirectFile.LeastBlock;
        }

        if (offsetBlock is <= 0 or > DirectFile.BytesPerCall || memoryBlock is <= 0 or > DirectFile.LeastBlock)
        {
            throw DirectFile.NotSupported(file.Path);
        }

        // A handle that is only read and has the flag already is used as it is.
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
    /// Called when a page in the cache is full, and so is not needed there any more. Starts writing it, and drops the earlier ones: they
    /// are on the device by now.
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
