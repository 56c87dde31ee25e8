using Pipelines.File.IO;

namespace Pipelines.File.Writing;

/// <summary>Which calls the thread that wakes a <see cref="WriteLoop"/> makes itself.</summary>
internal enum CallerMakes
{
    /// <summary>None: a thread that may wait makes them.</summary>
    Nothing,

    /// <summary>Its writes, which only copy memory.</summary>
    Writes,

    /// <summary>All that end by themselves: the thread's caller blocks until they are over.</summary>
    Everything,
}

/// <summary>
/// Writes, syncs and closes the file of one writer, step by step: whoever finds a step due wakes it, and the end of each step goes on to
/// the next (<see cref="IRequestOwner.OnEnded"/>). The object is the writer's lock, which also guards the pending flushes, the flushed part
/// of the queue, and the file.
/// </summary>
/// <remarks>Methods whose names end in Locked are called under the lock. Under it no code waits and no caller's code runs.</remarks>
/// <param name="file">Where the bytes go.</param>
/// <param name="queue">The bytes.</param>
/// <param name="flushes">The flushes that wait for them.</param>
/// <param name="options">What the writer promises, and where its segments come from.</param>
/// <param name="writes">How fast writes are at this moment.</param>
internal sealed partial class WriteLoop(
    WriterFile file, WriteQueue queue, FlushWaiters flushes, FilePipeWriterOptions options, FastWrites writes)
    : IRequestOwner, IThreadPoolWorkItem
{
    // Whether the writer was completed with an exception.
    private bool _isGivenUp;

    // Completed when everything is released. It is awaited with ConfigureAwait(false), so no caller's code runs in whoever completes it.
    private readonly TaskCompletionSource _released = new(TaskCreationOptions.RunContinuationsAsynchronously);

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

    /// <summary>Completes when file and memory are released; after Abort without waiting for a call that may never end.</summary>
    internal Task Released => _released.Task;

    internal static OperationCanceledException AbortedException() => new("The writer was aborted.");

    /// <summary>
    /// Whether the thread that wakes the loop may make the next write, although it must not wait: nothing is under way, and the write is
    /// short and only copies memory.
    /// </summary>
    /// <param name="length">The number of bytes that come to what is flushed.</param>
    internal bool MayWriteHereLocked(int length = 0)
        => _step == Step.Sleep && file.WritesToMemory && queue.Flushed - queue.Written + length <= FastWrites.MaxBytes
            && writes.AreExpected(file.Volume);

    /// <summary>
    /// Called when everything is handed over: no more bytes are taken. The steps that finish the file follow the last write, unless
    /// <paramref name="isGivenUp"/>.
    /// </summary>
    internal void FinishLocked(bool isGivenUp)
    {
        Debug.Assert(Monitor.IsEntered(this));
        queue.Complete();
        _isGivenUp = isGivenUp;
    }

    /// <summary>
    /// Aborts: no more bytes are taken or written. The caller cancels <paramref name="running"/>, which may be under way, without the lock.
    /// Returns <see langword="false"/> if it is too late, or the writer was aborted before.
    /// </summary>
    internal bool TryAbortLocked(out FileRequest? running)
    {
        Debug.Assert(Monitor.IsEntered(this));
        running = _step == Step.Sleep ? null : _request;

        // Too late: a file that gets its name, or is being closed, has all its bytes already.
        if (IsAborted || _step >= Step.Close)
        {
            return false;
        }

        IsAborted = true;
        queue.Complete();
        if (!file.Opened.EndsWrites)
        {
            TellReleaseLocked();
        }

        return true;
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
                while (!Released.IsCompleted && !_isOver)
                {
                    _ = Monitor.Wait(this);
                }

                if (Released.IsCompleted)
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
        _ = _released.TrySetResult();
        Monitor.PulseAll(this);
    }
}
