using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File.Writing;

/// <summary>
/// What one writer does to its file: <see cref="RunAsync"/>. It runs while there is something to do and waits for <see cref="Run"/> else. It is its own lock, which also guards the
/// flushes that wait, the handed over part of the queue, and the file.
/// </summary>
/// <remarks>Methods that end in Locked are for whoever has the lock. Nothing is called under it that waits or that runs a caller's code.</remarks>
/// <param name="file">Where the bytes go.</param>
/// <param name="queue">The bytes.</param>
/// <param name="flushes">The flushes that wait for them.</param>
/// <param name="hasCallersPool">Whether segments come from a caller's memory pool, whose code runs on the application's threads only.</param>
internal sealed partial class WriteLoop(WriterFile file, WriteQueue queue, FlushWaiters flushes, bool hasCallersPool) : IThreadPoolWorkItem
{
    /// <summary>Bytes that one write to most files takes at most: <see cref="OpenedFile.BytesPerWrite"/>. Chosen by measurement: docs/tuning.md.</summary>
    internal const int BytesPerWrite = 512 * 1024;

    /// <summary>The same for lent memory, of which a call that is canceled waits for the write under way.</summary>
    private const int LentBytesPerWrite = 8 * 1024 * 1024;

    /// <summary>Syncs without <see cref="Gather"/> between two tries, where nobody comes back.</summary>
    private const int MostSkipped = 63;

    // The longest Gather, in ticks: 100 µs, in which dozens of continuations run. Never longer than half of the sync before.
    private static readonly long s_mostGathering = Stopwatch.Frequency / 10_000;

    // How the idle loop goes on; null before it was idle first. Written by the loop, under the lock, before it is seen not to run.
    private Action? _goOn;

    // The loop's; null before the first call and from the closing of the file on.
    private FileRequest? _request;

    // Whether the loop does something, or is about to. Stays set when it has ended.
    private bool _isRunning;

    // Whether the loop has been on its callers' threads only: it is to take none of their contexts to the library's threads, and has an empty one of its own from the first of those on.
    private bool _suppressesFlow = true;

    // Owned by whoever makes the idle loop run, then by the loop: calls are made on this thread, whose caller waits for them anyway.
    private bool _performsHere;

    // What comes behind the last write of a completed writer.
    private bool _trims;
    private bool _syncs;
    private bool _takesName;
    private bool _keepsRoom;

    // A file that the writer has made is on the device when its folder is, too: that is synced once, behind the file's first sync.
    private bool _isFolderUnsynced = file.Opened.IsNew;
    private bool _syncsFolder;

    // A file that is getting its name is whole, and one that is being closed has all its bytes: it is too late to give up.
    private bool _isTooLateToAbort;
    private bool _isClosed;

    // How much the last sync covers that was begun, bytes, and how much was written when the last write began.
    private long _syncing;
    private long _syncBegan;
    private int _lastSkip;
    private int _syncsToSkip;
    private long _writtenBefore;

    // Flushes that were handed over since the last write began, and those that this write has made superfluous.
    private int _flushesInQueue;
    private int _coalesced;

    // Whoever has lent memory to the queue, and how the wait ends where that was called back before all of it was written.
    private PendingResult<FlushResult>? _lender;
    private bool _isCalledBack;
    private (FlushResult Result, Exception? Error) _calledBack;

    // Segments of a caller's pool that are to be given back, the flushes that are to be completed behind that, and how many threads give back at the moment.
    private FileSegment? _freed;
    private FlushList _reached;
    private FlushList _failed;
    private int _givingBack;

    // Whoever awaits the end.
    private TaskCompletionSource? _released;
    private bool _isCompleted;

    /// <summary>Whether no more bytes are taken.</summary>
    internal bool IsCompleted => Volatile.Read(ref _isCompleted);

    /// <inheritdoc cref="IsCompleted"/>
    internal ref readonly bool IsCompletedField => ref _isCompleted;

    /// <summary>The first error: nothing is written after it.</summary>
    internal Exception? Error { get; private set; }

    /// <summary>Whether what was handed over is dropped.</summary>
    internal bool IsAborted { get; private set; }

    /// <summary>How much of what is written is on the device, bytes; -1 where the file was made, emptied or cut, and a sync is due with nothing written, too.</summary>
    internal long Synced { get; private set; } = file.IsChanged ? -1 : 0;

    private bool GoesOn => Error is null && !IsAborted;

    private bool IsAllWritten => queue.Written == queue.Flushed;

    // A flush that waits for the device lets one more write go first, which other flushes may share its sync by, and is not put off for as long as others write on.
    private bool Writes => !IsAllWritten && !flushes.WantsSync(_writtenBefore);

    private bool Syncs => Synced < queue.Written && (flushes.WantsSync(queue.Written) || (_syncs && !_trims && IsAllWritten));

    private bool TakesName => _takesName && !_trims && IsAllWritten && !(_syncs && Synced < queue.Written);

    private bool HasWork => NextStep != Step.None;

    /// <summary>Whether nothing follows that a flush could wait for.</summary>
    internal bool HasEndedLocked => _isTooLateToAbort && !HasWork;

    private bool IsReleased => _isClosed && _freed is null && _givingBack == 0;

    // What is under way may never end then: nobody waits for it.
    private bool IsGivenUp => IsAborted && !file.Opened.EndsWrites;

    /// <summary>Hands over what the caller has advanced over. Called by the caller.</summary>
    internal void HandOverLocked()
    {
        Debug.Assert(Monitor.IsEntered(this));
        if (queue.Advanced > queue.Flushed)
        {
            _flushesInQueue++;
            queue.FlushLocked();
        }
    }

    /// <summary>
    /// Hands over everything, and behind it memory of the caller's, which stays as it is until the wait is over. The file can seek, so that every call with that memory ends by itself.
    /// </summary>
    internal PendingResult<FlushResult> LendLocked(ReadOnlySequence<byte> memory, MemoryHandle pin, CancellationToken cancellationToken)
    {
        HandOverLocked();
        _flushesInQueue++;
        queue.LendLocked(memory, pin);
        _lender = flushes.Rent(cancellationToken);
        return _lender;
    }

    /// <summary>Calls lent memory back, if there is some. It is the caller's again when the call under way has ended.</summary>
    internal bool TryCallBackLocked(FlushResult result, Exception? error)
    {
        Debug.Assert(Monitor.IsEntered(this));
        if (_lender is null || _isCalledBack)
        {
            return false;
        }

        _isCalledBack = true;
        _calledBack = (result, error);
        return true;
    }

    /// <summary>Whether the lent memory is waited for with that token.</summary>
    internal bool IsLentWithLocked(CancellationToken token) => _lender is not null && _lender.CancellationToken == token;

    /// <summary>Takes no more bytes.</summary>
    internal void CompleteLocked() => Volatile.Write(ref _isCompleted, true);

    /// <summary>
    /// Everything is handed over: behind the last write comes what makes the file whole, unless it <paramref name="isGivenUp"/>. With <paramref name="keepsRoom"/> the caller may still use the
    /// memory that it has.
    /// </summary>
    internal void FinishLocked(bool isDurable, bool isGivenUp, bool keepsRoom)
    {
        _keepsRoom = keepsRoom;
        Debug.Assert(Monitor.IsEntered(this));
        _trims = !isGivenUp && (file.IsUnfinished || isDurable) && file.HasRoomBehind(queue.Flushed);
        _syncs = isDurable && !(isGivenUp && file.IsUnfinished);
        _takesName = !isGivenUp && file.IsUnfinished;
    }

    /// <summary>Nothing more is written, for that reason or an earlier one.</summary>
    internal void FailLocked(Exception error) => Error ??= error;

    /// <summary>Nothing more is taken or written, and what is under way is to be <paramref name="canceled"/>. <see langword="false"/>: it is too late, or was done before.</summary>
    internal bool TryAbortLocked(out Cancellation canceled)
    {
        Debug.Assert(Monitor.IsEntered(this));
        canceled = default;
        if (IsAborted || _isTooLateToAbort)
        {
            return false;
        }

        IsAborted = true;
        Volatile.Write(ref _isCompleted, true);
        canceled = _isRunning && _request is not null ? new Cancellation(_request) : default;
        OnReleasedLocked();
        return true;
    }

    /// <summary>Whether the loop is idle and has something to do: whoever hears so calls <see cref="Run"/>.</summary>
    internal bool TryRunLocked()
    {
        Debug.Assert(Monitor.IsEntered(this));
        if (_isRunning || !(IsCompleted || HasWork))
        {
            return false;
        }

        _isRunning = true;
        return true;
    }

    /// <summary>Has the idle loop go on, on this thread up to its first call.</summary>
    /// <param name="isIdle">What <see cref="TryRunLocked"/> has said; <see langword="false"/> for nothing.</param>
    /// <param name="performsHere">Also the calls are made on this thread, where they end by themselves: its caller would only wait for another.</param>
    internal void Run(bool isIdle, bool performsHere = false)
    {
        if (!isIdle)
        {
            return;
        }

        _performsHere = performsHere;
        if (!_suppressesFlow || ExecutionContext.IsFlowSuppressed())
        {
            GoOn();
        }
        else
        {
            using (ExecutionContext.SuppressFlow())
            {
                GoOn();
            }
        }

        if (hasCallersPool)
        {
            GiveBack();
        }
    }

    /// <summary>Waits until file and memory are released, and gives back itself what is left to be.</summary>
    internal void WaitForRelease()
    {
        if (IsOver())
        {
            return;
        }

        WaitingThreads.Shared.BeginBlocking();
        try
        {
            while (!IsOver())
            {
                lock (this)
                {
                    if (_freed is null && !IsReleased && !IsGivenUp)
                    {
                        Monitor.Wait(this);
                    }
                }
            }
        }
        finally
        {
            WaitingThreads.Shared.EndBlocking();
        }

        bool IsOver()
        {
            GiveBack();
            lock (this)
            {
                return IsReleased || IsGivenUp;
            }
        }
    }

    /// <inheritdoc cref="WaitForRelease"/>
    internal ValueTask WaitForReleaseAsync()
    {
        lock (this)
        {
            return IsReleased || IsGivenUp ? default : new ValueTask((_released ??= new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously)).Task);
        }
    }

    void IThreadPoolWorkItem.Execute() => GiveBack();

    private void GoOn()
    {
        if (_goOn is null)
        {
            _ = RunAsync();
        }
        else
        {
            _goOn();
        }
    }

    /// <summary>
    /// The loop, in the order that a power failure asks for: the bytes, the length, a sync that covers both, the folder of a new file, the name. What each step waits for is in
    /// <see cref="NextStep"/>, as more bytes may come, and the writer may be completed, at any moment.
    /// </summary>
    private async Task RunAsync()
    {
        FileRequest request = _request = file.Opened.Rent();
        try
        {
            do
            {
                while (Begin(request) is var step and not Step.None)
                {
                    await PerformAsync(request).WithoutBox();
                    End(step, request);
                }
            }
            while (await new Idle(this));
        }
        catch (Exception e)
        {
            // No step throws but for a lack of memory, and even then nobody waits in vain.
            FailAll(e);
        }

        Close(request);
    }

    /// <summary>Whether there is something to do. With nothing to do for ever, as the writer is completed, it is too late to give up.</summary>
    private bool HasMore()
    {
        lock (this)
        {
            _isTooLateToAbort |= IsCompleted && !HasWork;
            return !_isTooLateToAbort || HasWork;
        }
    }

    private void GoIdle(Action goOn)
    {
        lock (this)
        {
            if (!HasWork && !IsCompleted)
            {
                _goOn = goOn;
                _suppressesFlow = ExecutionContext.IsFlowSuppressed();
                _isRunning = false;
                return;
            }
        }

        goOn();
    }

    private ValueTask PerformAsync(FileRequest request)
    {
        if (_performsHere && file.Opened.TryPerform(request, mayWait: true))
        {
            return default;
        }

        _performsHere = false;
        return file.Opened.RunAsync(request);
    }

    /// <summary>
    /// The wait of the loop for something to do. It goes on right where <see cref="Run"/> is called, never by a work item: the application's pool may be busy with whoever waits for the loop.
    /// </summary>
    /// <param name="loop">The loop.</param>
    private readonly struct Idle(WriteLoop loop) : ICriticalNotifyCompletion
    {
        public bool IsCompleted => loop.IsCompleted;

        public Idle GetAwaiter() => this;

        public bool GetResult() => loop.HasMore();

        public void OnCompleted(Action continuation) => loop.GoIdle(continuation);

        public void UnsafeOnCompleted(Action continuation) => loop.GoIdle(continuation);
    }
}
