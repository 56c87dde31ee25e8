using System.Diagnostics;
using System.Runtime;

namespace FilePipelinesBenchmarks.Measuring;

/// <summary>Measures candidates in this process, in turns.</summary>
/// <param name="minRounds">How many, at least.</param>
/// <param name="maxRounds">How many, at most.</param>
/// <param name="sample">How long one candidate runs in one round, at least.</param>
/// <param name="maxRuns">How often it runs in one round, at most.</param>
internal sealed class PairedMeasurement(int minRounds, int maxRounds, TimeSpan sample, int maxRuns = 1000)
    : Measurement(minRounds, maxRounds)
{
    private const int WarmUpRuns = 3;
    private const int MaxPasses = 30;
    private const int QuietPasses = 4;

    /// <summary>
    /// Runs each candidate ten times, until that compiles nothing: the just-in-time compiler compiles a method with a loop three times.
    /// </summary>
    internal override async Task PrepareAsync(IReadOnlyList<Candidate> candidates)
    {
        int quietPasses = 0;
        for (int pass = 0; pass < MaxPasses && quietPasses < QuietPasses; pass++)
        {
            long compiled = JitInfo.GetCompiledMethodCount();
            foreach (Candidate candidate in candidates)
            {
                TimeSpan elapsed = TimeSpan.Zero;
                for (int i = 0; i < 10 && elapsed < TimeSpan.FromMilliseconds(50); i++)
                {
                    elapsed += await RunOnceAsync(candidate);
                }
            }

            // For its background thread.
            await Task.Delay(150);
            quietPasses = JitInfo.GetCompiledMethodCount() == compiled ? quietPasses + 1 : 0;
        }
    }

    /// <summary>One sample of one candidate, warmed up.</summary>
    internal async ValueTask<Sample> TakeAsync(Candidate candidate) => await TakeAsync(candidate, await RunsForSampleAsync(candidate));

    protected override async ValueTask<Func<int, ValueTask<Sample>>> BeginAsync(Column column)
    {
        int[] runs = new int[column.Candidates.Count];
        for (int i = 0; i < runs.Length; i++)
        {
            runs[i] = await RunsForSampleAsync(column.Candidates[i]);
        }

        return index => TakeAsync(column.Candidates[index], runs[index]);
    }

    private async Task<int> RunsForSampleAsync(Candidate candidate)
    {
        // A run that is long by itself is warm after one.
        TimeSpan fastest = await RunOnceAsync(candidate);
        for (int i = 1; i < WarmUpRuns && fastest < sample; i++)
        {
            TimeSpan elapsed = await RunOnceAsync(candidate);
            fastest = elapsed < fastest ? elapsed : fastest;
        }

        return (int)Math.Clamp(Math.Ceiling(sample / fastest), 1, maxRuns);
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

        return new Sample(
            Stopwatch.GetElapsedTime(0, ticks).TotalMicroseconds / runs, cpu.TotalMicroseconds / runs, (double)allocated / runs);
    }
}
