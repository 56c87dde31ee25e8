using Microsoft.Win32.SafeHandles;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// The times of files. A file system may hold some that a <see cref="DateTime"/>, or an entity tag, cannot: of such a file nothing is known
/// but that it is there.
/// </summary>
internal static class FileTimes
{
    /// <summary>What stands for a time that cannot be held: the first one of FILETIME, which entity tags are made of.</summary>
    internal static readonly DateTime Unknown = DateTime.FromFileTimeUtc(0);

    internal static DateTime WrittenOf(FileSystemInfo file) => Held(static file => file.LastWriteTimeUtc, file);

    internal static DateTime WrittenOf(SafeFileHandle file) => Held(System.IO.File.GetLastWriteTimeUtc, file);

    internal static DateTime WrittenOf(string path) => Held(System.IO.File.GetLastWriteTimeUtc, path);

    internal static DateTime AccessedOf(SafeFileHandle file) => Held(System.IO.File.GetLastAccessTimeUtc, file);

    /// <summary>A time that <paramref name="ask"/> tells of a file, or <see cref="Unknown"/>.</summary>
    internal static DateTime Held<T>(Func<T, DateTime> ask, T file)
    {
        try
        {
            DateTime time = ask(file);
            return time < Unknown ? Unknown : time;
        }
        catch (ArgumentOutOfRangeException)
        {
            return Unknown;
        }
    }
}
