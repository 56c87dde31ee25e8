using Pipelines.File.IO;

namespace Pipelines.File;

/// <summary>
/// Identifies a file, whatever its name is: by the volume, the number of the file there, and, on Linux, the time of its creation. Two
/// identities are equal if they mean the same file. As text, for a checkpoint: <c>fe00000000:c12b8d:18ea2afc0e806c22</c>.
/// </summary>
/// <remarks>
/// <para>Linux: st_dev, st_ino and stx_btime of statx(2). Many file systems give the number of a deleted file to the next new file. The
/// creation time distinguishes the two if the file system keeps it (ext4, XFS and Btrfs do). Windows: FILE_ID_INFO, or
/// BY_HANDLE_FILE_INFORMATION if the file system does not have that.</para>
/// <para>A rename within the volume keeps the identity. A copy, and a move to another volume, create another file. Linux may number volumes
/// anew when the machine starts. In the overlay of a container, a file of the image becomes another file with the first write to it.</para>
/// </remarks>
public readonly struct FileIdentity : IEquatable<FileIdentity>
{
    private const char Separator = ':';

    // Not a UInt128: its layout is not final for ReadyToRun, so code that uses one is compiled anew in every process.
    private readonly ulong _numberHigh;

    internal FileIdentity(ulong volume, ulong number, long created, ulong numberHigh = 0)
    {
        Volume = volume;
        _numberHigh = numberHigh;
        NumberLow = number;
        Created = created;
    }

    /// <summary>
    /// The number of the volume: st_dev of stat(2) with 32 bits each for major and minor number, or VolumeSerialNumber of FILE_ID_INFO.
    /// </summary>
    public ulong Volume { get; }

    /// <summary>The number of the file in its volume: st_ino of stat(2), or FileId of FILE_ID_INFO.</summary>
    public UInt128 Number => new(_numberHigh, NumberLow);

    /// <summary>
    /// When the file was created, in nanoseconds since 1970 (stx_btime of statx(2)). It is 0 if the system does not report it, and on
    /// Windows, where it is not needed.
    /// </summary>
    public long Created { get; }

    /// <summary>The lower 64 bits of <see cref="Number"/>.</summary>
    internal ulong NumberLow { get; }

    /// <summary>Whether both identities mean the same file.</summary>
    public static bool operator ==(FileIdentity left, FileIdentity right) => left.Equals(right);

    /// <summary>Whether the identities mean different files.</summary>
    public static bool operator !=(FileIdentity left, FileIdentity right) => !left.Equals(right);

    /// <summary>Gets the identity of the file that a path names now, for example to find a renamed file again.</summary>
    /// <param name="path">The path of the file, absolute or relative to the current directory. A symbolic link is followed.</param>
    /// <param name="identity">The identity; <see langword="default"/> if the method returns <see langword="false"/>.</param>
    /// <returns>
    /// <see langword="false"/> if the file does not exist, if you may not access it, or if the system is neither Linux nor Windows.
    /// </returns>
    /// <exception cref="ArgumentException"><paramref name="path"/> is empty.</exception>
    public static bool TryGet(string path, out FileIdentity identity)
    {
        ArgumentException.ThrowIfNullOrEmpty(path);
        bool isThere = FileStatus.OfName(path, out FileStatus status) == NameMeaning.File;
        identity = isThere ? status.Identity : default;
        return identity != default;
    }

    /// <summary>Gets the identity of an open file, whatever its name is by now.</summary>
    /// <param name="handle">The file.</param>
    /// <param name="identity">The identity; <see langword="default"/> if the method returns <see langword="false"/>.</param>
    /// <returns><see langword="false"/> if the system does not report it.</returns>
    /// <exception cref="ArgumentNullException"><paramref name="handle"/> is <see langword="null"/>.</exception>
    /// <exception cref="ObjectDisposedException">The handle is closed.</exception>
    public static bool TryGet(SafeFileHandle handle, out FileIdentity identity)
    {
        identity = FileStatus.TryGet(handle, out FileStatus status) ? status.Identity : default;
        return identity != default;
    }

    /// <summary>Parses the text that <see cref="ToString()"/> has returned.</summary>
    /// <param name="s">The text.</param>
    /// <exception cref="ArgumentNullException"><paramref name="s"/> is <see langword="null"/>.</exception>
    /// <exception cref="FormatException">The text is not that of an identity.</exception>
    public static FileIdentity Parse(string s)
    {
        ArgumentNullException.ThrowIfNull(s);
        return TryParse(s, out FileIdentity result) ? result
            : throw new FormatException("This is not the text of a FileIdentity, which is three hexadecimal numbers with colons between, "
                + "for example fe00000000:c12b8d:18ea2afc0e806c22.");
    }

    internal static bool TryParse(ReadOnlySpan<char> s, out FileIdentity result)
    {
        result = default;
        int first = s.IndexOf(Separator);
        int last = s.LastIndexOf(Separator);

        // Number parsing ignores NULs after the digits. A crash may leave NULs at the end of a file, and the number before them may be cut
        // off.
        if (first < 0 || last == first || s.Contains('\0')
            || !ulong.TryParse(s[..first], NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture, out ulong volume)
            || !UInt128.TryParse(s[(first + 1)..last], NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture, out UInt128 number)
            || !long.TryParse(s[(last + 1)..], NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture, out long created))
        {
            return false;
        }

        result = new FileIdentity(volume, (ulong)number, created, (ulong)(number >> 64));
        return true;
    }

    /// <summary>Parses the text that <see cref="ToString()"/> has returned.</summary>
    /// <param name="s">The text, or <see langword="null"/>.</param>
    /// <param name="result">The identity; <see langword="default"/> if the method returns <see langword="false"/>.</param>
    /// <returns>Whether the text is that of an identity.</returns>
    public static bool TryParse([NotNullWhen(true)] string? s, out FileIdentity result) => TryParse(s.AsSpan(), out result);

    /// <summary>
    /// Returns <see cref="Volume"/>, <see cref="Number"/> and <see cref="Created"/> as three hexadecimal numbers with colons between.
    /// </summary>
    public override string ToString()
        => string.Create(CultureInfo.InvariantCulture, $"{Volume:x}{Separator}{Number:x}{Separator}{Created:x}");

    /// <inheritdoc/>
    public bool Equals(FileIdentity other)
        => Volume == other.Volume && NumberLow == other.NumberLow && _numberHigh == other._numberHigh && Created == other.Created;

    /// <inheritdoc/>
    public override bool Equals([NotNullWhen(true)] object? obj) => obj is FileIdentity other && Equals(other);

    /// <inheritdoc/>
    public override int GetHashCode() => HashCode.Combine(Volume, _numberHigh, NumberLow, Created);
}
