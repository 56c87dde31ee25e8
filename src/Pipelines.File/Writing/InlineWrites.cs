namespace Pipelines.File.Writing;

/// <summary>
/// Decides whether a short write is made on its caller's thread. A copy into the page cache takes less time than a hop to another thread.
/// But the kernel makes writers wait while too many pages are dirty (up to 200 ms a call: balance_dirty_pages), and for as long as a file
/// system is frozen. So a write that takes longer than a millisecond turns such writes off for the whole process.
/// </summary>
/// <remarks>
/// They are off for 10 ms, so that a write that was only preempted costs hops for that long. While the next one is slow again, the time
/// doubles, up to 10 s: then a device that stalls holds one caller each 10 s.
/// </remarks>
/// <param name="time">The clock; tests replace it.</param>
internal sealed class InlineWrites(TimeProvider time)
{
    /// <summary>The longest write that may follow others, bytes: some microseconds of copying.</summary>
    internal const int MaxBytes = 64 * 1024;

    private const int LeastPauseMilliseconds = 10;
    private const int MostPauseMilliseconds = 10_000;

    private readonly long _millisecond = time.TimestampFrequency / 1000;

    // Interlocked: when the write that is watched began, a timestamp; 0: none is. Others look at it, because a write that stalls is known
    // to be slow before it has ended.
    private long _watched;

    // Until when there are none, a timestamp, and the duration of the last pause, in its units. Any thread; the last writer wins.
    private long _offUntil;
    private long _pause;

    internal static InlineWrites Shared { get; } = new(TimeProvider.System);

    /// <summary>Whether the current thread may write now. If so, it calls <see cref="End"/> afterwards.</summary>
    internal bool TryBegin(out long begun)
    {
        begun = time.GetTimestamp();
        long watched = Volatile.Read(ref _watched);
        if (begun < Volatile.Read(ref _offUntil) || (watched != 0 && begun - watched > _millisecond))
        {
            return false;
        }

        if (watched == 0)
        {
            _ = Interlocked.CompareExchange(ref _watched, begun, 0);
        }

        return true;
    }

    internal void End(long begun)
    {
        long now = time.GetTimestamp();
        if (now - begun > _millisecond)
        {
            _pause = Math.Clamp(_pause * 2, LeastPauseMilliseconds * _millisecond, MostPauseMilliseconds * _millisecond);
            Volatile.Write(ref _offUntil, now + _pause);
        }
        else if (_pause != 0)
        {
            _pause = 0;
        }

        _ = Interlocked.CompareExchange(ref _watched, 0, begun);
    }
}
