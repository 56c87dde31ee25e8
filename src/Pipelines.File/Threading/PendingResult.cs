namespace Pipelines.File.Threading;

/// <summary>
/// The wait of one caller for one result: a reusable value-task source that honours the awaiter's SynchronizationContext and TaskScheduler.
/// Whoever takes it, under its owner's lock, out of the owner's waits completes it; that taking happens once, so completing does, too.
/// </summary>
/// <remarks>
/// Two things have to be over before the object may serve the next wait: the call that sets the result (which may run the continuation),
/// and GetResult. They may come in either order, and from two threads: a continuation calls GetResult while the result is still being set,
/// and so may a caller that polls. <see cref="_state"/>
/// has a bit for each, and whoever sets the second bit gives the object back.
/// </remarks>
internal sealed class PendingResult<TResult> : IValueTaskSource<TResult>, IThreadPoolWorkItem
{
    private const int ResultIsSet = 1;
    private const int ResultIsTaken = 2;

    /// <summary>Somebody is in GetResult, which is for one caller, once.</summary>
    private const int IsBeingTaken = 4;

    /// <summary>
    /// The token's registration is there. It ends with the wait: whoever sets the second bit of this and <see cref="IsOver"/> unregisters
    /// it.
    /// </summary>
    private const int IsRegistered = 8;
    private const int IsOver = 16;

    /// <summary>
    /// Above the bits is the version of the wait that they are for: one who takes a result twice must not meet the next wait.
    /// </summary>
    private const int VersionShift = 16;

    // The next one in a list of its owner's, guarded by the owner's lock, or of the pool's.
    internal PendingResult<TResult>? Next;

    private readonly PendingResultPool<TResult> _pool;
    private ManualResetValueTaskSourceCore<bool> _core;

    // Owned by whoever completes the wait, then by whoever takes the result.
    private TResult _result = default!;
    private Exception? _error;
    private CancellationTokenRegistration _registration;

    // Interlocked, see above.
    private int _state;

    internal PendingResult(PendingResultPool<TResult> pool)
    {
        _pool = pool;
        _state = _core.Version << VersionShift;
    }

    /// <summary>The token that ends this wait. Guarded by the owner's lock until the wait is taken.</summary>
    internal CancellationToken CancellationToken { get; set; }


    /// <summary>What a writer waits for before it completes this one, bytes; guarded by its lock.</summary>
    internal long Target { get; set; }

    /// <summary>
    /// Whether <see cref="Target"/> counts what is on the device rather than what is written; guarded by the writer's lock.
    /// </summary>
    internal bool WaitsForSync { get; set; }

    internal ValueTask<TResult> Task => new(this, _core.Version);

    /// <summary>
    /// The task of the wait, which the token may end from here on: by <paramref name="onCanceled"/>, which takes the wait out if it is
    /// still there. Called without a lock, as the token may be canceled already, and before anybody has the task.
    /// </summary>
    internal ValueTask<TResult> EndWith(Action<object?, CancellationToken> onCanceled, object owner, CancellationToken cancellationToken)
    {
        ValueTask<TResult> task = Task;
        if (cancellationToken.CanBeCanceled)
        {
            _registration = cancellationToken.UnsafeRegister(onCanceled, owner);
            if ((Interlocked.Or(ref _state, IsRegistered) & IsOver) != 0)
            {
                _registration.Unregister();
            }
        }

        return task;
    }

    /// <summary>
    /// Completes the wait from a thread of a back end: the result is set on a thread of the application's pool, where the continuation may
    /// run. Allocates nothing.
    /// </summary>
    internal void CompleteOnPool(TResult result, Exception? error)
    {
        End(result, error);
        if (Thread.CurrentThread.IsThreadPoolThread)
        {
            // It comes next on this very thread.
            ThreadPool.UnsafeQueueUserWorkItem(this, preferLocal: true);
        }
        else
        {
            CompletionQueue.Shared.Add(this);
        }
    }

    /// <summary>
    /// Completes the wait from a caller's thread: the result is there when this returns, and the continuation is queued. Throws what the
    /// awaiter's SynchronizationContext or TaskScheduler throws instead of queueing it, so it comes after everything else that the caller
    /// has to do.
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

    private TResult TakeResult(short token)
    {
        try
        {
            _ = _core.GetResult(token);
            return _result;
        }
        finally
        {
            // Last, as from here on the object may serve another wait.
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
        if ((Interlocked.Or(ref _state, IsOver) & IsRegistered) != 0)
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

        if ((Interlocked.Or(ref _state, ResultIsSet) & ResultIsTaken) != 0)
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
