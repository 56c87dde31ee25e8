namespace Pipelines.File;

/// <summary>A file of that name exists, and was not to be replaced. The file is as it was.</summary>
/// <remarks>A type of its own, so that a program can tell this (HTTP's 409) from a disk that is full or fails, which is another <see cref="IOException"/>.</remarks>
public sealed class FileExistsException : IOException
{
    /// <summary>ERROR_FILE_EXISTS of Win32, as an HRESULT: what .NET has for it on Windows, and here on every system.</summary>
    private const int FileExists = unchecked((int)0x80070050);

    /// <summary>Makes one that does not know the file.</summary>
    public FileExistsException()
        : this("A file of that name exists.", fileName: null)
    {
    }

    /// <summary>Makes one with a message of the caller's.</summary>
    /// <param name="message">The error message.</param>
    public FileExistsException(string? message)
        : this(message, fileName: null)
    {
    }

    /// <summary>Makes one with a message and a cause of the caller's.</summary>
    /// <param name="message">The error message.</param>
    /// <param name="innerException">The cause.</param>
    public FileExistsException(string? message, Exception? innerException)
        : this(message, fileName: null, innerException)
    {
    }

    /// <summary>Makes one for a file.</summary>
    /// <param name="message">The error message.</param>
    /// <param name="fileName">The file's name.</param>
    /// <param name="innerException">What the system said, or <see langword="null"/>.</param>
    public FileExistsException(string? message, string? fileName, Exception? innerException = null)
        : base(message, innerException)
    {
        FileName = fileName;
        HResult = FileExists;
    }

    /// <summary>The name of the file that exists, as the caller gave it; <see langword="null"/> where nobody knows.</summary>
    public string? FileName { get; }

    /// <summary>Makes one for <paramref name="path"/>.</summary>
    internal static FileExistsException At(string path, Exception? innerException = null) => new($"A file of that name exists: '{path}'", path, innerException);

    /// <summary>Whether the system's error says that a file exists: EEXIST on Unix, ERROR_FILE_EXISTS or ERROR_ALREADY_EXISTS on Windows.</summary>
    internal static bool Says(IOException error) => error.HResult is 17 or FileExists or unchecked((int)0x800700B7);
}
