using Pipelines.File.Diagnostics;
using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File.Writing;

/// <summary>Which calls the thread that wakes a <see cref="WriteLoop"/> makes itself.</summary>
internal enum Here
{
    /// <summary>None: a thread that may wait makes them.</summary>
    None,

    /// <summary>Its writes, which only copy memory.</summary>
    Writes,

    /// <summary>All that end by themselves: the thread's caller blocks until they are over.</summary>
    All,
}

/// <summary>
/// Writes, syncs and closes the file of one writer, step by step: whoever finds a step due wakes it, and the end of each step goes on to
/// the next (<see cref="IRequestOwner.OnEnded"/>). The object is the writer's lock, which also guards the pending flushes, the flushed part
/// of the queue, and the file.
/// </summary>
/// <remarks>Methods whose names end in Locked are called under the lock. Under it no code waits and no caller's code runs.</remarks>
internal sealed partial class WriteLoop : IRequestOwner, IThreadPoolWorkItem
{
    private readonly WriterFile _file;
    private readonly WriteQueue _queue;
    private readonly FlushWaiters _flushes;
    private readonly FilePipeWriterOptions _options;
    private readonly FastWrites _writes;

    // The loop's one request, owned by the step that runs. Rented before anybody counts on the loop: waking it must not fail.
    private readonly FileRequest _request;

    private Stage _stage;

    // Whether the writer was completed with an exception.
    private bool _isGivenUp;

    // Completed when everything is released; null if nobody awaits that.
    private TaskCompletionSource? _release;

    /// <param name="file">Where the bytes go.</param>
    /// <param name="queue">The bytes.</param>
    /// <param name="flushes">The flushes that wait for them.</param>
    /// <param name="options">What the writer promises, and where its segments come from.</param>
    /// <param name="writes">How fast writes are at this moment.</param>
    internal WriteLoop(WriterFile file, WriteQueue queue, FlushWaiters flushes, FilePipeWriterOptions options, FastWrites writes)
    {
        (_file, _queue, _flushes, _options, _writes) = (file, queue, flushes, options, writes);
        Synced = file.IsChanged ? -1 : 0;
        _request = file.Opened.Rent();

        // A caller's memory pool gets its memory back after a write, and its code runs on the application's threads only.
        _request.ResumesOnPool = options.Pool is not null;
    }

    private enum Stage
    {
        /// <summary>No step is due, and whoever finds one due wakes the loop.</summary>
        Asleep,

        /// <summary>A step runs or is about to.</summary>
        Running,

        /// <summary>Everything is written or given up, and only the name and the closing follow.</summary>
        Closing,

        /// <summary>File and memory are released.</summary>
        Closed,
    }

    /// <inheritdoc cref="WriteQueue.IsCompleted"/>
    internal bool IsCompleted => _queue.IsCompleted;

    /// <summary>The first error: nothing is written after it.</summary>
    internal Exception? Error { get; private set; }

    /// <summary>Whether the writer was aborted: bytes that were handed over and not written are dropped.</summary>
    internal bool IsAborted { get; private set; }

    /// <summary>
    /// The number of written bytes that are on the device. It is -1 if the file was made, emptied or cut: then a sync is due even if
    /// nothing was written.
    /// </summary>
    internal long Synced { get; private set; }

    // After Abort nobody waits for a call that may never end.
    private bool IsReleased => _stage == Stage.Closed || (IsAborted && !_file.Opened.EndsWrites);

    internal static OperationCanceledException AbortedException() => new("The writer was aborted.");

    /// <summary>
    /// Whether the thread that wakes the loop may make the next write, although it must not wait: nothing is under way, and the write is
    /// short and only copies memory.
    /// </summary>
    internal bool MayWriteHereLocked()
        => _stage == Stage.Asleep && _file.WritesToMemory && _queue.Flushed - _queue.Written <= FastWrites.MaxBytes
            && _writes.AreExpected(_file.Volume);

    /// <summary>Hands over the bytes that were advanced over. Called by the writer's caller.</summary>
    internal void HandOverLocked()
    {
        Debug.Assert(Monitor.IsEntered(this));
        if (_queue.Advanced > _queue.Flushed)
        {
            _flushesInQueue++;
            _queue.FlushLocked();
        }
    }

    /// <summary>
    /// Called when everything is handed over: no more bytes are taken. The steps that finish the file follow the last write, unless
    /// <paramref name="isGivenUp"/>.
    /// </summary>
    internal void FinishLocked(bool isGivenUp)
    {
        Debug.Assert(Monitor.IsEntered(this));
        _queue.Complete();
        _isGivenUp = isGivenUp;
    }

    /// <summary>
    /// Aborts: no more bytes are taken or written. The caller cancels <paramref name="running"/>, which may be under way, without the lock.
    /// Returns <see langword="false"/> if it is too late, or the writer was aborted before.
    /// </summary>
    internal bool TryAbortLocked(out FileRequest? running)
    {
        Debug.Assert(Monitor.IsEntered(this));
        running = _stage == Stage.Running ? _request : null;

        // Too late: a file that gets its name, or is being closed, has all its bytes already.
        if (IsAborted || _stage >= Stage.Closing)
        {
            return false;
        }

        IsAborted = true;
        _queue.Complete();
        if (IsReleased)
        {
            TellReleaseLocked();
        }

        return true;
    }

    /// <summary>
    /// Whether the loop sleeps and a step is due. If so, it counts as running, and the caller has to wake it without the lock.
    /// </summary>
    internal bool TryWakeLocked()
    {
        Debug.Assert(Monitor.IsEntered(this));
        if (_stage != Stage.Asleep || NextStepLocked == Step.Sleep)
        {
            return false;
        }

        _stage = Stage.Running;
        return true;
    }

    /// <summary>Wakes the loop, if that is due: it runs on this thread up to its first call that is not to be made here.</summary>
    internal void WakeIf(bool isDue, Here here = Here.None)
    {
        if (isDue)
        {
            GoOn(here);
        }
    }

    /// <summary>Returns a task that completes when file and memory are released.</summary>
    internal Task WaitForReleaseAsync()
    {
        lock (this)
        {
            // It is awaited with ConfigureAwait(false), so no caller's code runs in whoever completes it.
            return IsReleased ? Task.CompletedTask
                : (_release ??= new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously)).Task;
        }
    }

    /// <summary>
    /// Blocks until file and memory are released. Meanwhile this thread runs the code of a caller's pool: the application's pool may have
    /// no other one, because all its threads wait here.
    /// </summary>
    internal void WaitForRelease()
    {
        while (true)
        {
            lock (this)
            {
                while (!IsReleased && !_isOver)
                {
                    _ = Monitor.Wait(this);
                }

                if (IsReleased)
                {
                    return;
                }
            }

            Execute();
        }
    }

    /// <summary>Records the first error: nothing is written after it. Does nothing for <see langword="null"/>.</summary>
    private void FailLocked(Exception? error) => Error ??= error;

    private void TellReleaseLocked()
    {
        _ = _release?.TrySetResult();
        Monitor.PulseAll(this);
    }
}
