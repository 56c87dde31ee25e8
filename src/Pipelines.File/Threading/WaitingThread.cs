namespace Pipelines.File.Threading;

/// <summary>One thread of <see cref="WaitingThreads"/>: where it sleeps while there is nothing to do, and what it performs next.</summary>
internal sealed class WaitingThread
{
    // Guards _isWoken.
    private readonly object _gate = new();
    private bool _isWoken;

    internal bool IsStarted { get; set; }

    /// <summary>What was queued by the call that this thread performs. Owned by the thread.</summary>
    internal IWaitingCall? Next { get; set; }

    /// <summary>Once for each time that it was taken from the idle ones.</summary>
    internal void Wake()
    {
        lock (_gate)
        {
            Debug.Assert(!_isWoken);
            _isWoken = true;
            Monitor.Pulse(_gate);
        }
    }

    /// <summary>Sleeps until <see cref="Wake"/>. <see langword="false"/>: it has not come within that time.</summary>
    internal bool Sleep(int milliseconds)
    {
        lock (_gate)
        {
            if (!_isWoken)
            {
                Monitor.Wait(_gate, milliseconds);
            }

            bool isWoken = _isWoken;
            _isWoken = false;
            return isWoken;
        }
    }
}
