using System.IO.Pipelines;
using Pipelines.File.Backends;
using Pipelines.File.Buffers;

namespace Pipelines.File;

/// <summary>
/// The drain of one writer: one operation that is set up again and again for what comes next, in the order that a power failure asks for: the bytes, the length, a sync that covers
/// both, the folder of a new file, the name. It is its own lock, which also guards the flushes that wait, the handed over part of the queue, the file, and the writer's state.
/// </summary>
/// <remarks>Nothing is called under the lock that waits or that runs a caller's code, a caller's memory pool included.</remarks>
/// <param name="writer">Whose it is.</param>
/// <param name="file">Where the bytes go.</param>
/// <param name="queue">The bytes.</param>
/// <param name="flushes">The flushes that wait for them.</param>
internal sealed class Drain(FilePipeWriter writer, WriterFile file, WriteQueue queue, PendingFlushes flushes) : IFileOperationOwner
{
    /// <summary>Bytes that one write takes at most. Chosen by measurement: docs/tuning.md.</summary>
    internal const int BytesPerWrite = 512 * 1024;

    // The back end's while the drain is running, else whoever's holds the lock; and what it does.
    private FileOperation? _operation;
    private Step _step;

    // What comes behind the last write. A new file is not on the device before its folder is: that is synced once, behind the first sync.
    private bool _trims;
    private bool _syncs;
    private bool _takesName;
    private bool _syncsFolder;
    private bool _isFolderUnsynced = file.Backend.IsNew;

    // A file that is getting its name, or has got it, is whole: it is too late to give up.
    private bool _isTakingName;

    // How much the last sync covers that was begun, bytes, and how much was written when the last write began.
    private long _syncing;
    private long _writtenBefore;

    // Flushes that were handed over since the last write began, and those that this write has made superfluous.
    private int _flushesInQueue;
    private int _coalesced;
    private UnrecordedCounts _counts;

    private enum Step
    {
        None,
        Write,
        Trim,
        Sync,
        SyncFolder,
        TakeName,
    }

    bool IFileOperationOwner.RunsCallersCode => writer.HasCallersPool;

    /// <summary>Whether the operation is with the back end, or about to be.</summary>
    internal bool IsRunning { get; private set; }

    /// <summary>Whether a copy has the file, past the queue: the file is finished and released behind that.</summary>
    internal bool IsLent { get; set; }

    /// <summary>Whether nobody is at the file.</summary>
    internal bool IsIdle => !IsRunning && !IsLent;

    /// <summary>The first error: nothing is written after it.</summary>
    internal Exception? Error { get; private set; }

    /// <summary>Whether what was handed over is dropped: <see cref="TryAbort"/>.</summary>
    internal bool IsAborted { get; private set; }

    /// <summary>How much of what is written is on the device, bytes; -1 where the file was made, emptied or cut, and a sync is due with nothing written, too.</summary>
    internal long Synced { get; private set; } = file.IsChanged ? -1 : 0;

    internal bool HasCounts => _counts.Any;

    // The members above, and what follows, are for whoever has the lock.

    /// <summary>Hands over what the caller has advanced over. Called by the caller.</summary>
    internal void HandOver()
    {
        if (queue.Advanced > queue.Flushed)
        {
            _flushesInQueue++;
            queue.Flush();
        }
    }

    /// <summary>Sets the operation up where the drain is idle and has something to do: whoever gets it has it performed, by <see cref="Perform"/>.</summary>
    internal FileOperation? TryBegin() => IsRunning || Error is not null || IsAborted ? null : Begin();

    /// <summary>The writer is completed. Behind the last write comes what makes the file whole, unless it <paramref name="isGivenUp"/>.</summary>
    internal void Complete(bool isDurable, bool isGivenUp)
    {
        _trims = !isGivenUp && (file.IsUnfinished || isDurable) && file.HasRoomBehind(queue.Flushed);
        _syncs = isDurable && !(isGivenUp && file.IsUnfinished);
        _takesName = !isGivenUp && file.IsUnfinished;
    }

    /// <summary>Nothing more is written, for that reason or an earlier one.</summary>
    internal void Fail(Exception error) => Error ??= error;

    /// <summary>Nothing more is written, and what is under way is to be <paramref name="canceled"/>. <see langword="false"/>: a file that is getting its name is whole, and it is too late.</summary>
    internal bool TryAbort(out Cancellation canceled)
    {
        canceled = default;
        if (_isTakingName)
        {
            return false;
        }

        IsAborted = true;
        canceled = IsRunning ? new Cancellation(_operation!) : default;
        return true;
    }

    /// <inheritdoc cref="UnrecordedCounts.Take"/>
    internal UnrecordedCounts TakeCounts() => _counts.Take();

    // What follows is called without the lock.

    /// <summary>
    /// Has the operation performed that was set up, and what comes after it. <paramref name="mayWait"/>: on this thread where that ends by itself, as this thread would only wait for
    /// another.
    /// </summary>
    internal void Perform(FileOperation operation, bool mayWait)
    {
        if (!TryPin(operation) && !OnCompleted(operation))
        {
            return;
        }

        while (mayWait && file.Backend.TryPerform(operation, mayWait: true))
        {
            if (!OnCompleted(operation))
            {
                return;
            }
        }

        file.Backend.Start(operation);
    }

    /// <summary>What was performed is recorded, the flushes that it has reached are completed, and the next operation is set up; with nothing more to come a completed writer is released.</summary>
    public bool OnCompleted(FileOperation operation)
    {
        while (true)
        {
            PooledCompletion<FlushResult>? reached;
            FileOperation? next;
            FileSegment? freed;
            Exception? error;
            bool release;
            operation.Clear();
            lock (this)
            {
                freed = End(operation);
                error = Error;
                _counts.Add(operation, _coalesced);
                _coalesced = 0;
                reached = flushes.TakeReached(queue.Written, Synced, hasFailed: error is not null);
                next = TryBegin();
                release = IsIdle && writer.IsCompleted;
            }

            // What a caller's pool throws here concerns nobody who waits: the bytes are written.
            _ = SegmentPool.Shared.Return(freed);
            PendingFlushes.Complete(reached, default, error, now: false);
            if (release)
            {
                writer.Release();
            }

            if (next is null)
            {
                return false;
            }

            if (TryPin(next))
            {
                return true;
            }
        }
    }

    /// <summary>Gives operation and file back: the writer is completed, and nothing is under way.</summary>
    /// <returns>What has failed.</returns>
    internal Exception? Release()
    {
        _operation?.Return();
        _operation = null;
        return file.Close(queue.Written);
    }

    /// <summary>Sets the idle drain up, if there is something to do. Under the lock.</summary>
    private FileOperation? Begin()
    {
        _step = Next();
        if (_step == Step.None)
        {
            return null;
        }

        FileOperation operation = _operation ??= file.Backend.Rent(this);
        switch (_step)
        {
            case Step.Write:
                _writtenBefore = queue.Written;
                operation.Begin(FileOperationKind.Write, file.Offset + queue.Written);

                // What follows the last write is performed by the thread that has written.
                operation.NeedsOwnThread = flushes.WantsSync(long.MaxValue) || _trims || _syncs || _takesName || !file.Backend.CanSeek;
                queue.BeginWrite(operation, BytesPerWrite);
                _coalesced = Math.Max(0, _flushesInQueue - 1);
                _flushesInQueue = 0;
                break;
            case Step.Trim:
                operation.BeginStep(() => file.Trim(queue.Written));
                break;
            case Step.Sync:
                // Only what is written by now is covered: a flush that comes while this one runs needs the next.
                _syncing = queue.Written;
                operation.Begin(FileOperationKind.Sync, offset: 0);
                break;
            case Step.SyncFolder:
                operation.BeginStep(file.Backend.SyncFolder);
                break;
            case Step.TakeName:
                _isTakingName = true;
                operation.BeginStep(file.TakeName);
                break;
        }

        IsRunning = true;
        return operation;
    }

    /// <summary>A caller's memory may throw here: that is what the write fails with.</summary>
    private static bool TryPin(FileOperation operation)
    {
        try
        {
            operation.Pin();
            return true;
        }
        catch (Exception e)
        {
            operation.Finish(e);
            return false;
        }
    }

    /// <summary>Records what came of the operation. One that was canceled has moved nothing, and is set up again if it is still wanted. Under the lock.</summary>
    private FileSegment? End(FileOperation operation)
    {
        IsRunning = false;
        if (operation.Error is not null)
        {
            Error = operation.Error;
        }
        else if (!operation.IsCanceled)
        {
            if (operation.Kind != FileOperationKind.Write)
            {
                EndStep();
            }
            else if (operation.Transferred > 0)
            {
                FileSegment? freed = queue.OnWritten(operation.Transferred);
                file.OnWritten(queue.Written);
                return freed;
            }
            else
            {
                Error = new IOException($"The system took none of {operation.Length} bytes and named no error : '{file.Backend.Path}'");
            }
        }

        return Error is null ? null : queue.DropFlushed();
    }

    /// <summary>The step has done what it was to do. Under the lock.</summary>
    private void EndStep()
    {
        switch (_step)
        {
            case Step.Trim:
                _trims = false;
                Synced = -1;
                break;
            case Step.Sync:
                _syncsFolder = _isFolderUnsynced;
                Synced = _isFolderUnsynced ? Synced : _syncing;
                break;
            case Step.SyncFolder:
                _syncsFolder = _isFolderUnsynced = false;
                Synced = _syncing;
                break;
            case Step.TakeName:
                _takesName = false;
                break;
        }
    }

    /// <summary>What is to be done next. Under the lock.</summary>
    private Step Next()
    {
        // A flush that waits for the device lets one more write go first, which other flushes may share its sync by, and is not put off for as long as others write on.
        if (queue.Flushed > queue.Written && !flushes.WantsSync(_writtenBefore))
        {
            return Step.Write;
        }

        if (IsLent && writer.IsCompleted && queue.Flushed == queue.Written)
        {
            // The copy waits for no flush any more: what finishes the file comes behind it.
            return Step.None;
        }

        if (_syncsFolder)
        {
            return Step.SyncFolder;
        }

        if (_trims)
        {
            // Before the last sync, which is to cover the length.
            return Step.Trim;
        }

        return Synced < queue.Written && (_syncs || flushes.WantsSync(queue.Written)) ? Step.Sync : _takesName ? Step.TakeName : Step.None;
    }
}
