namespace Pipelines.File.Threading;

/// <summary>
/// One caller's wait for one result: a reusable value-task source that honours the awaiter's SynchronizationContext and TaskScheduler.
/// Whoever removes it from its owner's waits, under the owner's lock, completes it. So it is completed exactly once.
/// </summary>
/// <remarks>
/// Before the object can serve the next wait, two calls must be over: the one that sets the result (and may run the continuation), and
/// GetResult. They may end in either order and on two threads: a continuation calls GetResult while the result is still being set, and a
/// caller that polls may do so, too. The one that ends last gives the object back to its owner.
/// </remarks>
internal sealed class PendingResult<TResult> : IValueTaskSource<TResult>, IThreadPoolWorkItem
{
    /// <summary>The maximum number of unused objects that one owner keeps for its next waits.</summary>
    private const int MaxFree = 256;

    /// <summary>The value of <see cref="_untaken"/> when the result is being taken, or was.</summary>
    private const int Taken = int.MinValue;

    // The unused objects of the owner. Guarded by itself.
    private readonly Stack<PendingResult<TResult>> _free;

    private ManualResetValueTaskSourceCore<TResult> _core;

    // Owned by the thread that completes the wait.
    private TResult _result = default!;
    private Exception? _error;

    // A caller may never take the result, and its token may live as long as the program. So the registration ends with the wait, which may
    // be over before it is registered: whoever is the second one of the two, counted interlocked, unregisters it.
    private CancellationTokenRegistration _registration;
    private int _registeredOrOver;

    // Interlocked: the version of the wait whose result may be taken, so that of several GetResults for one wait one takes it, and none
    // that of the next wait; and how many of the two calls of the remarks are not over.
    private int _untaken;
    private int _calls = 2;

    private PendingResult(Stack<PendingResult<TResult>> free) => (_free, _untaken) = (free, _core.Version);

    /// <summary>The token that cancels this wait. Guarded by the owner's lock until the wait is removed there.</summary>
    internal CancellationToken CancellationToken { get; private set; }

    internal ValueTask<TResult> Task => new(this, _core.Version);

    /// <summary>Begins a wait. Any thread may call it, with or without a lock.</summary>
    /// <param name="free">The unused objects of the owner; nobody else uses it.</param>
    /// <param name="cancellationToken">The token that cancels the wait.</param>
    internal static PendingResult<TResult> Rent(Stack<PendingResult<TResult>> free, CancellationToken cancellationToken)
    {
        PendingResult<TResult>? pending;
        lock (free)
        {
            _ = free.TryPop(out pending);
        }

        pending ??= new PendingResult<TResult>(free);
        pending.CancellationToken = cancellationToken;
        return pending;
    }

    /// <summary>
    /// Registers the token, and returns the task of the wait. <paramref name="onCanceled"/> removes the wait from the owner, if it is still
    /// there, and completes it. Called without a lock, because the token may be canceled already, and before anybody has the task.
    /// </summary>
    internal ValueTask<TResult> RegisterCancellation(
        Action<object?, CancellationToken> onCanceled, object owner, CancellationToken cancellationToken)
    {
        if (cancellationToken.CanBeCanceled)
        {
            _registration = cancellationToken.UnsafeRegister(onCanceled, owner);
            UnregisterIfBoth();
        }

        return Task;
    }

    /// <summary>
    /// Completes the wait from any thread: a work item of the application's pool sets the result and may run the continuation inline.
    /// </summary>
    internal void CompleteOnPool(TResult result, Exception? error)
    {
        (_result, _error) = (result, error);

        // A thread of the pool that completes the wait executes it next.
        ThreadPool.UnsafeQueueUserWorkItem(this, preferLocal: Thread.CurrentThread.IsThreadPoolThread);
    }

    /// <summary>
    /// Completes the wait from a thread of the application: the result is set when this returns, and the continuation is queued. Throws
    /// what the awaiter's SynchronizationContext or TaskScheduler throws instead of queueing it, so the caller calls this last.
    /// </summary>
    internal void CompleteNow(TResult result, Exception? error)
    {
        (_result, _error) = (result, error);
        _core.RunContinuationsAsynchronously = true;
        SetResult();
    }

    void IThreadPoolWorkItem.Execute()
    {
        _core.RunContinuationsAsynchronously = false;
        SetResult();
    }

    ValueTaskSourceStatus IValueTaskSource<TResult>.GetStatus(short token) => _core.GetStatus(token);

    void IValueTaskSource<TResult>.OnCompleted(Action<object?> continuation, object? state, short token,
        ValueTaskSourceOnCompletedFlags flags)
        => _core.OnCompleted(continuation, state, token, flags);

    TResult IValueTaskSource<TResult>.GetResult(short token)
    {
        if (_core.GetStatus(token) == ValueTaskSourceStatus.Pending
            || Interlocked.CompareExchange(ref _untaken, Taken, token) != token)
        {
            throw new InvalidOperationException("The operation has not completed, or its result has been taken already.");
        }

        try
        {
            return _core.GetResult(token);
        }
        finally
        {
            EndCall();
        }
    }

    private void SetResult()
    {
        UnregisterIfBoth();
        try
        {
            if (_error is null)
            {
                _core.SetResult(_result);
            }
            else
            {
                _core.SetException(_error);
            }
        }
        finally
        {
            EndCall();
        }
    }

    private void UnregisterIfBoth()
    {
        if (Interlocked.Increment(ref _registeredOrOver) == 2)
        {
            _registration.Unregister();
        }
    }

    /// <summary>From the second call on, the object may serve another wait.</summary>
    private void EndCall()
    {
        if (Interlocked.Decrement(ref _calls) == 0)
        {
            (_result, _error, _registration, _registeredOrOver, _calls) = (default!, null, default, 0, 2);
            CancellationToken = default;
            _core.Reset();
            Volatile.Write(ref _untaken, _core.Version);
            lock (_free)
            {
                if (_free.Count < MaxFree)
                {
                    _free.Push(this);
                }
            }
        }
    }
}
