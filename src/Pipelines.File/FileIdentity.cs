using System.Diagnostics.CodeAnalysis;
using System.Globalization;
using Pipelines.File.IO;

namespace Pipelines.File;

/// <summary>
/// Which file it is, whatever its name: the volume, the file's number there, and on Linux the moment when it was made. Two are equal while they mean the same file. As text, for a
/// checkpoint: <c>fe00000000:c12b8d:18ea2afc0e806c22</c>.
/// </summary>
/// <remarks>
/// <para>Linux: st_dev, st_ino and stx_btime of statx(2). Many file systems give the number of a deleted file to the next one that is made; the moment tells them apart, where the file system keeps
/// it (ext4, XFS, Btrfs do). Windows: FILE_ID_INFO, where the file number is never given out again on NTFS and ReFS, or BY_HANDLE_FILE_INFORMATION where the file system lacks that.</para>
/// <para>A rename within the volume keeps it; a copy, and a rename to another volume, make another file. Linux may number volumes anew when the machine starts. In an
/// overlay, as containers have it, a file of the image becomes another with the first write to it.</para>
/// </remarks>
public readonly struct FileIdentity : IEquatable<FileIdentity>, ISpanFormattable, ISpanParsable<FileIdentity>
{
    private const char Separator = ':';

    // 16, 32 and 16 hexadecimal digits, and two separators.
    private const int MaxTextLength = 66;

    internal FileIdentity(ulong volume, UInt128 number, long created)
    {
        Volume = volume;
        Number = number;
        Created = created;
    }

    /// <summary>The number of the volume: st_dev of stat(2), major and minor number in 32 bits each, or VolumeSerialNumber of FILE_ID_INFO.</summary>
    public ulong Volume { get; }

    /// <summary>The number of the file in its volume: st_ino of stat(2), or FileId of FILE_ID_INFO.</summary>
    public UInt128 Number { get; }

    /// <summary>When the file was made, nanoseconds since 1970 (stx_btime of statx(2)); 0 where the system does not tell, and on Windows, where the number says enough.</summary>
    public long Created { get; }

    /// <summary>Whether both mean the same file.</summary>
    public static bool operator ==(FileIdentity left, FileIdentity right) => left.Equals(right);

    /// <summary>Whether they mean different files.</summary>
    public static bool operator !=(FileIdentity left, FileIdentity right) => !left.Equals(right);

    /// <summary>The identity of the file that a path means now, to find a file again under another name.</summary>
    /// <param name="path">Absolute, or relative to the current directory. A link is followed.</param>
    /// <param name="identity">The identity; <see langword="default"/> where there is none.</param>
    /// <returns><see langword="false"/>: there is no such file, it cannot be looked at, or this system does not tell (other than Linux and Windows).</returns>
    /// <exception cref="ArgumentException"><paramref name="path"/> is empty.</exception>
    public static bool TryGet(string path, out FileIdentity identity)
    {
        ArgumentException.ThrowIfNullOrEmpty(path);
        bool isThere = FileStatus.OfName(Path.GetFullPath(path), out FileStatus status) == NameMeaning.File;
        identity = isThere ? status.Identity : default;
        return identity != default;
    }

    /// <summary>Reads what <see cref="ToString()"/> has written.</summary>
    /// <param name="s">The text.</param>
    /// <param name="provider">Ignored: the text is the same everywhere.</param>
    /// <exception cref="FormatException">It is not the text of an identity.</exception>
    public static FileIdentity Parse(ReadOnlySpan<char> s, IFormatProvider? provider = null)
        => TryParse(s, provider, out FileIdentity result) ? result : throw new FormatException("This is not the text of a FileIdentity, which is three hexadecimal numbers with colons between: fe00000000:c12b8d:18ea2afc0e806c22, for example.");

    /// <inheritdoc cref="Parse(ReadOnlySpan{char}, IFormatProvider?)"/>
    /// <exception cref="ArgumentNullException"><paramref name="s"/> is <see langword="null"/>.</exception>
    public static FileIdentity Parse(string s, IFormatProvider? provider = null)
    {
        ArgumentNullException.ThrowIfNull(s);
        return Parse(s.AsSpan(), provider);
    }

    /// <summary>Reads what <see cref="ToString()"/> has written.</summary>
    /// <param name="s">The text.</param>
    /// <param name="provider">Ignored: the text is the same everywhere.</param>
    /// <param name="result">The identity; <see langword="default"/> where the text is none.</param>
    /// <returns>Whether the text is that of an identity.</returns>
    public static bool TryParse(ReadOnlySpan<char> s, IFormatProvider? provider, out FileIdentity result)
    {
        result = default;
        int first = s.IndexOf(Separator);
        int last = s.LastIndexOf(Separator);

        // Number parsing ignores NULs behind the digits, which is what a crash leaves of the end of a file: the number before them may be cut off.
        if (first < 0 || last == first || s.Contains('\0')
            || !ulong.TryParse(s[..first], NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture, out ulong volume)
            || !UInt128.TryParse(s[(first + 1)..last], NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture, out UInt128 number)
            || !long.TryParse(s[(last + 1)..], NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture, out long created))
        {
            return false;
        }

        result = new FileIdentity(volume, number, created);
        return true;
    }

    /// <inheritdoc cref="TryParse(ReadOnlySpan{char}, IFormatProvider?, out FileIdentity)"/>
    public static bool TryParse([NotNullWhen(true)] string? s, IFormatProvider? provider, out FileIdentity result) => TryParse(s.AsSpan(), provider, out result);

    /// <summary>Reads what <see cref="ToString()"/> has written.</summary>
    /// <param name="s">The text.</param>
    /// <param name="result">The identity; <see langword="default"/> where the text is none.</param>
    /// <returns>Whether the text is that of an identity.</returns>
    public static bool TryParse([NotNullWhen(true)] string? s, out FileIdentity result) => TryParse(s.AsSpan(), provider: null, out result);

    /// <summary>Three hexadecimal numbers with colons between: <see cref="Volume"/>, <see cref="Number"/> and <see cref="Created"/>.</summary>
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
    /// <param name="destination">66 characters are enough.</param>
    /// <param name="charsWritten">How many there are.</param>
    /// <param name="format">Ignored.</param>
    /// <param name="provider">Ignored: the text is the same everywhere.</param>
    /// <returns>Whether there was room.</returns>
    public bool TryFormat(Span<char> destination, out int charsWritten, ReadOnlySpan<char> format = default, IFormatProvider? provider = null)
        => destination.TryWrite(CultureInfo.InvariantCulture, $"{Volume:x}{Separator}{Number:x}{Separator}{Created:x}", out charsWritten);

    /// <inheritdoc/>
    public bool Equals(FileIdentity other) => Volume == other.Volume && Number == other.Number && Created == other.Created;

    /// <inheritdoc/>
    public override bool Equals([NotNullWhen(true)] object? obj) => obj is FileIdentity other && Equals(other);

    /// <inheritdoc/>
    public override int GetHashCode() => HashCode.Combine(Volume, Number, Created);
}
