using Pipelines.File.Lines;

namespace Pipelines.File.Follow;

/// <summary>What comes behind the last byte of a file of a log that was read.</summary>
internal enum LogEnd
{
    /// <summary>There may be more.</summary>
    None,

    /// <summary>The next file has taken over, or this one is gone.</summary>
    Over,

    /// <summary>The file was cut: it begins again.</summary>
    Cut,

    /// <summary>The file has its name back: it goes on.</summary>
    Named,
}

/// <summary>The files of a log, in the order in which they had its name. Used by one caller at a time.</summary>
internal sealed class LogFiles(string path, LogFollowerOptions options)
{
    private const int FirstPause = 10;

    /// <summary>How many intervals a file that cannot be opened is tried again: who rotates it may give it its rights later.</summary>
    private const int RetryIntervals = 20;

    // Rotated files that were read, or were there before the first that is read.
    private readonly HashSet<FileIdentity> _done = [];

    // Behind what was read last.
    private FileCheckpoint? _last = options.Checkpoint;
    private bool _isAfterGap;

    // Whether it is settled where the log begins; whether a file was open.
    private bool _isStarted;
    private bool _wasOpen;

    /// <summary>Opens the file that comes next, and waits until there is one.</summary>
    internal async ValueTask<LogFile> OpenNextAsync(CancellationToken cancellationToken)
    {
        long failingSince = Environment.TickCount64;
        int interval = (int)options.FollowInterval.TotalMilliseconds;
        for (int pause = Math.Min(FirstPause, interval); ; pause = Math.Min(pause * 2, interval))
        {
            cancellationToken.ThrowIfCancellationRequested();
            try
            {
                LogListing files = LogListing.Take(path, options.RotatedNames);
                if (!_isStarted)
                {
                    Start(files);
                }

                if (Next(files) is { } next)
                {
                    if (await TryOpenAsync(next, files, cancellationToken).ConfigureAwait(false) is { } file)
                    {
                        return file;
                    }
                }
                else
                {
                    // A file that comes later is read from its beginning.
                    _isStarted = true;
                    failingSince = Environment.TickCount64;
                }
            }
            catch (Exception e) when (e is FileNotFoundException or DirectoryNotFoundException)
            {
                // It was renamed since.
                failingSince = Environment.TickCount64;
            }
            catch (Exception e) when (e is IOException or UnauthorizedAccessException
                && (_wasOpen || OperatingSystem.IsWindows())
                && Environment.TickCount64 - failingSince < (long)interval * RetryIntervals)
            {
                // Its rights may come later, and Windows denies access to a file whose deletion is pending.
            }

            await Task.Delay(pause, cancellationToken).ConfigureAwait(false);
        }
    }

    /// <summary>A read has found the end of the file. Waits a moment if there may be more.</summary>
    internal async ValueTask<LogEnd> LookAtEndAsync(LogFile file, CancellationToken cancellationToken)
    {
        if (file.IsQuiet)
        {
            if (!file.IsReusable)
            {
                _done.Add(file.Identity);
            }

            return LogEnd.Over;
        }

        LogListing? files = TryTake();
        if (files?.Named is { } named && named.Identity == file.Identity)
        {
            if (named.Identity != default && named.Length >= file.ReadEnd && file.HoldsWhatWasRead(path))
            {
                return LogEnd.Named;
            }

            OnCut(files);
            return LogEnd.Cut;
        }

        if (files is not null)
        {
            bool isRotated = files.Rotated.Any(one => one.Identity == file.Identity);
            bool hasSuccessor = files.Named is { } next && (next.Length > 0 || next.Identity == default);
            hasSuccessor |= files.Rotated.Any(one => one.Length > 0 && one.Identity != file.Identity
                && ComesNext(one, file.Identity, files));
            file.IsQuiet = file.QuietTime >= options.QuietTime && (hasSuccessor || !isRotated);
            file.IsReusable = !isRotated && file.Identity.Created == 0;
        }

        if (!file.IsQuiet)
        {
            await Task.Delay(file.NextPause, cancellationToken).ConfigureAwait(false);
        }

        return LogEnd.None;
    }

    /// <summary>The file that has the name was cut. What was not read of it by then is in a copy that is no file of the log.</summary>
    internal void OnCut() => OnCut(TryTake());

    /// <summary>The file was left.</summary>
    internal void OnLeft(LogFile file, LogEnd end)
        => _last = end == LogEnd.Cut || (end == LogEnd.Over && file.IsReusable) ? new FileCheckpoint(file.Identity, 0) : file.Checkpoint;

    private void OnCut(LogListing? files)
    {
        _isAfterGap = true;
        _done.UnionWith(files?.Rotated.Select(static one => one.Identity) ?? []);
    }

    /// <summary><see langword="null"/>: no descriptor is left to look with.</summary>
    private LogListing? TryTake()
    {
        try
        {
            return LogListing.Take(path, options.RotatedNames);
        }
        catch (IOException)
        {
            return null;
        }
    }

    /// <summary>Settles which files were read before.</summary>
    private void Start(LogListing files)
    {
        _done.Clear();
        _isAfterGap = false;
        IEnumerable<LogName> read = files.Rotated;
        if (_last is { Identity: FileIdentity identity } && files.Named?.Identity != identity)
        {
            bool isThere = files.Rotated.Any(one => one.Identity == identity);
            _isAfterGap = !isThere;
            read = isThere ? read.TakeWhile(one => one.Identity != identity)
                : read.Where(one => identity.Created == 0 || one.Identity.Created <= identity.Created);
        }

        _done.UnionWith(read.Select(static one => one.Identity));
    }

    private (LogName Name, bool IsNamed)? Next(LogListing files)
    {
        foreach (LogName file in files.Rotated)
        {
            if (file.Identity == _last?.Identity ? !_done.Contains(file.Identity) : ComesNext(file, _last?.Identity ?? default, files))
            {
                return (file, false);
            }
        }

        return files.Named is { } named ? (named, true) : null;
    }

    /// <summary>
    /// Whether a rotated file is one that was not read: of files that somebody has copied or unpacked beside the log, the moments tell.
    /// </summary>
    private bool ComesNext(LogName file, FileIdentity last, LogListing files)
        => !_done.Contains(file.Identity)
            && file.LastWritten >= DateTime.UnixEpoch.AddTicks(last.Created / TimeSpan.NanosecondsPerTick)
            && (files.Named is not { Identity.Created: not 0 and long newest } || file.Identity.Created <= newest);

    /// <summary><see langword="null"/>: the name means another file by now.</summary>
    private async ValueTask<LogFile?> TryOpenAsync((LogName Name, bool IsNamed) next, LogListing files, CancellationToken cancellationToken)
    {
        long offset = OffsetOf(next.Name, next.IsNamed);
        while (true)
        {
            FilePipeReaderOptions readerOptions = new()
            {
                Offset = offset,
                Follow = next.IsNamed,
                FollowInterval = options.FollowInterval,
                Share = FileShare.ReadWrite | FileShare.Delete,
            };
            FilePipeReader reader = await FilePipeReader.OpenAsync(next.Name.Path, readerOptions, cancellationToken).ConfigureAwait(false);
            bool isExpected = next.Name.Identity == default || reader.Identity == next.Name.Identity;
            if (isExpected && !(reader.Length < offset))
            {
                LogFile file = new(reader, next.Name, offset, next.IsNamed, _isAfterGap, options);
                _isStarted = _wasOpen = true;
                _isAfterGap = false;
                _done.IntersectWith(files.Rotated.Select(static one => one.Identity));
                return file;
            }

            await reader.CompleteAsync().ConfigureAwait(false);
            if (!isExpected)
            {
                return null;
            }

            // It was cut.
            offset = 0;
            _isAfterGap = true;
        }
    }

    private long OffsetOf(LogName file, bool isNamed)
    {
        if (_last is not { } last)
        {
            if (_isStarted || !isNamed || options.LastLines is not { } count)
            {
                return 0;
            }

            using SafeFileHandle handle = LineSearch.Open(file.Path, FileShare.ReadWrite | FileShare.Delete, FileOptions.None);
            return LineSearch.FindLastWholeLines(handle, RandomAccess.GetLength(handle), count);
        }

        // Where the system does not tell which file it is, only a restart goes on with the same one.
        return file.Identity == last.Identity && (file.Identity != default || !_isStarted) ? last.Offset : 0;
    }
}
