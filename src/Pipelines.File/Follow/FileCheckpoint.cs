using System.Text.Json.Serialization;
using Pipelines.File.IO;

namespace Pipelines.File;

/// <summary>
/// A position in a file that a program can find again after a restart, even if the file was renamed. As text, and as a JSON string:
/// <c>fe00000000:c12b8d:18ea2afc0e806c22@13</c>.
/// </summary>
/// <param name="Identity">The identity of the file.</param>
/// <param name="Offset">The file offset, in bytes, of the first byte that was not used yet.</param>
[JsonConverter(typeof(FileCheckpointJsonConverter))]
public readonly record struct FileCheckpoint(FileIdentity Identity, long Offset) : ISpanFormattable, ISpanParsable<FileCheckpoint>
{
    private const char Separator = '@';

    /// <summary>The file offset, in bytes, of the first byte that was not used yet.</summary>
    /// <exception cref="ArgumentOutOfRangeException">The value is negative.</exception>
    public long Offset { get; init => field = Option.NotNegative(value); } = Option.NotNegative(Offset, nameof(Offset));

    /// <summary>Parses the text that <see cref="ToString()"/> has returned. A line end after it is ignored.</summary>
    /// <param name="s">The text.</param>
    /// <param name="provider">Ignored: the text does not depend on the culture.</param>
    /// <exception cref="FormatException">The text is not that of a checkpoint.</exception>
    public static FileCheckpoint Parse(ReadOnlySpan<char> s, IFormatProvider? provider = null)
        => TryParse(s, provider, out FileCheckpoint result) ? result
            : throw new FormatException("This is not the text of a FileCheckpoint, which is an identity and an offset, "
                + "for example fe00000000:c12b8d:18ea2afc0e806c22@13.");

    /// <inheritdoc cref="Parse(ReadOnlySpan{char}, IFormatProvider?)"/>
    /// <exception cref="ArgumentNullException"><paramref name="s"/> is <see langword="null"/>.</exception>
    public static FileCheckpoint Parse(string s, IFormatProvider? provider = null)
    {
        ArgumentNullException.ThrowIfNull(s);
        return Parse(s.AsSpan(), provider);
    }

    /// <summary>Parses the text that <see cref="ToString()"/> has returned.</summary>
    /// <param name="s">The text, or <see langword="null"/>.</param>
    /// <param name="result">The checkpoint; <see langword="default"/> if the method returns <see langword="false"/>.</param>
    /// <returns>Whether the text is that of a checkpoint.</returns>
    public static bool TryParse([NotNullWhen(true)] string? s, out FileCheckpoint result) => TryParse(s.AsSpan(), null, out result);

    /// <inheritdoc cref="TryParse(string?, out FileCheckpoint)"/>
    /// <param name="s">The text, or <see langword="null"/>.</param>
    /// <param name="provider">Ignored: the text does not depend on the culture.</param>
    /// <param name="result">The checkpoint; <see langword="default"/> if the method returns <see langword="false"/>.</param>
    public static bool TryParse([NotNullWhen(true)] string? s, IFormatProvider? provider, out FileCheckpoint result)
        => TryParse(s.AsSpan(), provider, out result);

    /// <inheritdoc cref="TryParse(string?, IFormatProvider?, out FileCheckpoint)"/>
    public static bool TryParse(ReadOnlySpan<char> s, IFormatProvider? provider, out FileCheckpoint result)
    {
        s = s.TrimEnd("\r\n");
        int separator = s.IndexOf(Separator);

        // Number parsing ignores NULs after the digits, and a crash can leave NULs at the end of a file.
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

    /// <summary>Returns the text of <see cref="Identity"/>, an @, and <see cref="Offset"/> as a decimal number.</summary>
    public override string ToString() => string.Create(CultureInfo.InvariantCulture, $"{Identity}{Separator}{Offset}");

    /// <inheritdoc cref="ToString()"/>
    /// <param name="format">Ignored.</param>
    /// <param name="formatProvider">Ignored: the text does not depend on the culture.</param>
    public string ToString(string? format, IFormatProvider? formatProvider) => ToString();

    /// <summary>Writes the text of <see cref="ToString()"/> into a span.</summary>
    /// <param name="destination">The span that receives the text; 86 characters are always enough.</param>
    /// <param name="charsWritten">The number of characters that were written.</param>
    /// <param name="format">Ignored.</param>
    /// <param name="provider">Ignored: the text does not depend on the culture.</param>
    /// <returns>Whether the text fitted.</returns>
    public bool TryFormat(Span<char> destination, out int charsWritten, ReadOnlySpan<char> format = default,
        IFormatProvider? provider = null)
        => destination.TryWrite(CultureInfo.InvariantCulture, $"{Identity}{Separator}{Offset}", out charsWritten);
}
