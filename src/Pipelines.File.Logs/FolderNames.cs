using System.IO.Enumeration;

namespace Pipelines.File;

/// <summary>
/// The names of the files in a folder, listed again only when the folder has changed. Used by one caller at a time. Looking waits for the
/// device.
/// </summary>
/// <remarks>
/// A change that came within the same tick of the file system's clock as the listing leaves no trace. So after a change each look lists
/// the folder, until the change is older than any such tick.
/// </remarks>
internal sealed class FolderNames(string path, TimeProvider time)
{
    /// <summary>The longest tick that a file system has for the time of a folder: 2 s of FAT.</summary>
    private static readonly TimeSpan s_longestTick = TimeSpan.FromSeconds(2.5);

    /// <summary>
    /// After a listing there is a pause of this many times its duration: listing a large folder that changes all the time takes 5 % of a
    /// core, or twice that if the changes are new logs, which need a second listing.
    /// </summary>
    private const int PauseFactor = 20;

    /// <summary>The longest pause: a listing may also take long because the device or a server does not answer.</summary>
    private static readonly TimeSpan s_longestPause = TimeSpan.FromSeconds(10);

    private static readonly EnumerationOptions s_everything = new() { AttributesToSkip = 0, IgnoreInaccessible = false };

    // Null: it was not looked at yet. Linux has the second time, because rsync(1) and tar(1) set the first one back.
    private (FileIdentity Identity, DateTime Written, long Changed)? _version;
    private long _changedAt;
    private string[] _names = [];

    // It was listed, and no change can have left no trace.
    private bool _isCertain;

    // When the last listing was over, and how long after that the next one begins at the earliest.
    private long _listedAt;
    private TimeSpan _pause;

    /// <summary>Whether it was listed since a search has last set this back.</summary>
    internal bool IsNews { get; set; }

    /// <summary>Why it could not be listed when that was tried last; <see langword="null"/> if it was, or is not there.</summary>
    internal IOException? Failure { get; private set; }

    /// <summary>The names, in ordinal order.</summary>
    internal IReadOnlyList<string> Names => _names;

    /// <summary>Lists the folder if it has changed. Returns whether it was listed.</summary>
    /// <param name="isSure">Whether to list it also if a change may have left no trace, and without a pause.</param>
    internal bool Look(bool isSure)
    {
        // The version before the names: the next look sees a change after it.
        NameMeaning meaning = FileStatus.OfName(path, out FileStatus status);
        (FileIdentity, DateTime, long) version = (status.Identity, status.LastWritten, status.Changed);
        long begun = time.GetTimestamp();
        if (version != _version)
        {
            (_version, _changedAt, _isCertain) = (version, begun, false);
        }

        if (_isCertain || (!isSure && Failure is null && time.GetElapsedTime(_listedAt, begun) < _pause))
        {
            return false;
        }

        bool isDenied = false;
        try
        {
            _names = [.. new FileSystemEnumerable<string>(path, static (ref entry) => entry.FileName.ToString(), s_everything)
            {
                ShouldIncludePredicate = static (ref entry) => !entry.IsDirectory,
            }];
        }
        catch (IOException e) when (e is not DirectoryNotFoundException && (meaning == NameMeaning.Unknown || Directory.Exists(path)))
        {
            // No descriptor is free, for example. The names stay as they were, and the next look lists the folder.
            Failure = e;
            return false;
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // It holds nothing that could be found: it is missing, or a file. Getting a permission may leave no trace in its version.
            _names = [];
            isDenied = e is UnauthorizedAccessException;
        }

        _names.AsSpan().Sort(StringComparer.Ordinal.Compare);
        (IsNews, Failure) = (true, null);
        _isCertain = !isDenied && time.GetElapsedTime(_changedAt, begun) > s_longestTick;
        _listedAt = time.GetTimestamp();
        TimeSpan pause = time.GetElapsedTime(begun, _listedAt) * PauseFactor;
        _pause = pause < s_longestPause ? pause : s_longestPause;
        return true;
    }

    internal bool Contains(string name) => Array.BinarySearch(_names, name, StringComparer.Ordinal) >= 0;

    /// <summary>The names that begin with this.</summary>
    internal ArraySegment<string> StartingWith(string prefix)
    {
        int first = Array.BinarySearch(_names, prefix, StringComparer.Ordinal);
        first = first < 0 ? ~first : first;
        int end = first;
        while (end < _names.Length && _names[end].StartsWith(prefix, StringComparison.Ordinal))
        {
            end++;
        }

        return new ArraySegment<string>(_names, first, end - first);
    }
}
