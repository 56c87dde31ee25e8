using System.IO.Enumeration;
using Pipelines.File.Growing;
using Pipelines.File.IO;

namespace Pipelines.File.Follow;

/// <summary>
/// The names of the files in a folder, listed again only when the folder has changed. Used by one caller at a time, but for
/// <see cref="OnEvent"/>. Its methods wait for the device.
/// </summary>
/// <remarks>
/// A change that came within the same tick of the file system's clock as the listing leaves no trace. So after a change the folder is
/// listed at doubling distances, until the change is older than any such tick.
/// </remarks>
internal sealed class FolderNames(string path, TimeProvider time, Action onChange) : IWatched, IDisposable
{
    private const uint Changes = Libc.IN_CREATE | Libc.IN_DELETE | Libc.IN_MOVED_FROM | Libc.IN_MOVED_TO | Libc.IN_DELETE_SELF
        | Libc.IN_MOVE_SELF | Libc.IN_ONLYDIR;

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

    private (FileIdentity Identity, DateTime Changed) _version;
    private long _changedAt;
    private TimeSpan _nextLook;
    private string[] _names = [];
    private bool _isListed;

    // No change can have left no trace.
    private bool _isCertain;

    // When the last listing was over, and how long after that the next one begins at the earliest.
    private long _listedAt;
    private TimeSpan _pause;

    // Null: inotify does not report every change of the folder. And whether it had it when the folder was looked at.
    private FileWatch? _watch;
    private bool _isWatched;
    private int _hasEvent;

    /// <summary>Whether an event has come since the last look.</summary>
    internal bool HasEvent => Volatile.Read(ref _hasEvent) != 0;

    /// <summary>Whether no look is needed until the next event.</summary>
    internal bool IsSettled => !IsNews && _isWatched && _isCertain && time.GetElapsedTime(_listedAt) >= _pause;

    /// <summary>Whether it was listed since a search has last set this back.</summary>
    internal bool IsNews { get; set; }

    /// <summary>The names, in ordinal order.</summary>
    internal ReadOnlySpan<string> Names => _names;

    /// <summary>Lists the folder if it has changed. Returns whether it was listed.</summary>
    /// <param name="isSure">Whether to list it also if a change may have left no trace, and without a pause.</param>
    internal bool Look(bool isSure)
    {
        // The watch before the version, and that before the names: a change after any of them is reported, or seen by the next look.
        bool hasEvent = Interlocked.Exchange(ref _hasEvent, 0) != 0;
        _isWatched = FileWatches.TryAdd(_watch);
        _ = FileStatus.OfName(path, out FileStatus status);
        if (status.Identity != _version.Identity)
        {
            // Another folder, or another file system. The next look finds it watched.
            FileWatches.Remove(_watch);
            _watch = FileWatches.CanWatch(path) ? new FileWatch(this, path, Changes) : null;
            _isWatched = false;
        }

        (FileIdentity, DateTime) version = (status.Identity, status.LastWritten);
        long begun = time.GetTimestamp();
        if (version != _version || hasEvent || !_isListed)
        {
            (_version, _changedAt, _nextLook, _isCertain) = (version, begun, TimeSpan.Zero, false);
        }

        TimeSpan age = time.GetElapsedTime(_changedAt, begun);
        if ((!isSure && (age < _nextLook || time.GetElapsedTime(_listedAt, begun) < _pause)) || _isCertain)
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
        catch (Exception e) when (e is DirectoryNotFoundException or UnauthorizedAccessException)
        {
            // It holds nothing that could be found. Getting a permission leaves no trace in its version.
            _names = [];
            isDenied = e is UnauthorizedAccessException;
        }
        catch (IOException)
        {
            // No descriptor is free, for example. The names stay as they were, and the next look lists the folder.
            _nextLook = TimeSpan.Zero;
            return false;
        }

        _names.AsSpan().Sort(StringComparer.Ordinal.Compare);
        _nextLook = isDenied ? TimeSpan.Zero : TimeSpan.FromMilliseconds(Math.Max(50, age.TotalMilliseconds * 2));
        (_isListed, IsNews, _isCertain) = (true, true, !isDenied && age > s_longestTick);
        _listedAt = time.GetTimestamp();
        TimeSpan pause = time.GetElapsedTime(begun, _listedAt) * PauseFactor;
        _pause = pause < s_longestPause ? pause : s_longestPause;
        return true;
    }

    public void OnEvent()
    {
        Interlocked.Exchange(ref _hasEvent, 1);
        onChange();
    }

    public void Dispose() => FileWatches.Remove(_watch);

    internal bool Contains(string name) => Array.BinarySearch(_names, name, StringComparer.Ordinal) >= 0;

    /// <summary>The names that begin with this.</summary>
    internal ReadOnlySpan<string> StartingWith(string prefix)
    {
        int first = Array.BinarySearch(_names, prefix, StringComparer.Ordinal);
        first = first < 0 ? ~first : first;
        int end = first;
        while (end < _names.Length && _names[end].StartsWith(prefix, StringComparison.Ordinal))
        {
            end++;
        }

        return _names.AsSpan(first, end - first);
    }
}
