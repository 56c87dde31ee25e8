namespace Pipelines.File;

/// <summary>The files of a log at one moment: the one that has its name, and the rotated ones.</summary>
/// <param name="Named">The file that has the log's name, or <see langword="null"/>.</param>
/// <param name="Rotated">The files whose names match a pattern, the oldest first.</param>
/// <param name="Failure">Why a folder could not be listed, which may hold rotated files that are not known.</param>
internal sealed record LogListing(LogName? Named, IReadOnlyList<LogName> Rotated, IOException? Failure)
{
    /// <summary>The least number of digits of a date.</summary>
    private const int DateLength = 6;

    /// <param name="path">The full path of the log.</param>
    /// <param name="patterns">The patterns of the rotated names.</param>
    /// <param name="namesOf">The names in a folder.</param>
    internal static LogListing Take(string path, RotatedName[] patterns, Func<string, FolderNames> namesOf)
    {
        List<LogName> rotated = [];
        IOException? failure = null;
        for (int i = 0; i < patterns.Length; i++)
        {
            RotatedName pattern = patterns[i];
            FolderNames names = namesOf(pattern.Folder);

            // Before the names: its timer may list it at any moment.
            failure ??= names.Failure as IOException;
            foreach (string name in names.StartingWith(pattern.Prefix))
            {
                // While gzip compresses a file, both are there.
                string plain = LogName.Plain(name);
                string file = Path.Combine(pattern.Folder, name);
                if ((pattern.IsMatch(name, out ReadOnlySpan<char> number) || pattern.IsMatch(plain, out number))
                    && file != path && (plain == name || !names.Contains(plain))
                    && LogName.TryLook(file, i, number.ToString()) is { } found && found.Identity != default
                    && rotated.TrueForAll(other => other.Identity != found.Identity))
                {
                    rotated.Add(found);
                }
            }
        }

        if (patterns is [{ IsInNameOrder: true }])
        {
            rotated.Sort(static (one, other) => RotatedName.Compare(LogName.Plain(one.Path), LogName.Plain(other.Path)));
            int last = rotated.FindLastIndex(static file => !file.IsCompressed);
            return new LogListing(last < 0 ? null : rotated[last] with { Pattern = -1 }, [.. rotated.Where((_, i) => i != last)], failure);
        }

        // The log's name last: a file that gets it meanwhile is seen twice, and not missed. One that loses it meanwhile may be missed: then
        // the next listing differs.
        LogName? named = LogName.TryLook(path);
        rotated.RemoveAll(file => file.Identity == named?.Identity);
        LogName[] files = [.. rotated.OrderBy(static file => file.Age)
            .ThenBy(static file => file.LastWritten)
            .ThenByDescending(static file => file.Path.Length)
            .ThenByDescending(static file => file.Path, StringComparer.Ordinal)];
        DateTime newest = named is { Identity.Created: not 0 } one ? one.Age : DateTime.MaxValue;
        for (int i = 0; i < patterns.Length; i++)
        {
            OrderByNumber(files, i, newest);
        }

        return new LogListing(named, files, failure);
    }

    /// <summary>Whether both have the same files under the same names.</summary>
    internal bool HasSameNames(LogListing? other)
        => other is not null && Named?.Identity == other.Named?.Identity
            && Rotated.Select(static file => (file.Path, file.Identity)).SequenceEqual(
                other.Rotated.Select(static file => (file.Path, file.Identity)));

    /// <summary>
    /// Whether the same file is written to, and the others have the same names: a copy that replaces another is no news by itself, and is
    /// still new when the log is found truncated.
    /// </summary>
    internal bool HasSamePaths(LogListing? other)
        => other is not null && Named?.Identity == other.Named?.Identity
            && Rotated.Select(static file => file.Path).ToHashSet().SetEquals(other.Rotated.Select(static file => file.Path));

    /// <summary>
    /// Clocks may go back, numbers do not. So the files of one pattern are ordered by their numbers. The times of all of them together say
    /// which way the numbers go: most rotations give the newest file the lowest number, some the highest, and dates increase.
    /// </summary>
    private static void OrderByNumber(LogName[] files, int pattern, DateTime newest)
    {
        int[] places = [.. Enumerable.Range(0, files.Length).Where(i => files[i].Pattern == pattern && files[i].Number.Length > 0)];
        LogName[] byNumber = [.. places.Select(i => files[i])
            .OrderBy(static file => file.Number.Length).ThenBy(static file => file.Number, StringComparer.Ordinal)];

        // Not those that somebody has put there. The time of a compressed file is that of another event.
        LogName[] certain = [.. byNumber.Where(file => !file.HasOldTime && file.Age <= newest)];
        int[] directions = [.. certain.Zip(certain.Skip(1),
            static (one, next) => one.IsCompressed == next.IsCompressed ? next.Age.CompareTo(one.Age) : 0)];
        int increasing = directions.Count(static direction => direction > 0);
        int decreasing = directions.Count(static direction => direction < 0);
        bool areDates = byNumber.Length > 0 && byNumber[^1].Number.Length >= DateLength;
        if (areDates && decreasing > 0 && decreasing >= increasing)
        {
            // The dates may begin with the day.
            return;
        }

        bool isIncreasing = areDates || increasing > decreasing + 1 || (increasing > decreasing && byNumber.Length == 2);
        for (int i = 0; i < places.Length; i++)
        {
            files[places[i]] = byNumber[isIncreasing ? i : ^(i + 1)];
        }
    }
}
