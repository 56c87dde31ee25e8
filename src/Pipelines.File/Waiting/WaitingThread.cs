using System.Diagnostics;

namespace Pipelines.File.Waiting;

/// <summary>One thread of <see cref="WaitingThreads"/>: where it sleeps while there is nothing to do.</summary>
internal sealed class WaitingThread
{
    // Guards _isWoken.
    private readonly object _gate = new();
    private volatile bool _isWoken;

    /// <summary>The next idle one. <see cref="WaitingThreads"/> guards it and the one below.</summary>
    internal WaitingThread? NextIdle { get; set; }

    internal bool IsIdle { get; set; }

    /// <summary>Whether <see cref="Sleep"/> would return at once. The thread itself asks.</summary>
    internal bool IsWoken => _isWoken;

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
            if (!_isWoken && milliseconds != 0)
            {
                Monitor.Wait(_gate, milliseconds);
            }

            bool isWoken = _isWoken;
            _isWoken = false;
            return isWoken;
        }
    }
}
