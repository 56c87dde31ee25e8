using Pipelines.File.IO;

namespace Pipelines.File.Replace;

internal abstract partial class ReplacementFile
{
    /// <summary>
    /// Linux: a file without a name (O_TMPFILE) where the file system has them, so that a process that is killed leaves nothing, else, and
    /// on other systems, one with a temporary name. A link cannot replace, so what replaces another file has a temporary name for the
    /// moment between linkat(2) and rename(2).
    /// </summary>
    private sealed unsafe class Unix : ReplacementFile
    {
        private const uint DefaultMode = 0x1B6; // 0666, less the umask
        private const uint PermissionBits = 0xFFF;
        private const uint SetIdBits = 0xC00;
        private const uint GroupBits = 0x38;
        private const uint SetUserBit = 0x800;

        /// <summary>As many as Linux follows (path_resolution(7)).</summary>
        private const int MaxLinks = 40;

        /// <summary>The longest value of an extended attribute, bytes (xattr(7)).</summary>
        private const int MaxAttributeSize = 64 * 1024;

        // A file without a name gets one through /proc.
        private static readonly bool s_canLinkNameless = OperatingSystem.IsLinux() && Directory.Exists("/proc/self/fd");

        private readonly UnixCalls _calls;
        private readonly bool _existed;

        // Open from the start, so that a folder that cannot be synced is an error before anything is replaced.
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
                // After the file, whose making tells by the documented exceptions what is wrong with the folder.
                // Nobody else may open it before it has its permissions.
                handle = MakeFile((options.FileOptions & FileOptions.WriteThrough) != 0,
                    target is null ? (uint?)options.UnixCreateMode ?? DefaultMode : 0x180);
                if (target is { } replaced)
                {
                    TakeRights(handle, replaced);
                }

                _folder = IsDurable ? FolderSync.Open(calls, Folder) : null;
                Allocate(handle, options.PreallocationSize);
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
            if (TemporaryPath is null)
            {
                long linked = _existed ? -Libc.EEXIST : _calls.LinkNameless(Backend.Handle, TargetPath);
                if (linked != -Libc.EEXIST || !Replaces)
                {
                    ThrowIfFailed(linked);
                    return;
                }

                string temporary = NewTemporaryPath();
                ThrowIfFailed(_calls.LinkNameless(Backend.Handle, temporary));
                TemporaryPath = temporary;
            }

            long renamed = Replaces ? _calls.Rename(TemporaryPath, TargetPath) : _calls.RenameNoReplace(TemporaryPath, TargetPath);
            if (!Replaces && renamed is -Libc.ENOSYS or -Libc.EINVAL or -Libc.EOPNOTSUPP)
            {
                // The kernel or the file system does not know the flag.
                ThrowIfFailed(_calls.Link(TemporaryPath, TargetPath));
                renamed = _calls.Unlink(TemporaryPath);
            }

            ThrowIfFailed(renamed);
        }

        private protected override void SyncName() => FolderSync.Perform(_calls, _folder!, Folder);

        private protected override void Remove(string temporaryPath) => _ = _calls.Unlink(temporaryPath);

        private protected override void Close() => _folder?.Dispose();

        /// <summary>
        /// What has the name, behind every symbolic link, or <see langword="null"/>; throws where that is not to be replaced.
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
                _ => throw new IOException(
                    $"{nameof(FilePipeWriterOptions.Replace)} cannot replace what is not a regular file: '{TargetPath}'"),
            };
        }

        /// <summary>
        /// Where the system would go: a link's <c>..</c> is that of the folder that the link is really in. The runtime, which takes it away
        /// from the path's text, finds another file where the folder is a link, too.
        /// </summary>
        private protected override void FollowLink()
        {
            for (int links = 0; links <= MaxLinks; links++)
            {
                // One link after the other, as each of them counts from its own folder.
                if (RealPathOf(Folder) is not { } realFolder)
                {
                    break;
                }

                TargetPath = Path.Combine(realFolder, Path.GetFileName(TargetPath));
                if (new FileInfo(TargetPath).LinkTarget is not { } target)
                {
                    // The file, or the name that is to be made.
                    return;
                }

                TargetPath = Path.Combine(realFolder, target);
            }

            // It cannot lead anywhere, or there is no /proc.
            base.FollowLink();
        }

        /// <summary><see langword="null"/>: there is no such file, or the system does not tell.</summary>
        private static string? RealPathOf(string path)
        {
            int descriptor = OperatingSystem.IsLinux() ? Libc.Open(path, Libc.O_PATH | Libc.O_CLOEXEC) : -1;
            using SafeFileHandle file = new(descriptor, ownsHandle: true);
            return !file.IsInvalid && FileProperties.PathOf(file) is { } real && Path.Exists(real) ? real : null;
        }

        // faccessat(2): a file that may not be written is not replaced either, though the folder would allow it.
        private bool MayWrite()
            => OperatingSystem.IsLinux()
                ? Libc.FAccessAt(Libc.AT_FDCWD, TargetPath, Libc.W_OK, Libc.AT_EACCESS) == 0
                : (System.IO.File.GetAttributes(TargetPath) & FileAttributes.ReadOnly) == 0;

        /// <summary>
        /// Group, access list and mode before the owner: who gives a file away may need a capability to change its mode afterwards
        /// (chmod(2), CAP_FOWNER). Where the group or the owner cannot be had, set-user-ID, set-group-ID and the group's bits would be
        /// those of another.
        /// </summary>
        private void TakeRights(SafeFileHandle handle, Target replaced)
        {
            uint bits = replaced.Mode & PermissionBits;
            if (replaced.Group != GroupOf(handle) && Libc.FChOwn(handle, uint.MaxValue, replaced.Group) != 0)
            {
                bits &= ~(SetIdBits | GroupBits);
            }

            if (OperatingSystem.IsLinux() && !TryCopyAccessList(handle))
            {
                // With a list the group's bits are the most that anybody in it may, and without it they would be the group's own.
                bits &= ~GroupBits;
            }

            if (Libc.FChMod(handle, bits & ~SetIdBits) != 0)
            {
                throw FileErrors.FromErrno(Marshal.GetLastPInvokeError(), TargetPath);
            }

            if (replaced.User != Libc.GetEffectiveUser() && Libc.FChOwn(handle, replaced.User, uint.MaxValue) != 0)
            {
                bits &= ~SetUserBit;
            }

            if ((bits & SetIdBits) != 0)
            {
                // Giving a file away clears them. Where they cannot be set any more the file has the fewer rights.
                _ = Libc.FChMod(handle, bits);
            }
        }

        /// <summary>
        /// Gives the file the access list (acl(5)) of the one that it replaces, or takes away what the folder has given it where that has
        /// none. <see langword="false"/>: there is one, and the file could not get it.
        /// </summary>
        [SkipLocalsInit]
        private bool TryCopyAccessList(SafeFileHandle handle)
        {
            byte* list = stackalloc byte[MaxAttributeSize];
            nint length = Libc.GetXAttr(TargetPath, Libc.AccessList, list, MaxAttributeSize);
            if (length >= 0)
            {
                return Libc.FSetXAttr(handle, Libc.AccessList, list, length, 0) == 0;
            }

            // No list, or a file system without any.
            _ = Libc.FRemoveXAttr(handle, Libc.AccessList);
            return true;
        }

        private SafeFileHandle MakeFile(bool writesThrough, uint mode)
        {
            int flags = writesThrough ? Libc.O_SYNC : 0;
            if (s_canLinkNameless)
            {
                // Whatever stands in the way, making one with a name decides.
                long descriptor = _calls.MakeNameless(Folder, flags, mode);
                if (descriptor >= 0)
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
                handle = new FileToOpen(temporary, FileMode.CreateNew, FileAccess.Write, FileShare.ReadWrite, options)
                {
                    CreateMode = (UnixFileMode)mode,
                }.OpenHandle();
            }

            TemporaryPath = temporary;
            return handle;
        }

        private void Allocate(SafeFileHandle handle, long size)
        {
            long answer = -Libc.EINTR;
            while (answer == -Libc.EINTR && size > 0 && OperatingSystem.IsLinux())
            {
                answer = _calls.Allocate(handle, size);
            }

            // As in the runtime: only a lack of room counts, everything else is a file system that cannot preallocate.
            ThrowIfFailed(answer is -Libc.ENOSPC or -Libc.EFBIG ? answer : 0);
        }

        private void ThrowIfFailed(long answer)
        {
            int errno = (int)-answer;
            if (answer < 0)
            {
                throw errno switch
                {
                    Libc.EEXIST when !Replaces => Exists(FileErrors.FromErrno(errno, TargetPath)),
                    Libc.ENOENT or Libc.ENOTDIR => new DirectoryNotFoundException($"Could not find a part of the path '{TargetPath}'."),
                    _ when errno == Libc.ENAMETOOLONG
                        => new PathTooLongException(
                            $"The path '{TargetPath}' is too long, or a component of the specified path is too long."),
                    _ => FileErrors.FromErrno(errno, TargetPath),
                };
            }
        }

        private Target? Look(string path)
        {
            Libc.FileStatus status = default;
            const uint Wanted = Libc.STATX_TYPE | Libc.STATX_MODE | Libc.STATX_UID | Libc.STATX_GID;
            int errno = !OperatingSystem.IsLinux() ? Libc.ENOSYS
                : Libc.StatX(Libc.AT_FDCWD, path, Libc.AT_SYMLINK_NOFOLLOW, Wanted, &status) == 0 ? 0
                : Marshal.GetLastPInvokeError();
            switch (errno)
            {
                case Libc.ENOENT:
                    return null;
                case Libc.ENOSYS or Libc.EPERM:
                    // Some sandboxes refuse the call.
                    return LookByRuntime(path);
                default:
                    ThrowIfFailed(-errno);
                    return new Target(status.Mode, status.User, status.Group);
            }
        }

        private static Target? LookByRuntime(string path)
        {
            FileInfo file = new(path);
            if (file.LinkTarget is not null)
            {
                return new Target(Libc.S_IFLNK, 0, 0);
            }

            // The owner is not known: it is not kept.
            uint type = Directory.Exists(path) ? (uint)Libc.S_IFDIR : file.Exists ? (uint)Libc.S_IFREG : 0;
            return type == 0 ? null : new Target(type | (uint)file.UnixFileMode, Libc.GetEffectiveUser(), uint.MaxValue);
        }

        private static uint GroupOf(SafeFileHandle handle)
            => OperatingSystem.IsLinux() && FileStatus.TryGet(handle, Libc.STATX_GID, out Libc.FileStatus status) ? status.Group
                : uint.MaxValue;

        /// <summary>What the system says of a file that has the name.</summary>
        /// <param name="Mode">Type and permission bits.</param>
        /// <param name="User">Its owner.</param>
        /// <param name="Group">Its group; <see cref="uint.MaxValue"/> where nobody knows: fchown(2) leaves it then.</param>
        private readonly record struct Target(uint Mode, uint User, uint Group)
        {
            internal int Type => (int)(Mode & Libc.S_IFMT);
        }
    }
}
