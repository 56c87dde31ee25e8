using System.Globalization;

namespace FilePipelinesBenchmarks.Waiting;

/// <summary><c>waits [reads|flushes|fifos] [--at-once N] [--rounds N]</c>: what waits, as plain lines, for tuning. Linux.</summary>
internal static class WaitsCommand
{
    internal static async Task<int> RunAsync(string[] arguments)
    {
        int rounds = 5;
        List<string> kinds = [];
        IReadOnlyList<int> counts = WaitingMeasurement.Counts;
        for (int i = 0; i < arguments.Length; i++)
        {
            switch (arguments[i])
            {
                case "--rounds" when i + 1 < arguments.Length
                    && int.TryParse(arguments[i + 1], CultureInfo.InvariantCulture, out rounds) && rounds > 0:
                    i++;
                    break;
                case "--at-once" when i + 1 < arguments.Length
                    && int.TryParse(arguments[i + 1], CultureInfo.InvariantCulture, out int count) && count > 0:
                    counts = [count];
                    i++;
                    break;
                case "reads" or "flushes" or "fifos":
                    kinds.Add(arguments[i]);
                    break;
                default:
                    await Console.Error.WriteLineAsync(
                        $"waits does not understand '{arguments[i]}': waits [reads|flushes|fifos] [--at-once N] [--rounds N]");
                    return 2;
            }
        }

        foreach (bool isReads in (bool[])[true, false])
        {
            foreach (int count in kinds.Count == 0 || kinds.Contains(isReads ? "reads" : "flushes") ? counts : [])
            {
                foreach (WaitingFigures figures in await WaitingMeasurement.RunAsync(isReads, count, rounds))
                {
                    Console.WriteLine(string.Create(
                        CultureInfo.InvariantCulture,
                        $"{(isReads ? "reads" : "flushes")} {count,4} {figures.Way,-24} {figures.OperationsPerSecond.Median,8:0}/s "
                        + $"{figures.Ratio.Median:0.00} ({figures.Ratio.LowerQuartile:0.00}-{figures.Ratio.UpperQuartile:0.00})  p50 "
                        + $"{figures.Median:0.000} p99 {figures.NinetyNinth:0.000} ms  cpu {figures.CpuMicroseconds:0.0} us  delay "
                        + $"{figures.DelayMedian:0.000} {figures.DelayNinetyNinth:0.000} {figures.DelayLongest:0.000} ms  pool "
                        + $"{figures.PoolThreads}"));
                }
            }
        }

        foreach (int count in kinds.Count == 0 || kinds.Contains("fifos") ? IdleFifos.Counts : [])
        {
            Measuring.Spread spread = await IdleFifos.RunAsync(count);
            Console.WriteLine(string.Create(CultureInfo.InvariantCulture,
                $"fifos {count,5}: a wake-up {spread.Median:0.0} us ({spread.LowerQuartile:0.0}-{spread.UpperQuartile:0.0})"));
        }

        return 0;
    }
}
