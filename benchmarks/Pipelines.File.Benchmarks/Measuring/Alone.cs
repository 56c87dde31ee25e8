namespace FilePipelines.Benchmarks;

/// <summary>
/// <c>alone GRID POINT WAY</c>: one sample of one way at one point of a grid, and nothing else, for <see cref="ProcessMeasurement"/>,
/// .ci/guard, strace and perf.
/// </summary>
internal static class Alone
{
    internal const string Command = "alone";

    /// <summary>
    /// How long the way runs before it is measured, at least once: its methods are compiled twice meanwhile, in the background.
    /// </summary>
    private static readonly TimeSpan s_warmUp = TimeSpan.FromMilliseconds(400);
    private static readonly PairedMeasurement s_measurement = new(1, 1, TimeSpan.FromMilliseconds(150), maxRuns: 1_000_000);

    internal static async Task<int> RunAsync(string[] arguments)
    {
        Grid? grid = arguments.Length == 3 ? Grid.All(Scale.Full).FirstOrDefault(grid => grid.Key == arguments[0]) : null;
        using TemporaryFolder folder = new();
        Candidate? candidate = grid?.MakeColumns(folder)
            .FirstOrDefault(column => column.Name == arguments[1])?.Candidates.FirstOrDefault(candidate => candidate.Name == arguments[2]);
        if (candidate is null)
        {
            await Console.Error.WriteLineAsync("alone GRID POINT WAY, as figures.csv has them");
            return 2;
        }

        long start = Stopwatch.GetTimestamp();
        do
        {
            candidate.Prepare?.Invoke();
            await candidate.RunAsync();
        }
        while (Stopwatch.GetElapsedTime(start) < s_warmUp);

        Sample sample = await s_measurement.TakeAsync(candidate);
        Console.WriteLine(
            string.Create(CultureInfo.InvariantCulture, $"{sample.Microseconds} {sample.CpuMicroseconds} {sample.AllocatedBytes}"));
        return 0;
    }
}
