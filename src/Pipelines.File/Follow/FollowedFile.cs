using Pipelines.File.IO;
using Pipelines.File.Threading;

namespace Pipelines.File.Follow;

/// <summary>What the wait at the end of a followed file has come to.</summary>
internal enum FollowedEnd
{
    /// <summary>The file has changed: the read is to be performed.</summary>
    Changed,

    /// <summary>Nothing more comes, as far as can be told: the end is the end.</summary>
    Over,
    Canceled,
}

/// <summary>
/// The wait for more at the end of a file, and what was last seen of the file and its name. It ends with an event, with a look that finds something, or with a cancellation: whoever takes the
/// waiting request out, under the lock, completes it, without the lock.
/// </summary>
/// <remarks>
/// The file has lost its name when the path means another file, or none. Its writer may go on for a while all the same, so it is left only when nothing has come to it for some time: for
/// little where the file that has the name now holds bytes already, as the writer has moved on then, and for longer where it is empty or missing, when nobody misses anything meanwhile.
/// </remarks>
[SuppressMessage("Design", "CA1001:Types that own disposable fields should be disposable", Justification = "Release disposes of it.")]
internal sealed class FollowedFile : IValueTaskSource<FollowedEnd>, IWaitingCall
{
    /// <summary>How many intervals apart the looks are where the system tells of changes: at what it does not tell, a folder above that was renamed.</summary>
    private const int IntervalsOfWatched = 4;

    /// <summary>How many intervals nothing has come to a file that has lost its name before it is left.</summary>
    private const int QuietIntervals = 4;

    /// <summary>The same as a part of an interval, where the file that has its name now holds bytes.</summary>
    private const int QuietPart = 5;

    /// <summary>How far the looks are apart at most, milliseconds, once it has lost its name.</summary>
    private const int MostNamelessMilliseconds = 20;

    /// <summary>How soon at the latest, milliseconds, a wait looks at the name, which may have changed untold before it. A file that grows faster needs no looks.</summary>
    private const int MostFirstMilliseconds = 10;

    private readonly string? _path;
    private readonly int _interval;

    // FileWatches guards it, as it does Watch.
    private FollowedFile? _nextOfWatch;

    // Says when the next look is due. It may come early, which costs a look.
    private Timer _timer = null!;

    // Guards what follows.
    private readonly Lock _lock = new();
    private ManualResetValueTaskSourceCore<FollowedEnd> _wait;
    private FileRequest? _waiting;

    // Tells one wait from the next, by whoever has looked at the file without the lock.
    private long _ticket;

    // There was an event since the wait began to begin.
    private bool _hasChanged;

    // The name was looked at since the wait began, and so while the file was watched: what changes from here on is told.
    private bool _isNameKnown;
    private bool _isLooking;

    // The offset of the last wait, and when the file has grown last, or has lost its name: Environment.TickCount64.
    private long _offset = -1;
    private long _quietSince;
    private bool _hasLostName;

    // The offset of the end behind which a look expects nothing more; -1: none. One more read there decides.
    private long _lastEnd = -1;

    // The offset of a read that was repeated at once, as the file was longer; -1: none. If it finds nothing again, the looks decide.
    private long _repeatedAt = -1;

    /// <param name="handle">The file. Whoever closes it calls <see cref="Release"/> first.</param>
    /// <param name="path">Its whole path; <see langword="null"/>: growing and shrinking count alone.</param>
    /// <param name="identity">Which file it is; <see langword="default"/> where nobody knows.</param>
    /// <param name="interval">Milliseconds between two looks where the system does not tell of changes.</param>
    internal FollowedFile(SafeFileHandle handle, string? path, FileIdentity identity, int interval)
    {
        Handle = handle;
        _path = path;
        _interval = interval;
        Identity = identity;
        CanBeWatched = FileWatches.CanWatch(handle);

        // What flows with the caller is not for the looks. It is due at once, as the runtime starts its thread for timers with the first of them, and ends the process where that fails.
        LibraryContext.Run(
            static state =>
            {
                FollowedFile file = (FollowedFile)state!;
                file._timer = new Timer(static file => ((FollowedFile)file!).Tick(), file, dueTime: 0, Timeout.Infinite);
            },
            this);
    }

    internal SafeFileHandle Handle { get; }

    internal FileIdentity Identity { get; }

    /// <summary>Whether the system may tell of the file's changes.</summary>
    internal bool CanBeWatched { get; set; }

    /// <summary>Whether a read waits. May be outdated.</summary>
    internal bool IsWaiting => Volatile.Read(ref _waiting) is not null;

    WaitKind IWaitingCall.WaitKind => WaitKind.Look;

    IWaitingCall? IWaitingCall.NextCall { get; set; }

    long IWaitingCall.QueuedAt { get; set; }

    /// <summary>The number of the watch that tells of the next change; 0: there is none. <see cref="FileWatches"/> guards it and the three below.</summary>
    internal int Watch { get; set; }

    /// <summary>The next file of the same watch.</summary>
    internal ref FollowedFile? NextOfWatch => ref _nextOfWatch;

    /// <summary>The file as inotify_add_watch(2) finds it, whatever its name.</summary>
    internal string? DescriptorPath { get; set; }

    /// <summary>It is not watched any more, for good.</summary>
    internal bool IsReleased { get; set; }

    /// <summary>Whether that is the end, where asking does not wait: a server may have a file that cannot be watched.</summary>
    internal bool IsAtEnd(long offset) => CanBeWatched && LengthOrMost() <= offset;

    /// <summary>A read of that request has found the end, or is about to: waits for more, unless there is more, or never will be.</summary>
    internal ValueTask<FollowedEnd> WaitAsync(FileRequest request)
    {
        long offset = request.Offset;
        Volatile.Write(ref _hasChanged, false);

        // Watched first: what changes after the length was asked is told.
        bool isWatched = CanBeWatched && FileWatches.TryAdd(this);
        long length = isWatched ? LengthOrMost() : offset;
        lock (_lock)
        {
            if (request.CanceledGeneration == request.Generation)
            {
                return new ValueTask<FollowedEnd>(FollowedEnd.Canceled);
            }

            if (length < offset || _lastEnd == offset)
            {
                // The read that has just found nothing was made after that look.
                _lastEnd = offset;
                return new ValueTask<FollowedEnd>(FollowedEnd.Over);
            }

            // An event that came meanwhile has ended the watch.
            bool hasGrown = length > offset && _repeatedAt != offset;
            if (hasGrown || _hasChanged)
            {
                _repeatedAt = hasGrown ? offset : _repeatedAt;
                return new ValueTask<FollowedEnd>(FollowedEnd.Changed);
            }

            if (_offset != offset)
            {
                _offset = offset;
                _quietSince = Environment.TickCount64;
            }

            _ticket++;
            _isNameKnown = _path is null;
            _wait.Reset();
            Volatile.Write(ref _waiting, request);
            ScheduleLookLocked();
            return new ValueTask<FollowedEnd>(this, _wait.Version);
        }
    }

    /// <summary>The file has changed, which the system tells once. Does not wait, and runs nobody's code.</summary>
    internal void OnEvent()
    {
        bool isTaken;
        lock (_lock)
        {
            _hasChanged = true;
            isTaken = TryTakeLocked();
        }

        if (isTaken)
        {
            _wait.SetResult(FollowedEnd.Changed);
        }
    }

    /// <summary>Looks at a file where a read waits, which may wait for the device or for a server; on a thread that may.</summary>
    internal void Look()
    {
        long ticket;
        long offset;
        lock (_lock)
        {
            if (_waiting is null)
            {
                _isLooking = false;
                return;
            }

            (ticket, offset) = (_ticket, _offset);
        }

        // Again, where there was no watch to be had.
        _ = CanBeWatched && FileWatches.TryAdd(this);

        // The name first: what is in the file after its name was lost, and the writer has moved on, is all of it.
        FileStatus named = default;
        NameMeaning meaning = _path is null ? NameMeaning.Unknown : FileStatus.OfName(_path, out named);
        long length = offset;
        bool isDeleted = false;

        // As of now, too: a file of an overlay's lower layer gets another moment of its making with the first write to it (copy-up), and is the same file.
        FileIdentity identity = Identity;
        try
        {
            if (FileStatus.TryOf(Handle, out FileStatus status))
            {
                length = status.Length;
                identity = status.Identity;
                isDeleted = status.IsDeleted && _path is not null;
            }
        }
        catch (ObjectDisposedException)
        {
            // The read tells.
            length = long.MaxValue;
        }

        bool isThisFile = meaning == NameMeaning.File && (named.Identity == identity || named.Identity == Identity);
        bool hasLostName = isDeleted || meaning == NameMeaning.Nothing || (meaning == NameMeaning.File && !isThisFile && identity != default);
        bool isTaken = false;
        lock (_lock)
        {
            _isLooking = false;
            if (_ticket == ticket && _waiting is not null)
            {
                bool isOver = length < offset || (length == offset && hasLostName && IsQuietLocked(hasSuccessor: meaning == NameMeaning.File && named.Length > 0));

                // What has come since the look is read all the same.
                _lastEnd = isOver ? offset : _lastEnd;
                _hasLostName = hasLostName || (_hasLostName && !isThisFile);
                _isNameKnown = true;
                isTaken = (isOver || length > offset) && TryTakeLocked();
            }

            if (_waiting is not null)
            {
                ScheduleLookLocked();
            }
        }

        if (isTaken)
        {
            _wait.SetResult(FollowedEnd.Changed);
        }
    }

    void IWaitingCall.Perform() => Look();

    /// <summary>Ends the wait of that use of the request, if it waits here. <see langword="false"/>: if it does come here, it is refused.</summary>
    internal bool TryCancel(FileRequest request, int generation)
    {
        lock (_lock)
        {
            if (request.Generation != generation)
            {
                return false;
            }

            request.CanceledGeneration = generation;
            if (_waiting != request)
            {
                return false;
            }

            _ = TryTakeLocked();
        }

        _wait.SetResult(FollowedEnd.Canceled);
        return true;
    }

    /// <summary>The file is about to be closed: no read is under way.</summary>
    internal void Release()
    {
        _timer.Dispose();
        FileWatches.Remove(this);
    }

    FollowedEnd IValueTaskSource<FollowedEnd>.GetResult(short token)
    {
        FollowedEnd end = _wait.GetResult(token);

        // What waited is not kept: the watch keeps this, and a reader may be forgotten.
        _wait.Reset();
        return end;
    }

    ValueTaskSourceStatus IValueTaskSource<FollowedEnd>.GetStatus(short token) => _wait.GetStatus(token);

    void IValueTaskSource<FollowedEnd>.OnCompleted(Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags)
        => _wait.OnCompleted(continuation, state, token, flags);

    /// <summary>Bytes. More than there can be where the file is closed, which the read tells.</summary>
    private long LengthOrMost()
    {
        try
        {
            return RandomAccess.GetLength(Handle);
        }
        catch (Exception e) when (e is ObjectDisposedException or IOException or UnauthorizedAccessException)
        {
            return long.MaxValue;
        }
    }

    /// <summary>The timer. One look is under way at a time, which may take long, and has the timer set again.</summary>
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

        WaitingThreads.Shared.Queue(this);
    }

    private bool TryTakeLocked()
    {
        Debug.Assert(_lock.IsHeldByCurrentThread);
        bool isWaiting = _waiting is not null;
        Volatile.Write(ref _waiting, null);
        return isWaiting;
    }

    /// <summary>Whether the file, everything of which is read and whose name does not mean it, was quiet for long enough to be left.</summary>
    private bool IsQuietLocked(bool hasSuccessor)
    {
        Debug.Assert(_lock.IsHeldByCurrentThread);
        long now = Environment.TickCount64;
        if (!_hasLostName)
        {
            _quietSince = now;
        }

        return now - _quietSince >= (hasSuccessor ? _interval / QuietPart : (long)_interval * QuietIntervals);
    }

    private void ScheduleLookLocked()
    {
        Debug.Assert(_lock.IsHeldByCurrentThread);
        if (!_hasLostName && !_isNameKnown && Watch != 0)
        {
            _timer.Change(Math.Min(_interval, MostFirstMilliseconds), Timeout.Infinite);
            return;
        }

        // Files of one period are looked at together.
        long period = _hasLostName ? Math.Min(_interval, MostNamelessMilliseconds) : Watch == 0 ? _interval : (long)_interval * IntervalsOfWatched;
        _timer.Change(Math.Min(period - (Environment.TickCount64 % period), int.MaxValue), Timeout.Infinite);
    }
}
