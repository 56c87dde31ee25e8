using Pipelines.File.Lines;

namespace Pipelines.File.Follow;

/// <summary>What follows the last byte that was read of a log's file.</summary>
internal enum LogEnd
{
    /// <summary>More bytes may come.</summary>
    None,

    /// <summary>Nothing: the next file has taken over, or this one is gone.</summary>
    Over,

    /// <summary>The file was truncated: it is read from its beginning.</summary>
    Cut,

    /// <summary>The file has the log's name: it is opened again, and read from the same position.</summary>
    Named,
}

/// <summary>Finds the files of a log in the order in which they had its name. Used by one caller at a time.</summary>
internal sealed class LogFiles(string path, LogFollowerOptions options)
{
    private const int FirstPause = 10;

    /// <summary>For how many intervals to retry opening a file: a rotation may set the file's permissions later.</summary>
    private const int RetryIntervals = 20;

    // The rotated files that are not to be read: they were read, or are older than the first file that is read.
    private readonly HashSet<FileIdentity> _done = [];

    // The position after the last line that was read; null: none was, and there is no checkpoint.
    private FileCheckpoint? _last = options.Checkpoint;
    private bool _isAfterGap;

    // Whether it is decided where reading begins; whether a file has been opened.
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
                    // A file that is created later is read from its beginning.
                    _isStarted = true;
                    failingSince = Environment.TickCount64;
                }
            }
            catch (Exception e) when (e is FileNotFoundException or DirectoryNotFoundException)
            {
                // It was renamed after the listing.
                failingSince = Environment.TickCount64;
            }
            catch (Exception e) when (e is IOException or UnauthorizedAccessException
                && (_wasOpen || OperatingSystem.IsWindows())
                && Environment.TickCount64 - failingSince < (long)interval * RetryIntervals)
            {
                // Its permissions may be set later, and Windows denies access to a file whose deletion is pending.
            }

            await Task.Delay(pause, cancellationToken).ConfigureAwait(false);
        }
    }

    /// <summary>
    /// A read has found the end of the file: decides what follows. Waits for <see cref="LogFile.NextPause"/> if more may come.
    /// </summary>
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

    /// <summary>
    /// The file that has the log's name was truncated. The rotated files of this moment are not read, because one of them may be its copy
    /// (copytruncate). So bytes that were not read before the truncation are lost, and the next line is after a gap.
    /// </summary>
    internal void OnCut() => OnCut(TryTake());

    /// <summary>Records the position after the file that was left.</summary>
    internal void OnLeft(LogFile file, LogEnd end)
        => _last = end == LogEnd.Cut || (end == LogEnd.Over && file.IsReusable) ? new FileCheckpoint(file.Identity, 0) : file.Checkpoint;

    private void OnCut(LogListing? files)
    {
        _isAfterGap = true;
        _done.UnionWith(files?.Rotated.Select(static one => one.Identity) ?? []);
    }

    /// <summary>Lists the files. Returns <see langword="null"/> if no descriptor is free for that.</summary>
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

    /// <summary>Decides which rotated files not to read.</summary>
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
    /// Whether a rotated file is still to be read. The times exclude files that somebody has copied or unpacked beside the log: it was
    /// written to after the last file was created, and was not created after the file that has the log's name.
    /// </summary>
    private bool ComesNext(LogName file, FileIdentity last, LogListing files)
        => !_done.Contains(file.Identity)
            && file.LastWritten >= DateTime.UnixEpoch.AddTicks(last.Created / TimeSpan.NanosecondsPerTick)
            && (files.Named is not { Identity.Created: not 0 and long newest } || file.Identity.Created <= newest);

    /// <summary>Opens a file. Returns <see langword="null"/> if its path leads to another file by now.</summary>
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

            // It was truncated.
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

        // Without identities, the position is used once, for the first file after the start of the program.
        return file.Identity == last.Identity && (file.Identity != default || !_isStarted) ? last.Offset : 0;
    }
}
