using Pipelines.File.Diagnostics;

namespace Pipelines.File.Threading;

/// <summary>
/// One caller's wait for one result: a reusable value-task source that honours the awaiter's SynchronizationContext and TaskScheduler.
/// Whoever removes it from its owner's waits, under the owner's lock, completes it. So it is completed exactly once. Taking the result
/// returns it to its pool: by then <see cref="ManualResetValueTaskSourceCore{TResult}"/> does not touch it any more.
/// </summary>
internal sealed class PendingResult<TResult> : IValueTaskSource<TResult>, IThreadPoolWorkItem
{
    /// <summary>The value of <see cref="_untaken"/> while a result is taken; no version.</summary>
    private const int IsTaken = int.MinValue;

    // The next object in a list of its owner, guarded by the owner's lock, or in the pool's list.
    internal PendingResult<TResult>? Next;

    private readonly PendingResultPool<TResult> _pool;
    private ManualResetValueTaskSourceCore<TResult> _core;

    // What the work item is to set.
    private TResult _result = default!;
    private Exception? _error;

    // Written before anybody has the task, so whoever takes the result sees it.
    private CancellationTokenRegistration _registration;

    // Interlocked: the version of the wait whose result has not been taken, so that a second GetResult does not take it again.
    private int _untaken;

    internal PendingResult(PendingResultPool<TResult> pool)
    {
        _pool = pool;
        _untaken = _core.Version;
    }

    /// <summary>The token that cancels this wait. Guarded by the owner's lock until the wait is removed there.</summary>
    internal CancellationToken CancellationToken { get; set; }

    /// <summary>A writer: the byte count that completes this wait. Guarded by the writer's lock.</summary>
    internal long Target { get; set; }

    /// <summary>Whether <see cref="Target"/> counts bytes on the device, and not bytes written. Guarded by the writer's lock.</summary>
    internal bool WaitsForSync { get; set; }

    internal ValueTask<TResult> Task => new(this, _core.Version);

    /// <summary>
    /// Registers the token, and returns the task of the wait. <paramref name="onCanceled"/> removes the wait from the owner, if it is still
    /// there, and completes it. Called without a lock, because the token may be canceled already, and before anybody has the task.
    /// </summary>
    internal ValueTask<TResult> EndWith(Action<object?, CancellationToken> onCanceled, object owner, CancellationToken cancellationToken)
    {
        ValueTask<TResult> task = Task;
        _registration = cancellationToken.UnsafeRegister(onCanceled, owner);
        return task;
    }

    /// <summary>
    /// Completes the wait from any thread: a work item of the application's pool sets the result and may run the continuation inline.
    /// Allocates nothing.
    /// </summary>
    internal void CompleteOnPool(TResult result, Exception? error)
    {
        _result = result;
        _error = error;

        while (!TryQueue())
        {
            // Memory is out. Somebody waits for the completion, and no caller's code may run here.
            Thread.Sleep(1);
        }
    }

    /// <summary>
    /// Completes the wait from a thread of the application: the result is set when this returns, and the continuation is queued. Throws
    /// what the awaiter's SynchronizationContext or TaskScheduler throws instead of queueing it, so the caller calls this last.
    /// </summary>
    internal void CompleteNow(TResult result, Exception? error)
    {
        _core.RunContinuationsAsynchronously = true;
        Set(result, error);
    }

    void IThreadPoolWorkItem.Execute()
    {
        (TResult result, Exception? error) = (_result, _error);
        _result = default!;
        _error = null;
        _core.RunContinuationsAsynchronously = false;
        Set(result, error);
    }

    ValueTaskSourceStatus IValueTaskSource<TResult>.GetStatus(short token) => _core.GetStatus(token);

    void IValueTaskSource<TResult>.OnCompleted(Action<object?> continuation, object? state, short token,
        ValueTaskSourceOnCompletedFlags flags)
        => _core.OnCompleted(continuation, state, token, flags);

    TResult IValueTaskSource<TResult>.GetResult(short token)
    {
        if (_core.GetStatus(token) == ValueTaskSourceStatus.Pending)
        {
            throw new InvalidOperationException("The operation has not completed.");
        }

        if (Interlocked.CompareExchange(ref _untaken, IsTaken, token) != token)
        {
            throw new InvalidOperationException("The result of this operation has been taken already.");
        }

        try
        {
            return _core.GetResult(token);
        }
        finally
        {
            _registration.Unregister();
            _registration = default;
            CancellationToken = default;
            _core.Reset();
            Volatile.Write(ref _untaken, _core.Version);
            _pool.Return(this);
        }
    }

    private bool TryQueue()
    {
        try
        {
            Probe.Allocating();

            // A thread of the pool executes it next.
            ThreadPool.UnsafeQueueUserWorkItem(this, preferLocal: Thread.CurrentThread.IsThreadPoolThread);
            return true;
        }
        catch (OutOfMemoryException)
        {
            return false;
        }
    }

    private void Set(TResult result, Exception? error)
    {
        if (error is null)
        {
            _core.SetResult(result);
        }
        else
        {
            _core.SetException(error);
        }
    }
}
