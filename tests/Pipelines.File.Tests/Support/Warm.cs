namespace FilePipelines.Tests;

/// <summary>Rounds of a measurement of memory, for which code has to be warm.</summary>
internal static class Warm
{
    /// <summary>
    /// Some rounds at least, and then until the last one was good enough: when the runtime compiles code again is its own decision, and
    /// until it has, values are boxed. Its thread for that comes late on a busy machine. What is never good enough ends at the limit.
    /// </summary>
    public static IEnumerable<int> Rounds(int least, Func<bool> isGoodEnough)
    {
        long begun = Environment.TickCount64;
        for (int round =
            0; round < least || (!isGoodEnough() && Environment.TickCount64 - begun < Eventually.Limit.TotalMilliseconds); round++)
        {
            if (round >= least)
            {
                Thread.Sleep(Math.Min(round, 50));
            }

            yield return round;
        }
    }

    /// <summary>
    /// The least that a measurement comes to in some rounds: what was missing in a pool just then, or what the runtime allocates for itself
    /// now and then, is not in all of them.
    /// </summary>
    public static long Least(long enough, Func<long> measure)
    {
        long least = long.MaxValue;
        foreach (int round in Rounds(1, () => least <= enough))
        {
            least = Math.Min(least, measure());
        }

        return least;
    }
}
