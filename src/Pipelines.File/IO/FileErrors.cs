namespace Pipelines.File.IO;

/// <summary>
/// Turns an error of the operating system into the exception that <see cref="FileStream"/> throws for it, which names the path.
/// </summary>
internal static class FileErrors
{
    /// <summary>From errno(3), which is the <see cref="Exception.HResult"/>, as in the runtime's own exceptions.</summary>
    internal static Exception FromErrno(int errno, string? path)
    {
        string message = Marshal.GetPInvokeErrorMessage(errno);
        IOException exception = new(path is null ? message : $"{message} : '{path}'", errno);
        return errno is Libc.EACCES or Libc.EBADF or Libc.EPERM or Libc.EISDIR ? Denied(path, exception) : exception;
    }

    /// <summary>From the errno of a call that makes or changes a name: ENOENT and ENOTDIR mean its folder.</summary>
    internal static Exception OfNaming(int errno, string path) => errno switch
    {
        Libc.ENOENT or Libc.ENOTDIR => new DirectoryNotFoundException($"Could not find a part of the path '{path}'."),
        _ when errno == Libc.ENAMETOOLONG
            => new PathTooLongException($"The path '{path}' is too long, or a component of the specified path is too long."),
        _ => FromErrno(errno, path),
    };

    /// <summary>
    /// From GetLastError. <see cref="Exception.HResult"/> is HRESULT_FROM_WIN32 of it, as in the runtime's own exceptions.
    /// </summary>
    internal static Exception FromWin32(int error, string? path)
    {
        string message = Marshal.GetPInvokeErrorMessage(error);
        return error switch
        {
            Kernel32.ERROR_PATH_NOT_FOUND => new DirectoryNotFoundException($"Could not find a part of the path '{path}'."),
            Kernel32.ERROR_ACCESS_DENIED => Denied(path),
            _ => new IOException(path is null ? message : $"{message} : '{path}'.", unchecked((int)0x80070000) | error),
        };
    }

    /// <summary>
    /// Adds the path to an exception whose message does not contain it. RandomAccess throws ArgumentOutOfRangeException for EFBIG, the
    /// limit of file sizes, which no argument is to blame for.
    /// </summary>
    internal static Exception WithPath(Exception exception, string? path)
        => exception is ArgumentOutOfRangeException && !OperatingSystem.IsWindows() ? FromErrno(Libc.EFBIG, path)
            : path is null || exception.Message.Contains(path, StringComparison.Ordinal) ? exception
            : exception.GetType() == typeof(IOException)
                ? new IOException($"{exception.Message} : '{path}'", exception) { HResult = exception.HResult }
            : exception.GetType() == typeof(UnauthorizedAccessException) ? Denied(path, exception)
            : exception;

    private static UnauthorizedAccessException Denied(string? path, Exception? cause = null)
        => new(path is null ? "Access to the path is denied." : $"Access to the path '{path}' is denied.", cause);
}
