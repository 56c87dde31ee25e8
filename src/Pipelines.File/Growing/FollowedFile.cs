using Pipelines.File.IO;
using Pipelines.File.Threading;

namespace Pipelines.File.Growing;

/// <summary>
/// A followed file: the opened file, with a loop around its reads. A read that finds the end has to wait, as a read of an empty FIFO does.
/// It completes with 0 bytes only when the file is over. Three events end a wait: an inotify event, a look that finds something, a
/// cancellation. The first one takes the waiting request out under the lock, and then ends the wait without the lock.
/// </summary>
/// <remarks>
/// The file has lost its name if the path now leads to another file or to none. Its writer may still write to it for a while, so the file
/// is over only after it has not grown for some time. That time is short (<see cref="QuietDivisor"/>) if the file that has the name now
/// holds bytes, because then the writer has moved on. It is longer (<see cref="QuietIntervals"/>) if that file is empty or missing, because
/// then nothing else is there to be read.
/// </remarks>
[SuppressMessage("Design", "CA1001:Types that own disposable fields should be disposable", Justification = "Release disposes of it.")]
internal sealed partial class FollowedFile : OpenedFile, IWaitingCall, IRequestOwner
{
    /// <summary>
    /// How many intervals apart the looks are while the file has a watch. They find what inotify does not report: that a folder above the
    /// file was renamed, or a link turned.
    /// </summary>
    private const int WatchedIntervals = 4;

    /// <summary>The same for a file that was opened by a handle: that its owner has closed the handle.</summary>
    private const int WatchedHandleIntervals = 240;

    /// <summary>For how many intervals a file that has lost its name must not grow before it is over.</summary>
    private const int QuietIntervals = 4;

    /// <summary>The interval divided by this is that time if the file that has the name now holds bytes.</summary>
    private const int QuietDivisor = 5;

    /// <summary>The maximum time between two looks, milliseconds, after the file has lost its name.</summary>
    private const int MaxNamelessMilliseconds = 20;

    /// <summary>
    /// The maximum time from the beginning of a wait to its first look, milliseconds, if the file has a watch: the name may have changed
    /// before the watch was made. A file that grows faster than this is not looked at.
    /// </summary>
    private const int MaxFirstMilliseconds = 10;

    private readonly OpenedFile _file;
    private readonly string? _path;
    private readonly int _interval;

    // Null: inotify does not report every change of the file.
    private readonly FileWatch? _watch;

    // Fires when the next look is due. If it fires too early, that costs one look.
    private readonly Timer _timer;

    // Owned by the owner of the request, of which a file has one at a time, and by whoever runs it: the last Try has found the end; and
    // whom the end of the run is told.
    private bool _hasFoundEnd;
    private IRequestOwner? _owner;

    // Guards the fields that follow.
    private readonly Lock _lock = new();
    private FileRequest? _waiting;

    // How many waits there were.
    private int _waits;

    // An event has come since TryWait was called, which clears this without the lock before it adds the watch.
    private bool _hasChanged;
    private bool _isLooking;

    // The offset of the last wait; and the offset at which the file is over: a read that finds nothing there completes with 0 bytes.
    // -1: none.
    private long _offset = -1;
    private long _lastEnd = -1;

    // Since when the file has been without its name and has not grown, Environment.TickCount64; null: it has its name.
    private long? _namelessSince;

    // When a look at this offset is due, Environment.TickCount64; long.MaxValue: none is set. A wait that ends earlier leaves it to the
    // next one: otherwise a caller that cancels its reads often would never learn that the file has lost its name.
    private long _lookAt = long.MaxValue;

    private FollowedFile(OpenedFile file, string? path, int interval)
        : base(file.Handle, file.GivenPath, file.Properties)
    {
        _file = file;
        _path = path;
        _interval = interval;
        Identity = file.Identity;
        SharesPosition = file.SharesPosition;

        // inotify does not report every change if the file can change without this kernel's knowledge, as on a network file system. Every
        // write to a file of an overlay goes through the overlay.
        _watch = LocalFileSystems.TakeWrites(Properties) ? new FileWatch(this) : null;

        // The looks must not run in the caller's ExecutionContext. The timer is due at once so that the runtime starts its timer thread
        // now: it does that for the first timer that is due, and ends the process if it cannot.
        bool suppresses = !ExecutionContext.IsFlowSuppressed();
        if (suppresses)
        {
            ExecutionContext.SuppressFlow();
        }

        try
        {
            _timer = new Timer(static file => ((FollowedFile)file!).Tick(), this, dueTime: 0, Timeout.Infinite);
        }
        finally
        {
            if (suppresses)
            {
                ExecutionContext.RestoreFlow();
            }
        }
    }

    // For a reader that was not completed: otherwise the kernel would keep its watch.
    ~FollowedFile() => FileWatches.Remove(_watch);

    internal override FilePipeBackend Kind => _file.Kind;

    internal override FileIdentity Identity { get; }

    internal override int MaxBuffersPerOperation => _file.MaxBuffersPerOperation;

    /// <summary>Whether a read waits: a racy hint, readable without the lock.</summary>
    internal bool IsWaiting => Volatile.Read(ref _waiting) is not null;

    /// <summary>
    /// Follows a file. Returns <paramref name="file"/> itself if it has no end to wait at: a FIFO, a device, a file that the system
    /// generates.
    /// </summary>
    /// <param name="file">The file.</param>
    /// <param name="path">The full path that it was opened by; <see langword="null"/> if only the length matters.</param>
    /// <param name="interval">How often to look if the system does not report changes.</param>
    /// <param name="closeHandle">Whether to close the file if this throws.</param>
    /// <exception cref="IOException">The system has nothing left to wait with.</exception>
    internal static OpenedFile Of(OpenedFile file, string? path, TimeSpan interval, bool closeHandle = false)
    {
        if (file.Properties is not { IsRegular: true, CanSeek: true, KnownLength: not null })
        {
            return file;
        }

        try
        {
            return new FollowedFile(file, path, Math.Max(1, (int)interval.TotalMilliseconds));
        }
        catch (OutOfMemoryException e)
        {
            // The first timer of a process needs descriptors.
            IOException error = new($"The system has no descriptor or thread left to wait with for more of the file: '{file.Path}'", e);
            file.Release(closeHandle);
            throw error;
        }
    }

    internal override FileRequest Rent() => _file.Rent();

    internal override void Return(FileRequest request) => _file.Return(request);

    private protected override bool TryPerformCore(FileRequest request, bool mayWait)
    {
        bool isOver = _file.TryPerform(request, mayWait);
        _hasFoundEnd = isOver && HasFoundEnd(request);
        return isOver && !_hasFoundEnd;
    }

    /// <summary>Performs a read, and waits until there is something to read. A run allocates nothing.</summary>
    internal override void Run(FileRequest request, IRequestOwner owner)
    {
        _owner = owner;

        // A read that was tried and would wait is not with the system yet, unless it is overlapped, so it need not be performed. Asking for
        // the length first saves a waiting thread a read that finds nothing. Not without a watch: the file may be on a file server, where
        // asking may wait.
        bool asksFirst = Kind != FilePipeBackend.Overlapped && _watch is not null;
        bool isAtEnd = _hasFoundEnd || (asksFirst && LengthOrMax() <= request.Offset);
        _hasFoundEnd = false;
        if (isAtEnd)
        {
            GoOn(request, isAtEnd: true);
        }
        else
        {
            _file.Run(request, this);
        }
    }

    /// <summary>A read of the file itself is over.</summary>
    void IRequestOwner.OnEnded(FileRequest request) => GoOn(request, HasFoundEnd(request));

    internal override void Cancel(FileRequest request)
    {
        bool isTaken;
        lock (_lock)
        {
            // TryWait checks this, so a request that has not begun to wait never does.
            request.IsCancelWanted = true;
            isTaken = _waiting == request && TakeLocked() is not null;
        }

        if (isTaken)
        {
            request.FinishCanceled();
            GoOn(request, isAtEnd: false);
        }
        else
        {
            _file.Cancel(request);
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

    /// <summary>
    /// The file has changed, and its watch is used up. Called on the thread that reads from inotify; does not wait, and runs no code of the
    /// caller's.
    /// </summary>
    internal void OnEvent()
    {
        FileRequest? taken;
        lock (_lock)
        {
            _hasChanged = true;
            taken = TakeLocked();
        }

        ReadAgain(taken);
    }

    void IWaitingCall.Perform() => Look();

    /// <summary>Whether the request, a read, has found the end of the file.</summary>
    private static bool HasFoundEnd(FileRequest request) => request is { Transferred: 0, Error: null, IsCanceled: false };

    /// <summary>The wait of the request was ended by whoever has taken it, because there may be something to read.</summary>
    private void ReadAgain(FileRequest? taken)
    {
        if (taken is not null && _file.TryPerform(taken))
        {
            GoOn(taken, HasFoundEnd(taken));
        }
        else if (taken is not null)
        {
            _file.Run(taken, this);
        }
    }

    /// <summary>A read at the end waits, or is performed again if there is more by now; every other request is over.</summary>
    private void GoOn(FileRequest request, bool isAtEnd)
    {
        while (isAtEnd)
        {
            bool? readsAgain = TryWait(request);
            if (readsAgain is null)
            {
                return;
            }

            if (readsAgain.Value && !_file.TryPerform(request))
            {
                _file.Run(request, this);
                return;
            }

            isAtEnd = readsAgain.Value && HasFoundEnd(request);
        }

        IRequestOwner owner = _owner!;
        _owner = null;

        // The thread here may be the inotify thread, a waiting thread, or the one that cancels, which may hold a lock of the caller's. On
        // these the code of a caller's memory pool must not run.
        if (request.ResumesOnPool && (request.IsCanceled || !Thread.CurrentThread.IsThreadPoolThread))
        {
            request.BeginRun(this, owner);
            request.Complete();
        }
        else
        {
            owner.OnEnded(request);
        }
    }

    /// <summary>
    /// The request has found the end, or the length says that it would. Returns <see langword="null"/> if it waits for more now: the end of
    /// the wait goes on. Otherwise returns whether the read is to be performed again; if not, the request is finished, because it was
    /// canceled or the file is over.
    /// </summary>
    private bool? TryWait(FileRequest request)
    {
        try
        {
            long offset = request.Offset;
            Volatile.Write(ref _hasChanged, false);

            // The watch before the length: an event reports every change after the length was asked for.
            long length = FileWatches.TryAdd(_watch) ? LengthOrMax() : offset;
            lock (_lock)
            {
                if (request.IsCancelWanted)
                {
                    request.FinishCanceled();
                    return false;
                }

                if (length < offset || _lastEnd == offset)
                {
                    // The file was truncated, or it is over: then the read that has just found nothing began after the look that decided
                    // so.
                    _lastEnd = offset;
                    request.Finish(0);
                    return false;
                }

                // The file has grown, or an event has come, which has used the watch up.
                if (length > offset || _hasChanged)
                {
                    return true;
                }

                if (_offset != offset)
                {
                    _offset = offset;
                    _lookAt = long.MaxValue;
                    _namelessSince = _namelessSince is null ? null : Environment.TickCount64;
                }

                _waits++;
                ScheduleLookLocked(isFirst: true);
                Volatile.Write(ref _waiting, request);
                return null;
            }
        }
        catch (Exception e)
        {
            request.Finish(e);
            return false;
        }
    }

    /// <summary>
    /// The length, bytes; <see cref="long.MaxValue"/> if the file is closed or cannot be asked: then a read is performed, and reports the
    /// error.
    /// </summary>
    private long LengthOrMax()
    {
        try
        {
            return RandomAccess.GetLength(Handle);
        }
        catch (Exception e) when (e is ObjectDisposedException or IOException or UnauthorizedAccessException)
        {
            // Where a sandbox refuses fstat(2), reads would find the end again and again, without a pause.
            return FileStatus.Ask(Handle)?.Length ?? long.MaxValue;
        }
    }

    /// <summary>Takes the waiting request out. Whoever gets it goes on with it, without the lock.</summary>
    private FileRequest? TakeLocked()
    {
        Debug.Assert(_lock.IsHeldByCurrentThread);
        if (_waiting is not { } taken)
        {
            return null;
        }

        // A timer that is set keeps the file alive. So only a file where a read waits has it set, and a forgotten reader is collected.
        _timer.Change(Timeout.Infinite, Timeout.Infinite);
        Volatile.Write(ref _waiting, null);
        return taken;
    }
}
