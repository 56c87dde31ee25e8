using Pipelines.File.IO;

namespace Pipelines.File;

/// <summary>
/// The exclusive lock of a path: of all that ask for it, in this process and others, one has it. The file of that path is made if there is
/// none, and says nothing; it stays when the lock is given up.
/// </summary>
/// <remarks>
/// <para>Linux and macOS: flock(2), asked for directly. So it does not depend on .NET's own locks, which
/// DOTNET_SYSTEM_IO_DISABLEFILELOCKING disables, and which .NET takes for granted where a file system refuses them. A lock that cannot be
/// had is an error here. Windows: the file is open with <see cref="FileShare.None"/>. Within one process a table of the locked files is
/// asked, too.</para>
/// <para>The lock ends with <see cref="Dispose"/> or with the process. Who removes or renames the file lets another have the path's
/// lock: see <see cref="IsInPlace"/>. On Linux the holder may delete the file before <see cref="Dispose"/>: whoever was about to lock it
/// takes a new one.</para>
/// <para>Any thread may call any member.</para>
/// </remarks>
/// <example>
/// <code>
/// using Pipelines.File;
///
/// using FileLock? held = FileLock.TryAcquire("lock");
/// Console.WriteLine(held is null ? "Another process works." : "This process works.");
/// </code>
/// </example>
public sealed class FileLock : IDisposable
{
    /// <summary>How often another file may have the name when the lock of one has been taken.</summary>
    private const int MaxTries = 100;

    // Guarded by itself. A file is in it from before its lock is asked for until its handle is closed: a file system that gives one process
    // a lock twice would take it away from both when one of them closes.
    private static readonly HashSet<(FileIdentity Identity, string? Path)> s_locked = [];

    private readonly SafeFileHandle _handle;
    private readonly (FileIdentity Identity, string? Path) _key;

    // Interlocked: 1 when it is disposed.
    private int _isDisposed;

    private FileLock(string path, SafeFileHandle handle, (FileIdentity Identity, string? Path) key)
    {
        Path = path;
        _handle = handle;
        _key = key;
    }

    /// <summary>The full path.</summary>
    public string Path { get; }

    /// <summary>
    /// Whether the lock is held, and the path still means the file that is locked. If not, a program has removed, renamed or replaced the
    /// file, or a folder above it, and others may have the path's lock. <see langword="false"/>, too, if the path cannot be checked. It
    /// may wait for the device or a server.
    /// </summary>
    /// <remarks>
    /// Where the system does not report identities (macOS, a sandbox that refuses statx(2)), any file of that path is taken for it.
    /// </remarks>
    public bool IsInPlace => Volatile.Read(ref _isDisposed) == 0 && Means(Path, _key.Identity);

    /// <summary>Takes the lock if nobody has it. Does not wait for it.</summary>
    /// <param name="path">The path, absolute or relative to the current directory. Its folder has to exist.</param>
    /// <returns>The lock, or <see langword="null"/> if it is held, in this process or another one.</returns>
    /// <exception cref="ArgumentException"><paramref name="path"/> is empty or <see langword="null"/>.</exception>
    /// <exception cref="DirectoryNotFoundException">The folder does not exist.</exception>
    /// <exception cref="UnauthorizedAccessException">You may not open the file for writing, or it is a folder.</exception>
    /// <exception cref="IOException">
    /// The file cannot be opened (it is a symbolic link: ELOOP), or the file system or a sandbox refuses locks (flock(2): ENOLCK, ENOSYS,
    /// EOPNOTSUPP and others). Nothing is locked then.
    /// </exception>
    public static FileLock? TryAcquire(string path)
    {
        ArgumentException.ThrowIfNullOrEmpty(path);
        return TryAcquire(path, UnixCalls.Default);
    }

    internal static FileLock? TryAcquire(string path, UnixCalls calls)
    {
        string fullPath = System.IO.Path.GetFullPath(path);
        for (int tries = 0; tries < MaxTries; tries++)
        {
            if (Open(fullPath, calls) is not { } handle || Lock(fullPath, handle, calls) is not { } taken)
            {
                return null;
            }

            // Whoever had the lock may have deleted the file, or somebody else has put another one in its place.
            if (taken.IsInPlace)
            {
                return taken;
            }

            taken.Dispose();
        }

        throw new IOException("The lock was taken and its path meant another file then, a hundred times. "
            + $"Somebody replaces the file all the time, or the file system does not keep the numbers of files: '{fullPath}'");
    }

    /// <summary>Gives the lock up. The file stays.</summary>
    public void Dispose()
    {
        if (Interlocked.Exchange(ref _isDisposed, 1) == 0)
        {
            Release(_handle, _key);
        }
    }

    /// <summary>Opens the file, or returns <see langword="null"/> if an opener that has it keeps others out.</summary>
    private static SafeFileHandle? Open(string fullPath, UnixCalls calls)
    {
        if (OperatingSystem.IsLinux())
        {
            // Not through .NET, which asks for a lock of its own. A link may be planted, to have a file made elsewhere.
            long descriptor = -Libc.EINTR;
            while (descriptor == -Libc.EINTR)
            {
                descriptor = calls.OpenOrMake(fullPath);
            }

            return descriptor >= 0 ? new SafeFileHandle((nint)descriptor, ownsHandle: true)
                : throw FileErrors.OfNaming((int)-descriptor, fullPath);
        }

        try
        {
            return System.IO.File.OpenHandle(fullPath, FileMode.OpenOrCreate, FileAccess.ReadWrite,
                OperatingSystem.IsWindows() ? FileShare.None : FileShare.ReadWrite);
        }
        catch (IOException e) when (IsHeld(e.HResult))
        {
            return null;
        }
    }

    /// <summary>Locks the open file, or closes it and returns <see langword="null"/> if somebody has the lock.</summary>
    private static FileLock? Lock(string fullPath, SafeFileHandle handle, UnixCalls calls)
    {
        bool isKnown = FileIdentity.TryGet(handle, out FileIdentity identity);
        (FileIdentity Identity, string? Path) key = (identity, isKnown ? null : fullPath);
        lock (s_locked)
        {
            if (!s_locked.Add(key))
            {
                handle.Dispose();
                return null;
            }
        }

        long answer = OperatingSystem.IsWindows() ? 0 : calls.TryLock(handle, isShared: false);
        if (answer == 0)
        {
            return new FileLock(fullPath, handle, key);
        }

        // SMB answers EACCES if somebody has the lock, as fcntl(2) may. On a local file system it is a refusal.
        int errno = (int)-answer;
        bool isHeld = IsHeld(errno) || (errno == Libc.EACCES && OperatingSystem.IsLinux()
            && !LocalFileSystems.TakeWrites(FileProperties.Of(handle, fullPath)));
        Release(handle, key);
        return isHeld ? null : throw new IOException(
            $"The file cannot be locked, so nobody can tell whether another process uses it, too: {Marshal.GetPInvokeErrorMessage(errno)} "
            + "(flock(2)). Use a local file system, or have this one give locks (NFS: lockd, or the mount option local_lock=flock if one "
            + $"machine alone uses it; SMB: no nobrl); a sandbox has to allow the call. '{fullPath}'", errno);
    }

    // ERROR_SHARING_VIOLATION, EWOULDBLOCK.
    private static bool IsHeld(int error)
        => error == (OperatingSystem.IsWindows() ? unchecked((int)0x80070020)
            : OperatingSystem.IsMacOS() ? Libc.EAGAINOfMacOS : Libc.EAGAIN);

    // Closed first: whoever comes before the table knows it is refused once too often, and never let in too early.
    private static void Release(SafeFileHandle handle, (FileIdentity Identity, string? Path) key)
    {
        if (!OperatingSystem.IsWindows())
        {
            // A process that was just forked has the open file until it runs its own program, and would keep the lock.
            _ = UnixCalls.Default.Lock(handle, Libc.LOCK_UN);
        }

        handle.Dispose();
        lock (s_locked)
        {
            s_locked.Remove(key);
        }
    }

    private static bool Means(string fullPath, FileIdentity identity)
        => FileStatus.OfFullName(fullPath, out FileStatus status) switch
        {
            NameMeaning.Nothing => false,
            NameMeaning.File => status.Identity == identity,
            _ => identity == default,
        };
}
