namespace Pipelines.File.IO;

/// <summary>What a system call has answered: a number of bytes, or an errno.</summary>
/// <param name="answer">The number of bytes, or the negative errno.</param>
internal readonly struct CallResult(long answer)
{
    internal long Moved => Math.Max(0, answer);

    /// <summary>0 if the call has succeeded.</summary>
    internal int Errno => answer < 0 ? (int)-answer : 0;

    /// <summary>Whether the call would wait, and was made so that it does not.</summary>
    internal bool WouldBlock => answer == -Libc.EAGAIN;

    /// <summary>Whether the kernel, the file system or a seccomp filter refuses a call or its flags as such.</summary>
    internal bool IsUnknownCall => Errno is Libc.ENOSYS or Libc.EOPNOTSUPP or Libc.EPERM or Libc.EINVAL or Libc.ESPIPE;
}
