using Pipelines.File.IO;

namespace Pipelines.File.Replace;

internal abstract partial class ReplacementFile
{
    /// <summary>
    /// Windows: a file with a temporary name. It is renamed by its handle with POSIX semantics, or by its path if the system does not
    /// support that.
    /// </summary>
    [SupportedOSPlatform("windows")]
    private sealed class Windows : ReplacementFile
    {
        // How long to retry a rename: antivirus programs and indexers open new files for a short time.
        private static readonly TimeSpan s_retryTime = TimeSpan.FromSeconds(1);

        private readonly WindowsCalls _calls;

        internal Windows(string path, FilePipeWriterOptions options, WindowsCalls calls)
            : base(path, options)
        {
            _calls = calls;
            FindTarget(options.ReplacesLinks);
            string temporary = NewTemporaryPath();
            bool isOverlapped = options.Backend != FilePipeBackend.Portable;
            OverlappedOpening.ThrowIfUnbuffered((options.FileOptions & Option.NoBuffering) != 0);
            FileOptions hints = isOverlapped ? options.FileOptions | FileOptions.Asynchronous
                : options.FileOptions & ~FileOptions.Asynchronous;
            SafeFileHandle handle = System.IO.File.OpenHandle(temporary, FileMode.CreateNew, FileAccess.ReadWrite,
                FileShare.Read | FileShare.Delete, hints, options.PreallocationSize);
            TemporaryPath = temporary;
            try
            {
                FileProperties properties = FileProperties.Of(handle, TargetPath);
                Backend = isOverlapped ? new OverlappedFile(handle, TargetPath, properties, calls)
                    : new PortableFile(handle, TargetPath, properties);
            }
            catch
            {
                handle.Dispose();
                Dispose();
                throw;
            }
        }

        private protected override void TakeName()
        {
            int error = WithRetries(static file => file._calls.Rename(file.Backend.Handle, OverlappedOpening.Extended(file.TargetPath),
                file.Replaces));
            if (error is Kernel32.ERROR_INVALID_PARAMETER or Kernel32.ERROR_NOT_SUPPORTED or Kernel32.ERROR_INVALID_FUNCTION)
            {
                error = WithRetries(static file => file._calls.Move(OverlappedOpening.Extended(file.TemporaryPath!),
                    OverlappedOpening.Extended(file.TargetPath), file.Replaces));
            }

            if (error is Kernel32.ERROR_ALREADY_EXISTS or Kernel32.ERROR_FILE_EXISTS && !Replaces)
            {
                throw Exists(FileErrors.FromWin32(error, TargetPath));
            }

            ThrowIfFailed(error);
        }

        private protected override void SyncName()
        {
            // The file's own record holds the new name, too.
            ThrowIfFailed(_calls.Sync(Backend.Handle));

            // An ordinary user may not flush a folder, so a refusal is ignored.
            _ = _calls.SyncFolder(Folder);
        }

        // The handle is still open with FileShare.Delete: the name disappears at the latest when the handle is closed.
        private protected override void Remove(string temporaryPath)
        {
            try
            {
                System.IO.File.Delete(temporaryPath);
            }
            catch (Exception e) when (e is IOException or UnauthorizedAccessException)
            {
                // The file stays. Its name says what it is.
            }
        }

        private void FindTarget(bool replacesLinks)
        {
            if (!Path.Exists(TargetPath))
            {
                return;
            }

            if (!Replaces)
            {
                throw Exists();
            }

            if (!replacesLinks)
            {
                FollowLink();
            }

            FileAttributes attributes = Path.Exists(TargetPath) ? System.IO.File.GetAttributes(TargetPath) : FileAttributes.Normal;
            if ((attributes & (FileAttributes.Directory | FileAttributes.ReadOnly)) != 0)
            {
                throw FileErrors.FromWin32(Kernel32.ERROR_ACCESS_DENIED, TargetPath);
            }
        }

        private void ThrowIfFailed(int error)
        {
            if (error != Kernel32.ERROR_SUCCESS)
            {
                throw FileErrors.FromWin32(error, TargetPath);
            }
        }

        private int WithRetries(Func<Windows, int> call)
        {
            long start = Stopwatch.GetTimestamp();
            while (true)
            {
                int error = call(this);
                if (error is not (Kernel32.ERROR_ACCESS_DENIED or Kernel32.ERROR_SHARING_VIOLATION or Kernel32.ERROR_USER_MAPPED_FILE)
                    || Stopwatch.GetElapsedTime(start) > s_retryTime)
                {
                    return error;
                }

                Thread.Sleep(20);
            }
        }
    }
}
