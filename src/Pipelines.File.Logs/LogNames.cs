using System.Collections.Concurrent;

namespace Pipelines.File;

/// <summary>
/// Judges the names of one log: which files had its name, and in which order. This is the only place that does. The follower's search gives
/// it listings, one at a time; the tail of the log takes the files from it.
/// </summary>
/// <remarks>
/// While the log's file stays the same, every other file that appears is a stranger: a copy, or something that was unpacked. When another
/// file has the name, those that have appeared since the last listing had it in between. Times decide only about files that were there when
/// the program started, and of these only about those whose numbers do not.
/// </remarks>
internal sealed class LogNames(string path, LogFollowerOptions options, FileCheckpoint? checkpoint, bool isLate)
{
    /// <summary>For how many intervals a file that is gone is kept while no other has the log's name.</summary>
    private const int GoneIntervals = 20;

    // Guards everything but the next two, and the closing of all files. Held while files are opened and compared, which may take long.
    private readonly Lock _updating = new();

    // The files that wait, and the one that is read: taken by the tail, and seen by others without the lock.
    private readonly ConcurrentQueue<LogFile> _next = [];
    private volatile LogFile? _current;

    // The rotated files of the last listing: those of them that are neither current nor next are not to be read. Null: before the first.
    private HashSet<FileIdentity>? _known;

    // The file that had the log's name last.
    private LogFile? _newest;
    private bool _isNewestLeft;

    // Up to where the log was read when a file was left or found truncated; at first, where to begin. Null: at the file that has the name.
    private FileCheckpoint? _position = checkpoint;

    // The next listing is searched for the position: after a truncation, and at the start until there is a file to read.
    private bool _isLost = true;
    private bool _isCut;

    // The next file that is opened comes after a gap.
    private bool _isAfterGap;

    // Where its name leads, if it is a link. Owned by the search.
    private string? _target;

    /// <summary>The full path of the log.</summary>
    internal string Path => path;

    /// <summary>The names that it gets when it is rotated: its own, and those of the file that it leads to if it is a link.</summary>
    internal RotatedName[] Rotated { get; private set; } = options.InNameOrder && LogSet.IsPattern(path) ? [new RotatedName(path)]
        : [.. options.RotatedNames.Select(pattern => new RotatedName(pattern, path))];

    /// <summary>Whether a listing is wanted though nothing has changed.</summary>
    internal bool IsStale { get; set; } = true;

    /// <summary>The bytes of the files that wait to be read.</summary>
    internal long WaitingBytes => _next.Sum(static file => Math.Max(0, file.Length - file.Offset));

    /// <summary>Whether a file waits to be read.</summary>
    internal bool HasNext => !_next.IsEmpty;

    /// <summary>Whether something is to be done though no folder changes: a listing, or to leave a file that has lost its name.</summary>
    internal bool IsRestless => IsStale || HasNext || _current is { HasName: false };

    /// <summary>Whether there were any files, of whatever name.</summary>
    internal bool HasFiles { get; private set; } = true;

    /// <summary>Takes the file that comes next, if there is one.</summary>
    internal LogFile? TryTake()
    {
        // In this order, so that an update sees it in one of both places, or in both.
        _current = _next.TryPeek(out LogFile? file) ? file : null;
        _next.TryDequeue(out _);
        return file;
    }

    /// <summary>Looks where the name leads. Returns whether it is a link, of whose turns its folder does not tell.</summary>
    internal bool LookAtLink()
    {
        string? target = null;
        try
        {
            target = Rotated is [{ IsInNameOrder: true }] ? null
                : System.IO.File.ResolveLinkTarget(path, returnFinalTarget: true)?.FullName;
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // It leads in a circle, or nobody may know where.
        }

        if (target is not null && target != _target)
        {
            // The target before may have been rotated just before the link was turned. Its file had the log's name, too.
            string[] logs = _target is null ? [path, target] : [path, target, _target];
            Rotated = [.. logs.SelectMany(log => options.RotatedNames.Select(pattern => new RotatedName(pattern, log))),
                .. logs[2..].Select(static log => new RotatedName("{name}", log))];
            _target = target;
        }

        return target is not null;
    }

    /// <summary>
    /// Whether a file is over unless it has grown: it lost its name long ago, and the next file holds bytes; or it has no name at all. If
    /// then no other file has the log's name, the file may get it back.
    /// </summary>
    /// <param name="file">The file that is read.</param>
    /// <param name="grownAt">When it has grown last, as a timestamp of the options' clock.</param>
    internal bool IsOver(LogFile file, long grownAt)
    {
        if (file.HasName || file.IsFinal)
        {
            return file.IsFinal;
        }

        TimeSpan quiet = options.TimeProvider.GetElapsedTime(Math.Max(file.NamelessSince, grownAt)) - options.QuietTime;
        return quiet >= TimeSpan.Zero && (file.IsGone ? HasNext || quiet >= options.FollowInterval * GoneIntervals
            : _next.Any(static next => next.Length > 0));
    }

    /// <summary>
    /// The file was read to this position, its end, and is left. It is closed under the lock: a listing compares it with others.
    /// </summary>
    internal void OnLeft(LogFile file, FileCheckpoint position)
    {
        lock (_updating)
        {
            file.Dispose();
            (_current, _position) = (null, position.Offset > 0 || file == _newest ? position : _position);
            if (file == _newest)
            {
                // If it has the name again, the next listing opens it again.
                _isNewestLeft = IsStale = true;
            }
        }
    }

    /// <summary>
    /// The file was truncated. The next listing shows whether another one holds what was read of it, as the copy of copytruncate does: then
    /// that one is read on, then the copies after it, then this file from its beginning.
    /// </summary>
    /// <param name="file">The file, which is closed.</param>
    /// <param name="position">Up to where it was read; <see langword="null"/>: nothing was read of it.</param>
    internal void OnCut(LogFile file, FileCheckpoint? position)
    {
        lock (_updating)
        {
            Close();
            file.Dispose();
            (_position, _current, _newest) = (position ?? _position, null, null);
            _isLost = _isCut = IsStale = true;
        }
    }

    /// <summary>Closes the files that wait to be read. No update is under way.</summary>
    internal void Close()
    {
        while (_next.TryDequeue(out LogFile? file))
        {
            file.Dispose();
        }
    }

    /// <summary>Takes notice of a listing, and opens the files that come next. If it throws, it has done nothing.</summary>
    /// <param name="listing">The listing.</param>
    /// <param name="listAgain">Makes another one.</param>
    /// <param name="cancellationToken">Ends it.</param>
    /// <exception cref="IOException">A file cannot be opened, or was renamed meanwhile.</exception>
    /// <exception cref="UnauthorizedAccessException">You may not read a file, or it is a folder.</exception>
    /// <exception cref="NotSupportedException">A file is no regular file.</exception>
    internal void Update(LogListing listing, Func<LogListing> listAgain, CancellationToken cancellationToken)
    {
        List<LogFile> opened = [];
        lock (_updating)
        {
            try
            {
                LogFile? newest = _newest;
                bool isAfterGap = _isAfterGap;
                if (_position is { } position && (_isLost || (_isNewestLeft && HasName(newest, listing))))
                {
                    // Without a time of creation, a new file may have the identity of the one that was left, and nothing is missing.
                    isAfterGap = !TryFind(position, listing, opened, cancellationToken)
                        && (_isLost || position.Identity.Created != 0);
                    newest = opened.LastOrDefault();

                    // A file that is back and was truncated meanwhile has copies, as one that is found truncated has.
                    _isLost |= position.Identity.Created != 0 && !HasName(newest, listing);
                }

                LogFile? read = newest is { IsRead: true } ? newest : null;
                if (!HasName(newest, listing))
                {
                    OpenSuccessors(listing, newest, isAfterGap, opened, cancellationToken);
                    if (opened is [.., { Beginning: not null } last]
                        && !(listAgain() is { Failure: null } again && again.HasSameNames(listing)))
                    {
                        last.Beginning = [];
                    }
                }

                // A log may be truncated before the tail notices it, and again before the tail reads any of it. Files that appear then are
                // copies, and stay new.
                LogFile? log = opened.LastOrDefault() ?? _newest;
                bool areKnown = (listing.Named is null || log!.IsAsBefore(cancellationToken)) && log?.Beginning is null;

                // From here on nothing throws.
                read?.Dispose();
                opened.RemoveAll(static file => file.IsRead);
                if (areKnown || _isLost)
                {
                    _known = [.. listing.Rotated.Select(static file => file.Identity)];
                }

                _isAfterGap = isAfterGap && opened.Count == 0;
                _isLost &= _isAfterGap && !_isCut;
                _isCut = IsStale = false;
                HasFiles = listing.Named is not null || listing.Rotated.Count > 0;
                Enqueue(opened);
                Judge(_current, listing);
                Judge(_newest, listing);
            }
            finally
            {
                opened.ForEach(static file => file.Dispose());
            }
        }
    }

    private static bool HasName(LogFile? file, LogListing listing)
        => listing.Named is { } named && file is not null && file.IsIt(named) && (named.Identity != default || !file.Handle.IsClosed);

    /// <summary>Opens the file of a checkpoint.</summary>
    /// <remarks>
    /// It is found by its identity if it still holds what was read; else by what was read, in a copy or a compressed file. If only the
    /// identity is left, the file was truncated, and is read from its beginning.
    /// </remarks>
    /// <returns>Whether it was found.</returns>
    private bool TryFind(FileCheckpoint wanted, LogListing listing, List<LogFile> opened, CancellationToken cancellationToken)
    {
        LogName[] files = [.. listing.Named is { } named ? [named] : Array.Empty<LogName>(),
            .. listing.Rotated.Where(static file => !file.IsCompressed).Reverse(),
            .. listing.Rotated.Where(static file => file.IsCompressed)];
        LogName? itself = Array.FindIndex(files, file => file.Identity == wanted.Identity) is int i and >= 0 ? files[i] : null;
        if (itself is not null)
        {
            opened.Add(LogFile.Open(itself.Value));
            if (opened[0].Holds(wanted.Offset, wanted.ContentHash, cancellationToken))
            {
                (opened[0].Offset, opened[0].OffsetHash) = (wanted.Offset, wanted.ContentHash);
                return true;
            }
        }

        DateTime created = DateTime.UnixEpoch.AddTicks(wanted.Identity.Created / TimeSpan.NanosecondsPerTick);
        LogName? log = listing.Named;
        bool isCopied = _isCut || log?.Identity == wanted.Identity;
        foreach (bool mayHaveLess in isCopied ? [false, true] : (ReadOnlySpan<bool>)[false])
        {
            foreach (LogName file in files)
            {
                // A compressed file is read from its beginning to see what it holds, so not without need. Its time may be in whole seconds.
                if (wanted.ContentHash != 0 && file != itself && (!file.IsCompressed || file.LastWritten >= created.AddSeconds(-1))
                    && (!mayHaveLess || file != log)
                    && TryOpenCopy(file, wanted, mayHaveLess, cancellationToken) is { } copy)
                {
                    opened.ForEach(static one => one.Dispose());
                    opened.Clear();
                    opened.Add(copy);
                    return true;
                }
            }
        }

        if (itself is { Pattern: < 0 })
        {
            // It comes after the copies that are new, if there are any.
            opened[0].Dispose();
            opened.Clear();
        }

        opened.ForEach(static file => file.IsAfterGap = true);
        return opened.Count > 0;
    }

    private static LogFile? TryOpenCopy(LogName name, FileCheckpoint wanted, bool mayHaveLess, CancellationToken cancellationToken)
    {
        LogFile? file = null;
        bool isCopy = false;
        try
        {
            file = LogFile.Open(name);
            (file.IsRead, file.IsFinal) = (mayHaveLess, name.Pattern >= 0);
            (file.Offset, file.OffsetHash) = (wanted.Offset, wanted.ContentHash);
            isCopy = mayHaveLess ? file.HoldsLess(wanted.Offset, wanted.ContentHash, cancellationToken)
                : file.Holds(wanted.Offset, wanted.ContentHash, cancellationToken);
        }
        catch (Exception e) when (e is UnauthorizedAccessException || (e is IOException && file is not null))
        {
            // Nobody can tell what it holds. A rotated file that the device has lost does not hold up the log. If nothing is found, the
            // next line says that there is a gap.
        }
        finally
        {
            if (!isCopy)
            {
                file?.Dispose();
            }
        }

        return isCopy ? file : null;
    }

    /// <summary>Opens the files that had the log's name after another one, and the file that has it now.</summary>
    /// <param name="listing">The listing.</param>
    /// <param name="previous">The file that had the name before; <see langword="null"/>: it was not found, or none had.</param>
    /// <param name="isAfterGap">Whether there is a gap before the first of them.</param>
    /// <param name="opened">Receives the files.</param>
    /// <param name="cancellationToken">Ends it.</param>
    private void OpenSuccessors(LogListing listing, LogFile? previous, bool isAfterGap, List<LogFile> opened,
        CancellationToken cancellationToken)
    {
        int first = opened.Count;
        int index = previous is null ? -1 : listing.Rotated.ToList().FindIndex(previous.IsIt);
        bool isStart = _isLost && !_isCut && _position is null;
        DateTime created = index >= 0 ? listing.Rotated[index].Age : previous?.Name.Age
            ?? DateTime.UnixEpoch.AddTicks((_position?.Identity.Created ?? 0) / TimeSpan.NanosecondsPerTick);

        // The log is copied and truncated: its file stays, and the rotated ones are its copies. Their checkpoints have its identity.
        bool isCopied = _isLost && (_isCut || (_position is not null && listing.Named?.Identity == _position.Value.Identity));
        for (int i = index + 1; i < listing.Rotated.Count && !isStart; i++)
        {
            LogName file = listing.Rotated[i];
            bool isNew = _known?.Contains(file.Identity) == false;
            bool isNumbered = index >= 0 && file.Pattern == listing.Rotated[index].Pattern && file.Number.Length > 0;
            if ((isNew || _isLost) && !Held().Any(held => held.IsIt(file))
                && (isNumbered || (isNew && isCopied)
                    || (IsBetween(file, created, listing.Named) && (isNew || !_isLost || previous is not null
                        || (_position?.Identity.Created > 0 && file.Age > created)))))
            {
                opened.Add(LogFile.Open(file));
                opened[^1].MayBeCopy = !isNumbered || file.HasOldTime || isCopied;
            }
        }

        if (listing.Named is { } named)
        {
            opened.Add(LogFile.Open(named));
            opened[^1].Beginning = isCopied ? opened[^1].ReadBeginning() : null;
            if (isStart && !isLate && options.LastLines is { } count)
            {
                opened[^1].Offset = LogContent.FindLastLines(opened[^1].Handle, named.Path, opened[^1].Length, count);
                opened[^1].OffsetHash = opened[^1].HashAt(opened[^1].Offset, cancellationToken).Hash;
            }
        }

        for (int i = opened.Count - 1; i >= first; i--)
        {
            // An empty copy is one that has just begun: the log still has what will be in it.
            if (opened[i].MayBeCopy && ((isCopied && opened[i].Length == 0) || IsCopy(opened[i], previous, opened, cancellationToken)))
            {
                opened[i].Dispose();
                opened.RemoveAt(i);
            }
        }

        foreach (LogFile file in opened.Skip(first))
        {
            file.IsAfterGap = isAfterGap && file == opened[first];
        }

        foreach (LogFile file in isCopied ? opened : [])
        {
            file.IsFinal = file.Name.Pattern >= 0;
            file.Identity = listing.Named?.Identity ?? file.Identity;
        }
    }

    /// <summary>
    /// Without a number, the times exclude what was copied or unpacked beside the log: a file that had the name was written to after the
    /// file before it was created, and was not created after the file that has the name now.
    /// </summary>
    private static bool IsBetween(LogName file, DateTime created, LogName? named)
        => file.LastWritten >= created && (named is not { Identity.Created: not 0 } newest || file.Age <= newest.Age);

    /// <summary>
    /// Whether all that a file holds was read to its end, or is the beginning of a file that is or will be read, or of another plain one
    /// that is longer. The file before it is not enough: the one that is read may have been compressed when two others had the name.
    /// </summary>
    private bool IsCopy(LogFile file, LogFile? previous, List<LogFile> opened, CancellationToken cancellationToken)
    {
        (long Offset, ulong Hash) whole = file.HashAt(long.MaxValue, cancellationToken);
        IEnumerable<LogFile?> others = [previous, .. Held(), .. opened.Where(other => !file.Name.IsCompressed
            && other != file && !other.Name.IsCompressed && other.Length >= file.Length)];
        return whole.Offset > 0 && (whole == (_position?.Offset, _position?.ContentHash) || others.Any(
            other => other is { Handle.IsClosed: false } && other.HashAt(whole.Offset, cancellationToken) == whole));
    }

    /// <summary>The files that are or will be read. The tail may take one meanwhile, but closes none.</summary>
    private LogFile[] Held() => [.. _next, .. _current is { } current ? [current] : Array.Empty<LogFile>()];

    private void Enqueue(List<LogFile> opened)
    {
        long now = options.TimeProvider.GetTimestamp();
        foreach (LogFile file in opened)
        {
            _newest?.LoseName(now);
            (_newest, _isNewestLeft) = (file, false);
            if (file.Name.Pattern >= 0)
            {
                // It lost its name before its last write, or soon after.
                double age = Math.Clamp((options.TimeProvider.GetUtcNow().UtcDateTime - file.Name.LastWritten).TotalSeconds, 0, 3600);
                file.LoseName(now - (long)(age * options.TimeProvider.TimestampFrequency));
            }

            _next.Enqueue(file);
        }

        opened.Clear();
    }

    private void Judge(LogFile? file, LogListing listing)
    {
        if (file is not null && HasName(file, listing))
        {
            (file.HasName, file.IsGone) = (true, false);
        }
        else if (file is not null)
        {
            file.IsGone = !listing.Rotated.Any(file.IsIt);
            file.LoseName(options.TimeProvider.GetTimestamp());
        }
    }
}
