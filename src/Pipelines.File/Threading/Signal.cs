namespace Pipelines.File.Threading;

/// <summary>
/// A value that one loop awaits again and again. <see cref="Set"/> wakes the loop once; the loop takes the value and may then await the
/// next one. The loop resumes within <see cref="Set"/>, unless that asks for the pool.
/// </summary>
internal sealed class Signal<T> : IValueTaskSource, IValueTaskSource<T>
{
    private ManualResetValueTaskSourceCore<T> _core;

    /// <summary>The number of the current wait; the next wait has another one.</summary>
    internal short Version => _core.Version;

    /// <summary>The current wait, for one caller at a time.</summary>
    internal ValueTask<T> Next => new(this, _core.Version);

    /// <param name="value">The result of the wait.</param>
    /// <param name="resumesOnPool">Whether the loop resumes on a thread of the application's pool.</param>
    internal void Set(T value, bool resumesOnPool = false)
    {
        _core.RunContinuationsAsynchronously = resumesOnPool;
        _core.SetResult(value);
    }

    public T GetResult(short token)
    {
        T value = _core.GetResult(token);

        // So that the continuation is not kept alive.
        _core.Reset();
        return value;
    }

    void IValueTaskSource.GetResult(short token) => GetResult(token);

    public ValueTaskSourceStatus GetStatus(short token) => _core.GetStatus(token);

    public void OnCompleted(Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags)
        => _core.OnCompleted(continuation, state, token, flags);
}
