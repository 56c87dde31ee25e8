using System.Text.RegularExpressions;
using Pipelines.File.IO;

namespace Pipelines.File.Follow;

/// <summary>A file of a log.</summary>
/// <param name="Path">Its whole path.</param>
/// <param name="Identity">Which file it is; <see langword="default"/> where the system does not tell.</param>
/// <param name="Length">Bytes; 0 where the system does not tell.</param>
/// <param name="LastWritten">When it was last written to.</param>
internal readonly record struct LogName(string Path, FileIdentity Identity, long Length, DateTime LastWritten);

/// <summary>The files of a log at one moment: the one that has its name, and those beside it that once had it.</summary>
/// <param name="Named">The file that has the name.</param>
/// <param name="Rotated">The files that were rotated, the oldest first.</param>
internal sealed record LogListing(LogName? Named, IReadOnlyList<LogName> Rotated)
{
    /// <summary>How often the files are looked at until two looks agree, as renames between make others seem to be missing.</summary>
    private const int MaxLooks = 8;

    /// <exception cref="IOException">No descriptor is left to look at a folder with: which files there are is not known.</exception>
    internal static LogListing Take(string path, IReadOnlyList<string> patterns)
    {
        LogListing listing = Look(path, patterns);
        for (int i = 1; i < MaxLooks; i++)
        {
            LogListing before = listing;
            listing = Look(path, patterns);
            if (Names(listing).SequenceEqual(Names(before)))
            {
                break;
            }
        }

        return listing;

        static IEnumerable<(string Path, FileIdentity Identity)> Names(LogListing files)
            => files.Rotated.Append(files.Named.GetValueOrDefault()).Select(static file => (file.Path, file.Identity));
    }

    private static LogListing Look(string path, IReadOnlyList<string> patterns)
    {
        List<LogName> rotated = [];
        foreach (string pattern in patterns)
        {
            string folder = Path.Combine(Path.GetDirectoryName(path) ?? path, Path.GetDirectoryName(pattern) ?? pattern);
            Regex name = RotatedName.ToRegex(Path.GetFileName(pattern), Path.GetFileName(path));
            foreach (string file in FilesOf(folder))
            {
                if (file != path && name.IsMatch(Path.GetFileName(file.AsSpan()))
                    && TryLook(file) is { } found && found.Identity != default
                        && rotated.TrueForAll(other => other.Identity != found.Identity))
                {
                    rotated.Add(found);
                }
            }
        }

        // The name last: a file that is renamed between is seen twice then, and not missed.
        LogName? named = TryLook(path);
        rotated.RemoveAll(file => file.Identity == named?.Identity);

        // Files that were made within one tick of the system's clock are told apart by when they were last written to, and else by their
        // number: log.2 is older than log.1.
        IEnumerable<LogName> byAge = rotated
            .OrderBy(static file => file.Identity.Created)
            .ThenBy(static file => file.LastWritten)
            .ThenByDescending(static file => file.Path.Length)
            .ThenByDescending(static file => file.Path, StringComparer.Ordinal);
        return new LogListing(named, [.. byAge]);
    }

    private static LogName? TryLook(string path)
    {
        if (FileStatus.OfName(path, out FileStatus status) == NameMeaning.Nothing)
        {
            return null;
        }

        try
        {
            // 1601: it was renamed between, and is seen under its other name, or by the next look.
            DateTime lastWritten = System.IO.File.GetLastWriteTimeUtc(path);
            return lastWritten == DateTime.FromFileTimeUtc(0) ? null : new LogName(path, status.Identity, status.Length, lastWritten);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // Nobody may look at it: opening tells.
            return new LogName(path, status.Identity, status.Length, default);
        }
    }

    private static string[] FilesOf(string folder)
    {
        try
        {
            return Directory.GetFiles(folder);
        }
        catch (Exception e) when (e is UnauthorizedAccessException || (e is IOException error && !SpareDescriptors.AreShort(error)))
        {
            // There is none, or it cannot be looked at: the name alone counts.
            return [];
        }
    }
}
