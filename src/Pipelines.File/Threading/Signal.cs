namespace Pipelines.File.Threading;

/// <summary>
/// What one loop waits for again and again: whoever sets it wakes the loop once, which takes the value and may wait anew. The loop goes on
/// within <see cref="Set"/>.
/// </summary>
internal sealed class Signal<T> : IValueTaskSource, IValueTaskSource<T>
{
    private ManualResetValueTaskSourceCore<T> _core;

    /// <summary>Which wait it is: the next one has another number.</summary>
    internal short Version => _core.Version;

    /// <summary>The wait, for one caller at a time.</summary>
    internal ValueTask<T> Next => new(this, _core.Version);

    /// <param name="value">What the wait comes to.</param>
    /// <param name="resumesOnPool">Whether the caller goes on on a thread of the application's pool.</param>
    internal void Set(T value, bool resumesOnPool = false)
    {
        _core.RunContinuationsAsynchronously = resumesOnPool;
        _core.SetResult(value);
    }

    public T GetResult(short token)
    {
        T value = _core.GetResult(token);

        // What waited is not kept.
        _core.Reset();
        return value;
    }

    void IValueTaskSource.GetResult(short token) => GetResult(token);

    public ValueTaskSourceStatus GetStatus(short token) => _core.GetStatus(token);

    public void OnCompleted(Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags)
        => _core.OnCompleted(continuation, state, token, flags);
}
