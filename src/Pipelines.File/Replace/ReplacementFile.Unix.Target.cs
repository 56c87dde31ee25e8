using Pipelines.File.IO;

namespace Pipelines.File.Replace;

internal abstract partial class ReplacementFile
{
    // What has the name at the beginning, and in which folder.
    private sealed unsafe partial class Unix
    {
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
                throw FileErrors.OfNaming((int)-descriptor, TargetPath);
            }

            _folder?.Dispose();
            _folder = new SafeFileHandle((nint)descriptor, ownsHandle: true);
            _name = _name.Folder is null ? _name.In(_folder) : _name with { Folder = _folder };
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
    }
}
