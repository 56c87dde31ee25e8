using System.Diagnostics;
using System.IO.Pipelines;
using System.Threading.Tasks.Sources;

namespace Pipelines.File;

/// <summary>
/// The wait of one caller for one result: a reusable value-task source whose continuation goes where the options say, without allocating.
/// It is completed by whoever takes it, under its owner's lock, out of the owner's field of pending waits; that taking happens once, so completing does, too.
/// It is free for reuse when <see cref="GetResult"/> has run, and goes back to its owner there.
/// </summary>
internal sealed class PooledCompletion<TResult> : IValueTaskSource<TResult>, IThreadPoolWorkItem
{
    private static readonly Action<object?> s_completed = static _ => throw new UnreachableException();

    private readonly PipeScheduler? _scheduler;
    private readonly bool _useSynchronizationContext;
    private readonly Action<PooledCompletion<TResult>> _return;

    // The race between OnCompleted and Complete is settled by one exchange of this word, which alone says whether the wait is over: null (neither has come), the
    // caller's continuation (OnCompleted was first, Complete runs it), s_completed (Complete has come; an OnCompleted after it runs what it was given). Complete's
    // exchange is the last that it does to an object that nobody awaits yet: the caller may take the result and wait again with it before Complete returns.
    private Action<object?>? _continuation;
    private Action<object?>? _scheduled;
    private object? _state;
    private ExecutionContext? _executionContext;
    private SynchronizationContext? _synchronizationContext;

    private TResult _result = default!;
    private Exception? _error;
    private short _version;

    internal PooledCompletion(PipeScheduler? scheduler, bool useSynchronizationContext, Action<PooledCompletion<TResult>> @return)
    {
        // Inline is what happens without a scheduler, wherever the completing thread has nothing left to do: a drain or a read-ahead that a caller's code holds up,
        // or waits for, would wait for itself.
        _scheduler = scheduler == PipeScheduler.ThreadPool || scheduler == PipeScheduler.Inline ? null : scheduler;
        _useSynchronizationContext = useSynchronizationContext;
        _return = @return;
    }

    /// <summary>The token that ends this wait; owned by the one who waits, until the wait is taken.</summary>
    internal CancellationToken CancellationToken { get; private set; }

    /// <summary>The next one of several waits of one owner, guarded by the owner's lock.</summary>
    internal PooledCompletion<TResult>? Next { get; set; }

    /// <summary>What the owner waits for before it completes this one, guarded by the owner's lock.</summary>
    internal long Target { get; set; }

    internal CancellationTokenRegistration Registration { get; set; }

    internal ValueTask<TResult> Task => new(this, _version);

    internal void Begin(CancellationToken cancellationToken) => CancellationToken = cancellationToken;

    /// <summary>
    /// Completes the wait. <paramref name="mayRunInline"/>: this is a thread of the pool with nothing left to do and no lock held, where the continuation may run.
    /// </summary>
    internal void Complete(in TResult result, Exception? error, bool mayRunInline)
    {
        // A callback that is running at this moment finds the wait gone.
        Registration.Unregister();
        Registration = default;
        _result = result;
        _error = error;
        if (Interlocked.Exchange(ref _continuation, s_completed) is { } continuation)
        {
            _scheduled = continuation;
            Schedule(mayRunInline);
        }
    }

    public ValueTaskSourceStatus GetStatus(short token)
    {
        ThrowIfStale(token);
        return Volatile.Read(ref _continuation) != s_completed ? ValueTaskSourceStatus.Pending
            : _error is null ? ValueTaskSourceStatus.Succeeded
            : _error is OperationCanceledException ? ValueTaskSourceStatus.Canceled
            : ValueTaskSourceStatus.Faulted;
    }

    public TResult GetResult(short token)
    {
        ThrowIfStale(token);
        if (Volatile.Read(ref _continuation) != s_completed)
        {
            throw new InvalidOperationException("The operation has not completed.");
        }

        TResult result = _result;
        Exception? error = _error;
        _version++;
        _result = default!;
        _error = null;
        _continuation = null;
        _scheduled = null;
        _state = null;
        _executionContext = null;
        _synchronizationContext = null;
        CancellationToken = default;
        _return(this);
        return error is null ? result : throw error;
    }

    public void OnCompleted(Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags)
    {
        ThrowIfStale(token);
        _state = state;
        if ((flags & ValueTaskSourceOnCompletedFlags.FlowExecutionContext) != 0)
        {
            _executionContext = ExecutionContext.Capture();
        }

        if (_useSynchronizationContext && (flags & ValueTaskSourceOnCompletedFlags.UseSchedulingContext) != 0
            && SynchronizationContext.Current is { } context && context.GetType() != typeof(SynchronizationContext))
        {
            _synchronizationContext = context;
        }

        Action<object?>? earlier = Interlocked.CompareExchange(ref _continuation, continuation, null);
        if (earlier == s_completed)
        {
            _scheduled = continuation;
            Schedule(mayRunInline: false);
        }
        else if (earlier is not null)
        {
            throw new InvalidOperationException("The operation is awaited twice.");
        }
    }

    void IThreadPoolWorkItem.Execute() => Run();

    private void Schedule(bool mayRunInline)
    {
        if (_synchronizationContext is { } context)
        {
            context.Post(static state => ((PooledCompletion<TResult>)state!).Run(), this);
        }
        else if (_scheduler is null)
        {
            if (mayRunInline)
            {
                Run();
            }
            else
            {
                ThreadPool.UnsafeQueueUserWorkItem(this, preferLocal: true);
            }
        }
        else
        {
            _scheduler.Schedule(static state => ((PooledCompletion<TResult>)state!).Run(), this);
        }
    }

    private void Run()
    {
        // The continuation calls GetResult, after which another wait may be using every field here.
        if (_executionContext is { } context)
        {
            ExecutionContext.Run(
                context,
                static state =>
                {
                    PooledCompletion<TResult> self = (PooledCompletion<TResult>)state!;
                    self._scheduled!(self._state);
                },
                this);
        }
        else
        {
            _scheduled!(_state);
        }
    }

    private void ThrowIfStale(short token)
    {
        if (token != _version)
        {
            throw new InvalidOperationException("The result of this operation has been taken already.");
        }
    }
}
