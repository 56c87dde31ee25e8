using System.Security.Cryptography;
using Pipelines.File.IO;

namespace Pipelines.File.Replace;

/// <summary>
/// An unfinished file (<see cref="FilePipeWriterOptions.Replace"/>), which gets its name when it is whole. The writer calls
/// <see cref="Appear"/> at most once, after every byte is written, and <see cref="Dispose"/> once, before it closes the handle.
/// </summary>
internal abstract partial class ReplacementFile : IDisposable
{
    /// <summary>
    /// The prefix of the temporary name of an unfinished file; 16 hexadecimal digits follow. It is documented, so that users can remove the
    /// files of processes that were killed.
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

    /// <summary>The full path that the file gets. Symbolic links are resolved if the file replaces what they lead to.</summary>
    private protected string TargetPath { get; private set; }

    /// <summary>Whether an existing file of that name is replaced; otherwise it is an error.</summary>
    private protected bool Replaces { get; }

    /// <summary>
    /// Whether name and bytes are on the device when <see cref="Appear"/> returns. The writer has synced the bytes before it calls Appear.
    /// </summary>
    private protected bool IsDurable { get; }

    /// <summary>The path with the temporary name; <see langword="null"/> while the file has none.</summary>
    private protected string? TemporaryPath { get; set; }

    private protected string Folder => Path.GetDirectoryName(TargetPath)!;

    /// <summary>Creates the unfinished file, in the folder of its name.</summary>
    /// <param name="path">The path that the file gets when it is whole.</param>
    /// <param name="options">Validated options.</param>
    /// <param name="calls">Replaces the system calls in tests: a <see cref="UnixCalls"/> or <see cref="WindowsCalls"/>.</param>
    /// <exception cref="FileExistsException">A file of that name exists and is not to be replaced.</exception>
    /// <exception cref="DirectoryNotFoundException">The folder does not exist.</exception>
    /// <exception cref="UnauthorizedAccessException">
    /// The folder or the file may not be written to, or the path is that of a folder.
    /// </exception>
    /// <exception cref="IOException">It failed for another reason.</exception>
    internal static ReplacementFile Open(string path, FilePipeWriterOptions options, object? calls = null)
    {
        ArgumentException.ThrowIfNullOrEmpty(path);
        FileOpening.ThrowIfNotSupported(options.Backend);
        string fullPath = Path.GetFullPath(path);
        if (Path.EndsInDirectorySeparator(fullPath))
        {
            throw new UnauthorizedAccessException($"The path is that of a folder, which a file cannot replace: '{path}'");
        }

        return OperatingSystem.IsWindows() ? new Windows(fullPath, options, (WindowsCalls?)calls ?? WindowsCalls.Default)
            : new Unix(fullPath, options, (UnixCalls?)calls ?? UnixCalls.Default);
    }

    /// <summary>
    /// Gives an open file without a name (O_TMPFILE) the name of a path, by the rules of Replace and Durable. Returns
    /// <see langword="false"/>, and has changed nothing, if only a copy is what a new file of that folder would be: it is on another file
    /// system, the path is a link, or the folder gives its files a group or an access list. The file stays
    /// open. Waits, so call it on a thread that may.
    /// </summary>
    /// <exception cref="IOException">As for <see cref="Open"/> and <see cref="Appear"/>.</exception>
    internal static bool TryName(SafeFileHandle nameless, string path, FilePipeWriterOptions options, UnixCalls calls)
    {
        if (!OperatingSystem.IsLinux() || (options.FileOptions & FileOptions.WriteThrough) != 0
            || new FileInfo(path).LinkTarget is not null || !Unix.CanTakeName(nameless, Path.GetFullPath(path)))
        {
            return false;
        }

        using Unix file = new(Path.GetFullPath(path), options, calls, nameless);
        return file.TryAppear();
    }

    /// <summary>Gives the file its name, and syncs the folder if the writer is durable. Waits, so call it on a thread that may.</summary>
    /// <exception cref="FileExistsException">A file of that name exists by now and is not to be replaced.</exception>
    /// <exception cref="IOException">The renaming failed; or the sync of the folder failed, and the file has its name.</exception>
    internal void Appear()
    {
        TakeName();

        // The temporary name is gone, so Dispose has nothing to remove.
        TemporaryPath = null;
        if (IsDurable)
        {
            SyncName();
        }
    }

    /// <summary>
    /// Removes the file if it has not appeared. Does not throw: the name of a file that could not be removed says what it is.
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

    private protected string NewTemporaryPath() => Path.Combine(Folder, NewTemporaryName());

    /// <summary>A guessable name saves a system call, and is for a call that fails if somebody has the name.</summary>
    [SuppressMessage("Security", "CA5394", Justification = "See the summary.")]
    private protected static string NewTemporaryName(bool isGuessable = false)
        => TemporaryPrefix + (isGuessable ? Random.Shared.GetHexString(16, lowercase: true)
            : RandomNumberGenerator.GetHexString(16, lowercase: true));

    private FileExistsException Exists(Exception? cause = null) => FileExistsException.At(TargetPath, cause);

    /// <summary>Sets <see cref="TargetPath"/> to the final target of the symbolic link that has the name.</summary>
    private protected void FollowLink()
        => TargetPath = System.IO.File.ResolveLinkTarget(TargetPath, returnFinalTarget: true)?.FullName ?? TargetPath;
}
