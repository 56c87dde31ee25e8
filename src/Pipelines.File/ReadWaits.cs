using System.IO.Pipelines;
using Pipelines.File.Backends;

namespace Pipelines.File;

/// <summary>
/// What a reader needs from the first call on that has to wait: who waits for the read and for the release, and what ended on threads that no listener's code runs on. The reader's
/// lock guards all of it.
/// </summary>
/// <param name="guard">The reader's lock.</param>
internal sealed class ReadWaits(object guard) : ICountsOwner
{
    private PooledCompletions<ReadResult>? _completions;

    // The pending ReadAsync. Whoever takes it out, under the lock, is the one who completes it.
    private PooledCompletion<ReadResult>? _read;
    private TaskCompletionSource? _release;
    private UnrecordedCounts _counts;

    internal bool HasRead => _read is not null;

    /// <summary>What the pending read asks for, bytes.</summary>
    internal int MinimumSize { get; private set; }

    internal PooledCompletion<ReadResult> AddRead(int minimumSize, CancellationToken cancellationToken)
    {
        MinimumSize = minimumSize;
        _read = (_completions ??= new PooledCompletions<ReadResult>(this)).Rent();
        _read.CancellationToken = cancellationToken;
        return _read;
    }

    internal PooledCompletion<ReadResult>? TakeRead()
    {
        PooledCompletion<ReadResult>? read = _read;
        _read = null;
        return read;
    }

    /// <summary>A cancellation that comes late may meet a later wait: with the same token that one ends as well, with another it does not.</summary>
    internal PooledCompletion<ReadResult>? TakeRead(CancellationToken token) => _read?.CancellationToken == token ? TakeRead() : null;

    /// <summary>The task of whoever waits until everything is released.</summary>
    internal Task AddRelease() => (_release ??= new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously)).Task;

    /// <summary>Counts a read that has ended on another thread than a caller's.</summary>
    internal void Count(FileOperation operation) => _counts.Add(operation);

    internal UnrecordedCounts TakeCounts() => _counts.Take();

    /// <summary>Tells the listeners what was counted. Runs a caller's code: on a thread of a caller's, without the lock.</summary>
    public void RecordCounts()
    {
        UnrecordedCounts counts;
        lock (guard)
        {
            counts = _counts.Take();
        }

        counts.Record();
    }

    /// <summary>Everything is released. On the pool, as an awaiter's SynchronizationContext, or a listener of the meter, may be called. Without the lock.</summary>
    internal void EndRelease()
    {
        lock (guard)
        {
            if (_release is null && !_counts.Any)
            {
                return;
            }
        }

        ThreadPool.UnsafeQueueUserWorkItem(
            static waits =>
            {
                waits.RecordCounts();
                waits._release?.TrySetResult();
            },
            this,
            preferLocal: false);
    }
}
