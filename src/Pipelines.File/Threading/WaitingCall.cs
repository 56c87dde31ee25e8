namespace Pipelines.File.Threading;

/// <summary>
/// One call of a waiting thread, as a task, whose continuations run on the application's pool. It allocates: what is called often is an
/// <see cref="IWaitingCall"/> of its own.
/// </summary>
internal sealed class WaitingCall<T>(Func<T> call)
    : TaskCompletionSource<T>(TaskCreationOptions.RunContinuationsAsynchronously), IWaitingCall
{
    void IWaitingCall.Perform()
    {
        try
        {
            SetResult(call());
        }
        catch (Exception e)
        {
            SetException(e);
        }
    }
}
