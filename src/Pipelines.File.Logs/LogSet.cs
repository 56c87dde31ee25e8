using System.Collections.Concurrent;
using System.Collections.Frozen;
using System.Collections.Immutable;
using System.IO.Enumeration;
using System.Threading.Channels;

namespace Pipelines.File;

/// <summary>
/// The logs of one enumeration: the tails that read them, and the search for their files, which lists each folder once for all of them. A
/// tail that has a batch gets in line, so a log that grows fast does not starve others.
/// </summary>
/// <param name="paths">Full paths; the last part may be a pattern.</param>
/// <param name="options">How to follow.</param>
/// <param name="counts">Counts what happens.</param>
/// <param name="limits">When a batch is full.</param>
internal sealed class LogSet(IReadOnlyList<string> paths, LogFollowerOptions options, LogFollowerCounts counts, BatchLimits limits)
    : IAsyncDisposable
{
    /// <summary>
    /// How often a search lists the files of a log at most, until two listings agree: a rename during a listing can hide files from it.
    /// </summary>
    private const int MaxListings = 8;

    /// <summary>For how many intervals to retry opening a file: a rotation may set the file's permissions later.</summary>
    private const int RetryIntervals = 20;

    private static readonly TimeSpan s_leastRetry = TimeSpan.FromSeconds(5);

    // A copy, because a search reads them later, too, while the caller may change them: a CheckpointFile does.
    private readonly Dictionary<string, FileCheckpoint> _checkpoints = options.Checkpoint is { } only && only != default
        ? new() { [paths[0]] = only }
        : new(options.Checkpoints ?? FrozenDictionary<string, FileCheckpoint>.Empty,
            (options.Checkpoints as Dictionary<string, FileCheckpoint>)?.Comparer);

    private readonly CancellationTokenSource _stop = new();
    private readonly Channel<LogTail> _ready = Channel.CreateUnbounded<LogTail>(new() { SingleReader = true });
    private Task _searching = Task.CompletedTask;

    // Holds an item when a search is due.
    private readonly Channel<bool> _due = Channel.CreateBounded<bool>(
        new BoundedChannelOptions(1) { FullMode = BoundedChannelFullMode.DropWrite, SingleReader = true });

    // By the path of the log. Only the search adds and removes.
    private readonly ConcurrentDictionary<string, LogTail> _logs = [];

    // The logs that have no file any more, and of which no batch has told.
    private ImmutableList<string> _gone = [];

    // Owned by the search: the folders by their paths, and the number of the listing of each that was searched.
    private readonly Dictionary<string, FolderNames> _folders = [];
    private readonly Dictionary<FolderNames, int> _searched = [];

    // The folder whose looks are this set's clock while it is restless: while a search has something to do though no folder has changed.
    private volatile FolderNames? _clock;
    private volatile bool _isRestless;

    // The patterns whose folder was listed: the logs that they find from then on are new.
    private readonly HashSet<string> _begun = [];

    // Since when a log or a pattern cannot be read, as a timestamp.
    private readonly Dictionary<string, long> _failingSince = [];

    /// <summary>How many files are open.</summary>
    internal long Files => _logs.Values.Count(static tail => tail.IsOpen);

    /// <summary>How many bytes were written and not returned yet.</summary>
    internal long BytesBehind => _logs.Values.Sum(static tail => tail.BytesBehind);

    /// <summary>
    /// Searches the files for the first time, which decides where reading begins, and goes on with that from time to time. Waits for the
    /// device.
    /// </summary>
    internal void Start()
    {
        LogFollowerMetrics.Add(this);
        Search();
        _searching = Task.Run(SearchAsync);
    }

    /// <summary>Searches now, and not only after an interval.</summary>
    internal void SearchSoon() => _due.Writer.TryWrite(true);

    /// <summary>
    /// Waits until a tail has a batch. Returns <see langword="false"/> if none had for <see cref="LogFollowerOptions.IdleTimeout"/>.
    /// </summary>
    internal async ValueTask<bool> WaitAsync(CancellationToken cancellationToken)
    {
        ValueTask<bool> waiting = _ready.Reader.WaitToReadAsync(cancellationToken);
        if (options.IdleTimeout is not { } limit || waiting.IsCompleted)
        {
            return await waiting.ConfigureAwait(false);
        }

        Task<bool> task = waiting.AsTask();
        try
        {
            return await task.WaitAsync(limit, options.TimeProvider, CancellationToken.None).ConfigureAwait(false);
        }
        catch (TimeoutException)
        {
            return task.IsCompleted && await task.ConfigureAwait(false);
        }
    }

    internal bool TryTake([NotNullWhen(true)] out LogTail? tail) => _ready.Reader.TryRead(out tail);

    /// <summary>The logs that have lost their files since the last call.</summary>
    internal IReadOnlyList<string> TakeGone() => Interlocked.Exchange(ref _gone, []);

    /// <summary>A tail has a batch.</summary>
    internal void Give(LogTail tail) => _ready.Writer.TryWrite(tail);

    /// <summary>Ends the enumeration with an error.</summary>
    internal void Fail(Exception error) => _ready.Writer.TryComplete(error);

    /// <summary>Ends the search and the tails, which close their files.</summary>
    public async ValueTask DisposeAsync()
    {
        LogFollowerMetrics.Remove(this);

        // Ends a wait that the idle timeout has left behind.
        _ready.Writer.TryComplete();
        _due.Writer.TryComplete();
        await _stop.CancelAsync().ConfigureAwait(false);
        await _searching.ConfigureAwait(false);
        foreach (FolderNames folder in _folders.Values)
        {
            folder.Return(options, OnLooked);
        }

        foreach (LogTail tail in _logs.Values)
        {
            tail.Stop();
        }

        foreach (LogTail tail in _logs.Values)
        {
            await tail.Running.ConfigureAwait(false);
            tail.Dispose();
        }

        _stop.Dispose();
    }

    internal static bool IsPattern(string path) => Path.GetFileName(path.AsSpan()).ContainsAny('*', '?');

    private async Task SearchAsync()
    {
        try
        {
            while (await _due.Reader.WaitToReadAsync().ConfigureAwait(false) && _due.Reader.TryRead(out _))
            {
                Search();
            }
        }
        catch (Exception e)
        {
            Fail(e);
        }
    }

    /// <summary>A folder was looked at. Called on the thread of its timer.</summary>
    private void OnLooked(FolderNames names, bool isNews)
    {
        if (isNews || (_isRestless && names == _clock))
        {
            _due.Writer.TryWrite(true);
        }
    }

    private void Search()
    {
        // Those too that were listed in the midst of the last search, or by another follower.
        HashSet<FolderNames> listed = [];
        foreach (FolderNames names in _folders.Values)
        {
            int listings = names.Listings;
            if (_searched.GetValueOrDefault(names) != listings)
            {
                _searched[names] = listings;
                listed.Add(names);
            }
        }

        foreach (string path in paths)
        {
            AddLogs(path, listed);
        }

        List<LogTail> unsettled = [.. _logs.Values.Where(tail => IsToBeListed(tail, isFolderChanged: listed.Count > 0))];
        for (int i = 0; i < MaxListings && unsettled.Count > 0; i++)
        {
            unsettled.RemoveAll(IsSettled);
            foreach (string folder in unsettled.SelectMany(static tail => tail.Names.Rotated.Select(static name => name.Folder)).Distinct())
            {
                NamesOf(folder, isSure: true);
            }
        }

        // Their files are being renamed: the next search lists them again.
        unsettled.ForEach(static tail => tail.Names.IsStale = true);
        foreach (LogTail tail in _logs.Values)
        {
            tail.Look();
        }

        // What a pattern has found and has no file any more. If one is there again it is new, and its checkpoint is of a file before. A
        // checkpoint of which no file was found waits while no other log is in its folder, which may be that of a volume that is mounted
        // later.
        // Nobody is told of a name that never was a file's: that of a link to nothing, or what is not UTF-8.
        foreach (LogTail gone in _logs.Values.Where(tail => tail.IsGone && !paths.Contains(tail.Names.Path)
            && (tail.WasOpen || !_checkpoints.ContainsKey(tail.Names.Path) || _logs.Values.Any(other => other.IsOpen
                && Path.GetDirectoryName(other.Names.Path.AsSpan()).SequenceEqual(Path.GetDirectoryName(tail.Names.Path.AsSpan())))))
            .ToList())
        {
            _logs.TryRemove(gone.Names.Path, out _);
            if (_checkpoints.Remove(gone.Names.Path) || gone.WasOpen)
            {
                ImmutableInterlocked.Update(ref _gone, static (list, path) => list.Add(path), gone.Names.Path);
            }

            _failingSince.Remove(gone.Names.Path);
            gone.Dispose();
        }

        _isRestless = !OperatingSystem.IsLinux() || _failingSince.Count > 0 || _logs.Values.Any(static tail => tail.IsRestless)
            || _folders.Values.Any(static names => names.Failure is IOException);
    }

    /// <summary>The names in a folder.</summary>
    /// <param name="folder">Its full path.</param>
    /// <param name="isSure">Whether they are to be those of now, and not those of the last search.</param>
    private FolderNames NamesOf(string folder, bool isSure = false)
    {
        if (!_folders.TryGetValue(folder, out FolderNames? names))
        {
            // What others have listed may be older than this follower.
            (names, isSure) = (FolderNames.Rent(folder, options, OnLooked), true);
            _folders.Add(folder, names);
            _clock ??= names;
        }

        if (isSure)
        {
            names.Look(isSure);
        }

        return names;
    }

    /// <summary>Adds the logs that a path names and that are new. Of a pattern: when its folder was listed again.</summary>
    private void AddLogs(string path, HashSet<FolderNames> listed)
    {
        if (options.InNameOrder || !IsPattern(path))
        {
            Add(path, isFirst: true);
            return;
        }

        string folder = Path.GetDirectoryName(path)!;
        FolderNames names = NamesOf(folder);
        if (names.Failure is { } failure)
        {
            // New logs are not found. When it can be listed again, that is news.
            OnFailure(path, isPatient: true, failure);
            return;
        }

        _failingSince.Remove(path);
        bool isFirst = _begun.Add(path);
        if (!isFirst && !listed.Contains(names))
        {
            return;
        }

        // Those too that have no file at this moment, but rotated ones.
        IEnumerable<string> known = (isFirst ? _checkpoints.Keys : _logs.Keys)
            .Where(key => Path.GetDirectoryName(key) == folder).Select(static key => Path.GetFileName(key));
        HashSet<string> logs = [.. names.Names.Concat(known).Where(name => !LogName.IsCompressedName(name)
            && FileSystemName.MatchesSimpleExpression(Path.GetFileName(path), name, ignoreCase: OperatingSystem.IsWindows()))];

        // A name that another log gets when it is rotated is no log of its own.
        IEnumerable<string> others =
            from log in logs
            from pattern in options.RotatedNames
            let rotated = new RotatedName(pattern, Path.Combine(folder, log))
            where rotated.Folder == folder
            from name in names.StartingWith(rotated.Prefix)
            where name != log && rotated.IsMatch(name, out _)
            select name;
        foreach (string log in logs.Except(others).Order(StringComparer.Ordinal))
        {
            Add(Path.Combine(folder, log), isFirst);
        }
    }

    private void Add(string path, bool isFirst)
    {
        if (_logs.ContainsKey(path))
        {
            return;
        }

        // Its own folder is looked at, too, if no rotated file is there.
        NamesOf(Path.GetDirectoryName(path) ?? path);
        FileCheckpoint checkpoint = isFirst ? _checkpoints.GetValueOrDefault(path) : default;
        LogNames names = new(path, options, checkpoint != default ? checkpoint : null, isLate: !isFirst);
        LogTail tail = new(this, names, options, counts, limits, _stop.Token);
        _logs[path] = tail;
    }

    /// <summary>Whether the files of a log have to be looked at.</summary>
    private static bool IsToBeListed(LogTail tail, bool isFolderChanged)
    {
        if (!tail.Names.IsStale && !isFolderChanged && !tail.IsLink && OperatingSystem.IsLinux())
        {
            return false;
        }

        tail.IsLink = tail.Names.LookAtLink();
        if (tail.Names.IsStale)
        {
            // What was seen before does not count.
            (tail.Listing, tail.IsNews) = (null, true);
        }

        return true;
    }

    /// <summary>
    /// Looks at the files of a log. A listing is believed when it comes twice. Returns <see langword="true"/> if it was, or has to wait for
    /// the next search.
    /// </summary>
    private bool IsSettled(LogTail tail)
    {
        LogNames names = tail.Names;
        LogListing listing = LogListing.Take(names.Path, names.Rotated, folder => NamesOf(folder));
        bool isBelieved = listing.HasSameNames(tail.Listing);
        (tail.Listing, tail.IsNews) = (listing, tail.IsNews || !listing.HasSamePaths(tail.Listing));
        if (!isBelieved || !tail.IsNews)
        {
            return isBelieved;
        }

        tail.IsNews = false;
        try
        {
            if (listing.Failure is not null)
            {
                throw listing.Failure;
            }

            names.Update(
                listing, () => LogListing.Take(names.Path, names.Rotated, folder => NamesOf(folder, isSure: true)), _stop.Token);
            _failingSince.Remove(names.Path);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException or NotSupportedException)
        {
            names.IsStale = true;

            // A file that is not found was renamed after the listing.
            if (e is not (FileNotFoundException or DirectoryNotFoundException))
            {
                OnFailure(names.Path, isPatient: tail.WasOpen || listing.Failure is not null, e);
            }
        }

        return true;
    }

    /// <summary>
    /// The next file of a log cannot be opened, or a folder not be listed. It is tried again with each search, because its permissions may
    /// be set later, and reported now and then; a log of which no file was opened yet also at once.
    /// </summary>
    private void OnFailure(string path, bool isPatient, Exception error)
    {
        isPatient |= !_failingSince.TryAdd(path, options.TimeProvider.GetTimestamp()) || OperatingSystem.IsWindows();
        TimeSpan limit = options.FollowInterval * RetryIntervals;
        limit = limit > s_leastRetry ? limit : s_leastRetry;
        if (isPatient && options.TimeProvider.GetElapsedTime(_failingSince[path]) < limit)
        {
            return;
        }

        if (options.OnUnreadable is null)
        {
            ExceptionDispatchInfo.Throw(error);
        }

        _failingSince[path] = options.TimeProvider.GetTimestamp();
        options.OnUnreadable(path, error);
    }
}
