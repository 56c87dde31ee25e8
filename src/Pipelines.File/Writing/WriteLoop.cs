using Pipelines.File.Diagnostics;
using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File.Writing;

/// <summary>
/// Writes, syncs and closes the file of one writer: <see cref="RunAsync"/>, which sleeps until it is woken when no step is due. The
/// object is the writer's lock, which also guards the pending flushes, the flushed part of the queue, and the file.
/// </summary>
/// <remarks>Methods whose names end in Locked are called under the lock. Under it no code waits and no caller's code runs.</remarks>
/// <param name="file">Where the bytes go.</param>
/// <param name="queue">The bytes.</param>
/// <param name="flushes">The flushes that wait for them.</param>
/// <param name="options">What the writer promises, and where its segments come from.</param>
/// <param name="writes">How fast writes are at this moment.</param>
internal sealed partial class WriteLoop(
    WriterFile file, WriteQueue queue, FlushWaiters flushes, FilePipeWriterOptions options, FastWrites writes)
    : LibraryLoop
{
    // The loop's request. Null before the loop was woken for the first time and, set under the lock, when the loop ends.
    private FileRequest? _request;

    private Stage _stage;

    // Which calls the thread that has woken the loop makes itself. Owned by the thread that has set Stage.Running, and then by the loop.
    private Here _here;

    // Of a completed writer: whether it was completed with an exception, and whether its caller may still use memory of GetMemory.
    private bool _isGivenUp;
    private bool _keepsRoom = true;

    private enum Stage
    {
        /// <summary>No step is due, and whoever finds one due wakes the loop.</summary>
        Asleep,

        /// <summary>The loop runs a step or is about to.</summary>
        Running,

        /// <summary>Everything is written or given up, and only the name and the closing follow.</summary>
        Closing,

        /// <summary>File and memory are released.</summary>
        Closed,
    }

    /// <inheritdoc cref="WriteQueue.IsCompleted"/>
    internal bool IsCompleted => queue.IsCompleted;

    /// <summary>The first error: nothing is written after it.</summary>
    internal Exception? Error { get; private set; }

    /// <summary>Whether the writer was aborted: bytes that were handed over and not written are dropped.</summary>
    internal bool IsAborted { get; private set; }

    /// <summary>
    /// The number of written bytes that are on the device. It is -1 if the file was made, emptied or cut: then a sync is due even if
    /// nothing was written.
    /// </summary>
    internal long Synced { get; private set; } = file.IsChanged ? -1 : 0;

    /// <summary>Whether the file is closed or about to be, so that no flush may begin to wait.</summary>
    internal bool HasEndedLocked => _stage >= Stage.Closing;

    // After Abort nobody waits for a call that may never end.
    private bool IsReleased => _stage == Stage.Closed || (IsAborted && !file.Opened.EndsWrites);

    /// <summary>
    /// Whether the thread that wakes the loop may make the next write, although it must not wait: nothing is under way, and the write is
    /// short and only copies memory.
    /// </summary>
    internal bool MayWriteHereLocked()
        => _stage == Stage.Asleep && IsAsleep && file.WritesToMemory && queue.Flushed - queue.Written <= FastWrites.MaxBytes
            && writes.AreExpected(file.Volume);

    internal static OperationCanceledException AbortedException() => new("The writer was aborted.");

    /// <summary>Hands over the bytes that were advanced over. Called by the writer's caller, or by Complete.</summary>
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
    /// Called when everything is handed over. The steps that finish the file follow the last write, unless <paramref name="isGivenUp"/>.
    /// With <paramref name="keepsRoom"/> the caller may still use memory of GetMemory.
    /// </summary>
    internal void FinishLocked(bool isGivenUp, bool keepsRoom)
    {
        Debug.Assert(Monitor.IsEntered(this) && IsCompleted);
        _isGivenUp = isGivenUp;
        _keepsRoom = keepsRoom;
    }

    /// <summary>Records the first error: nothing is written after it. Does nothing for <see langword="null"/>.</summary>
    internal void FailLocked(Exception? error) => Error ??= error;

    /// <summary>
    /// Aborts: no more bytes are taken or written. The caller cancels <paramref name="running"/>, which may be under way, without the lock.
    /// Returns <see langword="false"/> if it is too late, or the writer was aborted before.
    /// </summary>
    internal bool TryAbortLocked(out FileRequest? running)
    {
        Debug.Assert(Monitor.IsEntered(this));
        running = null;

        // Too late: a file that gets its name, or is being closed, has all its bytes already.
        if (IsAborted || HasEndedLocked)
        {
            return false;
        }

        IsAborted = true;
        queue.Complete();
        running = _request;
        if (IsReleased)
        {
            EndReleaseLocked();
        }

        return true;
    }

    /// <summary>
    /// Whether the loop sleeps and a step is due. If so, it counts as running, and the caller has to wake it without the lock. It runs on
    /// the caller's thread up to its first call that may wait.
    /// </summary>
    /// <param name="here">Which calls the caller's thread makes itself, unless the loop is still on its way to sleep elsewhere.</param>
    internal bool TryWakeLocked(Here here = Here.None)
    {
        Debug.Assert(Monitor.IsEntered(this));
        if (_stage != Stage.Asleep || NextStepLocked == Step.Sleep)
        {
            return false;
        }

        _stage = Stage.Running;
        _here = IsAsleep ? here : Here.None;
        return true;
    }

    /// <summary>Returns a task that completes when file and memory are released.</summary>
    internal Task WaitForReleaseAsync()
    {
        lock (this)
        {
            return IsReleased ? Task.CompletedTask : AddReleaseLocked();
        }
    }
}
