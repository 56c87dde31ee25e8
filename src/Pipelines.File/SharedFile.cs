using Pipelines.File.IO;
using Pipelines.File.Threading;

namespace Pipelines.File;

/// <summary>
/// One open file from which any number of callers read at once, each at its own offsets, straight into the memory of a
/// <see cref="PipeWriter"/>: for servers, which send ranges of it and may keep it open for the next request.
/// </summary>
/// <remarks>
/// It holds no lock on the file and no buffer. Any thread may call any member. Dispose it when the last read has ended.
/// </remarks>
/// <example>
/// <code>
/// using System.IO.Pipelines;
/// using Pipelines.File;
///
/// using SharedFile file = SharedFile.Open("access.log");
/// PipeWriter response = PipeWriter.Create(Console.OpenStandardOutput());
/// for (long sent = 0; sent &lt; file.Length;)
/// {
///     int read = await file.ReadAsync(response, sent, 64 * 1024);
///     sent = read > 0 ? sent + read : throw new EndOfStreamException("The file was truncated.");
///     if ((await response.FlushAsync()).IsCompleted)
///     {
///         break; // The client is gone.
///     }
/// }
/// </code>
/// </example>
public sealed partial class SharedFile : IDisposable
{
    private readonly OpenedFile _file;

    // The default if it is unknown.
    private readonly FileStatus _version;

    // Interlocked: 1 when it is disposed.
    private int _isDisposed;

    /// <summary>Takes an open file.</summary>
    internal SharedFile(OpenedFile file, string path)
    {
        _file = file;
        Path = path;
        _ = FileStatus.TryGet(file.Handle, out _version);
        Length = IsVersionKnown ? _version.Length : file.Properties.Length;
    }

    /// <summary>The full path by which the file was opened.</summary>
    public string Path { get; }

    /// <summary>The length of the file when it was opened, in bytes.</summary>
    public long Length { get; }

    /// <summary>The handle of the file, which is closed by <see cref="Dispose"/>.</summary>
    public SafeFileHandle Handle => _file.Handle;

    /// <summary>
    /// Whether <see cref="IsCurrent"/> sees every change of the file at once: on Linux, on file systems that no other computer changes.
    /// Only such a file should be kept open for later requests. (statfs(2).)
    /// </summary>
    public bool TellsChanges => IsVersionKnown && LocalFileSystems.Hold(_file.Properties);

    private bool IsVersionKnown => OperatingSystem.IsLinux() && _version.Identity != default;

    /// <summary>Opens a regular file whose length is known. It never waits for the other side of a FIFO.</summary>
    /// <param name="path">The path of the file, absolute or relative to the current directory. Symbolic links are followed.</param>
    /// <exception cref="ArgumentException"><paramref name="path"/> is empty.</exception>
    /// <exception cref="NotSupportedException">
    /// It is no regular file, or its length is unknown, as that of the files of /proc.
    /// </exception>
    /// <exception cref="FileNotFoundException">The file does not exist.</exception>
    /// <exception cref="DirectoryNotFoundException">The folder does not exist.</exception>
    /// <exception cref="UnauthorizedAccessException">You may not read the file, or it is a folder.</exception>
    /// <exception cref="IOException">Another program has locked the file, or the system failed.</exception>
    public static SharedFile Open(string path)
    {
        ArgumentException.ThrowIfNullOrEmpty(path);
        FileOpening.ThrowIfNotSupported(FilePipeBackend.Auto);
        string full = System.IO.Path.GetFullPath(path);
        if (FileStatus.TypeOf(full) is not (0 or Libc.S_IFREG or Libc.S_IFDIR))
        {
            // Opening a FIFO would make its writer begin, and lose what it writes.
            throw NotSuitable(full);
        }

        // One overlapped file makes one call at a time.
        OpenedFile file = FileOpening.Open(new FileToOpen(full, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete)
        {
            Backend = OperatingSystem.IsWindows() ? FilePipeBackend.Portable : FilePipeBackend.Auto,
        });
        if (!file.Properties.IsRegular || file.Properties.KnownLength is null)
        {
            file.Release(closeHandle: true);
            throw NotSuitable(full);
        }

        if (!OperatingSystem.IsWindows())
        {
            // Opening has taken a shared lock (flock(2)), so nobody had an exclusive one.
            _ = UnixCalls.Default.Lock(file.Handle, Libc.LOCK_UN);
            file.IsLocked = false;
        }

        return new SharedFile(file, full);
    }

    /// <summary>
    /// Whether the path still leads to this file, and the file has not changed since it was opened: its length, times, permissions and
    /// names are the same (statx(2)). <see langword="false"/> if the system does not report it.
    /// </summary>
    /// <remarks>Two changes within one tick of the file system's clock, some milliseconds, may leave the same times.</remarks>
    public bool IsCurrent() => IsVersionKnown && FileStatus.OfFullName(Path, out FileStatus now) == NameMeaning.File && now == _version;

    /// <summary>
    /// Whether both were opened as the same file, unchanged in between; <see langword="false"/> if the system does not report it.
    /// </summary>
    /// <param name="other">The other one.</param>
    /// <exception cref="ArgumentNullException"><paramref name="other"/> is <see langword="null"/>.</exception>
    public bool IsSameVersionAs(SharedFile other)
    {
        ArgumentNullException.ThrowIfNull(other);
        return IsVersionKnown && _version == other._version;
    }

    /// <summary>
    /// Reads once, into the memory that <see cref="PipeWriter.GetMemory"/> of the destination returns, and advances the destination over
    /// the bytes. It does not flush. It completes at once if the page cache has the bytes, and then allocates nothing.
    /// </summary>
    /// <param name="destination">The destination, which nobody else uses until this has completed.</param>
    /// <param name="offset">The file offset of the first byte, in bytes.</param>
    /// <param name="count">The maximum number of bytes, at least 1. The destination is asked for that much memory.</param>
    /// <returns>The number of bytes; 0 at the end of the file.</returns>
    /// <exception cref="ArgumentNullException"><paramref name="destination"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An offset or a count is out of its range.</exception>
    /// <exception cref="ObjectDisposedException">The file is closed.</exception>
    /// <exception cref="IOException">The file could not be read. The destination has got nothing.</exception>
    public ValueTask<int> ReadAsync(PipeWriter destination, long offset, int count)
    {
        ArgumentNullException.ThrowIfNull(destination);
        ArgumentOutOfRangeException.ThrowIfNegative(offset);
        ArgumentOutOfRangeException.ThrowIfNegativeOrZero(count);
        ObjectDisposedException.ThrowIf(Volatile.Read(ref _isDisposed) != 0, this);
        return ReadCoreAsync(destination, offset, count);
    }

    /// <summary>
    /// Closes the file. A thread of the library does it if the file was deleted, because the system then frees its blocks, which takes
    /// seconds for gigabytes, or if a server has it.
    /// </summary>
    public void Dispose()
    {
        if (Interlocked.Exchange(ref _isDisposed, 1) != 0)
        {
            return;
        }

        if (_file.IsClosedElsewhere())
        {
            _ = WaitingThreads.Opens.RunAsync(Close);
        }
        else
        {
            Close();
        }

        bool Close()
        {
            _file.Release(closeHandle: true);
            return true;
        }
    }

    private async ValueTask<int> ReadCoreAsync(PipeWriter destination, long offset, int count)
    {
        Memory<byte> memory = destination.GetMemory(count);
        if (memory.IsEmpty)
        {
            // A read of 0 bytes would look like the end of the file.
            throw new InvalidOperationException("The destination returned empty memory.");
        }

        int read = await ReadAsync(memory[..Math.Min(memory.Length, count)], offset).ConfigureAwait(false);

        // Also for 0 bytes: it ends the use of the destination's memory.
        destination.Advance(read);
        return read;
    }

    private static NotSupportedException NotSuitable(string path)
        => new($"This is no regular file, or nobody knows its length: '{path}'");

    /// <summary>The end of a request that had to wait, as a task, whose continuations run on the application's pool.</summary>
    internal sealed class PendingRequest() : TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously), IRequestOwner
    {
        public void OnEnded(FileRequest request) => SetResult();
    }
}
