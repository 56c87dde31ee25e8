namespace Pipelines.File.IO;

/// <summary>
/// Checks of options. The check of one option is made when it is set, returns the value, and throws
/// <see cref="ArgumentOutOfRangeException"/> with the option's name.
/// </summary>
internal static class Option
{
    /// <summary>
    /// FILE_FLAG_NO_BUFFERING, which FileOptions does not name and FileStream accepts. Accepted here, too; opening throws on Windows.
    /// </summary>
    internal const FileOptions NoBuffering = (FileOptions)0x20000000;

    internal static T Within<T>(T value, T least, T most, [CallerMemberName] string option = "")
        where T : IComparable<T>
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(value, least, option);
        ArgumentOutOfRangeException.ThrowIfGreaterThan(value, most, option);
        return value;
    }

    internal static long NotNegative(long value, [CallerMemberName] string option = "") => Within(value, 0, long.MaxValue, option);

    internal static long? NotNegative(long? value, [CallerMemberName] string option = "")
    {
        _ = NotNegative(value ?? 0, option);
        return value;
    }

    internal static T Defined<T>(T value, [CallerMemberName] string option = "")
        where T : struct, Enum
        => Enum.IsDefined(value) ? value : throw Unknown(value, option);

    internal static FileShare Known(FileShare value, [CallerMemberName] string option = "")
        => (value & ~(FileShare.ReadWrite | FileShare.Delete | FileShare.Inheritable)) == 0 ? value : throw Unknown(value, option);

    internal static FileOptions Known(FileOptions value, [CallerMemberName] string option = "")
    {
        const FileOptions known = FileOptions.WriteThrough | FileOptions.Asynchronous | FileOptions.RandomAccess
            | FileOptions.DeleteOnClose | FileOptions.SequentialScan | FileOptions.Encrypted | NoBuffering;
        return (value & ~known) == 0 ? value : throw Unknown(value, option);
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
    {
        if (isSet)
        {
            throw new ArgumentException($"{option} can be set only for a file that is opened by path, not for a handle.", option);
        }
    }

    private static ArgumentOutOfRangeException Unknown<T>(T value, string option) => new(option, value, $"Not a {typeof(T).Name}.");
}
