namespace Pipelines.File.IO;

/// <summary>
/// A file that can seek, on any system, by <see cref="RandomAccess"/>: blocking calls of one buffer, made on a waiting thread. Only a read
/// of an overlapped handle (Windows) is asynchronous, by the runtime, which allocates less.
/// </summary>
internal sealed class PortableFile(SafeFileHandle handle, string? path, FileProperties properties, UnixCalls? calls = null)
    : OpenedFile(handle, path, properties)
{
    private readonly UnixCalls _calls = calls ?? UnixCalls.Default;
    private readonly bool _isOverlapped = OperatingSystem.IsWindows() && handle.IsAsync;

    // The running asynchronous read, whose task source the runtime pools. Owned as the file's one request is.
    private ValueTaskAwaiter<int> _read;
    private FileRequest? _reading;
    private Action? _onRead;

    internal override FilePipeBackend Kind => FilePipeBackend.Portable;

    internal override int MaxBuffersPerOperation => 1;

    private protected override UnixCalls Calls => _calls;

    // NotReady: an asynchronous read is pending, and OnRead completes the request.
    internal override Attempt Try(FileRequest request, bool mayWait)
        => !mayWait ? Attempt.WouldBlock : TryFinish(request) ? Attempt.Done : Attempt.NotReady;

    internal override void WaitUntilReady(FileRequest request) => _read.UnsafeOnCompleted(_onRead ??= OnRead);

    internal override void Cancel(FileRequest operation, int generation)
    {
        // RandomAccess cannot cancel a call.
    }

    /// <summary>
    /// Performs the request. Returns <see langword="false"/> if an asynchronous read is pending.
    /// </summary>
    private bool TryFinish(FileRequest request)
    {
        try
        {
            switch (request.Kind)
            {
                case FileRequestKind.Step:
                    request.PerformStep();
                    break;
                case FileRequestKind.Read when _isOverlapped:
                    _reading = request;
                    Begin(RandomAccess.ReadAsync(Handle, MemoryMarshal.AsMemory(request.FirstBuffer), request.Offset));
                    if (!_read.IsCompleted)
                    {
                        return false;
                    }

                    FinishRead(request, _read.GetResult());
                    break;
                case FileRequestKind.Read:
                    FinishRead(request, RandomAccess.Read(Handle, request.PinnedBytes, request.Offset));
                    break;
                case FileRequestKind.Write:
                    RandomAccess.Write(Handle, request.PinnedBytes, request.Offset);
                    request.Finish(request.Length);
                    break;
                default:
                    PerformSync(request);
                    break;
            }
        }
        catch (Exception e)
        {
            // Every exception is the result.
            request.Finish(FileErrors.WithPath(e, Path));
        }

        return true;
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

    private void Begin(ValueTask<int> read) => _read = read.GetAwaiter();

    private static void FinishRead(FileRequest request, int read)
    {
        request.IsShortAtEnd = true;
        request.Finish(read);
    }

    /// <summary>Called by the runtime on a thread of its pool when the asynchronous read is over.</summary>
    private void OnRead()
    {
        FileRequest request = _reading!;
        try
        {
            FinishRead(request, _read.GetResult());
        }
        catch (Exception e)
        {
            request.Finish(FileErrors.WithPath(e, Path));
        }

        request.Complete();
    }
}
