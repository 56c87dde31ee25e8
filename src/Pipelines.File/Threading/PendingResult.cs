using Pipelines.File.Diagnostics;

namespace Pipelines.File.Threading;

/// <summary>
/// One caller's wait for one result: a reusable value-task source that honours the awaiter's SynchronizationContext and TaskScheduler.
/// Whoever removes it from its owner's waits, under the owner's lock, completes it. So it is completed exactly once.
/// </summary>
/// <remarks>
/// Before the object can serve the next wait, two calls must be over: the one that sets the result (and may run the continuation), and
/// GetResult. They may end in either order and on two threads: a continuation calls GetResult while the result is still being set, and a
/// caller that polls may do so, too. <see cref="_state"/> has a bit for each, and whoever sets the second one returns the object to its
/// pool.
/// </remarks>
internal sealed class PendingResult<TResult> : IValueTaskSource<TResult>, IThreadPoolWorkItem
{
    private const int ResultIsSet = 1;
    private const int ResultIsTaken = 2;

    /// <summary>GetResult has been called; only one call may take the result.</summary>
    private const int IsBeingTaken = 4;

    /// <summary>
    /// The token is registered. The registration ends with the wait: whoever sets the second of this bit and <see cref="IsOver"/>
    /// unregisters it.
    /// </summary>
    private const int IsRegistered = 8;
    private const int IsOver = 16;

    /// <summary>
    /// The bits from here on hold the version of the wait, so that a second GetResult for one wait does not take the result of the next.
    /// </summary>
    private const int VersionShift = 16;

    // The next object in a list of its owner, guarded by the owner's lock, or in the pool's list.
    internal PendingResult<TResult>? Next;

    private readonly PendingResultPool<TResult> _pool;
    private ManualResetValueTaskSourceCore<bool> _core;

    // Owned by the thread that completes the wait, then by the one that takes the result.
    private TResult _result = default!;
    private Exception? _error;
    private CancellationTokenRegistration _registration;

    // Interlocked: the bits and the version above.
    private int _state;

    internal PendingResult(PendingResultPool<TResult> pool)
    {
        _pool = pool;
        _state = _core.Version << VersionShift;
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
    /// there, and completes it. Called without a lock, because the token may be canceled already, and before anybody has the task. Where
    /// memory is out, the token does not end the wait: the caller's memory may be in use until the wait is over, so this does not throw.
    /// </summary>
    internal ValueTask<TResult> EndWith(Action<object?, CancellationToken> onCanceled, object owner, CancellationToken cancellationToken)
    {
        ValueTask<TResult> task = Task;
        if (cancellationToken.CanBeCanceled && TryRegister(onCanceled, owner, cancellationToken)
            && (Interlocked.Or(ref _state, IsRegistered) & IsOver) != 0)
        {
            _registration.Unregister();
        }

        return task;
    }

    /// <summary>
    /// Completes the wait from any thread: a work item of the application's pool sets the result and may run the continuation inline.
    /// Allocates nothing.
    /// </summary>
    internal void CompleteOnPool(TResult result, Exception? error)
    {
        End(result, error);

        // A thread of the pool executes it next.
        PoolItem.Queue(this, preferLocal: Thread.CurrentThread.IsThreadPoolThread);
    }

    /// <summary>
    /// Completes the wait from a thread of the application: the result is set when this returns, and the continuation is queued. Throws
    /// what the awaiter's SynchronizationContext or TaskScheduler throws instead of queueing it, so the caller calls this last.
    /// </summary>
    internal void CompleteNow(TResult result, Exception? error)
    {
        End(result, error);
        SetResult(runContinuationsAsynchronously: true);
    }

    void IThreadPoolWorkItem.Execute() => SetResult(runContinuationsAsynchronously: false);

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

        int state = Volatile.Read(ref _state);
        while ((short)(state >> VersionShift) == token && (state & IsBeingTaken) == 0)
        {
            int seen = Interlocked.CompareExchange(ref _state, state | IsBeingTaken, state);
            if (seen == state)
            {
                return TakeResult(token);
            }

            state = seen;
        }

        throw new InvalidOperationException("The result of this operation has been taken already.");
    }

    private bool TryRegister(Action<object?, CancellationToken> onCanceled, object owner, CancellationToken cancellationToken)
    {
        try
        {
            Probe.Allocating();
            _registration = cancellationToken.UnsafeRegister(onCanceled, owner);
            return true;
        }
        catch (OutOfMemoryException)
        {
            return false;
        }
    }

    private TResult TakeResult(short token)
    {
        try
        {
            _ = _core.GetResult(token);
            return _result;
        }
        finally
        {
            // Last: from here on the object may serve another wait.
            if ((Interlocked.Or(ref _state, ResultIsTaken) & ResultIsSet) != 0)
            {
                GiveBack();
            }
        }
    }

    private void End(TResult result, Exception? error)
    {
        _result = result;
        _error = error;
        int state = Interlocked.Or(ref _state, IsOver);
        Debug.Assert((state & (IsOver | ResultIsSet)) == 0 && Next is null);
        if ((state & IsRegistered) != 0)
        {
            _registration.Unregister();
        }
    }

    private void SetResult(bool runContinuationsAsynchronously)
    {
        _core.RunContinuationsAsynchronously = runContinuationsAsynchronously;
        if (_error is null)
        {
            _core.SetResult(true);
        }
        else
        {
            _core.SetException(_error);
        }

        int state = Interlocked.Or(ref _state, ResultIsSet);
        Debug.Assert((state & (ResultIsSet | IsOver)) == IsOver);
        if ((state & ResultIsTaken) != 0)
        {
            GiveBack();
        }
    }

    private void GiveBack()
    {
        _result = default!;
        _error = null;
        CancellationToken = default;
        _registration = default;
        _core.Reset();
        Volatile.Write(ref _state, _core.Version << VersionShift);
        _pool.Return(this);
    }
}
