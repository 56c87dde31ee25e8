using System.Text.RegularExpressions;
using Pipelines.File.IO;

namespace Pipelines.File.Follow;

/// <summary>A file of a log, as it was found by its name.</summary>
/// <param name="Path">Its full path.</param>
/// <param name="Identity">Its identity; <see langword="default"/> if unknown.</param>
/// <param name="Length">Its length, bytes; 0 if unknown.</param>
/// <param name="LastWritten">When it was last written to, UTC; <see langword="default"/> if unknown.</param>
internal readonly record struct LogName(string Path, FileIdentity Identity, long Length, DateTime LastWritten);

/// <summary>The files of a log at one moment: the one that has its name, and the rotated ones.</summary>
/// <param name="Named">The file that has the log's name, or <see langword="null"/>.</param>
/// <param name="Rotated">The files whose names match a pattern, the oldest first.</param>
internal sealed record LogListing(LogName? Named, IReadOnlyList<LogName> Rotated)
{
    /// <summary>How often to list the files at most, until two listings agree: a rename during a listing can hide files from it.</summary>
    private const int MaxLooks = 8;

    /// <exception cref="IOException">No descriptor is free to list a folder, so it is unknown which files there are.</exception>
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

        // The log's name last: a file that gets it meanwhile is seen twice, and not missed. One that loses it meanwhile may be missed: then
        // the next listing differs, and Take lists again.
        LogName? named = TryLook(path);
        rotated.RemoveAll(file => file.Identity == named?.Identity);

        // Files with the same birth time (within one tick of the kernel's clock, or unknown) are ordered by their last write, and if that
        // is the same, too, by their number: log.2 is older than log.1.
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
            // GetLastWriteTimeUtc returns the year 1601 if there is no file: it was renamed meanwhile, and is seen under its new name, or
            // by the next listing.
            DateTime lastWritten = System.IO.File.GetLastWriteTimeUtc(path);
            return lastWritten == DateTime.FromFileTimeUtc(0) ? null : new LogName(path, status.Identity, status.Length, lastWritten);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // Its attributes cannot be read. Opening the file reports the error.
            return new LogName(path, status.Identity, status.Length, default);
        }
    }

    private static string[] FilesOf(string folder)
    {
        try
        {
            return Directory.GetFiles(folder);
        }
        catch (Exception e) when (e is UnauthorizedAccessException || (e is IOException error && !FileErrors.AreDescriptorsShort(error)))
        {
            // The folder does not exist, or cannot be listed: it holds no rotated files.
            return [];
        }
    }
}
