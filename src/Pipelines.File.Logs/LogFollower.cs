namespace Pipelines.File;

/// <summary>
/// Reads the lines of logs as they are written, each once and in order, as <c>tail -F</c> does. A log may be renamed, replaced, truncated,
/// compressed, missing for a time, and rotated several times while the program does not run. A checkpoint lets a program continue where it
/// has stopped.
/// </summary>
/// <remarks>
/// docs/following-limits.md says what a follower cannot know. The follower finds a file again by its <see cref="FileIdentity"/> and by its
/// content among the files that match <see cref="LogFollowerOptions.RotatedNames"/>. On systems other than Linux and Windows, which have no
/// identities, it reads only the file that has the name of the log.
/// </remarks>
public sealed class LogFollower
{
    // For single lines: as many as are there, but not so many that their memory matters.
    private const int LinesAtOnce = 1024;
    private const int BytesAtOnce = 64 * 1024;

    private readonly string[] _paths;
    private readonly LogFollowerOptions _options;
    private readonly LogFollowerCounts _counts = new(LogFollowerMetrics.All);
    private volatile LogSet? _set;

    /// <summary>Creates a follower of one log, or of all logs of a pattern. It opens nothing yet.</summary>
    /// <param name="path">
    /// The path of the log, absolute or relative to the current directory at this moment. The file need not exist. If the last part of the
    /// path contains <c>*</c> or <c>?</c>, it is a pattern for names in this folder, as in <c>/var/log/app/*.log</c>: the follower also
    /// reads files that come later. Compressed and rotated files are no logs of their own.
    /// </param>
    /// <param name="options">How to follow; <see langword="null"/> means the defaults.</param>
    /// <exception cref="ArgumentException">
    /// <paramref name="path"/> is empty or <see langword="null"/>, or an option is out of its range.
    /// </exception>
    public LogFollower(string path, LogFollowerOptions? options = null)
        : this([path], options)
    {
    }

    /// <summary>Creates a follower of several logs. It opens nothing yet.</summary>
    /// <param name="paths">Paths and patterns, as for one log.</param>
    /// <param name="options">How to follow; <see langword="null"/> means the defaults.</param>
    /// <exception cref="ArgumentException">
    /// There is no path, one is empty or <see langword="null"/>, an option is out of its range, or a single
    /// <see cref="LogFollowerOptions.Checkpoint"/> is given for more than one log.
    /// </exception>
    public LogFollower(IEnumerable<string> paths, LogFollowerOptions? options = null)
    {
        ArgumentNullException.ThrowIfNull(paths);
        string[] given = [.. paths];
        foreach (string path in given)
        {
            ArgumentException.ThrowIfNullOrEmpty(path);
        }

        _options = options ?? LogFollowerOptions.Default;
        _options.Validate();
        _paths = [.. given.Select(Path.GetFullPath).Distinct()];
        ArgumentOutOfRangeException.ThrowIfZero(_paths.Length, nameof(paths));
        if (_options.Checkpoint is not null && (_paths.Length > 1 || (LogSet.IsPattern(_paths[0]) && !_options.InNameOrder)))
        {
            throw new ArgumentException("Checkpoint is for one log. Several logs, and a pattern, need Checkpoints.", nameof(options));
        }
    }

    /// <summary>What the follower has done so far, and how far it is behind. Any thread may call this at any time.</summary>
    /// <remarks>It asks each open file for its length.</remarks>
    public LogFollowerStatistics GetStatistics() => new()
    {
        Files = _set?.Files ?? 0,
        BytesBehind = _set?.BytesBehind ?? 0,
        Lines = _counts.Lines.Value,
        BytesSkipped = _counts.Skipped.Value,
        Rotations = _counts.Rotations.Value,
        Gaps = _counts.Gaps.Value,
    };

    /// <summary>Returns the lines one after the other, and waits for more until it is canceled. The wait holds no thread.</summary>
    /// <remarks>
    /// Each call begins again, at the checkpoint of the options. The lines of one log come in order; logs alternate. After warm-up a line
    /// allocates nothing.
    /// </remarks>
    /// <param name="cancellationToken">Ends the wait at once.</param>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    /// <exception cref="UnauthorizedAccessException">You may not read a file, or the path is that of a folder.</exception>
    /// <exception cref="NotSupportedException">The path is that of a FIFO or a device.</exception>
    /// <exception cref="IOException">
    /// A file cannot be opened or read, or a folder cannot be listed. The follower tries to open a file after a rotation, and to list a
    /// folder, for 20 intervals and at least 5 s before it gives up.
    /// </exception>
    public async IAsyncEnumerable<FollowedLine> ReadLinesAsync([EnumeratorCancellation] CancellationToken cancellationToken = default)
    {
        Loan loan = new();
        await foreach (FollowedBatch batch in EnumerateAsync(LinesAtOnce, BytesAtOnce, TimeSpan.Zero, cancellationToken)
            .ConfigureAwait(false))
        {
            for (int i = 0; i < batch.Lines.Count; i++)
            {
                try
                {
                    yield return batch.Lines[i].LentBy(loan);
                }
                finally
                {
                    loan.End();
                }
            }
        }
    }

    /// <summary>
    /// Returns the lines in batches, and waits for more until it is canceled. A batch holds lines of one log, at least one, and comes as
    /// soon as it is full, or when its first line has waited for <paramref name="maxDelay"/>. Logs alternate, a batch each.
    /// </summary>
    /// <remarks>Each call begins again, at the checkpoint of the options. Each log may have one batch in memory.</remarks>
    /// <param name="maxLines">The maximum number of lines of a batch.</param>
    /// <param name="maxBytes">The maximum number of bytes of a batch, with line ends. A longer line is a batch of its own.</param>
    /// <param name="maxDelay">
    /// How long a line waits for more; 0: not at all. <see cref="Timeout.InfiniteTimeSpan"/>: until the batch is full or the file is over.
    /// </param>
    /// <param name="cancellationToken">Ends the wait at once.</param>
    /// <exception cref="ArgumentOutOfRangeException">
    /// <paramref name="maxLines"/> or <paramref name="maxBytes"/> is less than 1, or <paramref name="maxDelay"/> is negative or longer than
    /// 1 day.
    /// </exception>
    /// <inheritdoc cref="ReadLinesAsync" path="/exception"/>
    public IAsyncEnumerable<FollowedBatch> ReadBatchesAsync(int maxLines, int maxBytes, TimeSpan maxDelay,
        CancellationToken cancellationToken = default)
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(maxLines, 1);
        ArgumentOutOfRangeException.ThrowIfLessThan(maxBytes, 1);
        ArgumentOutOfRangeException.ThrowIfGreaterThan(maxDelay, TimeSpan.FromDays(1));
        if (maxDelay != Timeout.InfiniteTimeSpan)
        {
            ArgumentOutOfRangeException.ThrowIfLessThan(maxDelay, TimeSpan.Zero);
        }

        return EnumerateAsync(
            maxLines, maxBytes, maxDelay == Timeout.InfiniteTimeSpan ? TimeSpan.MaxValue : maxDelay, cancellationToken);
    }

    private async IAsyncEnumerable<FollowedBatch> EnumerateAsync(int maxLines, int maxBytes, TimeSpan maxDelay,
        [EnumeratorCancellation] CancellationToken cancellationToken)
    {
        LogSet set = new(_paths, _options, _counts, new BatchLimits(maxLines, maxBytes, maxDelay));
        await using ConfiguredAsyncDisposable disposing = set.ConfigureAwait(false);
        _set = set;
        set.Start();
        FollowedLine[] lines = [];
        Loan loan = new();
        while (await set.WaitAsync(cancellationToken).ConfigureAwait(false))
        {
            while (set.TryTake(out LogTail? tail))
            {
                FollowedBatch batch = tail.Take(ref lines, loan);
                _counts.Lines.Add(batch.Lines.Count);
                _counts.Gaps.Add(batch.Lines[0].IsAfterGap ? 1 : 0);
                try
                {
                    yield return batch;
                }
                finally
                {
                    loan.End();
                }

                tail.OnReturned();
                cancellationToken.ThrowIfCancellationRequested();
            }
        }
    }
}
