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

        /// <summary>How often a temporary name may be taken, or a link be changed while it is followed.</summary>
        private const int MaxNames = 100;

        /// <summary>From this length of a path on, in characters, its names are taken by the folder. PATH_MAX is 4,096 bytes.</summary>
        private const int LongPath = 1000;

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

        // The folder by which the name is taken and which is synced; null if the name is taken by its path.
        private SafeFileHandle? _folder;

        // What the file is to be called, and what it is called until then.
        private UnixName _name;
        private UnixName _temporary;

        internal Unix(string path, FilePipeWriterOptions options, UnixCalls calls)
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

                handle = MakeFile((options.FileOptions & FileOptions.WriteThrough) != 0,
                    target?.Mode & PermissionBits & ~SetIdBits ?? (uint?)options.UnixCreateMode ?? DefaultMode, target is not null);
                Libc.FileStatus? status = StatusOf(handle);
                if (target is { } replaced)
                {
                    TakeRights(handle, replaced, status);
                    _replaced = replaced;
                }

                _calls.Reserve(handle, options.PreallocationSize, TargetPath);
                Backend = FileOpening.Choose(options.Backend, handle, TargetPath, calls: calls,
                    properties: OperatingSystem.IsLinux() && status is { } known ? FileProperties.Of(handle, known, TargetPath) : null);
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
                long linked = _existed ? -Libc.EEXIST : _calls.LinkNameless(Backend.Handle, _name);
                if (linked != -Libc.EEXIST || !Replaces)
                {
                    ThrowIfFailed(linked);
                    return;
                }

                if (!_existed)
                {
                    Probe.Rare("the name of a new file has come meanwhile");
                }

                ThrowIfFailed(WithTemporaryName(temporary => _calls.LinkNameless(Backend.Handle, temporary)));
            }

            long renamed = Replaces ? _calls.Rename(_temporary, _name) : _calls.RenameNoReplace(_temporary, _name);
            if (!Replaces && renamed is -Libc.ENOSYS or -Libc.EINVAL or -Libc.EOPNOTSUPP)
            {
                // The kernel or the file system does not know RENAME_NOREPLACE. With the link the file has its name, whatever becomes of
                // the other one.
                Probe.Rare("link in place of a rename that does not replace");
                renamed = _calls.Link(_temporary, _name);
                if (renamed >= 0)
                {
                    Remove(_temporary.Path);
                }
            }

            ThrowIfFailed(renamed);
        }

        private protected override void SyncName()
        {
            // btrfs before Linux 6.15 ("btrfs: fix fsync of files with no hard links") logs nothing of a file without a name, so its first
            // name may come with no content. This sync logs both; what is on the device already is not written again.
            Debug.Assert(TemporaryPath is null && _folder is not null);
            if (_wasNameless && LocalFileSystems.IsBtrfs(Backend.Properties))
            {
                ThrowIfFailed(_calls.SyncData(Backend.Handle, Backend.Properties));
            }

            FolderSync.Sync(_calls, _folder!, Folder);
            ThrowIfFailed(_calls.TellFailure(Backend.Handle));
        }

        private protected override void Remove(string temporaryPath) => _ = _calls.Unlink(_temporary);

        private protected override void Close() => _folder?.Dispose();

        /// <summary>
        /// Makes the call with a temporary name, and with another one if somebody has that.
        /// </summary>
        private long WithTemporaryName(Func<UnixName, long> call)
        {
            long answer = -Libc.EEXIST;
            for (int tries = 0; answer == -Libc.EEXIST && tries < MaxNames; tries++)
            {
                // The first one may be guessed: then somebody has it, and the next one cannot be.
                UnixName temporary = _name.Beside(NewTemporaryName(isGuessable: tries == 0));
                answer = call(temporary);
                if (answer >= 0)
                {
                    _temporary = temporary;
                    TemporaryPath = temporary.Path;
                }
            }

            return answer;
        }

        /// <summary>
        /// Returns what has the name now, with links resolved unless links are replaced; <see langword="null"/> if nothing has it. Throws
        /// if it is not to be replaced.
        /// </summary>
        private Target? FindTarget(bool replacesLinks)
        {
            Target? target = Look(_name);
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

                target = FollowLinks();
            }

            return target?.Type switch
            {
                null => null,
                Libc.S_IFDIR => throw FileErrors.FromErrno(Libc.EISDIR, TargetPath),
                Libc.S_IFREG => AskToWrite() is not 0 and int errno ? throw FileErrors.FromErrno(errno, TargetPath) : target,
                _ => throw new FileExistsException(
                    $"{nameof(FilePipeWriterOptions.Replace)} cannot replace what is not a regular file: '{TargetPath}'", TargetPath),
            };
        }

        /// <summary>
        /// Makes <see cref="_name"/> what the links lead to, and returns what has that name. The kernel is asked what it finds by the path,
        /// and the walk from link to link has to find the same: a link may be a special one of /proc, whose text leads nowhere.
        /// </summary>
        /// <exception cref="IOException">The links lead nowhere, or were changed all the time.</exception>
        private Target? FollowLinks()
        {
            UnixName start = UnixName.Of(TargetPath);
            if (!OperatingSystem.IsLinux())
            {
                FollowLink();
                _name = UnixName.Of(TargetPath);
                return Look(_name);
            }

            for (int tries = 0; tries < MaxNames; tries++)
            {
                Target? meant = Look(start, follows: true);
                Walk(start);
                Target? found = Look(_name);
                if (found?.Type != Libc.S_IFLNK && found?.Identity == meant?.Identity)
                {
                    return found;
                }
            }

            throw new IOException($"The link leads to another file than its text says, so that cannot be replaced: '{start.Path}'");
        }

        /// <summary>
        /// Goes from link to link as the kernel does. Each is relative to its own folder, whose <c>..</c> is the parent of the real one, so
        /// the kernel resolves all but the last name. At the end <see cref="_folder"/> is the folder of that.
        /// </summary>
        private void Walk(UnixName start)
        {
            _name = start;
            EnterFolder(Libc.AT_FDCWD, start.FolderBytes);
            for (int links = 0; links < MaxLinks && _calls.ReadLink(_name) is { } text; links++)
            {
                int slash = text.AsSpan().LastIndexOf((byte)'/');
                byte[] name = [.. text.AsSpan(slash + 1), 0];
                if (name is [0] or [(byte)'.', 0] or [(byte)'.', (byte)'.', 0])
                {
                    throw FileErrors.FromErrno(Libc.EISDIR, TargetPath);
                }

                _name = new UnixName(_folder, name, Path.Combine(Folder, Encoding.UTF8.GetString(text)));
                if (slash >= 0)
                {
                    EnterFolder(_folder!.DangerousGetHandle().ToInt32(), [.. text.AsSpan(0, slash + 1), 0]);
                }

                TargetPath = _name.Path;
            }
        }

        /// <summary>
        /// Opens the folder of the name, so that it is the same one from now on: for a sync, or only to find names in it.
        /// </summary>
        /// <exception cref="DirectoryNotFoundException">It does not exist.</exception>
        /// <exception cref="UnauthorizedAccessException">You may not read it, which a sync needs, or not enter it.</exception>
        private void EnterFolder(int folder, byte[] path)
        {
            long descriptor = _calls.OpenFolderAt(folder, path, IsDurable || !OperatingSystem.IsLinux() ? Libc.O_RDONLY : Libc.O_PATH);
            if (descriptor < 0)
            {
                throw FileErrors.OfName((int)-descriptor, TargetPath);
            }

            _folder?.Dispose();
            _folder = new SafeFileHandle((nint)descriptor, ownsHandle: true);
            _name = _name.Folder is null ? _name.In(_folder) : _name with { Folder = _folder };
        }

        // The errno that writing to the file would answer, else 0. faccessat(2): a file without write permission is not replaced, although
        // the permissions of the folder would allow it. ENOENT: it was removed meanwhile, so nothing is replaced.
        private int AskToWrite()
        {
            if (!OperatingSystem.IsLinux())
            {
                return (System.IO.File.GetAttributes(TargetPath) & FileAttributes.ReadOnly) == 0 ? 0 : Libc.EACCES;
            }

            int errno = LibcCalls.FAccessAt(_name.Descriptor, _name.Bytes, Libc.W_OK, Libc.AT_EACCESS) == 0 ? 0
                : Marshal.GetLastPInvokeError();
            return errno == Libc.ENOENT ? 0 : errno;
        }

        /// <summary>
        /// Gives the file the permissions of the one that has the name now, if that was changed or came while this one was written.
        /// </summary>
        private void TakeLatestRights()
        {
            if (Look(_name) is not { Type: Libc.S_IFREG } latest || latest == _replaced)
            {
                return;
            }

            if (AskToWrite() is not 0 and int errno)
            {
                throw FileErrors.FromErrno(errno, TargetPath);
            }

            Debug.Assert(Replaces);
            TakeRights(Backend.Handle, latest, StatusOf(Backend.Handle));
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
        private void TakeRights(SafeFileHandle handle, Target replaced, Libc.FileStatus? status)
        {
            uint bits = replaced.Mode & PermissionBits;
            uint? mode = status?.Mode & PermissionBits;
            if (replaced.Group != (status?.Group ?? uint.MaxValue))
            {
                mode = null;
                if (LibcCalls.FChOwn(handle, uint.MaxValue, replaced.Group) != 0)
                {
                    bits &= ~(SetIdBits | GroupBits);
                }
            }

            if (OperatingSystem.IsLinux() && !TryCopyAccessList(handle, ref mode))
            {
                // With a list, the group's bits are its mask (acl(5)). Without it, they would be permissions of the group itself.
                bits &= ~GroupBits;
            }

            if (mode != (bits & ~SetIdBits) && LibcCalls.FChMod(handle, bits & ~SetIdBits) != 0)
            {
                throw FileErrors.FromErrno(Marshal.GetLastPInvokeError(), TargetPath);
            }

            if (replaced.User != (status?.User ?? LibcCalls.GetEffectiveUser())
                && LibcCalls.FChOwn(handle, replaced.User, uint.MaxValue) != 0)
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
        private bool TryCopyAccessList(SafeFileHandle handle, ref uint? mode)
        {
            byte* list = stackalloc byte[MaxAttributeSize];
            nint length = LibcCalls.GetXAttr(_name.PathBytes, Libc.AccessList, list, MaxAttributeSize);
            if (length >= 0)
            {
                mode = null;
                return LibcCalls.FSetXAttr(handle, Libc.AccessList, list, length, 0) == 0;
            }

            // No list, or a file system without lists. After every other error there may be one.
            bool hasNone = Marshal.GetLastPInvokeError() is Libc.ENODATA or Libc.EOPNOTSUPP;
            _ = LibcCalls.FRemoveXAttr(handle, Libc.AccessList);
            return hasNone;
        }

        private SafeFileHandle MakeFile(bool writesThrough, uint mode, bool takesRights)
        {
            int flags = writesThrough ? Libc.O_SYNC : 0;
            if (s_canLinkNameless)
            {
                // If this fails for any reason, create a file with a temporary name, which succeeds or reports the error.
                long descriptor = _calls.MakeNameless(_name, flags, mode);
                _wasNameless = descriptor >= 0;
                if (_wasNameless)
                {
                    return new SafeFileHandle((nint)descriptor, ownsHandle: true);
                }
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
                    : FileErrors.OfName(errno, TargetPath);
            }
        }

        private Target? Look(in UnixName name, bool follows = false)
        {
            const uint Wanted = Libc.STATX_TYPE | Libc.STATX_MODE | Libc.STATX_UID | Libc.STATX_GID | Libc.STATX_CTIME | Libc.STATX_INO;
            int errno = FileStatus.TryGet(name, Wanted, out Libc.FileStatus status, follows ? 0 : Libc.AT_SYMLINK_NOFOLLOW) ? 0
                : OperatingSystem.IsLinux() ? Marshal.GetLastPInvokeError() : Libc.ENOSYS;
            switch (errno)
            {
                case Libc.ENOENT:
                    return null;
                case Libc.ENOSYS or Libc.EPERM:
                    // Some sandboxes refuse statx(2).
                    return LookByRuntime(name.Path);
                default:
                    ThrowIfFailed(-errno);
                    return new Target(status.Mode, status.User, status.Group, (status.Device, status.Number),
                        (status.ChangeSeconds, status.ChangeNanoseconds));
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

        private static Libc.FileStatus? StatusOf(SafeFileHandle handle)
            => FileStatus.TryGet(handle, FileProperties.Wanted | Libc.STATX_MODE | Libc.STATX_UID | Libc.STATX_GID, out Libc.FileStatus status)
                ? status : null;

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
