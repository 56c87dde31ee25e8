using System.Diagnostics;
using Pipelines.File;

namespace JournalSample;

/// <summary>Many producers that append as fast as the device lets them.</summary>
internal static class JournalBench
{
    /// <summary>Appends for some time, and returns how long each commit took, sorted.</summary>
    /// <param name="journal">The journal that is measured.</param>
    /// <param name="producers">How many append at once, each the next when its last is on the device.</param>
    /// <param name="size">Bytes of a record.</param>
    /// <param name="duration">How long.</param>
    internal static async Task<TimeSpan[]> RunAsync(Journal journal, int producers, int size, TimeSpan duration)
    {
        long start = Stopwatch.GetTimestamp();
        List<TimeSpan>[] latencies = await Task.WhenAll(Enumerable.Range(0, producers).Select(producer => Task.Run(async () =>
        {
            byte[] record = new byte[size];
            new Random(producer).NextBytes(record);
            List<TimeSpan> mine = [];
            while (Stopwatch.GetElapsedTime(start) < duration)
            {
                long begin = Stopwatch.GetTimestamp();
                await journal.AppendAsync(record);
                mine.Add(Stopwatch.GetElapsedTime(begin));
            }

            return mine;
        })));
        TimeSpan[] all = [.. latencies.SelectMany(mine => mine)];
        Array.Sort(all);
        return all;
    }
}
