namespace Pipelines.File.Threading;

/// <summary>
/// An async loop that lives as long as its reader or writer, and sleeps while there is nothing to do. It runs in the
/// <see cref="LibraryContext"/>. From its sleep it always resumes within <see cref="Wake"/>, never by a work item, as it would with a
/// value-task source that is completed just as the loop begins to await it: the application's pool may be busy with callers that wait for
/// the loop.
/// </summary>
internal abstract class LibraryLoop
{
    // The value of _goOn if the loop was woken before it slept.
    private static readonly Action s_woken = static () => { };

    // Made before the first loop begins, as the default context is: Wake must not fail when its owner counts the loop as running.
    private static readonly ContextCallback s_begin = static loop => _ = ((LibraryLoop)loop!).RunAsync();

    private bool _hasBegun;

    // Interlocked: the continuation of the sleeping loop, s_woken, or null.
    private Action? _goOn;

    // Completed when the reader or writer has released everything; null if nobody awaits that.
    private TaskCompletionSource? _release;

    /// <summary>
    /// Whether <see cref="Wake"/> would run the loop on the thread that calls it. A loop that has found nothing to do is about to sleep,
    /// and runs on the thread that it is on if it is woken before. For who alone may wake it.
    /// </summary>
    internal bool IsAsleep => Volatile.Read(ref _goOn) is { } goOn && goOn != s_woken;

    static LibraryLoop() => LibraryContext.Prepare();

    /// <summary>Returns a task that completes when everything is released. Called under the owner's lock.</summary>
    internal Task AddReleaseLocked() => (_release ??= new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously)).Task;

    /// <summary>
    /// Completes the task of <see cref="AddReleaseLocked"/>. It is awaited with ConfigureAwait(false), so no caller's code runs here.
    /// </summary>
    internal void EndReleaseLocked() => _release?.TrySetResult();

    /// <summary>
    /// Begins the loop, or ends its sleep. Called without the lock, once for each sleep, by the thread that has found under the lock that
    /// the loop sleeps.
    /// </summary>
    internal void Wake()
    {
        if (!_hasBegun)
        {
            Begin();
        }
        else if (Interlocked.CompareExchange(ref _goOn, s_woken, null) is { } goOn)
        {
            Debug.Assert(goOn != s_woken, "Woken twice for one sleep.");
            _goOn = null;
            goOn();
        }
    }

    /// <summary>Wakes the loop if that is due; else does nothing.</summary>
    internal void WakeIf(bool isDue)
    {
        if (isDue)
        {
            Wake();
        }
    }

    protected abstract Task RunAsync();

    /// <summary>
    /// Begins the loop. Called without a lock. A loop that sleeps first begins before its owner counts on it: what its awaits need is
    /// allocated now, and neither waking it nor waiting for a call that has begun can fail any more.
    /// </summary>
    internal void Begin()
    {
        Debug.Assert(!_hasBegun);
        _hasBegun = true;
        LibraryContext.Run(s_begin, this);
    }

    /// <summary>Sleeps until <see cref="Wake"/>, which may come before this call.</summary>
    protected Sleep SleepAsync() => new(this);

    private void BeginSleep(Action goOn)
    {
        if (Interlocked.CompareExchange(ref _goOn, goOn, null) is not null)
        {
            _goOn = null;
            goOn();
        }
    }

    /// <summary>The awaitable of one sleep.</summary>
    /// <param name="loop">The loop.</param>
    protected readonly struct Sleep(LibraryLoop loop) : ICriticalNotifyCompletion
    {
        public bool IsCompleted => false;

        public Sleep GetAwaiter() => this;

        public void GetResult()
        {
        }

        public void OnCompleted(Action continuation) => loop.BeginSleep(continuation);

        public void UnsafeOnCompleted(Action continuation) => loop.BeginSleep(continuation);
    }
}
