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
    private sealed unsafe class Unix : ReplacementFile
    {
        private const uint DefaultMode = 0x1B6; // 0666, less the umask
        private const uint PermissionBits = 0xFFF;
        private const uint SetIdBits = 0xC00;
        private const uint GroupBits = 0x38;
        private const uint SetUserBit = 0x800;

        /// <summary>How many symbolic links to follow, as many as Linux does (path_resolution(7)).</summary>
        private const int MaxLinks = 40;

        /// <summary>The maximum size of an extended attribute's value, bytes (xattr(7)).</summary>
        private const int MaxAttributeSize = 64 * 1024;

        // linkat(2) finds a file without a name through /proc.
        private static readonly bool s_canLinkNameless = OperatingSystem.IsLinux() && Directory.Exists("/proc/self/fd");

        private readonly UnixCalls _calls;
        private readonly bool _existed;

        // The file whose permissions this one has; null if it has those of a new one.
        private readonly Target? _replaced;

        // Whether the file was made without a name (O_TMPFILE).
        private bool _wasNameless;

        // Opened at the beginning, so that a folder that cannot be synced is an error before anything is replaced.
        private readonly SafeFileHandle? _folder;

        internal Unix(string path, FilePipeWriterOptions options, UnixCalls calls)
            : base(path, options)
        {
            _calls = calls;
            Target? target = FindTarget(options.ReplacesLinks);
            _existed = target is not null;
            if (target is { Type: Libc.S_IFLNK })
            {
                // A link has no permissions of its own.
                target = null;
            }

            SafeFileHandle? handle = null;
            try
            {
                // Mode 0600 if the file takes its permissions from another one: nobody else may open it before it has them.
                handle = MakeFile((options.FileOptions & FileOptions.WriteThrough) != 0,
                    target is null ? (uint?)options.UnixCreateMode ?? DefaultMode : 0x180);
                if (target is { } replaced)
                {
                    TakeRights(handle, replaced);
                    _replaced = replaced;
                }

                // After the file was created: if something is wrong with the folder, that call throws the documented exceptions.
                _folder = IsDurable ? FolderSync.Open(calls, Folder) : null;
                _calls.Reserve(handle, options.PreallocationSize, TargetPath);
                Backend = FileOpening.Choose(options.Backend, handle, TargetPath, calls: calls);
            }
            catch
            {
                handle?.Dispose();
                Dispose();
                throw;
            }
        }

        private protected override void TakeName()
        {
            Debug.Assert((TemporaryPath is null) == _wasNameless);
            if (Replaces)
            {
                TakeLatestRights();
            }

            if (TemporaryPath is null)
            {
                long linked = _existed ? -Libc.EEXIST : _calls.LinkNameless(Backend.Handle, TargetPath);
                if (linked != -Libc.EEXIST || !Replaces)
                {
                    ThrowIfFailed(linked);
                    return;
                }

                if (!_existed)
                {
                    Probe.Rare("the name of a new file has come meanwhile");
                }

                string temporary = NewTemporaryPath();
                ThrowIfFailed(_calls.LinkNameless(Backend.Handle, temporary));
                TemporaryPath = temporary;
            }

            long renamed = Replaces ? _calls.Rename(TemporaryPath, TargetPath) : _calls.RenameNoReplace(TemporaryPath, TargetPath);
            if (!Replaces && renamed is -Libc.ENOSYS or -Libc.EINVAL or -Libc.EOPNOTSUPP)
            {
                // The kernel or the file system does not know RENAME_NOREPLACE. With the link the file has its name, whatever becomes of
                // the other one.
                Probe.Rare("link in place of a rename that does not replace");
                renamed = _calls.Link(TemporaryPath, TargetPath);
                if (renamed >= 0)
                {
                    Remove(TemporaryPath);
                }
            }

            ThrowIfFailed(renamed);
        }

        private protected override void SyncName()
        {
            // btrfs before Linux 6.15 ("btrfs: fix fsync of files with no hard links") logs nothing of a file without a name, so its first
            // name may come with no content. This sync logs both; what is on the device already is not written again.
            Debug.Assert(TemporaryPath is null && _folder is not null);
            if (_wasNameless && LocalFileSystems.IsBtrfs(Backend.Handle))
            {
                ThrowIfFailed(_calls.SyncData(Backend.Handle, Backend.Properties));
            }

            FolderSync.Sync(_calls, _folder!, Folder);
            ThrowIfFailed(_calls.TellFailure(Backend.Handle));
        }

        private protected override void Remove(string temporaryPath) => _ = _calls.Unlink(temporaryPath);

        private protected override void Close() => _folder?.Dispose();

        /// <summary>
        /// Returns what has the name now, with links resolved unless links are replaced; <see langword="null"/> if nothing has it. Throws
        /// if it is not to be replaced.
        /// </summary>
        private Target? FindTarget(bool replacesLinks)
        {
            Target? target = Look(TargetPath);
            if (target is not null && !Replaces)
            {
                throw Exists();
            }

            if (target is { Type: Libc.S_IFLNK })
            {
                if (replacesLinks)
                {
                    return target;
                }

                FollowLink();
                target = Look(TargetPath);
            }

            return target?.Type switch
            {
                null => null,
                Libc.S_IFDIR => throw FileErrors.FromErrno(Libc.EISDIR, TargetPath),
                Libc.S_IFREG => MayWrite() ? target : throw FileErrors.FromErrno(Marshal.GetLastPInvokeError(), TargetPath),
                _ => throw new FileExistsException(
                    $"{nameof(FilePipeWriterOptions.Replace)} cannot replace what is not a regular file: '{TargetPath}'", TargetPath),
            };
        }

        /// <summary>
        /// Follows links as the kernel does: <c>..</c> in a link is the parent of the folder that really contains the link. The runtime
        /// removes <c>..</c> from the text of the path, and so finds another file if the folder is a link, too.
        /// </summary>
        private protected override void FollowLink()
        {
            for (int links = 0; links <= MaxLinks; links++)
            {
                // One link after the other, because each is relative to its own folder.
                if (RealPathOf(Folder) is not { } realFolder)
                {
                    break;
                }

                TargetPath = Path.Combine(realFolder, Path.GetFileName(TargetPath));
                if (new FileInfo(TargetPath).LinkTarget is not { } target)
                {
                    // Not a link: the file, or a name that does not exist yet.
                    return;
                }

                TargetPath = Path.Combine(realFolder, target);
            }

            // There are too many links, a folder does not exist, or there is no /proc.
            base.FollowLink();
        }

        /// <summary>The path without symbolic links; <see langword="null"/> if there is no such file or the path is unknown.</summary>
        private static string? RealPathOf(string path)
        {
            int descriptor = OperatingSystem.IsLinux() ? LibcCalls.Open(path, Libc.O_PATH | Libc.O_CLOEXEC) : -1;
            using SafeFileHandle file = new(descriptor, ownsHandle: true);
            return !file.IsInvalid && FileProperties.PathOf(file) is { } real && Path.Exists(real) ? real : null;
        }

        // faccessat(2): a file without write permission is not replaced, although the permissions of the folder would allow it. ENOENT: it
        // was removed meanwhile, so nothing is replaced.
        private bool MayWrite()
            => OperatingSystem.IsLinux()
                ? LibcCalls.FAccessAt(Libc.AT_FDCWD, TargetPath, Libc.W_OK, Libc.AT_EACCESS) == 0
                    || Marshal.GetLastPInvokeError() == Libc.ENOENT
                : (System.IO.File.GetAttributes(TargetPath) & FileAttributes.ReadOnly) == 0;

        /// <summary>
        /// Gives the file the permissions of the one that has the name now, if that was changed or came while this one was written.
        /// </summary>
        private void TakeLatestRights()
        {
            if (Look(TargetPath) is not { Type: Libc.S_IFREG } latest || latest == _replaced)
            {
                return;
            }

            if (!MayWrite())
            {
                throw FileErrors.FromErrno(Marshal.GetLastPInvokeError(), TargetPath);
            }

            Debug.Assert(Replaces);
            TakeRights(Backend.Handle, latest);
            if (IsDurable)
            {
                // The sync of the bytes was before this.
                ThrowIfFailed(_calls.SyncAll(Backend.Handle));
            }
        }

        /// <summary>
        /// Gives the file the permissions of the one that it replaces. Group, access list and mode come before the owner: after a process
        /// has given a file away, it may need CAP_FOWNER to change the mode (chmod(2)). If the group or the owner cannot be set, the bits
        /// that would apply to another group or owner are cleared: set-user-ID, set-group-ID and the group's bits.
        /// </summary>
        private void TakeRights(SafeFileHandle handle, Target replaced)
        {
            uint bits = replaced.Mode & PermissionBits;
            if (replaced.Group != GroupOf(handle) && LibcCalls.FChOwn(handle, uint.MaxValue, replaced.Group) != 0)
            {
                bits &= ~(SetIdBits | GroupBits);
            }

            if (OperatingSystem.IsLinux() && !TryCopyAccessList(handle))
            {
                // With a list, the group's bits are its mask (acl(5)). Without it, they would be permissions of the group itself.
                bits &= ~GroupBits;
            }

            if (LibcCalls.FChMod(handle, bits & ~SetIdBits) != 0)
            {
                throw FileErrors.FromErrno(Marshal.GetLastPInvokeError(), TargetPath);
            }

            if (replaced.User != LibcCalls.GetEffectiveUser() && LibcCalls.FChOwn(handle, replaced.User, uint.MaxValue) != 0)
            {
                bits &= ~SetUserBit;
            }

            if ((bits & SetIdBits) != 0)
            {
                // chown(2) clears these bits. If they cannot be set again, the file has fewer permissions.
                _ = LibcCalls.FChMod(handle, bits);
            }
        }

        /// <summary>
        /// Gives the file the access list (acl(5)) of the one that it replaces; if that has none, removes the one that the file has
        /// inherited from its folder. Returns <see langword="false"/> if the file
        /// may lack the list of that one.
        /// </summary>
        [SkipLocalsInit]
        private bool TryCopyAccessList(SafeFileHandle handle)
        {
            byte* list = stackalloc byte[MaxAttributeSize];
            nint length = LibcCalls.GetXAttr(TargetPath, Libc.AccessList, list, MaxAttributeSize);
            if (length >= 0)
            {
                return LibcCalls.FSetXAttr(handle, Libc.AccessList, list, length, 0) == 0;
            }

            // No list, or a file system without lists. After every other error there may be one.
            bool hasNone = Marshal.GetLastPInvokeError() is Libc.ENODATA or Libc.EOPNOTSUPP;
            _ = LibcCalls.FRemoveXAttr(handle, Libc.AccessList);
            return hasNone;
        }

        private SafeFileHandle MakeFile(bool writesThrough, uint mode)
        {
            int flags = writesThrough ? Libc.O_SYNC : 0;
            if (s_canLinkNameless)
            {
                // If this fails for any reason, create a file with a temporary name, which succeeds or reports the error.
                long descriptor = _calls.MakeNameless(Folder, flags, mode);
                _wasNameless = descriptor >= 0;
                if (_wasNameless)
                {
                    return new SafeFileHandle((nint)descriptor, ownsHandle: true);
                }
            }

            string temporary = NewTemporaryPath();
            SafeFileHandle handle;
            if (OperatingSystem.IsLinux())
            {
                long named = _calls.MakeNew(temporary, flags, mode);
                ThrowIfFailed(named);
                handle = new SafeFileHandle((nint)named, ownsHandle: true);
            }
            else
            {
                FileOptions options = writesThrough ? FileOptions.WriteThrough : FileOptions.None;
                handle = new FileToOpen(temporary, FileMode.CreateNew, FileAccess.ReadWrite, FileShare.ReadWrite, options)
                {
                    CreateMode = (UnixFileMode)mode,
                }.OpenHandle();
            }

            TemporaryPath = temporary;
            return handle;
        }

        private void ThrowIfFailed(long answer)
        {
            int errno = (int)-answer;
            if (answer < 0)
            {
                throw errno == Libc.EEXIST && !Replaces ? Exists(FileErrors.FromErrno(errno, TargetPath))
                    : FileErrors.OfName(errno, TargetPath);
            }
        }

        private Target? Look(string path)
        {
            const uint Wanted = Libc.STATX_TYPE | Libc.STATX_MODE | Libc.STATX_UID | Libc.STATX_GID | Libc.STATX_CTIME;
            int errno = FileStatus.TryGet(path, Wanted, out Libc.FileStatus status, Libc.AT_SYMLINK_NOFOLLOW) ? 0
                : OperatingSystem.IsLinux() ? Marshal.GetLastPInvokeError() : Libc.ENOSYS;
            switch (errno)
            {
                case Libc.ENOENT:
                    return null;
                case Libc.ENOSYS or Libc.EPERM:
                    // Some sandboxes refuse statx(2).
                    return LookByRuntime(path);
                default:
                    ThrowIfFailed(-errno);
                    return new Target(status.Mode, status.User, status.Group, (status.ChangeSeconds, status.ChangeNanoseconds));
            }
        }

        private static Target? LookByRuntime(string path)
        {
            FileInfo file = new(path);
            if (file.LinkTarget is not null)
            {
                return new Target(Libc.S_IFLNK, 0, 0);
            }

            // Owner and group are unknown, so the file does not get those of the file that it replaces.
            uint type = Directory.Exists(path) ? (uint)Libc.S_IFDIR : file.Exists ? (uint)Libc.S_IFREG : 0;
            return type == 0 ? null : new Target(type | (uint)file.UnixFileMode, LibcCalls.GetEffectiveUser(), uint.MaxValue);
        }

        private static uint GroupOf(SafeFileHandle handle)
            => FileStatus.TryGet(handle, Libc.STATX_GID, out Libc.FileStatus status) ? status.Group : uint.MaxValue;

        /// <summary>The attributes of the file that has the name.</summary>
        /// <param name="Mode">Type and permission bits (inode(7)).</param>
        /// <param name="User">The user ID of the owner.</param>
        /// <param name="Group">The group ID; <see cref="uint.MaxValue"/> if unknown: fchown(2) then does not change the group.</param>
        /// <param name="Changed">The time of the last change, also of the permissions (stx_ctime); 0 if unknown.</param>
        private readonly record struct Target(uint Mode, uint User, uint Group, (long, uint) Changed = default)
        {
            internal int Type => (int)(Mode & Libc.S_IFMT);
        }
    }
}
