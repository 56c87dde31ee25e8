using System.Diagnostics.CodeAnalysis;
using System.Globalization;
using System.Text.Json.Serialization;

namespace Pipelines.File;

/// <summary>
/// A place in a file that is found again after a restart, whatever the name of the file is by then. As text, and as a JSON string: <c>fe00000000:c12b8d:18ea2afc0e806c22@13</c>.
/// </summary>
/// <param name="Identity">Which file it is.</param>
/// <param name="Offset">The file offset, in bytes, of the first byte that was not used yet.</param>
[JsonConverter(typeof(FileCheckpointJsonConverter))]
public readonly record struct FileCheckpoint(FileIdentity Identity, long Offset) : ISpanFormattable, ISpanParsable<FileCheckpoint>
{
    private const char Separator = '@';

    /// <summary>The longest text: that of an identity, the separator, and 19 digits.</summary>
    internal const int MaxTextLength = 86;

    /// <summary>The file offset, in bytes, of the first byte that was not used yet.</summary>
    /// <exception cref="ArgumentOutOfRangeException">It is negative.</exception>
    public long Offset { get; init => field = NotNegative(value); } = NotNegative(Offset);

    /// <summary>Reads what <see cref="ToString()"/> has written.</summary>
    /// <param name="s">The text.</param>
    /// <param name="provider">Ignored: the text is the same everywhere.</param>
    /// <exception cref="FormatException">It is not the text of a checkpoint.</exception>
    public static FileCheckpoint Parse(ReadOnlySpan<char> s, IFormatProvider? provider = null)
        => TryParse(s, provider, out FileCheckpoint result) ? result : throw new FormatException("This is not the text of a FileCheckpoint, which is an identity and an offset: fe00000000:c12b8d:18ea2afc0e806c22@13, for example.");

    /// <inheritdoc cref="Parse(ReadOnlySpan{char}, IFormatProvider?)"/>
    /// <exception cref="ArgumentNullException"><paramref name="s"/> is <see langword="null"/>.</exception>
    public static FileCheckpoint Parse(string s, IFormatProvider? provider = null)
    {
        ArgumentNullException.ThrowIfNull(s);
        return Parse(s.AsSpan(), provider);
    }

    /// <summary>Reads what <see cref="ToString()"/> has written.</summary>
    /// <param name="s">The text; <see langword="null"/> is none.</param>
    /// <param name="result">The checkpoint; <see langword="default"/> where the text is none.</param>
    /// <returns>Whether the text is that of a checkpoint.</returns>
    public static bool TryParse([NotNullWhen(true)] string? s, out FileCheckpoint result) => TryParse(s.AsSpan(), null, out result);

    /// <inheritdoc cref="TryParse(string?, out FileCheckpoint)"/>
    /// <param name="s">The text; <see langword="null"/> is none.</param>
    /// <param name="provider">Ignored: the text is the same everywhere.</param>
    /// <param name="result">The checkpoint; <see langword="default"/> where the text is none.</param>
    public static bool TryParse([NotNullWhen(true)] string? s, IFormatProvider? provider, out FileCheckpoint result) => TryParse(s.AsSpan(), provider, out result);

    /// <inheritdoc cref="TryParse(string?, IFormatProvider?, out FileCheckpoint)"/>
    public static bool TryParse(ReadOnlySpan<char> s, IFormatProvider? provider, out FileCheckpoint result)
    {
        int separator = s.IndexOf(Separator);

        // Number parsing ignores NULs behind the digits, which is what a crash leaves of the end of a file.
        if (separator < 0 || s.Contains('\0')
            || !FileIdentity.TryParse(s[..separator], provider, out FileIdentity identity)
            || !long.TryParse(s[(separator + 1)..], NumberStyles.None, CultureInfo.InvariantCulture, out long offset))
        {
            result = default;
            return false;
        }

        result = new FileCheckpoint(identity, offset);
        return true;
    }

    /// <summary>The text of <see cref="Identity"/>, an @, and <see cref="Offset"/> in decimal digits.</summary>
    public override string ToString()
    {
        Span<char> text = stackalloc char[MaxTextLength];
        _ = TryFormat(text, out int length, default, CultureInfo.InvariantCulture);
        return new string(text[..length]);
    }

    /// <inheritdoc cref="ToString()"/>
    /// <param name="format">Ignored.</param>
    /// <param name="formatProvider">Ignored: the text is the same everywhere.</param>
    public string ToString(string? format, IFormatProvider? formatProvider) => ToString();

    /// <summary>Writes the text of <see cref="ToString()"/>.</summary>
    /// <param name="destination">86 characters are enough.</param>
    /// <param name="charsWritten">How many there are.</param>
    /// <param name="format">Ignored.</param>
    /// <param name="provider">Ignored: the text is the same everywhere.</param>
    /// <returns>Whether there was room.</returns>
    public bool TryFormat(Span<char> destination, out int charsWritten, ReadOnlySpan<char> format = default, IFormatProvider? provider = null)
        => destination.TryWrite(CultureInfo.InvariantCulture, $"{Identity}{Separator}{Offset}", out charsWritten);

    private static long NotNegative(long offset)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(offset, nameof(Offset));
        return offset;
    }
}
