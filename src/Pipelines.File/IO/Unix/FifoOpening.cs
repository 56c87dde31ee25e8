namespace Pipelines.File.IO;

/// <summary>
/// Linux: opens one side of a FIFO without blocking until the other side is open, as open(2) does (fifo(7)). Used by one thread at a time.
/// </summary>
/// <remarks>
/// The reading side is opened at once. It is done when it can be read, or when a writer has the FIFO open; the system does not report the
/// latter, so it is polled. The writing side cannot be opened before there is a reader (ENXIO), so opening is retried. Options for files
/// (sync of each write, preallocation, caching, deletion at the end) are ignored, as in open(2).
/// </remarks>
internal sealed unsafe class FifoOpening(FileToOpen file) : IDisposable
{
    // The reading side, open and without a writer yet.
    private SafeFileHandle? _handle;

    /// <summary>Whether the path means a FIFO, or meant one that is half open.</summary>
    [UnsupportedOSPlatform("windows")]
    internal bool IsForFifo => _handle is not null || FileStatus.TypeOf(file.Path) == Libc.S_IFIFO;

    /// <summary>
    /// Tries to open the FIFO. Returns the open file, which the caller owns; <see langword="null"/> if the other side is missing, or the
    /// path means something else by now.
    /// </summary>
    /// <exception cref="IOException">The system refuses to open it.</exception>
    [UnsupportedOSPlatform("windows")]
    internal OpenedFile? TryOpen()
    {
        if (_handle is null)
        {
            int closedOnExec = (file.Share & FileShare.Inheritable) == 0 ? Libc.O_CLOEXEC : 0;
            int descriptor = LibcCalls.Open(file.Path, (Reads ? Libc.O_RDONLY : Libc.O_WRONLY) | Libc.O_NONBLOCK | closedOnExec);
            if (descriptor < 0)
            {
                int errno = Marshal.GetLastPInvokeError();
                return errno is Libc.ENXIO or Libc.ENOENT or Libc.EINTR ? null : throw FileErrors.OfNaming(errno, file.Path);
            }

            _handle = new SafeFileHandle(descriptor, ownsHandle: true);
            if (!FileProperties.Of(_handle, file.Path).IsFifo)
            {
                // The name means another file now, which this opening would neither truncate nor append to.
                Dispose();
                return null;
            }
        }

        if (Reads && !HasWriter())
        {
            return null;
        }

        if (file.Backend == FilePipeBackend.Portable)
        {
            // The runtime's calls must block.
            _ = LibcCalls.ChangeFlags(_handle, cleared: Libc.O_NONBLOCK);
        }

        SafeFileHandle handle = _handle;
        _handle = null;
        return FileOpening.ChooseOrClose(file, handle);
    }

    public void Dispose()
    {
        _handle?.Dispose();
        _handle = null;
    }

    private bool Reads => file.Access == FileAccess.Read;

    /// <summary>
    /// Whether the FIFO can be read, or has or had a writer. For an empty pipe tee(2) returns EAGAIN if there is a writer, and 0 if there
    /// is none.
    /// </summary>
    [UnsupportedOSPlatform("windows")]
    private bool HasWriter()
    {
        if (UnixCalls.Default.IsReady(_handle!, Libc.POLLIN))
        {
            return true;
        }

        int* ends = stackalloc int[2];
        if (LibcCalls.Pipe2(ends, Libc.O_CLOEXEC) != 0)
        {
            return false;
        }

        bool isEmptyWithoutWriter = LibcCalls.Tee(_handle!, ends[1], 1, Libc.SPLICE_F_NONBLOCK) == 0;
        _ = LibcCalls.Close(ends[0]);
        _ = LibcCalls.Close(ends[1]);
        return !isEmptyWithoutWriter;
    }
}
