using System.Runtime.InteropServices.Marshalling;
using Pipelines.File.IO;

namespace Pipelines.File;

/// <summary>
/// What the system reports of a file: its identity, its length, when it was changed. Getting it may wait for the device or a server.
/// </summary>
/// <remarks>Linux: statx(2). Windows: GetFileInformationByHandleEx. Elsewhere only the length of an open file is known.</remarks>
public readonly partial record struct FileStatus
{
    private const uint Wanted = Libc.STATX_TYPE | Libc.STATX_SIZE | Libc.STATX_INO | Libc.STATX_BTIME | Libc.STATX_MTIME
        | Libc.STATX_CTIME;

    private static readonly long s_firstSecond = (DateTime.MinValue - DateTime.UnixEpoch).Ticks / TimeSpan.TicksPerSecond;
    private static readonly long s_lastSecond = (DateTime.MaxValue - DateTime.UnixEpoch).Ticks / TimeSpan.TicksPerSecond;

    /// <summary>The identity; <see langword="default"/> if the system does not report it.</summary>
    public FileIdentity Identity { get; private init; }

    /// <summary>The length, in bytes; 0 if unknown.</summary>
    public long Length { get; internal init; }

    /// <summary>When the file was last written to, UTC; <see langword="default"/> if the system does not report it.</summary>
    public DateTime LastWritten { get; private init; }

    /// <summary>
    /// When the file or its attributes were changed last, which nobody can set: in nanoseconds since 1970 (stx_ctime of statx(2)); 0 if the
    /// system does not report it, as on Windows.
    /// </summary>
    public long Changed { get; private init; }

    /// <summary>Whether it is a regular file: no folder, FIFO, socket or device.</summary>
    public bool IsRegular { get; private init; }

    /// <summary>Whether it is a folder.</summary>
    public bool IsFolder { get; private init; }

    /// <summary>Windows: whether the file has no name any more, or its delete is pending.</summary>
    internal bool IsDeleted { get; private init; }

    /// <summary>Gets the status of an open file.</summary>
    /// <param name="handle">The file.</param>
    /// <param name="status">The status; <see langword="default"/> if the method returns <see langword="false"/>.</param>
    /// <returns><see langword="false"/> if the system does not report it.</returns>
    /// <exception cref="ArgumentNullException"><paramref name="handle"/> is <see langword="null"/>.</exception>
    /// <exception cref="ObjectDisposedException">The handle is closed.</exception>
    public static bool TryGet(SafeFileHandle handle, out FileStatus status)
    {
        ArgumentNullException.ThrowIfNull(handle);
        ObjectDisposedException.ThrowIf(handle.IsClosed, handle);
        if (TryGet(handle, Wanted, out Libc.FileStatus told))
        {
            status = Of(told);
            return true;
        }

        if (OperatingSystem.IsWindows())
        {
            return TryOfWindows(handle, out status);
        }

        try
        {
            status = new FileStatus { Length = RandomAccess.GetLength(handle), IsRegular = true };
            return true;
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException or NotSupportedException)
        {
            status = default;
            return false;
        }
    }

    /// <summary>
    /// Gets the status of a file that may be closed meanwhile; <see langword="null"/> if it is, or if the system does not report it.
    /// </summary>
    internal static FileStatus? Ask(SafeFileHandle file)
    {
        try
        {
            return TryGet(file, out FileStatus status) ? status : null;
        }
        catch (ObjectDisposedException)
        {
            return null;
        }
    }

    /// <summary>Gets what a path means now. Symbolic links are followed.</summary>
    /// <param name="path">The path, absolute or relative to the current directory.</param>
    /// <param name="status">
    /// The status, as far as it is known; <see langword="default"/> for <see cref="NameMeaning.Nothing"/>.
    /// </param>
    /// <exception cref="ArgumentException"><paramref name="path"/> is empty or <see langword="null"/>.</exception>
    public static NameMeaning OfName(string path, out FileStatus status)
    {
        ArgumentException.ThrowIfNullOrEmpty(path);
        return OfFullName(Path.GetFullPath(path), out status);
    }

    /// <summary><see cref="OfName"/> of a full path.</summary>
    internal static NameMeaning OfFullName(string fullPath, out FileStatus status)
        => OperatingSystem.IsLinux() ? OfNameLinux(fullPath, out status)
            : OperatingSystem.IsWindows() ? OfNameWindows(fullPath, out status)
            : OfNameAnywhere(fullPath, out status);

    /// <summary>
    /// Calls statx(2) for an open file. Returns <see langword="false"/> if the call fails, and on other systems than Linux.
    /// </summary>
    /// <exception cref="ObjectDisposedException">The file is closed.</exception>
    internal static unsafe bool TryGet(SafeFileHandle file, uint wanted, out Libc.FileStatus told)
    {
        bool isHeld = false;
        try
        {
            file.DangerousAddRef(ref isHeld);
            byte noPath = 0;
            return TryGet((int)file.DangerousGetHandle(), &noPath, Libc.AT_EMPTY_PATH, wanted, out told);
        }
        finally
        {
            if (isHeld)
            {
                file.DangerousRelease();
            }
        }
    }

    /// <summary>Calls statx(2) for a path, in the same way; errno is GetLastPInvokeError.</summary>
    internal static unsafe bool TryGet(string path, uint wanted, out Libc.FileStatus told)
    {
        scoped Utf8StringMarshaller.ManagedToUnmanagedIn bytes = default;
        bytes.FromManaged(path, stackalloc byte[Utf8StringMarshaller.ManagedToUnmanagedIn.BufferSize]);
        bool isTold = TryGet(Libc.AT_FDCWD, bytes.ToUnmanaged(), 0, wanted, out told);
        int errno = Marshal.GetLastPInvokeError();
        bytes.Free();
        Marshal.SetLastPInvokeError(errno);
        return isTold;
    }

    /// <inheritdoc cref="TryGet(string, uint, out Libc.FileStatus)"/>
    internal static unsafe bool TryGet(in UnixName name, uint wanted, out Libc.FileStatus told, int flags = 0)
    {
        fixed (byte* bytes = name.Bytes)
        {
            return TryGet(name.Descriptor, bytes, flags, wanted, out told);
        }
    }

    private static unsafe bool TryGet(int folder, byte* path, int flags, uint wanted, out Libc.FileStatus told)
    {
        Unsafe.SkipInit(out told);
        fixed (Libc.FileStatus* status = &told)
        {
            // If a sandbox refuses the call, the older one answers; if it is no refusal, that one says the same.
            return OperatingSystem.IsLinux() && (LibcCalls.StatX(folder, path, flags, wanted, status) == 0
                || (Libc.MayRefuse(Marshal.GetLastPInvokeError())
                    && LibcCalls.FStatAt(folder, path, status, flags & ~Libc.AT_STATX_FORCE_SYNC) == 0));
        }
    }

    /// <summary>
    /// The type of the file that the path means now (S_IFMT of inode(7)); 0 if there is none, or if the system does not tell.
    /// </summary>
    [SkipLocalsInit]
    internal static int TypeOf(string path) => TryGet(path, Libc.STATX_TYPE, out Libc.FileStatus told) ? told.Mode & Libc.S_IFMT : 0;

    internal static FileIdentity IdentityOf(in Libc.FileStatus status)
        => new(
            status.Device,
            status.Number,
            (status.Mask & Libc.STATX_BTIME) == 0 ? 0 : unchecked((status.BirthSeconds * 1_000_000_000) + status.BirthNanoseconds));

    [SupportedOSPlatform("linux")]
    private static NameMeaning OfNameLinux(string fullPath, out FileStatus status)
    {
        bool isTold = TryGet(fullPath, Wanted, out Libc.FileStatus told);
        status = isTold ? Of(told) : default;
        return isTold ? NameMeaning.File : Marshal.GetLastPInvokeError() switch
        {
            Libc.ENOENT or Libc.ENOTDIR or Libc.ELOOP => NameMeaning.Nothing,

            // A sandbox refuses statx(2).
            Libc.EPERM or Libc.ENOSYS => OfNameAnywhere(fullPath, out status),
            _ => NameMeaning.Unknown,
        };
    }

    private static NameMeaning OfNameAnywhere(string fullPath, out FileStatus status)
    {
        try
        {
            status = new FileStatus { LastWritten = System.IO.File.GetLastWriteTimeUtc(fullPath) };
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException or ArgumentOutOfRangeException)
        {
            // It is unknown.
            status = default;
        }

        return System.IO.File.Exists(fullPath) ? NameMeaning.Unknown : NameMeaning.Nothing;
    }

    private static FileStatus Of(in Libc.FileStatus told) => new()
    {
        Identity = IdentityOf(told),
        Length = told.Size,

        // A file system may have times that a DateTime cannot have.
        LastWritten = DateTime.UnixEpoch.AddSeconds(Math.Clamp(told.WriteSeconds, s_firstSecond, s_lastSecond))
            .AddTicks(told.WriteNanoseconds / TimeSpan.NanosecondsPerTick),
        Changed = unchecked((told.ChangeSeconds * 1_000_000_000) + told.ChangeNanoseconds),
        IsRegular = (told.Mode & Libc.S_IFMT) == Libc.S_IFREG,
        IsFolder = (told.Mode & Libc.S_IFMT) == Libc.S_IFDIR,
    };
}
