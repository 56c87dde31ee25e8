using System.Security.Cryptography;
using Pipelines.File.IO;

namespace Pipelines.File.Replace;

/// <summary>
/// A file that is written beside its name (<see cref="FilePipeWriterOptions.Replace"/>), and gets it when it is whole. The writer calls
/// <see cref="Appear"/> at most once, when every byte is written, and <see cref="Dispose"/> once, before it closes the handle.
/// </summary>
internal abstract partial class ReplacementFile : IDisposable
{
    /// <summary>
    /// What the name of every file begins with that is not whole yet; 16 hexadecimal digits follow. Documented, so that it can be cleaned
    /// up after a process that was killed.
    /// </summary>
    internal const string TemporaryPrefix = ".pipelines-file-";

    private ReplacementFile(string path, FilePipeWriterOptions options)
    {
        TargetPath = path;
        Replaces = options.Mode == FileMode.Create;
        IsDurable = options.FlushGuarantee == FlushGuarantee.Durable;
    }

    /// <summary>The open file.</summary>
    internal OpenedFile Backend { get; private protected set; } = null!;

    /// <summary>The full path that it gets: behind every symbolic link where it replaces what is there.</summary>
    private protected string TargetPath { get; private set; }

    /// <summary>Whether a file of that name is replaced; else it is an error.</summary>
    private protected bool Replaces { get; }

    /// <summary>
    /// Whether name and bytes are on the device when <see cref="Appear"/> returns. The bytes are synced by the writer, before.
    /// </summary>
    private protected bool IsDurable { get; }

    /// <summary>Its name for the time being; <see langword="null"/> while it has none.</summary>
    private protected string? TemporaryPath { get; set; }

    /// <summary>A path that means it now: one without a name is behind its descriptor (proc_pid_fd(5)).</summary>
    internal string PathForNow => TemporaryPath ?? $"/proc/self/fd/{Backend.Handle.DangerousGetHandle()}";

    private protected string Folder => Path.GetDirectoryName(TargetPath)!;

    /// <summary>Makes the file beside its name.</summary>
    /// <param name="path">The name that it gets.</param>
    /// <param name="options">They are valid.</param>
    /// <param name="calls">Other calls than the system's, for tests: a <see cref="UnixCalls"/> or <see cref="WindowsCalls"/>.</param>
    /// <exception cref="FileExistsException">There is a file of that name, which is not to be replaced.</exception>
    /// <exception cref="DirectoryNotFoundException">There is no such folder.</exception>
    /// <exception cref="UnauthorizedAccessException">
    /// The folder or the file may not be written to, or the name is that of a folder.
    /// </exception>
    /// <exception cref="IOException">It failed otherwise.</exception>
    internal static ReplacementFile Open(string path, FilePipeWriterOptions options, object? calls = null)
    {
        ArgumentException.ThrowIfNullOrEmpty(path);
        FileOpening.ThrowIfNotSupported(options.Backend);
        string fullPath = Path.GetFullPath(path);
        if (Path.EndsInDirectorySeparator(fullPath))
        {
            throw new UnauthorizedAccessException($"The path is that of a folder, which a file cannot replace: '{path}'");
        }

        try
        {
            return OpenBeside(fullPath, options, calls);
        }
        catch (IOException e) when (SpareDescriptors.AreShort(e) && SpareDescriptors.TryRelease())
        {
            return OpenBeside(fullPath, options, calls);
        }
    }

    private static ReplacementFile OpenBeside(string fullPath, FilePipeWriterOptions options, object? calls)
        => OperatingSystem.IsWindows() ? new Windows(fullPath, options, (WindowsCalls?)calls ?? WindowsCalls.Default)
            : new Unix(fullPath, options, (UnixCalls?)calls ?? UnixCalls.Default);

    /// <summary>Gives the file its name, on a thread that may wait.</summary>
    /// <exception cref="FileExistsException">There is a file of that name by now, which is not to be replaced.</exception>
    /// <exception cref="IOException">The renaming failed; or the syncing of the folder, and the file has its name.</exception>
    internal void Appear()
    {
        TakeName();

        // There is nothing left to remove.
        TemporaryPath = null;
        if (IsDurable)
        {
            SyncName();
        }
    }

    /// <summary>
    /// Leaves nothing behind of a file that has not appeared. Does not throw: what could not be removed has a name that tells what it is.
    /// </summary>
    public void Dispose()
    {
        if (TemporaryPath is { } temporary)
        {
            Remove(temporary);
            TemporaryPath = null;
        }

        Close();
    }

    private protected abstract void TakeName();

    private protected abstract void SyncName();

    private protected abstract void Remove(string temporaryPath);

    private protected virtual void Close()
    {
    }

    private protected string NewTemporaryPath()
        => Path.Combine(Folder, TemporaryPrefix + RandomNumberGenerator.GetHexString(16, lowercase: true));

    private FileExistsException Exists(Exception? cause = null) => FileExistsException.At(TargetPath, cause);

    /// <summary>Goes through the symbolic link that has the name.</summary>
    private protected virtual void FollowLink()
        => TargetPath = System.IO.File.ResolveLinkTarget(TargetPath, returnFinalTarget: true)?.FullName ?? TargetPath;
}
