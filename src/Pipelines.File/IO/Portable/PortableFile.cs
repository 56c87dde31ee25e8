namespace Pipelines.File.IO;

/// <summary>
/// A file that can seek, on any system, by <see cref="RandomAccess"/>: blocking calls of one buffer, made on a waiting thread.
/// </summary>
internal class PortableFile(SafeFileHandle handle, string? path, FileProperties properties, UnixCalls? calls = null)
    : OpenedFile(handle, path, properties)
{
    private readonly UnixCalls _calls = calls ?? UnixCalls.Default;

    internal override FilePipeBackend Kind => FilePipeBackend.Portable;

    internal override int MaxBuffersPerOperation => 1;

    private protected override UnixCalls Calls => _calls;

    private protected override bool TryPerformCore(FileRequest request, bool mayWait)
    {
        if (!mayWait)
        {
            return false;
        }

        switch (request.Kind)
        {
            case FileRequestKind.Read:
                request.Finish(Read(request.PinnedBytes, request.Offset));
                break;
            case FileRequestKind.Write:
                Write(request.PinnedBytes, request.Offset);
                request.Finish(request.Length);
                break;
            default:
                PerformStep(request);
                break;
        }

        return true;
    }

    private protected virtual int Read(Span<byte> bytes, long offset) => RandomAccess.Read(Handle, bytes, offset);

    private protected virtual void Write(ReadOnlySpan<byte> bytes, long offset) => RandomAccess.Write(Handle, bytes, offset);

    // RandomAccess.FlushToDisk ignores EROFS, EINVAL and ENOTSUP on Unix.
    private protected override void Sync()
    {
        if (!OperatingSystem.IsWindows())
        {
            base.Sync();
            return;
        }

        try
        {
            RandomAccess.FlushToDisk(Handle);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            throw FileErrors.WithPath(e, Path);
        }
    }
}
