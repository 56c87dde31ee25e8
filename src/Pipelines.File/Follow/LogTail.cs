using System.IO.Pipelines;

namespace Pipelines.File.Follow;

/// <summary>
/// Reads the files of one log, one after the other, and makes batches of their lines. It runs until a batch is there, then the caller has
/// the batch, then it runs again; so one caller at a time uses it, but for <see cref="Look"/> and <see cref="Wake"/>.
/// </summary>
internal sealed class LogTail : IDisposable
{
    private static readonly TimeSpan s_tick = TimeSpan.FromMilliseconds(1);

    private readonly LogFollowerOptions _options;
    private readonly LogFollowerCounts _counts;
    private readonly TimeSpan _maxDelay;
    private readonly LineBuffer _buffer;
    private readonly ITimer? _timer;
    private readonly CancellationToken _stop;
    private LogFile? _file;

    // Null: no file is open.
    private PipeReader? _reader;

    // The file is over: what is left of it are the lines in the buffer.
    private bool _isOver;

    // The file was truncated. Its last bytes may go on in a copy.
    private bool _isCut;

    // The rest of a compressed file is damaged.
    private bool _isDamaged;
    private LogFile? _following;

    // Timestamps of the options' clock: when the file has grown last; when the first line of the batch has come.
    private long _grownAt;
    private long? _firstAt;

    internal LogTail(LogNames names, LogFollowerOptions options, LogFollowerCounts counts, int maxLines, int maxBytes, TimeSpan maxDelay,
        CancellationToken stop)
    {
        (Names, _options, _counts, _maxDelay, _stop) = (names, options, counts, maxDelay, stop);
        _buffer = new LineBuffer(names.Path, options.MaxLineLength, maxLines, maxBytes);
        _timer = maxDelay == TimeSpan.Zero ? null
            : options.TimeProvider.CreateTimer(static tail => ((LogTail)tail!).Wake(), this, Timeout.InfiniteTimeSpan,
                Timeout.InfiniteTimeSpan);
    }

    internal LogNames Names { get; }

    /// <summary>Since when the next file cannot be opened, as a timestamp. Owned by the search, as are the next two.</summary>
    internal long? FailingSince { get; set; }

    /// <summary>What the names were when they were looked at last.</summary>
    internal int Signature { get; set; }

    /// <summary>Whether the log is looked at each time: its name is a link, so that its folder does not show every change.</summary>
    internal bool IsLink { get; set; }

    /// <summary>Whether a file was opened.</summary>
    internal bool WasOpen { get; private set; }

    /// <summary>Whether a file is open.</summary>
    internal bool IsOpen => Volatile.Read(ref _file) is not null;

    /// <summary>How many bytes of the log were not returned yet. A compressed file counts as it is on the disk.</summary>
    internal long BytesBehind
        => Names.WaitingBytes + (Volatile.Read(ref _file) is { } file ? Math.Max(0, file.Length - _buffer.Offset) : 0);

    /// <summary>Runs until there is a batch: <see langword="true"/>; or until the log has no file, or the tail is stopped.</summary>
    internal async Task<bool> RunAsync()
    {
        while (!_stop.IsCancellationRequested)
        {
            if (_buffer.HasLines && (_file is null || _isOver || _buffer.IsFull || IsDue()))
            {
                return true;
            }

            if (_isOver && !_isCut && !_buffer.IsEmpty)
            {
                // All whole lines were returned.
                _buffer.TakeTorn();
            }
            else if (_isOver)
            {
                await LeaveAsync().ConfigureAwait(false);
            }
            else if (_file is not null)
            {
                await ReadAsync().ConfigureAwait(false);
            }
            else if (!TryBegin())
            {
                return false;
            }
        }

        return false;
    }

    /// <summary>The lines of a run that has returned <see langword="true"/>; valid until <see cref="OnReturned"/>.</summary>
    internal FollowedBatch Take(ref FollowedLine[] lines)
    {
        _firstAt = null;
        if (_buffer.IsAfterGap)
        {
            _counts.AddGap();
        }

        return _buffer.Take(ref lines);
    }

    internal void OnReturned() => _buffer.OnReturned();

    /// <summary>
    /// Looks whether the names have changed something for the tail. Returns <see langword="true"/> if it sleeps and is to run again.
    /// </summary>
    internal bool Look()
    {
        if (Volatile.Read(ref _file) is { } file
            && (Names.IsOver(file, Volatile.Read(ref _grownAt)) || Names.IsSuspect(file, isTaken: false)))
        {
            Wake();
        }

        return Names.TryAwake();
    }

    /// <summary>Ends the wait of the run: it looks whether it is over, or is to stop.</summary>
    internal void Wake()
    {
        // The run sets the reader before it looks.
        Interlocked.MemoryBarrier();
        Volatile.Read(ref _reader)?.CancelPendingRead();
    }

    /// <summary>Closes what is open. The tail does not run any more.</summary>
    public void Dispose()
    {
        _timer?.Dispose();
        _reader?.Complete();
        Interlocked.Exchange(ref _file, null)?.Dispose();
        _following?.Dispose();
        Names.Close();
        _buffer.Return();
    }

    /// <summary>Whether the first line has waited long enough for more. If not, the timer wakes the run when it has.</summary>
    private bool IsDue()
    {
        if (_timer is null || _maxDelay == Timeout.InfiniteTimeSpan)
        {
            return _timer is null;
        }

        _firstAt ??= _options.TimeProvider.GetTimestamp();
        TimeSpan left = _maxDelay - _options.TimeProvider.GetElapsedTime(_firstAt.Value);
        if (left > TimeSpan.Zero)
        {
            // Not less than 1 ms, which a timer would take for now. A timer may fire a little early: then it is set again.
            _timer.Change(left > s_tick ? left : s_tick, Timeout.InfiniteTimeSpan);
        }

        return left <= TimeSpan.Zero;
    }

    /// <summary>Opens the next file. Returns <see langword="false"/> if there is none.</summary>
    private bool TryBegin()
    {
        _following ??= Names.TryTake();
        if (_following is not { } file)
        {
            return false;
        }

        if (_isCut && !_buffer.IsEmpty && !(file.IsFinal && file.Offset == _buffer.End))
        {
            // The rest of a line is gone.
            _buffer.TakeTorn();
            _isCut = false;
            return true;
        }

        Span<byte> last = stackalloc byte[LogContent.MaxKnown];
        _isCut = false;
        (PipeReader reader, int length) = Open(file, last, out uint beginning);
        _buffer.Begin(file.Identity, file.Offset, last[..length], beginning);
        if (file.IsAfterGap || _isDamaged)
        {
            _buffer.IsAfterGap = true;
            _isDamaged = false;
        }

        _grownAt = long.MinValue;
        Volatile.Write(ref _file, file);
        Volatile.Write(ref _reader, reader);
        Interlocked.MemoryBarrier();
        _following = null;
        WasOpen = true;
        return true;
    }

    private (PipeReader Reader, int Last) Open(LogFile file, Span<byte> last, out uint beginning)
    {
        if (!file.Name.IsCompressed)
        {
            int length = file.ReadBefore(file.Offset, last, out beginning);
            return (FilePipeReader.Create(file.Handle, new FilePipeReaderOptions
            {
                Follow = !file.IsFinal,
                FollowInterval = _options.FollowInterval,
                Offset = file.Offset,
                LeaveOpen = true,
            }), length);
        }

        Stream content = LogContent.Decompress(file.Handle);
        try
        {
            return (PipeReader.Create(content), LogContent.Skip(content, file.Offset, last, out beginning, _stop).Last);
        }
        catch (InvalidDataException)
        {
            // Nothing of it can be read.
            content.Dispose();
            (_isDamaged, beginning) = (true, 0);
            return (PipeReader.Create(ReadOnlySequence<byte>.Empty), 0);
        }
        catch
        {
            content.Dispose();
            throw;
        }
    }

    /// <summary>Reads more, or finds that the file is over.</summary>
    private async ValueTask ReadAsync()
    {
        LogFile file = _file!;
        ReadResult result;
        try
        {
            result = await _reader!.ReadAsync(CancellationToken.None).ConfigureAwait(false);
        }
        catch (InvalidDataException)
        {
            _isOver = _isDamaged = true;
            return;
        }

        ReadOnlySequence<byte> bytes = result.Buffer.Slice(0, Math.Min(result.Buffer.Length, _buffer.Room));
        bool isRead = bytes.IsEmpty && result.IsCompleted;
        bool isEnded = file.IsFinal || file.Name.IsCompressed;
        bool isCut = !file.Name.IsCompressed && (
            bytes.IsEmpty ? (isRead && !isEnded) || (Names.IsSuspect(file, isTaken: true) && HasOtherBytes(file))
            : _buffer.End == 0 ? !file.BeginsAs(bytes) : HasOtherBytes(file));
        if (!isCut && !bytes.IsEmpty)
        {
            _buffer.Append(bytes);
            if (_buffer.End > file.Name.Length)
            {
                Volatile.Write(ref _grownAt, _options.TimeProvider.GetTimestamp());
            }
        }

        _reader.AdvanceTo(bytes.End);
        if (isCut)
        {
            _isCut = _isOver = true;
        }
        else
        {
            _isOver = isEnded ? isRead : Names.IsOver(file, _grownAt) && file.Length <= _buffer.End;
        }
    }

    /// <summary>Whether the file does not hold any more what was read, or nothing was read of it since it was truncated.</summary>
    private bool HasOtherBytes(LogFile file)
        => _buffer.End == 0 ? file.Beginning is not null : !file.Holds(_buffer.End, _buffer.Last);

    private async ValueTask LeaveAsync()
    {
        LogFile file = _file!;
        Volatile.Write(ref _file, null);
        await _reader!.CompleteAsync().ConfigureAwait(false);
        Volatile.Write(ref _reader, null);
        FileCheckpoint end = new(_buffer.Identity, _buffer.End) { ContentHash = _buffer.HashAtEnd };
        if (_isCut)
        {
            Names.OnCut(file, _buffer.End > 0 ? end : null);
        }
        else
        {
            Names.OnLeft(file, end);
            _counts.AddRotation();
        }

        _isOver = false;
    }
}
