using Pipelines.File.IO;
using Pipelines.File.Threading;

namespace Pipelines.File.Growing;

/// <content>The looks at the name and the length, which find what nobody tells.</content>
internal sealed partial class FollowedFile
{
    /// <summary>
    /// Looks at the name and the length of a file where a read waits. Called on a waiting thread, because it may wait for the device or for
    /// a file server. Meanwhile the read's wait may end, and another one may begin.
    /// </summary>
    internal void Look()
    {
        long offset;
        lock (_lock)
        {
            if (_waiting is null)
            {
                _isLooking = false;
                return;
            }

            offset = _offset;
            _lookAt = long.MaxValue;
        }

        // The wait may have begun without a watch because none was to be had: try again.
        _ = FileWatches.TryAdd(_watch);

        // The name before the length: if the writer has moved on to another file by now, the length is final.
        FileStatus named = default;
        NameMeaning meaning = _path is null ? NameMeaning.Unknown : FileStatus.OfFullName(_path, out named);
        FileStatus? status = _file.AskStatus();
        bool isDeleted = status?.IsDeleted == true && _path is not null;

        // The identity is asked for again: the first write to a file of an overlay's lower layer (copy-up) changes its birth time, and so
        // its identity, but it is the same file.
        FileIdentity identity = status?.Identity ?? Identity;
        bool isThisFile = meaning == NameMeaning.File && (named.Identity == identity || named.Identity == Identity);
        bool hasLostName = isDeleted || meaning == NameMeaning.Nothing
            || (meaning == NameMeaning.File && !isThisFile && identity != default);

        // Some file systems do not tell the length of a file that was deleted. Else a read tells why there is none.
        long length = status?.Length ?? (hasLostName ? offset : long.MaxValue);
        bool lags = length < offset && _watch is null && HasBytesTo(offset);
        length = lags ? offset : length;
        bool isTruncated = length < offset;
        FileRequest? taken = null;
        lock (_lock)
        {
            _isLooking = false;
            if (_offset == offset && _waiting is not null)
            {
                long now = Environment.TickCount64;
                _namelessSince = hasLostName ? _namelessSince ?? now : isThisFile ? null : _namelessSince;
                long quietTime = meaning == NameMeaning.File && named.Length > 0 ? _interval / QuietDivisor
                    : (long)_interval * QuietIntervals;
                bool isOver = isTruncated || (length == offset && hasLostName && now - _namelessSince >= quietTime);

                // The wait ends with one more read at this offset, so bytes that came after the look are not lost. Not if the file was
                // truncated: it may have grown past the offset since, and what is there now does not continue what was read.
                _lastEnd = isOver ? offset : _lastEnd;
                taken = isOver || lags || length > offset ? TakeLocked() : null;
            }

            if (_waiting is not null)
            {
                ScheduleLookLocked(isFirst: false);
            }
        }

        if (taken is not null && isTruncated)
        {
            taken.Finish(0);
            GoOn(taken, isAtEnd: false);
        }
        else
        {
            ReadAgain(taken);
        }
    }

    /// <summary>
    /// Whether the file has the bytes before an offset, or a read will tell why not. On SMB the length that the system knows lags behind
    /// what another client has written and this one has read already.
    /// </summary>
    private bool HasBytesTo(long offset)
    {
        try
        {
            return _file.ReadHere(stackalloc byte[1], offset - 1) > 0;
        }
        catch (Exception)
        {
            // Of any kind, as nobody has called this thread: .NET tells ECANCELED, which a FUSE server may answer, as a cancellation.
            return true;
        }
    }

    /// <summary>The timer's callback: queues a look. Only one runs at a time, because it may take long; it sets the timer again.</summary>
    private void Tick()
    {
        lock (_lock)
        {
            if (_waiting is null || _isLooking)
            {
                return;
            }

            _isLooking = true;
        }

        WaitingThreads.Looks.Queue(this);
    }

    /// <summary>
    /// Sets the timer. The first look of a watched file comes soon, because its name may have changed before the watch was made; events
    /// report later changes.
    /// </summary>
    private void ScheduleLookLocked(bool isFirst)
    {
        Debug.Assert(_lock.IsHeldByCurrentThread);
        bool isWatched = _watch is { Number: not 0 };
        bool isSoon = isFirst && isWatched && _path is not null && _namelessSince is null;

        // Due at multiples of the period, so that files with the same period are looked at together.
        long period = _namelessSince is not null ? Math.Min(_interval, MaxNamelessMilliseconds)
            : isWatched ? (long)_interval * (_path is null ? WatchedHandleIntervals : WatchedIntervals)
            : _interval;
        long now = Environment.TickCount64;
        _lookAt = Math.Min(_lookAt, now + (isSoon ? Math.Min(_interval, MaxFirstMilliseconds) : period - (now % period)));
        _timer.Change(Math.Clamp(_lookAt - now, 0, int.MaxValue), Timeout.Infinite);
    }
}
