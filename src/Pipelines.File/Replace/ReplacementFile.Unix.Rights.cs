using Pipelines.File.Diagnostics;
using Pipelines.File.IO;

namespace Pipelines.File.Replace;

internal abstract partial class ReplacementFile
{
    // The permissions of the file that is replaced.
    private sealed unsafe partial class Unix
    {
        // The errno that writing to the file would answer, else 0. faccessat(2): a file without write permission is not replaced, although
        // the permissions of the folder would allow it. ENOENT: it was removed meanwhile, so nothing is replaced. A sandbox may refuse the
        // call: then opening the file for writing tells.
        private int AskToWrite()
        {
            if (!OperatingSystem.IsLinux())
            {
                return (System.IO.File.GetAttributes(TargetPath) & FileAttributes.ReadOnly) == 0 ? 0 : Libc.EACCES;
            }

            long answer = _calls.AskAccess(_name);
            if (answer < 0 && Libc.MayRefuse(-answer))
            {
                answer = _calls.OpenToAppend(_name);
                if (answer >= 0)
                {
                    Probe.Rare("faccessat was refused");
                    new SafeFileHandle((nint)answer, ownsHandle: true).Dispose();
                }
            }

            return answer is >= 0 or -Libc.ENOENT or -Libc.ETXTBSY ? 0 : (int)-answer;
        }

        /// <summary>
        /// Gives the file the permissions of the one that has the name now, if that was changed or came while this one was written.
        /// </summary>
        /// <returns>Whether something has the name.</returns>
        private bool TakeLatestRights()
        {
            Target? found = Look(_name);
            if (found is not { Type: Libc.S_IFREG } latest || latest == _replaced)
            {
                return found is not null;
            }

            if (AskToWrite() is not 0 and int errno)
            {
                throw FileErrors.FromErrno(errno, TargetPath);
            }

            Debug.Assert(Replaces);
            TakeRights(NamedFile, latest, StatusOf(NamedFile), _name.PathBytes);
            if (IsDurable)
            {
                // The sync of the bytes was before this.
                ThrowIfFailed(_calls.SyncAll(NamedFile));
            }

            return true;
        }

        /// <summary>
        /// Gives the file the permissions of the one that it replaces. Group, access list and mode come before the owner: after a process
        /// has given a file away, it may need CAP_FOWNER to change the mode (chmod(2)). If the group or the owner cannot be set, the bits
        /// that would apply to another group or owner are cleared: set-user-ID, set-group-ID and the group's bits.
        /// </summary>
        /// <param name="handle">The file.</param>
        /// <param name="replaced">What the other one has.</param>
        /// <param name="status">What the file has by now.</param>
        /// <param name="path">The path of the other one.</param>
        private void TakeRights(SafeFileHandle handle, Target replaced, Libc.FileStatus? status, byte[] path)
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

            if (OperatingSystem.IsLinux() && !TryCopyAccessList(path, handle, ref mode))
            {
                // With a list, the group's bits are its mask (acl(5)). Without it, they would be permissions of the group itself.
                bits &= ~GroupBits;
            }

            // SMB, vfat and others refuse a mode, and have one for all files. Fewer permissions are no danger, as in File.Copy.
            if (mode != (bits & ~SetIdBits) && _calls.ChangeMode(handle, bits & ~SetIdBits) is < 0 and long refused
                && (!Libc.MayRefuse(-refused) || StatusOf(handle) is not { } now || (now.Mode & PermissionBits & ~bits) != 0))
            {
                throw FileErrors.FromErrno((int)-refused, TargetPath);
            }

            if (replaced.User != (status?.User ?? LibcCalls.GetEffectiveUser())
                && LibcCalls.FChOwn(handle, replaced.User, uint.MaxValue) != 0)
            {
                bits &= ~SetUserBit;
            }

            if ((bits & SetIdBits) != 0)
            {
                // chown(2) clears these bits. If they cannot be set again, the file has fewer permissions.
                _ = _calls.ChangeMode(handle, bits);
            }
        }

        /// <summary>
        /// Gives the file the access list (acl(5)) of the one that it replaces; if that has none, removes the one that the file has
        /// inherited from its folder. Returns <see langword="false"/> if the file
        /// may lack the list of that one.
        /// </summary>
        [SkipLocalsInit]
        private static bool TryCopyAccessList(byte[] path, SafeFileHandle handle, ref uint? mode)
        {
            byte* list = stackalloc byte[MaxAttributeSize];
            nint length = LibcCalls.GetXAttr(path, Libc.AccessList, list, MaxAttributeSize);
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

        private static Libc.FileStatus? StatusOf(SafeFileHandle handle)
        {
            const uint Wanted = FileProperties.Wanted | Libc.STATX_MODE | Libc.STATX_UID | Libc.STATX_GID;
            return FileStatus.TryGet(handle, Wanted, out Libc.FileStatus status) ? status : null;
        }
    }
}
