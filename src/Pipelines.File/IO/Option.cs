namespace Pipelines.File.IO;

/// <summary>Checks of options, made when a reader or a writer is created. They throw with the option's name.</summary>
internal static class Option
{
    /// <summary>
    /// FILE_FLAG_NO_BUFFERING, which FileOptions does not name and FileStream accepts. Accepted here, too; opening throws on Windows.
    /// </summary>
    internal const FileOptions NoBuffering = (FileOptions)0x20000000;

    private const FileShare AnyShare = FileShare.ReadWrite | FileShare.Delete | FileShare.Inheritable;

    private const FileOptions AnyOption = FileOptions.WriteThrough | FileOptions.Asynchronous | FileOptions.RandomAccess
        | FileOptions.DeleteOnClose | FileOptions.SequentialScan | FileOptions.Encrypted | NoBuffering;

    internal const UnixFileMode AnyMode = (UnixFileMode)0xFFF;

    // Not generic: for the first file of a process that would be compiled for each type of the framework, 2 ms in all.

    /// <exception cref="ArgumentOutOfRangeException">The value is out of range.</exception>
    internal static void RequireWithin(long value, long least, long most, [CallerArgumentExpression(nameof(value))] string option = "")
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(value, least, option);
        ArgumentOutOfRangeException.ThrowIfGreaterThan(value, most, option);
    }

    /// <exception cref="ArgumentOutOfRangeException">The value is none of its enumeration, or has bits that are none.</exception>
    internal static void RequireKnown(bool isKnown, int value, string option)
    {
        if (!isKnown)
        {
            throw new ArgumentOutOfRangeException(option, value, "Not a value of its type.");
        }
    }

    /// <summary>Checks what readers and writers have in common.</summary>
    internal static void RequireKnown(FileShare share, FileOptions options, FileCaching caching, FilePipeBackend backend)
    {
        RequireKnown((share & ~AnyShare) == 0, (int)share, "Share");
        RequireKnown((options & ~AnyOption) == 0, (int)options, "FileOptions");
        RequireKnown(caching is FileCaching.Keep or FileCaching.DropBehind, (int)caching, "Caching");
        RequireKnown(backend is >= FilePipeBackend.Auto and <= FilePipeBackend.Portable, (int)backend, "Backend");
    }

    /// <summary>
    /// Checks that options fit together. <paramref name="message"/> is a constant, so that a check that passes costs nothing.
    /// </summary>
    /// <exception cref="ArgumentException">The options do not fit together.</exception>
    internal static void Require(bool fits, string message, string option)
    {
        if (!fits)
        {
            throw new ArgumentException(message, option);
        }
    }

    /// <summary>Checks that an option for files opened by path is not set for a handle.</summary>
    /// <exception cref="ArgumentException">The option is set.</exception>
    internal static void RequireNoHandle(bool isSet, string option)
        => Require(!isSet, isSet ? $"{option} can be set only for a file that is opened by path, not for a handle." : "", option);
}
