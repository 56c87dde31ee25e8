using System.Text.Json.Serialization;

namespace Pipelines.File;

/// <summary>
/// A position in a file that a program can find again after a restart, even if the file was renamed, copied or compressed. As text, and as
/// a JSON string: <c>fe00000000:c12b8d:18ea2afc0e806c22@13#2:9b1c04d2e88f3a57</c>. The 2 is the version of the hash.
/// </summary>
/// <remarks>
/// <see langword="default"/> is no checkpoint: it has no text, and converting it throws <see cref="InvalidOperationException"/>, so that it
/// does not overwrite one that was saved.
/// </remarks>
/// <param name="Identity">The identity of the file.</param>
/// <param name="Offset">The file offset, in bytes, of the first byte that was not used yet.</param>
[JsonConverter(typeof(FileCheckpointJsonConverter))]
public readonly record struct FileCheckpoint(FileIdentity Identity, long Offset) : IParsable<FileCheckpoint>
{
    private const char Separator = '@';
    private const string HashSeparator = "#2:";
    private const int HashDigits = 16;

    /// <summary>
    /// The file offset, in bytes, of the first byte that was not used yet. Of a compressed file, the offset in its uncompressed content.
    /// </summary>
    /// <remarks>Setting it sets <see cref="ContentHash"/> to 0, because other bytes are before another offset.</remarks>
    /// <exception cref="ArgumentOutOfRangeException">The value is negative.</exception>
    public long Offset
    {
        get;
        init => (field, ContentHash) = (NotNegative(value), 0);
    } = NotNegative(Offset);

    /// <summary>
    /// A hash of the line before <see cref="Offset"/>, of at least 64 and at most 1,024 bytes, by which a <see cref="LogFollower"/>
    /// recognizes the file. 0: unknown.
    /// </summary>
    public ulong ContentHash { get; init; }

    /// <summary>Parses the text that <see cref="ToString()"/> has returned. A line end after it is ignored.</summary>
    /// <param name="s">The text.</param>
    /// <param name="provider">Ignored: the text does not depend on the culture.</param>
    /// <exception cref="FormatException">The text is not that of a checkpoint.</exception>
    /// <exception cref="ArgumentNullException"><paramref name="s"/> is <see langword="null"/>.</exception>
    public static FileCheckpoint Parse(string s, IFormatProvider? provider = null)
        => TryParse(s ?? throw new ArgumentNullException(nameof(s)), provider, out FileCheckpoint result) ? result
            : throw new FormatException("This is not the text of a FileCheckpoint, which is an identity and an offset, "
                + "for example fe00000000:c12b8d:18ea2afc0e806c22@13.");

    /// <summary>Parses the text that <see cref="ToString()"/> has returned.</summary>
    /// <param name="s">The text, or <see langword="null"/>.</param>
    /// <param name="result">The checkpoint; <see langword="default"/> if the method returns <see langword="false"/>.</param>
    /// <returns>Whether the text is that of a checkpoint.</returns>
    public static bool TryParse([NotNullWhen(true)] string? s, out FileCheckpoint result) => TryParse(s, null, out result);

    /// <inheritdoc cref="TryParse(string?, out FileCheckpoint)"/>
    /// <param name="s">The text, or <see langword="null"/>.</param>
    /// <param name="provider">Ignored: the text does not depend on the culture.</param>
    /// <param name="result">The checkpoint; <see langword="default"/> if the method returns <see langword="false"/>.</param>
    public static bool TryParse([NotNullWhen(true)] string? s, IFormatProvider? provider, out FileCheckpoint result)
    {
        ReadOnlySpan<char> text = s.AsSpan().TrimEnd("\r\n");
        int separator = text.IndexOf(Separator);
        int end = text.IndexOf(HashSeparator) is int found and >= 0 ? found : text.Length;
        ulong hash = 0;

        // Number parsing ignores NULs after the digits, and a crash can leave NULs at the end of a file.
        bool isParsed = separator >= 0 && separator < end && !text.Contains('\0');
        isParsed &= FileIdentity.TryParse(isParsed ? text[..separator].ToString() : null, out FileIdentity identity);
        isParsed &= long.TryParse(
            isParsed ? text[(separator + 1)..end] : default, NumberStyles.None, CultureInfo.InvariantCulture, out long offset);
        isParsed &= end == text.Length || (text.Length == end + HashSeparator.Length + HashDigits && ulong.TryParse(
            text[(end + HashSeparator.Length)..], NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture, out hash) && hash != 0);
        result = isParsed ? new FileCheckpoint(identity, offset) { ContentHash = hash } : default;
        return result != default;
    }

    /// <summary>
    /// Returns the text of <see cref="Identity"/>, an @, and <see cref="Offset"/> as a decimal number; then #2: and
    /// <see cref="ContentHash"/> as a hexadecimal number if that is known.
    /// </summary>
    /// <exception cref="InvalidOperationException">This is <see langword="default"/>, which is no checkpoint.</exception>
    public override string ToString()
        => this == default ? throw new InvalidOperationException("The checkpoint is not set: no line was used yet.")
            : ContentHash == 0 ? string.Create(CultureInfo.InvariantCulture, $"{Identity}{Separator}{Offset}")
            : string.Create(CultureInfo.InvariantCulture, $"{Identity}{Separator}{Offset}{HashSeparator}{ContentHash:x16}");

    private static long NotNegative(long offset)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(offset, nameof(Offset));
        return offset;
    }
}
