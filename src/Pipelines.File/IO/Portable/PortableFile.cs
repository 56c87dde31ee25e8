namespace Pipelines.File.IO;

/// <summary>
/// A file that can seek, on any system, by <see cref="RandomAccess"/>: blocking calls of one buffer, made on a waiting thread. Only for a
/// read of an overlapped handle (Windows) it waits by itself, because the runtime's waiting allocates at each call.
/// </summary>
[SuppressMessage("Design", "CA1001:Types that own disposable fields should be disposable",
    Justification = "The event has no handle, because nobody asks for its WaitHandle.")]
internal sealed class PortableFile(SafeFileHandle handle, string? path, FileProperties properties, UnixCalls? calls = null)
    : OpenedFile(handle, path, properties)
{
    private readonly UnixCalls _calls = calls ?? UnixCalls.Default;
    private readonly bool _isOverlapped = OperatingSystem.IsWindows() && handle.IsAsync;

    // Set when a read of an overlapped handle is over. Owned as the file's one request is.
    private ManualResetEventSlim? _isRead;
    private Action? _onRead;

    internal override FilePipeBackend Kind => FilePipeBackend.Portable;

    internal override int MaxBuffersPerOperation => 1;

    private protected override UnixCalls Calls => _calls;

    internal override Attempt Try(FileRequest request, bool mayWait)
    {
        if (!mayWait)
        {
            return Attempt.WouldBlock;
        }

        try
        {
            switch (request.Kind)
            {
                case FileRequestKind.Read:
                    request.Finish(_isOverlapped
                        ? Wait(RandomAccess.ReadAsync(Handle, MemoryMarshal.AsMemory(request.FirstBuffer), request.Offset))
                        : RandomAccess.Read(Handle, request.PinnedBytes, request.Offset));
                    break;
                case FileRequestKind.Write:
                    RandomAccess.Write(Handle, request.PinnedBytes, request.Offset);
                    request.Finish(request.Length);
                    break;
                default:
                    PerformStep(request);
                    break;
            }
        }
        catch (Exception e)
        {
            // Every exception is the result.
            request.Finish(FileErrors.WithPath(e, Path));
        }

        return Attempt.Done;
    }

    // RandomAccess.FlushToDisk ignores EROFS, EINVAL and ENOTSUP on Unix.
    private protected override Exception? Sync()
    {
        if (!OperatingSystem.IsWindows())
        {
            return base.Sync();
        }

        try
        {
            RandomAccess.FlushToDisk(Handle);
            return null;
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            return FileErrors.WithPath(e, Path);
        }
    }

    private int Wait(ValueTask<int> read)
    {
        ValueTaskAwaiter<int> awaiter = read.GetAwaiter();
        if (!awaiter.IsCompleted)
        {
            _isRead ??= new ManualResetEventSlim();
            _isRead.Reset();
            awaiter.UnsafeOnCompleted(_onRead ??= _isRead.Set);
            _isRead.Wait();
        }

        return awaiter.GetResult();
    }
}
