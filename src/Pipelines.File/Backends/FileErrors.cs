using System.Runtime.InteropServices;
using Pipelines.File.Interop;

namespace Pipelines.File.Backends;

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

    /// <summary>Names the file in an exception that does not name it.</summary>
    internal static Exception WithPath(Exception exception, string? path)
        => path is null || exception.Message.Contains(path, StringComparison.Ordinal) || exception.GetType() != typeof(IOException)
            ? exception
            : new IOException($"{exception.Message} : '{path}'", exception) { HResult = exception.HResult };
}
