using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Backends;
using Pipelines.File.Interop;

namespace Pipelines.File.Waiting;

/// <summary>
/// Opens one side of a FIFO without the wait for the other side that open(2) makes (fifo(7)). Linux; used by one thread at a time.
/// </summary>
/// <remarks>
/// The reading side is opened at once and then waits until it can be read, or until somebody has it open for writing, which nothing tells: that is asked from time to time.
/// The writing side cannot be opened before there is a reader (ENXIO), and is tried from time to time.
/// </remarks>
internal sealed unsafe class FifoOpening : IDisposable
{
    private const int LongestPause = 50;

    private readonly string _path;
    private readonly bool _reads;
    private readonly FileShare _share;

    internal FifoOpening(string fullPath, FileAccess access, FileShare share)
    {
        _path = fullPath;
        _reads = access == FileAccess.Read;
        _share = share;
    }

    /// <summary>The reading side, which is open and waits; <see langword="null"/> for the writing side.</summary>
    internal SafeFileHandle? Handle { get; private set; }

    /// <summary>How long to wait before the next try, milliseconds.</summary>
    internal int Pause { get; private set; } = 1;

    internal static bool IsSupported(FilePipeBackend backend, FileShare share, FileOptions options)
        => OperatingSystem.IsLinux() && FileBackends.HasThreadPoolBackend && backend != FilePipeBackend.Portable
            && (share & ~(FileShare.ReadWrite | FileShare.Delete)) == 0
            && (options & ~(FileOptions.Asynchronous | FileOptions.SequentialScan | FileOptions.RandomAccess)) == 0;

    /// <summary>Whether that is a FIFO. Whatever stands in the way of an answer is for the ordinary way of opening to tell.</summary>
    internal static bool IsFifo(string path)
    {
        Libc.FileStatus status;
        try
        {
            return Libc.StatX(Libc.AT_FDCWD, path, 0, Libc.STATX_TYPE, &status) == 0 && (status.Mode & Libc.S_IFMT) == Libc.S_IFIFO;
        }
        catch (EntryPointNotFoundException)
        {
            return false;
        }
    }

    /// <summary>The open file, which is the caller's; <see langword="null"/>: the other side is not there yet, unless <paramref name="isForOrdinaryWay"/> says that opening has failed.</summary>
    /// <exception cref="IOException">Another process has it open exclusively.</exception>
    internal SafeFileHandle? TryOpen(out bool isForOrdinaryWay)
    {
        isForOrdinaryWay = false;
        if (Handle is null)
        {
            int descriptor = Libc.Open(_path, (_reads ? Libc.O_RDONLY : Libc.O_WRONLY) | Libc.O_NONBLOCKLinux | Libc.O_CLOEXECLinux);
            if (descriptor < 0)
            {
                isForOrdinaryWay = Marshal.GetLastPInvokeError() is not (Libc.ENXIO or Libc.EINTR);
                return PauseLonger();
            }

            Handle = new SafeFileHandle(descriptor, ownsHandle: true);
            if (!FileProperties.Of(Handle, _path).IsFifo)
            {
                // The name means another file by now, which this way of opening would neither truncate nor append to.
                Dispose();
                isForOrdinaryWay = true;
                return null;
            }

            FileBackends.Lock(Handle, _path, _share);
        }

        return _reads && !HasWriter() ? PauseLonger() : Take();
    }

    public void Dispose() => Take()?.Dispose();

    private SafeFileHandle? Take()
    {
        SafeFileHandle? handle = Handle;
        Handle = null;
        return handle;
    }

    private SafeFileHandle? PauseLonger()
    {
        Pause = Math.Min(Pause * 2, LongestPause);
        return null;
    }

    /// <summary>Whether there is something to read, or was a writer, or is one: tee(2) answers EAGAIN for an empty pipe that has a writer, and 0 for one that has none.</summary>
    private bool HasWriter()
    {
        if (UnixCalls.Default.IsReady(Handle!, Libc.POLLIN))
        {
            return true;
        }

        int* ends = stackalloc int[2];
        if (Libc.Pipe2(ends, Libc.O_CLOEXECLinux) != 0)
        {
            return false;
        }

        bool isEmptyWithoutWriter = Libc.Tee(Handle!, ends[1], 1, Libc.SPLICE_F_NONBLOCK) == 0;
        _ = Libc.Close(ends[0]);
        _ = Libc.Close(ends[1]);
        return !isEmptyWithoutWriter;
    }
}
