using Pipelines.File;

namespace TailSample;

/// <summary>The files beside a log that once had its name.</summary>
internal static class RotatedFiles
{
    /// <summary>The file of that identity under whatever name in the folder; <see langword="null"/>: it is gone, or was compressed.</summary>
    internal static string? Find(string name, FileIdentity identity)
    {
        foreach (string path in Siblings(name))
        {
            if (FileIdentity.TryGet(path, out FileIdentity found) && found == identity)
            {
                return path;
            }
        }

        return null;
    }

    /// <summary>
    /// What had the name between two files, the oldest first: rotated twice before anybody looked. They are named as rotated files are (log.1, log-20260801), and were made after the
    /// one and before the other.
    /// </summary>
    internal static IReadOnlyList<string> Between(string name, FileIdentity older, DateTime olderLastWritten, FileIdentity newer)
    {
        List<(FileIdentity Identity, DateTime LastWritten, string Path)> found = [];
        foreach (string path in Siblings(name))
        {
            ReadOnlySpan<char> suffix = Path.GetFileName(path.AsSpan())[Path.GetFileName(name.AsSpan()).Length..];
            if (suffix.Length < 2 || suffix[0] is not ('.' or '-') || !char.IsAsciiDigit(suffix[^1]) || !FileIdentity.TryGet(path, out FileIdentity identity) || identity == older || identity == newer)
            {
                continue;
            }

            DateTime lastWritten = File.GetLastWriteTimeUtc(path);
            bool isBetween = older.Created != 0 ? identity.Created > older.Created && identity.Created < newer.Created : lastWritten >= olderLastWritten;
            if (isBetween)
            {
                found.Add((identity, lastWritten, path));
            }
        }

        return [.. found.OrderBy(static file => file.Identity.Created).ThenBy(static file => file.LastWritten).Select(static file => file.Path)];
    }

    private static string[] Siblings(string name)
    {
        try
        {
            return [.. Directory.EnumerateFiles(Path.GetDirectoryName(name)!).Where(path => Path.GetFileName(path.AsSpan()).StartsWith(Path.GetFileName(name.AsSpan()), StringComparison.Ordinal))];
        }
        catch (DirectoryNotFoundException)
        {
            return [];
        }
    }
}
