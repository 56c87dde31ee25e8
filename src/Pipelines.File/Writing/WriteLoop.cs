using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File.Writing;

/// <summary>
/// What one writer does to its file: <see cref="RunAsync"/>. It runs while there is something to do and waits for <see cref="Run"/> else.
/// It is its own lock, which also guards the flushes that wait, the handed over part of the queue, and the file.
/// </summary>
/// <remarks>Methods that end in Locked are for whoever has the lock. Nothing is called under it that waits or that runs a caller's
/// code.</remarks>
/// <param name="file">Where the bytes go.</param>
/// <param name="queue">The bytes.</param>
/// <param name="flushes">The flushes that wait for them.</param>
/// <param name="options">What the writer promises, and where its segments come from.</param>
internal sealed partial class WriteLoop(WriterFile file, WriteQueue queue, FlushWaiters flushes, FilePipeWriterOptions options)
    : LibraryLoop
{
    /// <summary>How long whoever blocks leaves the loop to the threads of the pool, milliseconds.</summary>
    private const int ResumeMilliseconds = 5;

    // The loop's; null before it begins, and from the closing of the file on. Changed under the lock in the end.
    private FileRequest? _request;

    // Whether the loop does something, or is about to. Stays set when it has ended.
    private bool _isRunning;

    // Owned by whoever makes the idle loop run, then by the loop: calls are made on this thread, whose caller waits for them anyway.
    private bool _performsHere;

    // Who waits for the memory that the queue has borrowed, and how the wait ends if the memory was revoked before all of it was written.
    private PendingResult<FlushResult>? _borrowWait;
    private (FlushResult Result, OperationCanceledException? Error)? _revoked;

    // Of a completed writer: whether it was completed with an exception, and whether its caller may still use the memory that it has.
    private bool _isGivenUp;
    private bool _keepsRoom = true;

    private bool _isCompleted;

    /// <summary>Whether no more bytes are taken.</summary>
    internal bool IsCompleted => Volatile.Read(ref _isCompleted);

    /// <inheritdoc cref="IsCompleted"/>
    internal ref readonly bool IsCompletedField => ref _isCompleted;

    /// <summary>The first error: nothing is written after it.</summary>
    internal Exception? Error { get; private set; }

    /// <summary>Whether what was handed over is dropped.</summary>
    internal bool IsAborted { get; private set; }

    /// <summary>
    /// How much of what is written is on the device, bytes; -1 where the file was made, emptied or cut, and a sync is due with nothing
    /// written, too.
    /// </summary>
    internal long Synced { get; private set; } = file.IsChanged ? -1 : 0;

    /// <summary>Whether nothing follows that a flush could wait for.</summary>
    internal bool HasEndedLocked => _step >= Step.Close;

    // What is under way may never end where the writer was aborted: nobody waits for it.
    private bool IsReleased => _step == Step.Closed || (IsAborted && !file.Opened.EndsWrites);

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
    /// Hands over everything, and behind it memory of the caller's, which must not change until the wait is over. The file can seek, so
    /// every call with that memory ends by itself.
    /// </summary>
    internal PendingResult<FlushResult> BorrowLocked(ReadOnlySequence<byte> memory, MemoryHandle pin, CancellationToken cancellationToken)
    {
        HandOverLocked();
        _flushesInQueue++;
        queue.BorrowLocked(memory, pin);
        _borrowWait = flushes.Rent(cancellationToken);
        return _borrowWait;
    }

    /// <summary>
    /// Revokes borrowed memory, if there is some and its wait has the token of <paramref name="error"/>. The memory is the caller's again
    /// when the call under way has ended.
    /// </summary>
    internal bool TryRevokeLocked(FlushResult result, OperationCanceledException? error)
    {
        Debug.Assert(Monitor.IsEntered(this));
        if (_borrowWait is null || _revoked is not null || (error is not null && error.CancellationToken != _borrowWait.CancellationToken))
        {
            return false;
        }

        _revoked = (result, error);
        return true;
    }

    /// <summary>Takes no more bytes.</summary>
    internal void CompleteLocked() => Volatile.Write(ref _isCompleted, true);

    /// <summary>
    /// Everything is handed over: behind the last write comes what makes the file whole, unless it <paramref name="isGivenUp"/>. With
    /// <paramref name="keepsRoom"/> the caller may still use the memory that it has.
    /// </summary>
    internal void FinishLocked(bool isGivenUp, bool keepsRoom)
    {
        Debug.Assert(Monitor.IsEntered(this) && IsCompleted);
        _isGivenUp = isGivenUp;
        _keepsRoom = keepsRoom;
    }

    /// <summary>Nothing more is written, for that reason or an earlier one.</summary>
    internal void FailLocked(Exception? error) => Error ??= error;

    /// <summary>
    /// Nothing more is taken or written, and what is under way is to be <paramref name="canceled"/>. <see langword="false"/>: it is too
    /// late, or was done before.
    /// </summary>
    internal bool TryAbortLocked(out Cancellation canceled)
    {
        Debug.Assert(Monitor.IsEntered(this));
        canceled = default;

        // A file that is getting its name is whole, and one that is being closed has all its bytes.
        if (IsAborted || _step >= Step.TakeName)
        {
            return false;
        }

        IsAborted = true;
        CompleteLocked();
        canceled = _request is null ? default : new Cancellation(_request);
        if (IsReleased)
        {
            EndReleaseLocked();
        }

        return true;
    }

    /// <summary>Whether the loop is idle and has something to do: whoever hears so calls <see cref="Run"/>.</summary>
    internal bool TryRunLocked()
    {
        Debug.Assert(Monitor.IsEntered(this));
        if (_isRunning || NextStep == Step.None)
        {
            return false;
        }

        _isRunning = true;
        return true;
    }

    /// <summary>Has the idle loop go on, on this thread up to its first call.</summary>
    /// <param name="isIdle">What <see cref="TryRunLocked"/> has said; <see langword="false"/> for nothing.</param>
    /// <param name="performsHere">Also the calls are made on this thread, where they end by themselves: its caller would only wait for
    /// another.</param>
    internal void Run(bool isIdle, bool performsHere = false)
    {
        if (isIdle)
        {
            _performsHere = performsHere;
            Wake();
        }
    }

    /// <summary>Waits until file and memory are released.</summary>
    internal void WaitForRelease()
    {
        ValueTask released = WaitForReleaseAsync();
        if (released.IsCompleted)
        {
            return;
        }

        WaitingThreads.Shared.BeginBlocking();
        try
        {
            // With a caller's pool the loop goes on on the application's threads, which may all wait here, or for this one: then it goes on
            // on this one.
            Task task = released.AsTask();
            while (!task.Wait(options.Pool is null ? Timeout.Infinite : ResumeMilliseconds))
            {
                Resume();
            }
        }
        finally
        {
            WaitingThreads.Shared.EndBlocking();
        }
    }

    private void Resume()
    {
        FileRequest? request;
        int generation;
        lock (this)
        {
            request = _request;
            generation = request?.Generation ?? 0;
        }

        request?.Resume(generation);
    }

    /// <inheritdoc cref="WaitForRelease"/>
    internal ValueTask WaitForReleaseAsync()
    {
        lock (this)
        {
            return IsReleased ? default : new ValueTask(AddReleaseLocked());
        }
    }
}
