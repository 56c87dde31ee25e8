using System.IO.Enumeration;

namespace Pipelines.File;

/// <summary>
/// The names of the files in a folder, listed again only when the folder has changed, once for all that follow logs there. Its timer is the
/// clock of their searches, too, so that many followers wake the processor as seldom as one. Looking waits for the device.
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
    /// The same if the time has parts that are finer than 10 ms, those of exFAT: then it comes from a kernel's clock, whose tick is 16 ms
    /// at most. A virtual processor may be late with it.
    /// </summary>
    private static readonly TimeSpan s_fineTick = TimeSpan.FromSeconds(0.25);

    /// <summary>
    /// After a listing there is a pause of this many times its duration: listing a large folder that changes all the time takes 5 % of a
    /// core, or twice that if the changes are new logs, which need a second listing.
    /// </summary>
    private const int PauseFactor = 20;

    /// <summary>The longest pause: a listing may also take long because the device or a server does not answer.</summary>
    private static readonly TimeSpan s_longestPause = TimeSpan.FromSeconds(10);

    // Those that somebody uses. A lock on it guards it and the timers.
    private static readonly Dictionary<(string, TimeProvider, TimeSpan), FolderNames> s_shared = [];

    private static readonly EnumerationOptions s_everything = new() { AttributesToSkip = 0, IgnoreInaccessible = false };

    private readonly Lock _lock = new();
    private ITimer? _timer;

    // What the users were told last. Owned by the timer.
    private int _told;

    // Null: it was not looked at yet. Linux has the second time, because rsync(1) and tar(1) set the first one back.
    private (FileIdentity Identity, DateTime Written, long Changed)? _version;
    private long _changedAt;
    private string[] _names = [];

    // It was listed, and no change can have left no trace.
    private bool _isCertain;

    // When the last listing was over, and how long after that the next one begins at the earliest.
    private long _listedAt;
    private TimeSpan _pause;

    // With it, and whether there is something new.
    private event Action<FolderNames, bool>? Looked;

    /// <summary>How often there was something new: it was listed, or could not be.</summary>
    internal int Listings { get; private set; }

    /// <summary>
    /// Why it could not be listed when that was tried last; <see langword="null"/> if it was, or is not there. If it may not be, by
    /// <see cref="UnauthorizedAccessException"/>, a log in it can be read all the same.
    /// </summary>
    internal Exception? Failure { get => Volatile.Read(ref field); private set => Volatile.Write(ref field, value); }

    /// <summary>The names, in ordinal order.</summary>
    internal IReadOnlyList<string> Names => _names;

    /// <summary>The names of a folder, the same for everybody with this interval. <see cref="Return"/> gives them back.</summary>
    /// <param name="path">Its full path.</param>
    /// <param name="options">The clock and the interval.</param>
    /// <param name="looked">Called after every interval, and told whether there is something new. It does not wait.</param>
    internal static FolderNames Rent(string path, LogFollowerOptions options, Action<FolderNames, bool> looked)
    {
        (TimeProvider time, TimeSpan interval) = (options.TimeProvider, options.FollowInterval);
        lock (s_shared)
        {
            if (!s_shared.TryGetValue((path, time, interval), out FolderNames? names))
            {
                names = new FolderNames(path, time);
                s_shared.Add((path, time, interval), names);

                // Those of one interval wake the processor together.
                TimeSpan first = time != TimeProvider.System ? interval
                    : interval - TimeSpan.FromTicks(TimeSpan.FromMilliseconds(Environment.TickCount64).Ticks % interval.Ticks);
                names._timer = time.CreateTimer(static names => ((FolderNames)names!).Tick(), names, first, interval);
            }

            names.Looked += looked;
            return names;
        }
    }

    internal void Return(LogFollowerOptions options, Action<FolderNames, bool> looked)
    {
        lock (s_shared)
        {
            Looked -= looked;
            if (Looked is null)
            {
                s_shared.Remove((path, time, options.FollowInterval));
                _timer!.Dispose();
            }
        }
    }

    /// <summary>Lists the folder if it has changed. Returns whether it was listed.</summary>
    /// <param name="isSure">
    /// Whether to list it also if a change may have left no trace, and without a pause.
    /// </param>
    internal bool Look(bool isSure)
    {
        lock (_lock)
        {
            return LookLocked(isSure);
        }
    }

    internal bool Contains(string name) => Array.BinarySearch(_names, name, StringComparer.Ordinal) >= 0;

    /// <summary>The names that begin with this.</summary>
    internal ArraySegment<string> StartingWith(string prefix)
    {
        string[] names = _names;
        int first = Array.BinarySearch(names, prefix, StringComparer.Ordinal);
        first = first < 0 ? ~first : first;
        int end = first;
        while (end < names.Length && names[end].StartsWith(prefix, StringComparison.Ordinal))
        {
            end++;
        }

        return new ArraySegment<string>(names, first, end - first);
    }

    private static TimeSpan TickOf(FileStatus folder)
        => folder.LastWritten.Ticks % (10 * TimeSpan.TicksPerMillisecond) == 0 ? s_longestTick : s_fineTick;

    private void Tick()
    {
        // If another look takes long, those that wait for nothing in this folder are told all the same.
        if (_lock.TryEnter())
        {
            try
            {
                LookLocked(isSure: false);
            }
            finally
            {
                _lock.Exit();
            }
        }

        int listings = Listings;
        Looked?.Invoke(this, Interlocked.Exchange(ref _told, listings) != listings);
    }

    private bool LookLocked(bool isSure)
    {
        // The version before the names: the next look sees a change after it.
        NameMeaning meaning = FileStatus.OfName(path, out FileStatus status);
        (FileIdentity, DateTime, long) version = (status.Identity, status.LastWritten, status.Changed);
        long begun = time.GetTimestamp();
        if (version != _version)
        {
            (_version, _changedAt, _isCertain) = (version, begun, false);
        }

        if (_isCertain || (!isSure && Failure is not IOException && time.GetElapsedTime(_listedAt, begun) < _pause))
        {
            return false;
        }

        Exception? denied = null;
        string[] names = [];
        try
        {
            names = [.. new FileSystemEnumerable<string>(path, static (ref entry) => entry.FileName.ToString(), s_everything)
            {
                ShouldIncludePredicate = static (ref entry) => !entry.IsDirectory,
            }];
        }
        catch (IOException e) when (e is not DirectoryNotFoundException && (meaning == NameMeaning.Unknown || Directory.Exists(path)))
        {
            // No descriptor is free, for example. The names stay as they were, and the next look lists the folder.
            Listings += Failure is IOException ? 0 : 1;
            Failure = e;
            return false;
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // It holds nothing that could be found: it is missing, or a file. Getting a permission may leave no trace in its version.
            denied = e as UnauthorizedAccessException;
        }

        names.AsSpan().Sort(StringComparer.Ordinal.Compare);
        (_names, Listings, Failure) = (names, Listings + 1, denied);
        _isCertain = denied is null && time.GetElapsedTime(_changedAt, begun) > TickOf(status);
        _listedAt = time.GetTimestamp();
        TimeSpan pause = time.GetElapsedTime(begun, _listedAt) * PauseFactor;
        _pause = pause < s_longestPause ? pause : s_longestPause;
        return true;
    }
}
