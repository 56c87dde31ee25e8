using Microsoft.Win32.SafeHandles;
using Pipelines.File.Backends;
using Pipelines.File.Interop;

namespace Pipelines.File.Waiting;

/// <summary>What a read at the end of a followed file has come to.</summary>
internal enum FollowedEnd
{
    /// <summary>It waits here, and is queued when there may be more. Whoever asked has nothing to do with it any more.</summary>
    Waiting,

    /// <summary>The file has grown meanwhile: the read is to be performed.</summary>
    Grown,

    /// <summary>Nothing more comes, as far as can be told: the end is the end.</summary>
    Over,

    /// <summary>It was canceled before it came here.</summary>
    Canceled,
}

/// <summary>
/// A file whose end is waited at: the read that waits there, and what was last seen of the file and its name. Whoever takes the read out, under the lock, is the one who goes on with
/// it: an event, a look of <see cref="FollowTimer"/>, or a cancellation.
/// </summary>
/// <remarks>
/// The file has lost its name when the path means another file, or none. Its writer may go on for a while all the same, so it is left only when nothing has come to it for some time: for
/// little where the file that has the name now holds bytes already, as the writer has moved on then, and for longer where it is empty or missing, when nobody misses anything meanwhile.
/// </remarks>
internal sealed class FollowedFile
{
    /// <summary>How many intervals apart the looks are where the system tells of changes: at what it does not tell, a folder above that was renamed.</summary>
    private const int IntervalsOfWatched = 4;

    /// <summary>How many intervals nothing has come to a file that has lost its name before it is left.</summary>
    private const int QuietIntervals = 4;

    /// <summary>The same as a part of an interval, where the file that has its name now holds bytes.</summary>
    private const int QuietPart = 5;

    /// <summary>How far the looks are apart, milliseconds, once it has lost its name.</summary>
    private const int MostLosingMilliseconds = 20;

    private readonly SafeFileHandle _handle;
    private readonly string? _path;
    private readonly int _interval;

    // Guards what follows, but for what says otherwise.
    private readonly Lock _lock = new();

    // Set under the lock, and asked without it where an outdated answer does no harm.
    private FileOperation? _waiting;

    // Tells one wait from the next, by whoever has looked at the file without the lock.
    private long _ticket;
    private long _offset = -1;

    // When it has grown last, or has lost its name: Environment.TickCount64.
    private long _quietSince;
    private bool _hasLostName;

    // The end at that offset is the end; the growth at that offset has been told, and the read has found nothing all the same.
    private long _overAt = -1;
    private long _grownAt = -1;

    // What FollowTimer was told last, milliseconds.
    private int _period;

    // Bytes, when it was looked at last; outdated answers do no harm.
    private long _seenLength = long.MaxValue;

    // Whether it is among the files that are looked at; the owner of the file's one operation sets it.
    private bool _isRegistered;

    /// <param name="handle">The file. Whoever closes it calls <see cref="Release"/> first.</param>
    /// <param name="path">Its whole path; <see langword="null"/>: growing and shrinking count alone.</param>
    /// <param name="identity">Which file it is; <see langword="default"/> where nobody knows.</param>
    /// <param name="interval">Milliseconds between two looks where the system does not tell of changes.</param>
    internal FollowedFile(SafeFileHandle handle, string? path, FileIdentity identity, int interval)
    {
        _handle = handle;
        _path = path;
        _interval = interval;
        Identity = identity;
        CanBeWatched = FileWatches.CanWatch(handle);
    }

    internal FileIdentity Identity { get; }

    /// <summary>Whether the system may tell of the file's changes.</summary>
    internal bool CanBeWatched { get; }

    /// <summary>Whether a read waits. May be outdated.</summary>
    internal bool IsWaiting => Volatile.Read(ref _waiting) is not null;

    /// <summary>Whether a read at that offset most likely finds the end, and the system tells when there is more. May be outdated.</summary>
    internal bool IsLikelyAtEnd(long offset) => Watch is not null && offset >= Volatile.Read(ref _seenLength);

    /// <summary>The watch of the file, if any; <see cref="FileWatches"/> guards it and the two below.</summary>
    internal FileWatches.Watch? Watch { get; set; }

    /// <summary>The next file of the same watch.</summary>
    internal FollowedFile? NextOfWatch { get; set; }

    /// <summary>The file as inotify_add_watch(2) finds it, whatever its name.</summary>
    internal string? DescriptorPath { get; set; }

    /// <summary>What <see cref="FollowTimer"/> has to do with the file; guarded by it.</summary>
    internal FollowTimer.Entry TimerEntry;

    internal SafeFileHandle Handle => _handle;

    private int LosingMilliseconds => Math.Min(_interval, MostLosingMilliseconds);

    /// <summary>
    /// A read has found the end, or is about to: it waits here for more, unless there is more, or never will be. The caller has the operation, and keeps it unless the answer
    /// is <see cref="FollowedEnd.Waiting"/>.
    /// </summary>
    internal FollowedEnd Wait(FileOperation operation, FollowedRead read)
    {
        long offset = operation.Offset;
        long ticket;
        if (!_isRegistered)
        {
            _isRegistered = true;
            if (CanBeWatched)
            {
                FileWatches.TryAdd(this);
            }

            lock (_lock)
            {
                SetPeriod(PeriodOf(isLosing: false));
            }
        }

        lock (_lock)
        {
            if (read.CanceledGeneration == operation.Generation)
            {
                return FollowedEnd.Canceled;
            }

            if (_overAt == offset)
            {
                // A look has found it over, and the read of this moment was made since.
                return FollowedEnd.Over;
            }

            if (_offset != offset)
            {
                _offset = offset;
                _quietSince = Environment.TickCount64;
            }

            ticket = ++_ticket;
            Volatile.Write(ref _waiting, operation);
        }

        if (!FileWatches.TryArm(this))
        {
            // Only the looks tell, which are made where a server that does not answer holds up nobody.
            return FollowedEnd.Waiting;
        }

        // Whatever has changed before the watch was there, or while it was muted, told nobody.
        return Look(ticket, offset, isFirst: true);
    }

    /// <summary>An event: whoever waits is to read. Does not wait, and runs nobody's code.</summary>
    internal void Wake()
    {
        FileOperation? waiting;
        lock (_lock)
        {
            waiting = Take();
        }

        waiting?.Queue();
    }

    /// <summary>Looks at a file where a read waits, which may wait for the device or for a server; on a waiting thread.</summary>
    internal void LookAgain()
    {
        FileOperation? waiting;
        long ticket;
        long offset;
        lock (_lock)
        {
            waiting = _waiting;
            ticket = _ticket;
            offset = _offset;
        }

        if (waiting is null)
        {
            return;
        }

        if (Look(ticket, offset, isFirst: false) != FollowedEnd.Waiting)
        {
            // Also where it is over: what has come since is read.
            waiting.Queue();
        }
    }

    /// <summary><see langword="true"/>: the read waited here, and ending it is the caller's. <see langword="false"/>: if it does come here, it is refused.</summary>
    internal bool TryCancel(FileOperation operation, FollowedRead read, int generation)
    {
        lock (_lock)
        {
            if (operation.Generation != generation)
            {
                return false;
            }

            read.CanceledGeneration = generation;
            return _waiting == operation && Take() is not null;
        }
    }

    /// <summary>The file is about to be closed: no read is under way.</summary>
    internal void Release()
    {
        FollowTimer.Remove(this);
        FileWatches.Remove(this);
    }

    /// <summary>The system does not tell of the file's changes any more.</summary>
    internal void OnWatchLost()
    {
        FileOperation? waiting;
        lock (_lock)
        {
            SetPeriod(PeriodOf(_hasLostName));
            waiting = Take();
        }

        waiting?.Queue();
    }

    /// <summary>Looks at the file, and takes the read out that waits, unless it is another one by now: <see cref="FollowedEnd.Waiting"/> leaves it where it is.</summary>
    /// <param name="ticket">The wait that is meant.</param>
    /// <param name="offset">Where it waits.</param>
    /// <param name="isFirst">
    /// The read found nothing just now. Where the file is longer all the same, that is told once for an offset: only looks that come later try again.
    /// </param>
    private FollowedEnd Look(long ticket, long offset, bool isFirst)
    {
        // The name first: what is in the file after its name was lost, and the writer has moved on, is all of it.
        FileStatus named = default;
        NameMeaning meaning = _path is null ? NameMeaning.Unknown : FileStatus.OfName(_path, out named);
        long length = offset;
        bool isDeleted = false;

        // As of now, too: a file of an overlay's lower layer gets another moment of its making with the first write to it (copy-up), and is the same file.
        FileIdentity identity = Identity;
        try
        {
            if (FileStatus.TryOf(_handle, out FileStatus status))
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

        Volatile.Write(ref _seenLength, length);
        bool isThisFile = meaning == NameMeaning.File && (named.Identity == identity || named.Identity == Identity);
        bool hasLostName = isDeleted || meaning == NameMeaning.Nothing || (meaning == NameMeaning.File && !isThisFile && identity != default);
        lock (_lock)
        {
            if (_ticket != ticket || _waiting is null)
            {
                return FollowedEnd.Waiting;
            }

            FollowedEnd end = length < offset ? FollowedEnd.Over
                : length > offset ? Grown(isFirst)
                : hasLostName ? Losing(hasSuccessor: meaning == NameMeaning.File && named.Length > 0)
                : FollowedEnd.Waiting;
            if (end == FollowedEnd.Over)
            {
                _overAt = offset;
            }

            _hasLostName = hasLostName || (_hasLostName && !isThisFile);
            SetPeriod(PeriodOf(_hasLostName));
            if (end != FollowedEnd.Waiting)
            {
                _ = Take();
            }

            return end;
        }
    }

    /// <summary>Under the lock.</summary>
    private FollowedEnd Grown(bool isFirst)
    {
        bool isTold = isFirst && _grownAt == _offset;
        _grownAt = _offset;
        return isTold ? FollowedEnd.Waiting : FollowedEnd.Grown;
    }

    /// <summary>Under the lock: everything is read, and the name does not mean the file.</summary>
    private FollowedEnd Losing(bool hasSuccessor)
    {
        long now = Environment.TickCount64;
        if (!_hasLostName)
        {
            _quietSince = now;
        }

        return now - _quietSince >= (hasSuccessor ? _interval / QuietPart : (long)_interval * QuietIntervals) ? FollowedEnd.Over : FollowedEnd.Waiting;
    }

    /// <summary>Under the lock.</summary>
    private FileOperation? Take()
    {
        FileOperation? waiting = _waiting;
        Volatile.Write(ref _waiting, null);
        return waiting;
    }

    private int PeriodOf(bool isLosing)
        => isLosing ? LosingMilliseconds : Watch is null ? _interval : (int)Math.Min((long)_interval * IntervalsOfWatched, int.MaxValue);

    /// <summary>Under the lock.</summary>
    private void SetPeriod(int period)
    {
        if (_period != period)
        {
            _period = period;
            FollowTimer.Set(this, period);
        }
    }
}
