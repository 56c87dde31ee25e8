namespace Pipelines.File.IO;

/// <summary>Turns an error of the operating system into the exception that <see cref="FileStream"/> throws for it, with the path.</summary>
internal static class FileErrors
{
    /// <summary>From errno(3). <see cref="Exception.HResult"/> is the number, as in the runtime's own exceptions.</summary>
    internal static Exception FromErrno(int errno, string? path)
    {
        string message = Marshal.GetPInvokeErrorMessage(errno);
        IOException exception = new(path is null ? message : $"{message} : '{path}'", errno);
        return errno is Libc.EACCES or Libc.EBADF or Libc.EPERM or Libc.EISDIR
            ? new UnauthorizedAccessException(path is null ? "Access to the path is denied." : $"Access to the path '{path}' is denied.", exception)
            : exception;
    }

    /// <summary>From GetLastError, with the types, the messages and the <see cref="Exception.HResult"/> (HRESULT_FROM_WIN32) of the runtime's own exceptions.</summary>
    internal static Exception FromWin32(int error, string? path)
    {
        string message = Marshal.GetPInvokeErrorMessage(error);
        int hResult = HResultOf(error);
        return error switch
        {
            Kernel32.ERROR_FILE_NOT_FOUND => new FileNotFoundException(path is null ? message : $"Could not find file '{path}'.", path),
            Kernel32.ERROR_PATH_NOT_FOUND => new DirectoryNotFoundException(path is null ? message : $"Could not find a part of the path '{path}'."),
            Kernel32.ERROR_ACCESS_DENIED => new UnauthorizedAccessException(path is null ? "Access to the path is denied." : $"Access to the path '{path}' is denied."),
            Kernel32.ERROR_FILENAME_EXCED_RANGE => new PathTooLongException(
                path is null ? message : $"The path '{path}' is too long, or a component of the specified path is too long."),
            Kernel32.ERROR_SHARING_VIOLATION => new IOException(
                path is null ? message : $"The process cannot access the file '{path}' because it is being used by another process.", hResult),
            Kernel32.ERROR_ALREADY_EXISTS when path is not null => new IOException(
                $"Cannot create '{path}' because a file or directory with the same name already exists.", hResult),
            Kernel32.ERROR_FILE_EXISTS when path is not null => new IOException($"The file '{path}' already exists.", hResult),
            _ => new IOException(path is null ? message : $"{message} : '{path}'.", hResult),
        };
    }

    /// <summary>HRESULT_FROM_WIN32.</summary>
    internal static int HResultOf(int error) => unchecked((int)0x80070000) | error;

    /// <summary>Names the file in an exception that does not name it.</summary>
    internal static Exception WithPath(Exception exception, string? path)
        => path is null || exception.Message.Contains(path, StringComparison.Ordinal) ? exception
            : exception.GetType() == typeof(IOException) ? new IOException($"{exception.Message} : '{path}'", exception) { HResult = exception.HResult }
            : exception.GetType() == typeof(UnauthorizedAccessException) ? new UnauthorizedAccessException($"Access to the path '{path}' is denied.", exception)
            : exception;
}
