namespace Pipelines.File.Threading;

/// <summary>
/// One call of a waiting thread, as a task, whose continuations run on the application's pool. It allocates: what is called often is an
/// <see cref="IWaitingCall"/> of its own.
/// </summary>
internal sealed class WaitingCall<T> : TaskCompletionSource<T>, IWaitingCall
{
    private readonly Func<T> _call;

    private WaitingCall(WaitKind kind, Func<T> call)
        : base(TaskCreationOptions.RunContinuationsAsynchronously)
        => (WaitKind, _call) = (kind, call);

    public WaitKind WaitKind { get; }

    /// <summary>Queues the call. Its exception is the task's.</summary>
    internal static Task<T> RunAsync(WaitKind kind, Func<T> call)
    {
        WaitingCall<T> waiting = new(kind, call);
        WaitingThreads.Shared.Queue(waiting);
        return waiting.Task;
    }

    void IWaitingCall.Perform()
    {
        try
        {
            SetResult(_call());
        }
        catch (Exception e)
        {
            SetException(e);
        }
    }
}
