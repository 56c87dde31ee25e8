using Pipelines.File.Diagnostics;
using Pipelines.File.IO;

namespace Pipelines.File.Replace;

internal abstract partial class ReplacementFile
{
    // The name that the file gets at the end.
    private sealed unsafe partial class Unix
    {
        private protected override void TakeName()
        {
            Debug.Assert((TemporaryPath is null) == _wasNameless);
            bool isThere = _existed;
            if (Replaces)
            {
                isThere = TakeLatestRights();
            }

            if (TemporaryPath is null)
            {
                long linked = isThere ? -Libc.EEXIST : _calls.LinkNameless(NamedFile, _name);
                if (linked >= 0)
                {
                    return;
                }

                if (linked == -Libc.EEXIST && Replaces)
                {
                    if (!isThere)
                    {
                        Probe.Rare("the name of a new file has come meanwhile");
                    }

                    isThere = true;
                    linked = WithTemporaryName(temporary => _calls.LinkNameless(NamedFile, temporary));
                }

                if (linked < 0 && Libc.MayRefuse(-linked))
                {
                    Probe.Rare("a copy with a name in place of linkat");
                    CopyToNamed();
                    linked = 0;
                }

                ThrowIfFailed(linked);
            }

            if (!Replaces)
            {
                ThrowIfFailed(MoveToNew());
            }
            else if (Rename() is < 0 and long failed)
            {
                KeepTheNewUnlessTheOldIsThere((int)-failed, isThere || _existed);
                ThrowIfFailed(failed);
            }
        }

        /// <summary>Renames, for a second again and again if others hold the file of the name open where that matters (SMB).</summary>
        private long Rename()
        {
            long start = Stopwatch.GetTimestamp();
            while (true)
            {
                long renamed = _calls.Rename(_temporary, _name);
                if (renamed is not (-Libc.EACCES or -Libc.EBUSY) || Stopwatch.GetElapsedTime(start) > s_retryTime)
                {
                    return renamed;
                }

                Probe.Rare("a rename that is tried again");
                Thread.Sleep(20);
            }
        }

        /// <summary>
        /// The client of SMB marks the file of the name for deletion before it renames, and if that fails, it is deleted when the last one
        /// has closed it: then the new content is all that is left.
        /// </summary>
        /// <exception cref="IOException">The old file is gone, and where the new one is.</exception>
        private void KeepTheNewUnlessTheOldIsThere(int errno, bool wasThere)
        {
            const int Flags = Libc.AT_SYMLINK_NOFOLLOW | Libc.AT_STATX_FORCE_SYNC;
            if (!wasThere
                || (FileStatus.TryGet(_name, Libc.STATX_NLINK, out Libc.FileStatus status, Flags) && status.Links > 0)
                || (!FileStatus.TryGet(_temporary, Libc.STATX_NLINK, out _, Flags) && Marshal.GetLastPInvokeError() == Libc.ENOENT))
            {
                return;
            }

            string kept = _temporary.Path;
            TemporaryPath = null;
            Exception cause = FileErrors.FromErrno(errno, TargetPath);
            string message = "The file could not be replaced, and the file system has removed the old one, or will when nobody has it "
                + $"open: '{TargetPath}'. The new content is in '{kept}'. {cause.Message}";
            throw new IOException(message, cause) { HResult = errno };
        }

        /// <summary>
        /// Gives the file a name that nobody has. Without RENAME_NOREPLACE and links, as on vfat and some servers, a look and a rename do,
        /// as in File.Move: whoever makes the file between the two loses it.
        /// </summary>
        private long MoveToNew()
        {
            long moved = _calls.RenameNoReplace(_temporary, _name);
            if (moved >= 0 || !Libc.MayRefuse(-moved))
            {
                return moved;
            }

            // With the link the file has its name, whatever becomes of the other one.
            Probe.Rare("link in place of a rename that does not replace");
            moved = _calls.Link(_temporary, _name);
            if (moved >= 0)
            {
                Remove(_temporary.Path);
                return moved;
            }

            if (!Libc.MayRefuse(-moved) && moved != -Libc.EMLINK)
            {
                return moved;
            }

            Probe.Rare("a look and a rename in place of link");
            return Look(_name) is not null ? -Libc.EEXIST : _calls.Rename(_temporary, _name);
        }

        /// <summary>
        /// Writes the content of the file without a name, which cannot get one, to a file that has a temporary one, with the same rights.
        /// </summary>
        private void CopyToNamed()
        {
            SafeFileHandle nameless = NamedFile;
            Libc.FileStatus? status = StatusOf(nameless);
            ThrowIfFailed(WithTemporaryName(temporary =>
            {
                long named = _calls.MakeNew(temporary, 0, 0x180);
                _copy = named < 0 ? null : new SafeFileHandle((nint)named, ownsHandle: true);
                return named;
            }));
            try
            {
                Copy(nameless, _copy!);
            }
            catch (Exception e)
            {
                throw FileErrors.WithPath(e, TargetPath);
            }

            if (status is { } known)
            {
                TakeRights(_copy!, new Target(known.Mode, known.User, known.Group), StatusOf(_copy!),
                    UnixName.Of($"/proc/self/fd/{nameless.DangerousGetHandle()}").Bytes);
            }

            _wasNameless = false;
            _calls.RefusesLinks = true;
            if (IsDurable)
            {
                ThrowIfFailed(_calls.SyncData(NamedFile, Backend.Properties));
            }
        }

        private static void Copy(SafeFileHandle from, SafeFileHandle to)
        {
            byte[] block = ArrayPool<byte>.Shared.Rent(CopyBlock);
            int read;
            for (long offset = 0; (read = RandomAccess.Read(from, block, offset)) > 0; offset += read)
            {
                RandomAccess.Write(to, block.AsSpan(0, read), offset);
            }

            ArrayPool<byte>.Shared.Return(block);
        }

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
    }
}
