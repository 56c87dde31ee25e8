using System.Collections.Concurrent;

namespace FilePipelines.Tests;

/// <summary>A SynchronizationContext as a desktop program has it: everything that is posted runs on its one thread.</summary>
internal sealed class PumpContext : SynchronizationContext, IDisposable
{
    private readonly BlockingCollection<(SendOrPostCallback Callback, object? State)> _posted = [];
    private readonly Thread _thread;

    public PumpContext()
    {
        _thread = new Thread(Run) { IsBackground = true };
        _thread.Start();
    }

    public bool IsCurrentThread => Thread.CurrentThread == _thread;

    public override void Post(SendOrPostCallback d, object? state) => _posted.Add((d, state));

    /// <summary>Runs a method there, with this context.</summary>
    public Task<T> RunAsync<T>(Func<Task<T>> method)
    {
        TaskCompletionSource<T> done = new(TaskCreationOptions.RunContinuationsAsynchronously);
        Post(
            async _ =>
            {
                try
                {
                    done.SetResult(await method());
                }
                catch (Exception e)
                {
                    done.SetException(e);
                }
            },
            null);
        return done.Task;
    }

    public void Dispose()
    {
        _posted.CompleteAdding();
        _thread.Join();
        _posted.Dispose();
    }

    private void Run()
    {
        SetSynchronizationContext(this);
        foreach ((SendOrPostCallback callback, object? state) in _posted.GetConsumingEnumerable())
        {
            callback(state);
        }
    }
}
