namespace Pipelines.File;

/// <summary>
/// A file of that name exists already and was not replaced, or something that cannot be replaced: a FIFO, a device. It is as it was.
/// </summary>
/// <remarks>
/// It is a type of its own: a program can distinguish it from a full or failing disk, which throws another <see cref="IOException"/>, and
/// can respond with HTTP status 409.
/// </remarks>
public sealed class FileExistsException : IOException
{
    /// <summary>ERROR_FILE_EXISTS of Win32 as an HRESULT: .NET's value on Windows, used here on every system.</summary>
    private const int FileExists = unchecked((int)0x80070050);

    /// <summary>Creates an exception without a file name.</summary>
    public FileExistsException()
        : this("A file of that name exists.", fileName: null)
    {
    }

    /// <summary>Creates an exception with a message.</summary>
    /// <param name="message">The error message.</param>
    public FileExistsException(string? message)
        : this(message, fileName: null)
    {
    }

    /// <summary>Creates an exception with a message and a cause.</summary>
    /// <param name="message">The error message.</param>
    /// <param name="innerException">The cause.</param>
    public FileExistsException(string? message, Exception? innerException)
        : this(message, fileName: null, innerException)
    {
    }

    /// <summary>Creates an exception for a file.</summary>
    /// <param name="message">The error message.</param>
    /// <param name="fileName">The name of the file that exists.</param>
    /// <param name="innerException">The error of the system, or <see langword="null"/>.</param>
    public FileExistsException(string? message, string? fileName, Exception? innerException = null)
        : base(message, innerException)
    {
        FileName = fileName;
        HResult = FileExists;
    }

    /// <summary>The path of the file that exists, as it was given or as a full path; <see langword="null"/> if it is unknown.</summary>
    public string? FileName { get; }

    /// <summary>Creates the exception for <paramref name="path"/>.</summary>
    internal static FileExistsException At(string path, Exception? innerException = null)
        => new($"A file of that name exists: '{path}'", path, innerException);

    /// <summary>
    /// Whether the system's error says that a file exists: EEXIST on Unix, ERROR_FILE_EXISTS or ERROR_ALREADY_EXISTS on Windows.
    /// </summary>
    internal static bool Says(IOException error) => error.HResult is 17 or FileExists or unchecked((int)0x800700B7);
}
