namespace Pipelines.File;

/// <summary>
/// What one loop awaits again and again. <see cref="Set"/> wakes the loop once, which resumes within that call.
/// </summary>
internal sealed class Signal : IValueTaskSource
{
    private ManualResetValueTaskSourceCore<bool> _core;

    /// <summary>The current wait, for one caller at a time.</summary>
    internal ValueTask Next => new(this, _core.Version);

    internal void Set() => _core.SetResult(true);

    public void GetResult(short token)
    {
        _core.GetResult(token);

        // So that the continuation is not kept alive.
        _core.Reset();
    }

    public ValueTaskSourceStatus GetStatus(short token) => _core.GetStatus(token);

    public void OnCompleted(Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags)
        => _core.OnCompleted(continuation, state, token, flags);
}
