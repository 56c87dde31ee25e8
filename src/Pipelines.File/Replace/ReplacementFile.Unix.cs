using Pipelines.File.Diagnostics;
using Pipelines.File.IO;

namespace Pipelines.File.Replace;

internal abstract partial class ReplacementFile
{
    /// <summary>
    /// Linux: a file without a name (O_TMPFILE) if the file system supports that, so that a process that is killed leaves nothing.
    /// Otherwise, and on other systems, a file with a temporary name. linkat(2) cannot replace a file, so a file that replaces another one
    /// has a temporary name between linkat(2) and rename(2).
    /// </summary>
    [UnsupportedOSPlatform("windows")]
    private sealed unsafe partial class Unix : ReplacementFile
    {
        private const uint DefaultMode = 0x1B6; // 0666, less the umask
        private const uint PermissionBits = 0xFFF;
        private const uint SetIdBits = 0xC00;
        private const uint GroupBits = 0x38;
        private const uint SetUserBit = 0x800;
        private const uint SetGroupBit = 0x400;

        /// <summary>How many symbolic links to follow, as many as Linux does (path_resolution(7)).</summary>
        private const int MaxLinks = 40;

        /// <summary>How often a temporary name may be taken, or a link be changed while it is followed.</summary>
        private const int MaxNames = 100;

        /// <summary>From this length of a path on, in characters, its names are taken by the folder. PATH_MAX is 4,096 bytes.</summary>
        private const int LongPath = 1000;

        /// <summary>How many bytes are copied at once.</summary>
        private const int CopyBlock = 1024 * 1024;

        /// <summary>The maximum size of an extended attribute's value, bytes (xattr(7)).</summary>
        private const int MaxAttributeSize = 64 * 1024;

        // linkat(2) finds a file without a name through /proc.
        private static readonly bool s_canLinkNameless = OperatingSystem.IsLinux() && Directory.Exists("/proc/self/fd");

        // How long to retry a rename, as on Windows.
        private static readonly TimeSpan s_retryTime = TimeSpan.FromSeconds(1);

        private readonly UnixCalls _calls;
        private readonly bool _existed;

        // The file whose permissions this one has; null if it has those of a new one.
        private readonly Target? _replaced;

        // Whether the file was made without a name (O_TMPFILE).
        private bool _wasNameless;

        // The folder by which the name is taken and which is synced; null if the name is taken by its path.
        private SafeFileHandle? _folder;

        // The file with a name, if the one without cannot get one.
        private SafeFileHandle? _copy;

        // What the file is to be called, and what it is called until then.
        private UnixName _name;
        private UnixName _temporary;

        /// <param name="path">The path that the file gets.</param>
        /// <param name="options">Validated options.</param>
        /// <param name="calls">The system calls.</param>
        /// <param name="nameless">An open file without a name that takes this one; <see langword="null"/>: makes a file.</param>
        internal Unix(string path, FilePipeWriterOptions options, UnixCalls calls, SafeFileHandle? nameless = null)
            : base(path, options)
        {
            _calls = calls;
            _name = UnixName.Of(path);
            SafeFileHandle? handle = null;
            try
            {
                // The folder that is synced is the one that gets the name, whatever becomes of the path meanwhile. If it cannot be opened,
                // nothing is replaced. A long path has no room for a temporary name.
                if (IsDurable || path.Length > LongPath)
                {
                    EnterFolder(Libc.AT_FDCWD, _name.FolderBytes);
                }

                Target? target = FindTarget(options.ReplacesLinks);
                _existed = target is not null;
                if (target is { Type: Libc.S_IFLNK })
                {
                    // A link has no permissions of its own.
                    target = null;
                }

                uint mode = target?.Mode & PermissionBits & ~SetIdBits ?? (uint?)options.UnixCreateMode ?? DefaultMode;
                handle = nameless is null ? MakeFile((options.FileOptions & FileOptions.WriteThrough) != 0, mode, target is not null)
                    : Take(nameless, mode);
                Libc.FileStatus? status = StatusOf(handle);
                if (target is { } replaced)
                {
                    TakeRights(handle, replaced, status, _name.PathBytes);
                    _replaced = replaced;
                }

                _calls.Reserve(handle, nameless is null ? options.PreallocationSize : 0, TargetPath);
                Backend = FileOpening.Choose(options.Backend, handle, TargetPath, calls: calls,
                    properties: OperatingSystem.IsLinux() && status is { } known ? FileProperties.Of(handle, known, TargetPath) : null);
            }
            catch
            {
                if (nameless is null)
                {
                    handle?.Dispose();
                }

                Dispose();
                throw;
            }
        }

        /// <summary>What gets the name.</summary>
        private SafeFileHandle NamedFile => _copy ?? Backend.Handle;

        /// <summary>Whether the file is what a new one would be in the folder of the path, but for its permissions.</summary>
        internal static bool CanTakeName(SafeFileHandle nameless, string path)
        {
            const uint Wanted = Libc.STATX_TYPE | Libc.STATX_MODE | Libc.STATX_INO;
            string folder = Path.GetDirectoryName(path) ?? path;
            return s_canLinkNameless && Umask is not null
                && FileStatus.TryGet(nameless, Wanted, out Libc.FileStatus file)
                && FileStatus.TryGet(folder, Wanted, out Libc.FileStatus parent)
                && (file.DeviceMajor, file.DeviceMinor) == (parent.DeviceMajor, parent.DeviceMinor)
                && (parent.Mode & SetGroupBit) == 0
                && LibcCalls.GetXAttr(UnixName.Of(folder).PathBytes, Libc.DefaultAccessList, null, 0) < 0
                && Marshal.GetLastPInvokeError() is Libc.ENODATA or Libc.EOPNOTSUPP;
        }

        /// <summary>Syncs the bytes, if the file is to be durable, and gives it the name, unless that is on another mount.</summary>
        internal bool TryAppear()
        {
            if (IsDurable)
            {
                ThrowIfFailed(_calls.SyncData(Backend.Handle, Backend.Properties));
            }

            try
            {
                Appear();
                return true;
            }
            catch (IOException e) when (e.HResult == Libc.EXDEV)
            {
                return false;
            }
        }

        /// <summary>Gives a file without a name the permissions of a new one.</summary>
        private SafeFileHandle Take(SafeFileHandle nameless, uint mode)
        {
            _wasNameless = true;
            return LibcCalls.FChMod(nameless, mode & ~Umask!.Value) == 0 ? nameless
                : throw FileErrors.FromErrno(Marshal.GetLastPInvokeError(), TargetPath);
        }

        /// <summary>The umask of this process, which umask(2) tells only by changing it; <see langword="null"/> if unknown.</summary>
        private static uint? Umask
        {
            get
            {
                try
                {
                    // In octal (proc_pid_status(5)).
                    string? line = System.IO.File.ReadLines("/proc/self/status")
                        .FirstOrDefault(static line => line.StartsWith("Umask:", StringComparison.Ordinal));
                    return line is null ? null : Convert.ToUInt32(line["Umask:".Length..].Trim(), 8);
                }
                catch (Exception e) when (e is IOException or UnauthorizedAccessException)
                {
                    return null;
                }
            }
        }

        private protected override void SyncName()
        {
            // btrfs before Linux 6.15 ("btrfs: fix fsync of files with no hard links") logs nothing of a file without a name, so its first
            // name may come with no content. This sync logs both; what is on the device already is not written again.
            Debug.Assert(TemporaryPath is null && _folder is not null);
            if (_wasNameless && LocalFileSystems.IsBtrfs(Backend.Properties))
            {
                ThrowIfFailed(_calls.SyncData(NamedFile, Backend.Properties));
            }

            FolderSync.Sync(_calls, _folder!, Folder);
            ThrowIfFailed(_calls.TellFailure(NamedFile, Backend.Properties.FileSystem));
        }

        private protected override void Remove(string temporaryPath) => _ = _calls.Unlink(_temporary);

        private protected override void Close()
        {
            _copy?.Dispose();
            _folder?.Dispose();
        }

        private SafeFileHandle MakeFile(bool writesThrough, uint mode, bool takesRights)
        {
            int flags = writesThrough ? Libc.O_SYNC : 0;
            if (s_canLinkNameless && !_calls.RefusesLinks)
            {
                // If this fails for any reason, create a file with a temporary name, which succeeds or reports the error.
                long descriptor = _calls.MakeNameless(_name, flags, mode);
                _wasNameless = descriptor >= 0;
                if (_wasNameless)
                {
                    return new SafeFileHandle((nint)descriptor, ownsHandle: true);
                }
            }

            // The temporary name and the other one are in one folder, whatever becomes of its path meanwhile.
            if (s_canLinkNameless && _folder is null)
            {
                EnterFolder(Libc.AT_FDCWD, _name.FolderBytes);
            }

            // Mode 0600 if the file takes its permissions from another one: nobody else may open it before it has them.
            mode = takesRights ? 0x180 : mode;
            SafeFileHandle? handle = null;
            ThrowIfFailed(WithTemporaryName(temporary =>
            {
                if (OperatingSystem.IsLinux())
                {
                    long named = _calls.MakeNew(temporary, flags, mode);
                    handle = named < 0 ? null : new SafeFileHandle((nint)named, ownsHandle: true);
                    return named;
                }

                FileOptions options = writesThrough ? FileOptions.WriteThrough : FileOptions.None;
                handle = new FileToOpen(temporary.Path, FileMode.CreateNew, FileAccess.ReadWrite, FileShare.ReadWrite, options)
                {
                    CreateMode = (UnixFileMode)mode,
                }.OpenHandle();
                return 0;
            }));
            return handle!;
        }

        private void ThrowIfFailed(long answer)
        {
            int errno = (int)-answer;
            if (answer < 0)
            {
                throw errno == Libc.EEXIST && !Replaces ? Exists(FileErrors.FromErrno(errno, TargetPath))
                    : FileErrors.OfNaming(errno, TargetPath);
            }
        }

        /// <summary>The attributes of the file that has the name.</summary>
        /// <param name="Mode">Type and permission bits (inode(7)).</param>
        /// <param name="User">The user ID of the owner.</param>
        /// <param name="Group">The group ID; <see cref="uint.MaxValue"/> if unknown: fchown(2) then does not change the group.</param>
        /// <param name="Identity">st_dev and st_ino; 0 if unknown.</param>
        /// <param name="Changed">The time of the last change, also of the permissions (stx_ctime); 0 if unknown.</param>
        private readonly record struct Target(
            uint Mode, uint User, uint Group, (ulong, ulong) Identity = default, (long, uint) Changed = default)
        {
            internal int Type => (int)(Mode & Libc.S_IFMT);
        }
    }
}
