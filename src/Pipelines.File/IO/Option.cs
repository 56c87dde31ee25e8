namespace Pipelines.File.IO;

/// <summary>
/// The checks of options. Those of one option are made when it is set, return its value, and throw
/// <see cref="ArgumentOutOfRangeException"/> with its name.
/// </summary>
internal static class Option
{
    /// <summary>FILE_FLAG_NO_BUFFERING, which has no name in the enum and FileStream takes, too: opening refuses it.</summary>
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
    /// For options that have to fit together. The <paramref name="message"/> is a constant, so that one that is not needed costs nothing.
    /// </summary>
    /// <exception cref="ArgumentException">They do not.</exception>
    internal static void Require(bool fits, string message, string option)
    {
        if (!fits)
        {
            throw new ArgumentException(message, option);
        }
    }

    /// <summary>For an option of a file that is opened by path.</summary>
    /// <exception cref="ArgumentException">It is set.</exception>
    internal static void RequireNoHandle(bool isSet, string option)
    {
        if (isSet)
        {
            throw new ArgumentException($"{option} can be set only for a file that is opened by path, not for a handle.", option);
        }
    }

    private static ArgumentOutOfRangeException Unknown<T>(T value, string option) => new(option, value, $"Not a {typeof(T).Name}.");
}
