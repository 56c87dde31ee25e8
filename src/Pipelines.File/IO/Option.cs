namespace Pipelines.File.IO;

/// <summary>Checks of options, made when a reader or a writer is created. They throw with the option's name.</summary>
internal static class Option
{
    /// <summary>
    /// FILE_FLAG_NO_BUFFERING, which FileOptions does not name and FileStream accepts. Accepted here, too; opening throws on Windows.
    /// </summary>
    internal const FileOptions NoBuffering = (FileOptions)0x20000000;

    internal static long NotNegative(long value, [CallerMemberName] string option = "")
    {
        RequireNotNegative(value, option);
        return value;
    }

    /// <exception cref="ArgumentOutOfRangeException">The value is out of range.</exception>
    internal static void RequireWithin<T>(T value, T least, T most, string option)
        where T : IComparable<T>
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(value, least, option);
        ArgumentOutOfRangeException.ThrowIfGreaterThan(value, most, option);
    }

    /// <exception cref="ArgumentOutOfRangeException">The value is negative.</exception>
    internal static void RequireNotNegative(long? value, string option)
        => ArgumentOutOfRangeException.ThrowIfNegative(value.GetValueOrDefault(), option);

    /// <exception cref="ArgumentOutOfRangeException">The value is not one of its type.</exception>
    internal static void RequireDefined<T>(T value, string option)
        where T : struct, Enum
    {
        if (!Enum.IsDefined(value))
        {
            throw Unknown(value, option);
        }
    }

    /// <exception cref="ArgumentOutOfRangeException">The value has bits that its type does not name.</exception>
    internal static void RequireKnown(FileShare value, string option)
    {
        if ((value & ~(FileShare.ReadWrite | FileShare.Delete | FileShare.Inheritable)) != 0)
        {
            throw Unknown(value, option);
        }
    }

    /// <inheritdoc cref="RequireKnown(FileShare, string)"/>
    internal static void RequireKnown(FileOptions value, string option)
    {
        const FileOptions known = FileOptions.WriteThrough | FileOptions.Asynchronous | FileOptions.RandomAccess
            | FileOptions.DeleteOnClose | FileOptions.SequentialScan | FileOptions.Encrypted | NoBuffering;
        if ((value & ~known) != 0)
        {
            throw Unknown(value, option);
        }
    }

    /// <inheritdoc cref="RequireKnown(FileShare, string)"/>
    /// <exception cref="PlatformNotSupportedException">The system is Windows.</exception>
    internal static void RequireKnown(UnixFileMode? value, string option)
    {
        if (value is not null && OperatingSystem.IsWindows())
        {
            throw new PlatformNotSupportedException("Windows has no Unix permissions.");
        }

        if (((int)value.GetValueOrDefault() & ~0xFFF) != 0)
        {
            throw Unknown(value.GetValueOrDefault(), option);
        }
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
