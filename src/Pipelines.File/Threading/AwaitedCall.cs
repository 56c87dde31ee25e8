namespace Pipelines.File.Threading;

/// <summary>A call of a waiting thread that is awaited on the application's threads.</summary>
internal sealed class AwaitedCall<T> : IWaitingCall
{
    private readonly TaskCompletionSource<T> _source = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly Func<T> _call;
    private readonly WaitKind _kind;

    private AwaitedCall(WaitKind kind, Func<T> call)
    {
        _kind = kind;
        _call = call;
    }

    WaitKind IWaitingCall.WaitKind => _kind;

    IWaitingCall? IWaitingCall.NextCall { get; set; }

    long IWaitingCall.QueuedAt { get; set; }

    internal static Task<T> RunAsync(WaitKind kind, Func<T> call)
    {
        AwaitedCall<T> queued = new(kind, call);
        WaitingThreads.Shared.Queue(queued);
        return queued._source.Task;
    }

    void IWaitingCall.Perform()
    {
        try
        {
            _source.SetResult(_call());
        }
        catch (Exception e)
        {
            _source.SetException(e);
        }
    }
}
