namespace Pipelines.File.IO;

/// <summary>A path, and how the file is opened.</summary>
internal readonly record struct FileToOpen(string Path, FileMode Mode, FileAccess Access, FileShare Share,
    FileOptions Options = FileOptions.None)
{
    internal FilePipeBackend Backend { get; init; }

    /// <summary>The number of bytes to reserve in a file that opening makes or empties.</summary>
    internal long PreallocationSize { get; init; }

    /// <summary>The permissions of a new file, less the umask; <see langword="null"/>: the runtime's default.</summary>
    internal UnixFileMode? CreateMode { get; init; }

    /// <summary>Whether the mode makes a file if there is none, and otherwise opens the existing one.</summary>
    internal bool MayMake => Mode is FileMode.Create or FileMode.OpenOrCreate or FileMode.Append;

    internal FileToOpen WithFullPath() => this with { Path = System.IO.Path.GetFullPath(Path) };

    /// <summary>Opens the file through the runtime.</summary>
    internal SafeFileHandle OpenHandle()
    {
        if (CreateMode is not { } createMode || OperatingSystem.IsWindows())
        {
            return System.IO.File.OpenHandle(Path, Mode, Access, Share, Options, PreallocationSize);
        }

        // Of the runtime's APIs only FileStream takes permissions. The stream is not disposed of: its handle is returned, and it has no
        // buffer.
        FileStreamOptions stream = new()
        {
            Mode = Mode,
            Access = Access,
            Share = Share,
            Options = Options,
            PreallocationSize = PreallocationSize,
            BufferSize = 0,
            UnixCreateMode = createMode,
        };
        return new FileStream(Path, stream).SafeFileHandle;
    }
}
