namespace Pipelines.File.Threading;

/// <summary>
/// A loop that lives as long as its reader or writer, and sleeps while nothing is to be done. It runs in the <see cref="LibraryContext"/>.
/// It goes on right where it is woken, never by a work item, as a value-task source would have it go on that is set while its wait begins:
/// the application's pool may be busy with whoever waits for the loop.
/// </summary>
internal abstract class LibraryLoop
{
    // What stands for a loop that was woken before it slept.
    private static readonly Action s_woken = static () => { };

    private bool _hasBegun;

    // Interlocked: how the loop goes on that sleeps, or s_woken.
    private Action? _goOn;

    // Whoever awaits the end of the reader or writer.
    private TaskCompletionSource? _release;

    /// <summary>The task of whoever waits until everything is released. Under the owner's lock.</summary>
    internal Task AddReleaseLocked() => (_release ??= new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously)).Task;

    /// <summary>Everything is released. Those who wait await it without their context, so no code of theirs runs here.</summary>
    internal void EndReleaseLocked() => _release?.TrySetResult();

    /// <summary>
    /// Begins the loop, or ends its sleep. Called without the lock, once for each sleep: by whoever has found under the lock that it
    /// sleeps.
    /// </summary>
    internal void Wake()
    {
        if (!_hasBegun)
        {
            _hasBegun = true;
            LibraryContext.Run(static loop => _ = ((LibraryLoop)loop!).RunAsync(), this);
        }
        else if (Interlocked.CompareExchange(ref _goOn, s_woken, null) is { } goOn)
        {
            _goOn = null;
            goOn();
        }
    }

    protected abstract Task RunAsync();

    /// <summary>Lasts until <see cref="Wake"/>, which may come before this.</summary>
    protected Sleep SleepAsync() => new(this);

    private void BeginSleep(Action goOn)
    {
        if (Interlocked.CompareExchange(ref _goOn, goOn, null) is not null)
        {
            _goOn = null;
            goOn();
        }
    }

    /// <summary>One sleep, to be awaited.</summary>
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
