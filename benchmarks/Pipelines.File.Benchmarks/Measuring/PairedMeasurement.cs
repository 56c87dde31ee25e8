using System.Diagnostics;

namespace FilePipelinesBenchmarks.Measuring;

/// <summary>
/// Measures candidates against the first of them in one process, round by round: every round runs each of them for a while, starting with another one each time, and
/// a ratio compares only times of the same round. So what changes on the machine meanwhile changes both sides.
/// </summary>
internal sealed class PairedMeasurement
{
    private const int WarmUpRuns = 3;

    private readonly int _minRounds;
    private readonly TimeSpan _sample;
    private readonly int _maxRuns;

    /// <param name="minRounds">How many, at least.</param>
    /// <param name="maxRounds">How many, at most.</param>
    /// <param name="sample">How long one candidate runs in one round, at least.</param>
    /// <param name="maxRuns">How often it runs in one round, at most.</param>
    internal PairedMeasurement(int minRounds, int maxRounds, TimeSpan sample, int maxRuns = 1000)
    {
        _minRounds = minRounds;
        MaxRounds = maxRounds;
        _sample = sample;
        _maxRuns = maxRuns;
    }

    internal int MaxRounds { get; }

    /// <summary>Runs each candidate until the just-in-time compiler has little left to improve: forty short runs of each, and time for its background thread.</summary>
    internal static async Task CompileAsync(IReadOnlyList<Candidate> candidates)
    {
        for (int pass = 0; pass < 4; pass++)
        {
            foreach (Candidate candidate in candidates)
            {
                TimeSpan elapsed = TimeSpan.Zero;
                for (int i = 0; i < 10 && elapsed < TimeSpan.FromMilliseconds(50); i++)
                {
                    elapsed += await RunOnceAsync(candidate);
                }
            }

            await Task.Delay(150);
        }
    }

    /// <param name="candidates">What is measured; the first is the baseline.</param>
    /// <param name="onSample">Called after every sample with the time since the beginning.</param>
    /// <param name="budget">No round begins that would end later than this, once the least number is done; null for the greatest number of rounds.</param>
    internal async Task<IReadOnlyList<Measured>> RunAsync(IReadOnlyList<Candidate> candidates, Action<TimeSpan>? onSample = null, TimeSpan? budget = null)
    {
        long start = Stopwatch.GetTimestamp();
        int[] runs = new int[candidates.Count];
        for (int i = 0; i < runs.Length; i++)
        {
            runs[i] = await RunsForSampleAsync(candidates[i]);
        }

        List<Sample[]> samples = [];
        TimeSpan roundTime = TimeSpan.Zero;
        while (samples.Count < MaxRounds && (samples.Count < _minRounds || budget is null || Stopwatch.GetElapsedTime(start) + roundTime < budget))
        {
            long roundStart = Stopwatch.GetTimestamp();
            Sample[] round = new Sample[candidates.Count];
            for (int i = 0; i < candidates.Count; i++)
            {
                int index = (samples.Count + i) % candidates.Count;
                round[index] = await TakeAsync(candidates[index], runs[index]);
                onSample?.Invoke(Stopwatch.GetElapsedTime(start));
            }

            samples.Add(round);
            roundTime = Stopwatch.GetElapsedTime(roundStart);
        }

        return [.. candidates.Select((candidate, index) => new Measured(
            candidate.Name,
            samples.Count,
            Spread.Of(samples.Select(round => round[index].Microseconds)),
            Spread.Of(samples.Select(round => round[index].Microseconds / round[0].Microseconds)),
            Spread.Of(samples.Select(round => round[index].CpuMicroseconds)).Median,
            Spread.Of(samples.Select(round => round[index].AllocatedBytes)).Median))];
    }

    private async Task<int> RunsForSampleAsync(Candidate candidate)
    {
        // A run that is long by itself is warm after one.
        TimeSpan fastest = await RunOnceAsync(candidate);
        for (int i = 1; i < WarmUpRuns && fastest < _sample; i++)
        {
            TimeSpan elapsed = await RunOnceAsync(candidate);
            fastest = elapsed < fastest ? elapsed : fastest;
        }

        return (int)Math.Clamp(Math.Ceiling(_sample / fastest), 1, _maxRuns);
    }

    private static async ValueTask<TimeSpan> RunOnceAsync(Candidate candidate)
    {
        candidate.Prepare?.Invoke();
        long start = Stopwatch.GetTimestamp();
        await candidate.RunAsync();
        return Stopwatch.GetElapsedTime(start);
    }

    private static async ValueTask<Sample> TakeAsync(Candidate candidate, int runs)
    {
        // From here on this method's own state is on the heap, so that what a run allocates is the run's alone.
        await Task.Yield();
        long ticks = 0;
        TimeSpan cpu = TimeSpan.Zero;
        long allocated = 0;
        if (candidate.Prepare is null)
        {
            long allocatedBefore = GC.GetTotalAllocatedBytes(precise: true);
            TimeSpan cpuBefore = Environment.CpuUsage.TotalTime;
            long start = Stopwatch.GetTimestamp();
            for (int i = 0; i < runs; i++)
            {
                await candidate.RunAsync();
            }

            ticks = Stopwatch.GetTimestamp() - start;
            cpu = Environment.CpuUsage.TotalTime - cpuBefore;
            allocated = GC.GetTotalAllocatedBytes(precise: true) - allocatedBefore;
        }
        else
        {
            for (int i = 0; i < runs; i++)
            {
                candidate.Prepare();
                long allocatedBefore = GC.GetTotalAllocatedBytes(precise: true);
                TimeSpan cpuBefore = Environment.CpuUsage.TotalTime;
                long start = Stopwatch.GetTimestamp();
                await candidate.RunAsync();
                ticks += Stopwatch.GetTimestamp() - start;
                cpu += Environment.CpuUsage.TotalTime - cpuBefore;
                allocated += GC.GetTotalAllocatedBytes(precise: true) - allocatedBefore;
            }
        }

        return new Sample(Stopwatch.GetElapsedTime(0, ticks).TotalMicroseconds / runs, cpu.TotalMicroseconds / runs, (double)allocated / runs);
    }

    private readonly record struct Sample(double Microseconds, double CpuMicroseconds, double AllocatedBytes);
}
