namespace Pipelines.File.Waiting;

/// <summary>
/// Whether calls come one by one, each soon after the one before has ended, so that it pays for a thread to stay awake for the next. Where the processors are busy they come later, and it does not.
/// <see cref="WaitingThreads"/> guards it.
/// </summary>
/// <param name="soon">How soon is soon, in the unit of the timestamps below.</param>
internal sealed class LoneCalls(long soon)
{
    /// <summary>How many more of the last calls have to have come that soon than have not, and the most of them that count.</summary>
    private const int PaysFrom = 2;
    private const int MostSoon = 4;

    // When all calls were over; 0 from the next call on.
    private long _idleSince;

    // How many calls were queued since then; where it was one, its caller was alone.
    private int _callsSinceIdle;

    // Up with each call that came soon after a lone one, down with the others.
    private int _soonCalls;

    /// <summary>A call is queued.</summary>
    /// <param name="now">A timestamp, not 0.</param>
    /// <param name="isHelped">The application's pool may perform it, so that no thread here need be awake for it.</param>
    internal void OnQueued(long now, bool isHelped)
    {
        if (_idleSince != 0 && !isHelped)
        {
            bool isSoon = _callsSinceIdle == 1 && now - _idleSince < soon;
            _soonCalls = Math.Clamp(_soonCalls + (isSoon ? 1 : -1), 0, MostSoon);
            _idleSince = 0;
            _callsSinceIdle = 0;
        }

        _callsSinceIdle++;
    }

    /// <summary>A thread has found that all calls are over. Whether it is to stay awake: once for each time that this comes about.</summary>
    /// <param name="now">A timestamp, not 0.</param>
    internal bool OnAllOver(long now)
    {
        if (_idleSince != 0)
        {
            return false;
        }

        _idleSince = now;
        return _callsSinceIdle == 1 && _soonCalls >= PaysFrom;
    }
}
