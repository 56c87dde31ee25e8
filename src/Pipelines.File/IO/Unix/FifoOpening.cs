namespace Pipelines.File.IO;

/// <summary>
/// Opens one side of a FIFO without the wait for the other side that open(2) makes (fifo(7)). Linux; used by one thread at a time.
/// </summary>
/// <remarks>
/// The reading side is opened at once and then waits until it can be read, or until somebody has it open for writing, which nothing tells:
/// that is asked from time to time. The writing side cannot be opened before there is a reader (ENXIO), and is tried from time to time.
/// </remarks>
internal sealed unsafe class FifoOpening(FileToOpen file) : IDisposable
{
    // The reading side, which is open and waits.
    private SafeFileHandle? _handle;

    internal bool IsForFifo => IsFifo(file.Path);

    /// <summary>
    /// For a path that may be a FIFO's; <see langword="null"/>: on other systems. What the options ask
    /// of a file (a sync with each write, room on the device, no place in the cache) means nothing to a FIFO, as in open(2).
    /// </summary>
    internal static FifoOpening? TryFor(in FileToOpen file)
        => FileOpening.IsLinux ? new FifoOpening(file) : null;

    /// <summary>Whether that is a FIFO. Whatever stands in the way of an answer is for the ordinary way of opening to tell.</summary>
    internal static bool IsFifo(string path) => TypeOf(path) == Libc.S_IFIFO;

    /// <summary>What kind of file it is, by the bits of stat(2); 0 where that is not told.</summary>
    internal static int TypeOf(string path)
    {
        Libc.FileStatus status;
        return Libc.StatX(Libc.AT_FDCWD, path, 0, Libc.STATX_TYPE, &status) == 0 ? status.Mode & Libc.S_IFMT : 0;
    }

    /// <summary>
    /// The open file, which is the caller's; <see langword="null"/>: the other side is not there yet, unless
    /// <paramref name="isForOrdinaryWay"/> says that opening has failed.
    /// </summary>
    /// <exception cref="IOException">Another process has it open exclusively, or there is no descriptor left.</exception>
    /// <exception cref="NotSupportedException">It is to be deleted when it is closed.</exception>
    internal OpenedFile? TryOpen(out bool isForOrdinaryWay)
    {
        if ((file.Options & FileOptions.DeleteOnClose) != 0)
        {
            throw new NotSupportedException(
                $"A FIFO cannot be opened with {nameof(FileOptions)}.{nameof(FileOptions.DeleteOnClose)}: '{file.Path}'");
        }

        isForOrdinaryWay = false;
        if (_handle is null)
        {
            int descriptor = Open(out int errno);
            if (errno is Libc.EMFILE or Libc.ENFILE)
            {
                // Not for the ordinary way, which would wait for the other side if there is a descriptor by then.
                descriptor = SpareDescriptors.TryRelease() ? Open(out errno) : descriptor;
                if (errno is Libc.EMFILE or Libc.ENFILE)
                {
                    throw FileErrors.FromErrno(errno, file.Path);
                }
            }

            if (descriptor < 0)
            {
                isForOrdinaryWay = errno is not (Libc.ENXIO or Libc.EINTR);
                return null;
            }

            _handle = new SafeFileHandle(descriptor, ownsHandle: true);
            if (!FileProperties.Of(_handle, file.Path).IsFifo)
            {
                // The name means another file by now, which this way of opening would neither truncate nor append to.
                Dispose();
                isForOrdinaryWay = true;
                return null;
            }

            FileOpening.Lock(_handle, file.Path, file.Share);
        }

        if (Reads && !HasWriter())
        {
            return null;
        }

        if (file.Backend == FilePipeBackend.Portable)
        {
            // The runtime's calls wait.
            _ = Libc.ChangeFlags(_handle, cleared: Libc.O_NONBLOCK);
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

    private int Open(out int errno)
    {
        int closedOnExec = (file.Share & FileShare.Inheritable) == 0 ? Libc.O_CLOEXEC : 0;
        int descriptor = Libc.Open(file.Path, (Reads ? Libc.O_RDONLY : Libc.O_WRONLY) | Libc.O_NONBLOCK | closedOnExec);
        errno = descriptor < 0 ? Marshal.GetLastPInvokeError() : 0;
        return descriptor;
    }

    /// <summary>
    /// Whether there is something to read, or was a writer, or is one: tee(2) answers EAGAIN for an empty pipe that has a writer, and 0 for
    /// one that has none.
    /// </summary>
    private bool HasWriter()
    {
        if (UnixCalls.Default.IsReady(_handle!, Libc.POLLIN))
        {
            return true;
        }

        int* ends = stackalloc int[2];
        if (Libc.Pipe2(ends, Libc.O_CLOEXEC) != 0)
        {
            return false;
        }

        bool isEmptyWithoutWriter = Libc.Tee(_handle!, ends[1], 1, Libc.SPLICE_F_NONBLOCK) == 0;
        _ = Libc.Close(ends[0]);
        _ = Libc.Close(ends[1]);
        return !isEmptyWithoutWriter;
    }
}
