using System.Diagnostics;

namespace FilePipelinesBenchmarks.Measuring;

/// <summary>
/// Measures candidates against the first of them in one process, round by round: every round runs each of them for a while, starting with another one each time, and
/// a ratio compares only times of the same round. So what changes on the machine meanwhile changes both sides.
/// </summary>
internal sealed class PairedMeasurement
{
    private const int WarmUpRuns = 3;

    private readonly int _rounds;
    private readonly TimeSpan _sample;
    private readonly int _maxRuns;

    /// <param name="rounds">How many.</param>
    /// <param name="sample">How long one candidate runs in one round, at least.</param>
    /// <param name="maxRuns">How often it runs in one round, at most.</param>
    internal PairedMeasurement(int rounds, TimeSpan sample, int maxRuns = 1000)
    {
        _rounds = rounds;
        _sample = sample;
        _maxRuns = maxRuns;
    }

    /// <summary>How many times <c>onSample</c> is called for that many candidates.</summary>
    internal int SamplesFor(int candidates) => _rounds * candidates;

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

    internal async Task<IReadOnlyList<Measured>> RunAsync(IReadOnlyList<Candidate> candidates, Action? onSample = null)
    {
        int[] runs = new int[candidates.Count];
        for (int i = 0; i < runs.Length; i++)
        {
            runs[i] = await RunsForSampleAsync(candidates[i]);
        }

        Sample[][] samples = new Sample[_rounds][];
        for (int round = 0; round < _rounds; round++)
        {
            samples[round] = new Sample[candidates.Count];
            for (int i = 0; i < candidates.Count; i++)
            {
                int index = (round + i) % candidates.Count;
                samples[round][index] = await TakeAsync(candidates[index], runs[index]);
                onSample?.Invoke();
            }
        }

        return [.. candidates.Select((candidate, index) => new Measured(
            candidate.Name,
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
