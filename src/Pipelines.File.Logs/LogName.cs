namespace Pipelines.File;

/// <summary>A file of a log, as it was found by its name.</summary>
/// <param name="Path">Its full path.</param>
/// <param name="Identity">Its identity; <see langword="default"/> if unknown.</param>
/// <param name="Length">Its length, bytes; 0 if unknown.</param>
/// <param name="LastWritten">When it was last written to, UTC; <see langword="default"/> if unknown.</param>
/// <param name="Pattern">The index of the pattern of the rotated names; -1: it has the log's name.</param>
/// <param name="Number">What stands for # in the pattern; empty if there is none.</param>
internal readonly record struct LogName(string Path, FileIdentity Identity, long Length, DateTime LastWritten, int Pattern, string Number)
{
    private const string Compressed = ".gz";

    /// <summary>Whether the content is compressed by gzip(1).</summary>
    internal bool IsCompressed => Pattern >= 0 && IsCompressedName(Path);

    internal DateTime Created => DateTime.UnixEpoch.AddTicks(Identity.Created / TimeSpan.NanosecondsPerTick);

    /// <summary>
    /// What the age is compared by: when the file was created. A compressed file has the time of the last write of what was compressed.
    /// </summary>
    internal DateTime Age => IsCompressed || Identity.Created == 0 ? LastWritten : Created;

    /// <summary>Whether the file is younger than its last write: somebody has copied, moved or unpacked it with its old time.</summary>
    internal bool HasOldTime => !IsCompressed && Created > LastWritten;

    internal static bool IsCompressedName(string name) => name.EndsWith(Compressed, StringComparison.Ordinal);

    /// <summary>The name without the extension of compressed files.</summary>
    internal static string Plain(string name) => IsCompressedName(name) ? name[..^Compressed.Length] : name;

    /// <summary>
    /// Looks at a file. Returns <see langword="null"/> if there is none. If it may not be looked at, opening it reports the error.
    /// </summary>
    internal static LogName? TryLook(string path, int pattern = -1, string number = "")
        => FileStatus.OfName(path, out FileStatus status) == NameMeaning.Nothing ? null
            : new LogName(path, status.Identity, status.Length, status.LastWritten, pattern, number);
}
