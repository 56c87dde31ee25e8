using System.Threading.Channels;

namespace Pipelines.File;

/// <summary>
/// Reads the files of one log, one after the other, and makes batches of their lines. One loop does this, which runs as long as there are
/// files. It waits for bytes, and while the caller has a batch.
/// </summary>
internal sealed class LogTail : IDisposable
{
    /// <summary>The longest time that the timer is set for, a day.</summary>
    private const double MaxTimerMilliseconds = 24 * 60 * 60 * 1000;

    /// <summary>How many NULs, bytes, are read before the end of their hole is asked for.</summary>
    private const int MinHole = 64 * 1024;

    private readonly LogFollowerOptions _options;
    private readonly LogFollowerCounts _counts;
    private readonly TimeSpan _maxDelay;
    private readonly LineBuffer _buffer;
    private readonly ITimer _timer;
    private readonly LogSet _set;

    // Holds an item when the caller does not use the batch any more, with which the loop goes on. Interlocked: whether it waits for that.
    private readonly Channel<bool> _returned = Channel.CreateUnbounded<bool>(
        new() { SingleReader = true, AllowSynchronousContinuations = true });

    private bool _isGiven;

    private readonly CancellationToken _stop;
    private LogFile? _file;
    private PipeReader? _reader;

    // The last file was truncated. Its last bytes may go on in a copy. The second: before the tail has begun, but after the search.
    private bool _isCut;
    private bool _isCutBefore;

    // The rest of the last file, which is compressed, is damaged.
    private bool _isDamaged;

    // Timestamps of the options' clock: when the file has grown last; when the first line of the batch has come.
    private long _grownAt;
    private long? _firstAt;

    internal LogTail(LogSet set, LogNames names, LogFollowerOptions options, LogFollowerCounts counts, BatchLimits limits,
        CancellationToken stop)
    {
        (_set, Names, _options, _counts, _maxDelay, _stop) = (set, names, options, counts, limits.Delay, stop);
        _buffer = new LineBuffer(names.Path, options.MaxLineLength, limits, counts);
        _timer = options.TimeProvider.CreateTimer(
            static tail => ((LogTail)tail!).EndRead(), this, Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan);
    }

    internal LogNames Names { get; }

    /// <summary>The loop. Owned by the search, as are the next three.</summary>
    internal Task Running { get; private set; } = Task.CompletedTask;

    /// <summary>The last listing.</summary>
    internal LogListing? Listing { get; set; }

    /// <summary>Whether the names are to be told of the listing when it comes twice.</summary>
    internal bool IsNews { get; set; }

    /// <summary>Whether the log is looked at each time: its name is a link, so that its folder does not show every change.</summary>
    internal bool IsLink { get; set; }

    /// <summary>Whether a file was opened.</summary>
    internal bool WasOpen { get; private set; }

    /// <summary>Whether a file is open.</summary>
    internal bool IsOpen => Volatile.Read(ref _file) is not null;

    /// <summary>Whether the log is to be looked at though its folder has not changed. Asked by the search.</summary>
    internal bool IsRestless => IsLink || Names.IsRestless || (WasOpen && !IsOpen);

    /// <summary>Whether the log has no file, and all was read. Asked by the search.</summary>
    internal bool IsGone => Running.IsCompleted && !Names.HasFiles && !Names.HasNext;

    /// <summary>How many bytes of the log were not returned yet. A compressed file counts as it is on the disk.</summary>
    internal long BytesBehind
        => Names.WaitingBytes + (Volatile.Read(ref _file) is { } file ? Math.Max(0, file.Length - _buffer.Offset) : 0);

    /// <summary>The lines that were given; valid until <see cref="OnReturned"/>.</summary>
    internal FollowedBatch Take(ref FollowedLine[] lines, Loan loan)
    {
        _firstAt = null;
        return _buffer.Take(ref lines, loan, _set.TakeGone());
    }

    /// <summary>The caller does not use the batch any more: the loop goes on, within this call if the next bytes are there.</summary>
    internal void OnReturned()
    {
        if (Interlocked.Exchange(ref _isGiven, false))
        {
            _buffer.OnReturned();
            _returned.Writer.TryWrite(true);
        }
    }

    /// <summary>
    /// Looks whether the names have changed something: there is a file to read, or the one that is read is over. Called by the search.
    /// </summary>
    internal void Look()
    {
        if (!IsOpen && Names.HasNext)
        {
            Running = RunAsync(Running);
        }
        else if (Volatile.Read(ref _file) is { } file && Names.IsOver(file, Volatile.Read(ref _grownAt)))
        {
            EndRead();
        }
    }

    /// <summary>The token was canceled: ends what the loop waits for.</summary>
    internal void Stop()
    {
        EndRead();
        OnReturned();
    }

    /// <summary>Closes what is open. The loop does not run any more.</summary>
    public void Dispose()
    {
        _timer.Dispose();
        _reader?.Complete();
        Interlocked.Exchange(ref _file, null)?.Dispose();
        Names.Close();
        _buffer.Return();
    }

    /// <summary>Ends a wait for bytes: the loop looks whether the file is over, the batch is due, or it is to stop.</summary>
    private void EndRead()
    {
        // The loop sets the reader before it looks.
        Interlocked.MemoryBarrier();
        Volatile.Read(ref _reader)?.CancelPendingRead();
    }

    /// <param name="before">The last run, which may be about to end without having seen the next file.</param>
    private async Task RunAsync(Task before)
    {
        await before.ConfigureAwait(false);
        try
        {
            // A run that has failed has left its file open, for Dispose to close.
            while (!IsOpen && !_stop.IsCancellationRequested && Names.TryTake() is { } file)
            {
                Volatile.Write(ref _file, file);
                if (_isCut && !(file.IsFinal && file.Offset == _buffer.End))
                {
                    // The rest of a line is gone.
                    await GiveRestAsync(isTorn: true).ConfigureAwait(false);
                }

                Begin(file);
                await ReadToEndAsync(file).ConfigureAwait(false);
                await GiveRestAsync(isTorn: !_isCut).ConfigureAwait(false);
                if (!_stop.IsCancellationRequested)
                {
                    await LeaveAsync(file).ConfigureAwait(false);
                }
            }

            if (Names.IsStale)
            {
                _set.SearchSoon();
            }
        }
        catch (Exception e)
        {
            _set.Fail(e);
        }
    }

    /// <summary>Gives the lines to the caller, and waits until it does not use them any more.</summary>
    private ValueTask<bool> GiveAsync()
    {
        Interlocked.Exchange(ref _isGiven, true);
        _set.Give(this);
        if (_stop.IsCancellationRequested)
        {
            OnReturned();
        }

        return _returned.Reader.ReadAsync(CancellationToken.None);
    }

    /// <summary>Gives all lines, and with <paramref name="isTorn"/> the bytes behind them as lines that have no end.</summary>
    private async Task GiveRestAsync(bool isTorn)
    {
        while (!_stop.IsCancellationRequested && (_buffer.HasLines || (isTorn && _buffer.TryTakeTorn())))
        {
            await GiveAsync().ConfigureAwait(false);
        }
    }

    /// <summary>Whether the first line has waited long enough for more. If not, the timer wakes the loop when it has.</summary>
    private bool IsDue()
    {
        _firstAt ??= _options.TimeProvider.GetTimestamp();
        TimeSpan left = _maxDelay - _options.TimeProvider.GetElapsedTime(_firstAt.Value);
        if (left > TimeSpan.Zero)
        {
            // Less than 1 ms a timer would take for now. If it fires too early, it is set again.
            double due = Math.Clamp(left.TotalMilliseconds, 1, MaxTimerMilliseconds);
            _timer.Change(TimeSpan.FromMilliseconds(due), Timeout.InfiniteTimeSpan);
        }

        return left <= TimeSpan.Zero;
    }

    private void Begin(LogFile file)
    {
        Span<byte> last = stackalloc byte[LogContent.MaxKnown];
        uint beginning = 0;
        int length = 0;
        _buffer.IsAfterGap |= file.IsAfterGap || _isDamaged;
        _isDamaged = _isCutBefore = false;
        _grownAt = long.MinValue;
        if (file.Name.IsCompressed)
        {
            Stream content = LogContent.Decompress(file.Handle);
            Volatile.Write(ref _reader, PipeReader.Create(content));
            try
            {
                length = LogContent.Skip(content, file.Offset, last, out beginning, _stop).Last;
            }
            catch (InvalidDataException)
            {
                // Nothing of it can be read.
                _isDamaged = true;
            }
        }
        else
        {
            length = file.ReadBefore(file.Offset, last, out beginning);
            _isCutBefore = length < Math.Min(file.Offset, LogContent.MaxKnown)
                || (file is { Offset: > 0, OffsetHash: not 0 } && file.OffsetHash != LogContent.Hash(last[..length], beginning));
            Volatile.Write(ref _reader, CreateReader(file, file.Offset));
        }

        _buffer.Begin(file.Identity, file.Offset, last[..length], beginning);
        WasOpen = true;

        // Whoever does not see the reader yet has told the reason to look before, and that is seen now.
        Interlocked.MemoryBarrier();
    }

    private FilePipeReader CreateReader(LogFile file, long offset) => FilePipeReader.Create(file.Handle, new FilePipeReaderOptions
    {
        Follow = !file.IsFinal,
        FollowInterval = _options.FollowInterval,
        Offset = offset,
        LeaveOpen = true,
    });

    /// <summary>Reads the file until it is over, and gives its whole lines.</summary>
    private async Task ReadToEndAsync(LogFile file)
    {
        _isCut = _isCutBefore;
        bool isOver = _isDamaged || _isCut;
        while (!isOver && !_stop.IsCancellationRequested)
        {
            ReadResult result;
            try
            {
                result = await _reader!.ReadAsync(CancellationToken.None).ConfigureAwait(false);
            }
            catch (InvalidDataException)
            {
                _isDamaged = true;
                break;
            }

            ReadOnlySequence<byte> bytes = result.Buffer.Slice(0, Math.Min(result.Buffer.Length, _buffer.Room));
            bool isEnd = bytes.IsEmpty && result.IsCompleted;
            _isCut = IsCut(file, bytes, isEnd);
            if (!_isCut && !bytes.IsEmpty)
            {
                _buffer.Append(bytes);
                file.SetRead(_buffer.End, _buffer.Last);
                if (_buffer.End > file.Name.Length)
                {
                    Volatile.Write(ref _grownAt, _options.TimeProvider.GetTimestamp());
                }
            }

            _reader.AdvanceTo(bytes.End);
            if (_buffer.IsEmpty && !_isCut && bytes.Length >= MinHole && file.EndOfHole(_buffer.End) - 2 is var data && data > _buffer.End)
            {
                // All of it was NULs, and more follow. Two of them show that one behind them is none of the line's.
                _counts.Skipped.Add(data - _buffer.End);
                await _reader.CompleteAsync().ConfigureAwait(false);
                _buffer.Skip(data);
                Volatile.Write(ref _reader, CreateReader(file, data));

                // As in Begin.
                Interlocked.MemoryBarrier();
            }

            isOver = _isCut || (file.IsComplete ? isEnd : Names.IsOver(file, _grownAt) && file.Length <= _buffer.End);
            while (!isOver && !_stop.IsCancellationRequested && _buffer.HasLines && (_buffer.IsFull || IsDue()))
            {
                await GiveAsync().ConfigureAwait(false);
            }
        }
    }

    /// <summary>Whether the file was truncated: it has ended, or does not hold any more what was read of it.</summary>
    /// <param name="file">The file.</param>
    /// <param name="bytes">What was read now.</param>
    /// <param name="isEnd">Whether that was nothing, at the end.</param>
    private bool IsCut(LogFile file, ReadOnlySequence<byte> bytes, bool isEnd)
    {
        if (bytes.IsEmpty)
        {
            return isEnd && !file.IsComplete;
        }

        return !file.Name.IsCompressed
            && (_buffer.End == 0 ? !file.BeginsAs(bytes) : !file.Holds(_buffer.End, _buffer.Last));
    }

    private async ValueTask LeaveAsync(LogFile file)
    {
        Volatile.Write(ref _file, null);
        await _reader!.CompleteAsync().ConfigureAwait(false);
        Volatile.Write(ref _reader, null);
        FileCheckpoint end = new(_buffer.Identity, _buffer.End) { ContentHash = _buffer.HashAtEnd };
        if (_isCut)
        {
            // What was before the tail has begun, only the search has seen.
            end = _isCutBefore ? end with { ContentHash = file.OffsetHash } : end;
            Names.OnCut(file, _buffer.End > 0 ? end : null);
        }
        else
        {
            Names.OnLeft(file, end);
            _counts.Rotations.Add();
        }
    }
}
