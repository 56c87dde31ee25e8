namespace Pipelines.File.IO;

/// <summary>What is opened by its path, and how.</summary>
internal readonly record struct FileToOpen(string Path, FileMode Mode, FileAccess Access, FileShare Share,
    FileOptions Options = FileOptions.None)
{
    internal FilePipeBackend Backend { get; init; }

    /// <summary>Bytes to reserve in a file that is made or emptied.</summary>
    internal long PreallocationSize { get; init; }

    /// <summary>The permissions of a file that is made, less the umask; <see langword="null"/>: the runtime's.</summary>
    internal UnixFileMode? CreateMode { get; init; }

    /// <summary>Whether the mode makes a file where there is none, and takes the one that there is.</summary>
    internal bool MayMake => Mode is FileMode.Create or FileMode.OpenOrCreate or FileMode.Append;

    internal FileToOpen WithFullPath() => this with { Path = System.IO.Path.GetFullPath(Path) };

    /// <summary>As the runtime does.</summary>
    internal SafeFileHandle OpenHandle()
    {
        if (CreateMode is not { } createMode || OperatingSystem.IsWindows())
        {
            return System.IO.File.OpenHandle(Path, Mode, Access, Share, Options, PreallocationSize);
        }

        // Only a stream of the runtime's makes a file with permissions of the caller's. Not disposed of: its handle is taken, and it has no
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
