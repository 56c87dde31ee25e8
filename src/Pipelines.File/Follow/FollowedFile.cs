using Pipelines.File.Diagnostics;
using Pipelines.File.IO;
using Pipelines.File.Threading;

namespace Pipelines.File.Follow;

/// <summary>
/// A file that is read and whose end is waited at: the file, with a loop around its reads. A read that finds the end is one that has to
/// wait, as that of an empty FIFO is; it ends without bytes only when nothing more comes. The wait ends with an event, with a look that
/// finds something, or with a cancellation: whoever takes the waiting request out, under the lock, ends it, without the lock.
/// </summary>
/// <remarks>
/// The file has lost its name when the path means another file, or none. Its writer may go on for a while all the same, so it is left only
/// when nothing has come to it for some time: for little where the file that has the name now holds bytes already, as the writer has moved
/// on then, and for longer where it is empty or missing, when nobody misses anything meanwhile.
/// </remarks>
[SuppressMessage("Design", "CA1001:Types that own disposable fields should be disposable", Justification = "Release disposes of it.")]
internal sealed class FollowedFile : OpenedFile, IWaitingCall
{
    /// <summary>
    /// How many intervals apart the looks are where the system tells of changes: at what it does not tell, a folder above that was renamed.
    /// </summary>
    private const int IntervalsOfWatched = 4;

    /// <summary>How many intervals nothing has come to a file that has lost its name before it is left.</summary>
    private const int QuietIntervals = 4;

    /// <summary>The same as a part of an interval, where the file that has its name now holds bytes.</summary>
    private const int QuietPart = 5;

    /// <summary>How far the looks are apart at most, milliseconds, once it has lost its name.</summary>
    private const int MostNamelessMilliseconds = 20;

    /// <summary>
    /// How soon at the latest, milliseconds, a wait looks at the name, which may have changed untold before it. A file that grows faster
    /// needs no looks.
    /// </summary>
    private const int MostFirstMilliseconds = 10;

    private readonly OpenedFile _file;
    private readonly string? _path;
    private readonly int _interval;

    // Null: the system does not tell of the file's changes.
    private readonly FileWatch? _watch;

    // The request that begins a run, and the end of the run.
    private readonly Signal<FileRequest> _start = new();
    private readonly Signal<bool> _run = new();

    // The end of a wait: whether the read is to be performed again; else the request is finished.
    private readonly Signal<bool> _wait = new();

    // Says when the next look is due. It may come early, which costs a look.
    private Timer _timer = null!;

    // The last try has found the end. Owned as the file's one request is.
    private bool _hasFoundEnd;

    // Guards what follows.
    private readonly Lock _lock = new();
    private FileRequest? _waiting;

    // There was an event since the wait began to begin.
    private bool _hasChanged;
    private bool _isLooking;

    // The offset of the last wait, and the offset where a look has decided that the file is over: a read that finds nothing there is told
    // of as the end. -1: none.
    private long _offset = -1;
    private long _lastEnd = -1;

    // Since when the file has had no name and has not grown, Environment.TickCount64; null: it has its name.
    private long? _namelessSince;

    private FollowedFile(OpenedFile file, string? path, int interval)
        : base(file.Handle, file.GivenPath, file.Properties)
    {
        _file = file;
        _path = path;
        _interval = interval;
        Identity = file.Identity;
        SharesPosition = file.SharesPosition;
        _watch = FileWatches.CanWatch(Handle) ? new FileWatch(this) : null;

        // What flows with the caller is not for the looks. The timer is due at once, as the runtime starts its thread for timers with the
        // first of them, and ends the process where that fails.
        LibraryContext.Run(
            static state =>
            {
                FollowedFile file = (FollowedFile)state!;
                file._timer = new Timer(static file => ((FollowedFile)file!).Tick(), file, dueTime: 0, Timeout.Infinite);
                _ = file.LoopAsync();
            },
            this);
    }

    // A reader that was forgotten, not completed: the system would watch the file for ever.
    ~FollowedFile() => FileWatches.Remove(_watch);

    internal override FilePipeBackend Kind => _file.Kind;

    internal override FileIdentity Identity { get; }

    internal override int MaxBuffersPerOperation => _file.MaxBuffersPerOperation;

    internal override int ReadGranularity => _file.ReadGranularity;

    internal override int ReadAlignment => _file.ReadAlignment;

    internal override bool IsDirect => _file.IsDirect;

    internal override int BytesPerRead => _file.BytesPerRead;

    /// <summary>Whether a read waits. May be outdated.</summary>
    internal bool IsWaiting => Volatile.Read(ref _waiting) is not null;

    WaitKind IWaitingCall.WaitKind => WaitKind.Look;

    long IWaitingCall.QueuedAt { get; set; }

    /// <summary>The file itself where it has no end to wait at: a FIFO, a device, a file that the system makes up.</summary>
    /// <param name="file">The file.</param>
    /// <param name="path">The whole path that it was opened by; <see langword="null"/> where its name does not count: growing and shrinking
    /// count alone.</param>
    /// <param name="interval">How often to look where the system does not tell of changes.</param>
    internal static OpenedFile Of(OpenedFile file, string? path, TimeSpan interval)
        => file.Properties is { IsRegular: true, CanSeek: true, KnownLength: not null }
            ? new FollowedFile(file, path, Math.Max(1, (int)interval.TotalMilliseconds))
            : file;

    internal override FileRequest Rent() => _file.Rent();

    internal override bool TryPerform(FileRequest operation, bool mayWait)
    {
        bool isPerformed = _file.TryPerform(operation, mayWait);
        _hasFoundEnd = isPerformed && HasFoundEnd(operation);
        return isPerformed && !_hasFoundEnd;
    }

    internal override ValueTask RunAsync(FileRequest request)
    {
        ValueTask run = new(_run, _run.Version);
        _start.Set(request);
        return run;
    }

    internal override void Cancel(FileRequest operation, int generation)
    {
        bool isTaken = false;
        lock (_lock)
        {
            if (operation.Generation == generation)
            {
                // If it does come to a wait, that is refused.
                operation.CanceledGeneration = generation;
                isTaken = _waiting == operation && TryTakeLocked();
            }
        }

        if (isTaken)
        {
            operation.FinishCanceled();
            _wait.Set(false);
        }
        else
        {
            _file.Cancel(operation, generation);
        }
    }

    [SuppressMessage("Usage", "CA1816:Dispose methods should call SuppressFinalize", Justification = "This is what disposes.")]
    internal override void Release(bool closeHandle)
    {
        GC.SuppressFinalize(this);
        _timer.Dispose();
        FileWatches.Remove(_watch);
        _file.Release(closeHandle);
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
            _wait.Set(true);
        }
    }

    /// <summary>
    /// Looks at a file where a read waits, which may wait for the device or for a server; on a thread that may. The wait may end meanwhile,
    /// and another one begin.
    /// </summary>
    internal void Look()
    {
        short wait;
        long offset;
        lock (_lock)
        {
            if (_waiting is null)
            {
                _isLooking = false;
                return;
            }

            (wait, offset) = (_wait.Version, _offset);
        }

        // Again, where there was no watch to be had.
        _ = FileWatches.TryAdd(_watch);

        // The name first: what is in the file after its name was lost, and the writer has moved on, is all of it.
        FileStatus named = default;
        NameMeaning meaning = _path is null ? NameMeaning.Unknown : FileStatus.OfName(_path, out named);
        long length = offset;
        bool isDeleted = false;

        // As of now, too: a file of an overlay's lower layer gets another moment of its making with the first write to it (copy-up), and is
        // the same file.
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
        bool hasLostName = isDeleted || meaning == NameMeaning.Nothing
            || (meaning == NameMeaning.File && !isThisFile && identity != default);
        bool isTaken = false;
        lock (_lock)
        {
            _isLooking = false;
            bool isSameWait = _wait.Version == wait;
            if (isSameWait && _waiting is not null)
            {
                long now = Environment.TickCount64;
                _namelessSince = hasLostName ? _namelessSince ?? now : isThisFile ? null : _namelessSince;
                long quietTime = meaning == NameMeaning.File && named.Length > 0 ? _interval / QuietPart : (long)_interval * QuietIntervals;
                bool isOver = length < offset || (length == offset && hasLostName && now - _namelessSince >= quietTime);

                // What has come since the look is read all the same.
                _lastEnd = isOver ? offset : _lastEnd;
                isTaken = (isOver || length > offset) && TryTakeLocked();
            }

            if (_waiting is not null)
            {
                ScheduleLookLocked(isFirst: !isSameWait);
            }
        }

        if (isTaken)
        {
            _wait.Set(true);
        }
    }

    void IWaitingCall.Perform() => Look();

    /// <summary>Whether that is a read which has found the end of the file.</summary>
    private static bool HasFoundEnd(FileRequest request) => request is { Transferred: 0, Error: null, IsCanceled: false };

    /// <summary>The runs, one after the other: one loop for the life of the file, so that a run allocates nothing.</summary>
    private async Task LoopAsync()
    {
        while (true)
        {
            FileRequest request = await _start.Next.WithoutBox();
            bool isStarted = false;
            try
            {
                // Nothing of a read that was tried, and would wait, is with the system, unless it is overlapped: asking for the length
                // saves a thread the read that finds nothing. Where the file cannot be watched, a server may have it, and asking may wait.
                bool asksFirst = Kind != FilePipeBackend.Overlapped && _watch is not null;
                bool isAtEnd = _hasFoundEnd || (asksFirst && LengthOrMost() <= request.Offset);
                _hasFoundEnd = false;
                bool isRead = false;
                while (!isRead && (!isAtEnd || await WaitAsync(request).WithoutBox()))
                {
                    if (!isAtEnd || !_file.TryPerform(request))
                    {
                        isStarted = true;
                        await _file.RunAsync(request).WithoutBox();
                    }

                    isAtEnd = HasFoundEnd(request);
                    isRead = !isAtEnd;
                }
            }
            catch (Exception e)
            {
                request.Finish(e);
            }

            if (!isStarted)
            {
                FilePipeMetrics.ReadsHandedOver.Add();
            }

            // Whoever awaits the run may begin the next one right here. A wait may have ended on the thread that watches, that looks, or
            // that cancels, which may hold a lock of the caller's.
            _run.Set(true, request.ResumesOnPool && (request.IsCanceled || !Thread.CurrentThread.IsThreadPoolThread));
        }
    }

    /// <summary>A read of that request has found the end, or is about to: waits for more, unless there is more, or never will be.</summary>
    private ValueTask<bool> WaitAsync(FileRequest request)
    {
        long offset = request.Offset;
        Volatile.Write(ref _hasChanged, false);

        // Watched first: what changes after the length was asked is told.
        long length = FileWatches.TryAdd(_watch) ? LengthOrMost() : offset;
        lock (_lock)
        {
            if (request.IsCancelWanted)
            {
                request.FinishCanceled();
                return new ValueTask<bool>(false);
            }

            if (length < offset || _lastEnd == offset)
            {
                // The read that has just found nothing was made after that look.
                _lastEnd = offset;
                request.Finish(0);
                return new ValueTask<bool>(false);
            }

            // An event that came meanwhile has ended the watch.
            if (length > offset || _hasChanged)
            {
                return new ValueTask<bool>(true);
            }

            if (_offset != offset)
            {
                _offset = offset;
                _namelessSince = _namelessSince is null ? null : Environment.TickCount64;
            }

            Volatile.Write(ref _waiting, request);
            ScheduleLookLocked(isFirst: true);
            return _wait.Next;
        }
    }

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
        if (_waiting is null)
        {
            return false;
        }

        // A timer that is set keeps the file, and so a reader that somebody waits for, but no other.
        _timer.Change(Timeout.Infinite, Timeout.Infinite);
        Volatile.Write(ref _waiting, null);
        return true;
    }

    /// <summary>
    /// Sets the timer. The first look of a wait makes the name known: what changes from there on is told, where the system tells.
    /// </summary>
    private void ScheduleLookLocked(bool isFirst)
    {
        Debug.Assert(_lock.IsHeldByCurrentThread);
        bool isWatched = _watch is { Number: not 0 };
        bool isSoon = isFirst && isWatched && _path is not null && _namelessSince is null;

        // Files of one period are looked at together.
        long period = _namelessSince is not null ? Math.Min(_interval, MostNamelessMilliseconds)
            : isWatched ? (long)_interval * IntervalsOfWatched
            : _interval;
        long due = isSoon ? Math.Min(_interval, MostFirstMilliseconds) : period - (Environment.TickCount64 % period);
        _timer.Change(Math.Min(due, int.MaxValue), Timeout.Infinite);
    }
}
