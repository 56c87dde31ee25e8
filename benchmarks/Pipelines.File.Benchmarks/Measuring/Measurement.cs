using System.Runtime;

namespace FilePipelines.Benchmarks;

/// <summary>
/// Measures candidates against the first of them round by round: every round takes a sample of each, starting with another one each time,
/// and a ratio compares only times of the same round. So what changes on the machine meanwhile changes both sides.
/// </summary>
internal abstract class Measurement(int minRounds, int maxRounds)
{
    internal int MaxRounds { get; } = maxRounds;

    /// <summary>What has to be done once before the first of a grid's points.</summary>
    internal abstract Task PrepareAsync(IReadOnlyList<Candidate> candidates);

    /// <param name="column">What is measured; the first candidate is the baseline.</param>
    /// <param name="budget">No round begins that would end later than this, once the least number is done.</param>
    internal async Task<IReadOnlyList<Measured>> RunAsync(Column column, TimeSpan budget)
    {
        long start = Stopwatch.GetTimestamp();
        IReadOnlyList<Candidate> candidates = column.Candidates;
        Func<int, ValueTask<Sample>> takeAsync = await BeginAsync(column);
        List<Sample[]> samples = [];
        TimeSpan roundTime = TimeSpan.Zero;
        while (samples.Count < MaxRounds
            && (samples.Count < minRounds || Stopwatch.GetElapsedTime(start) + roundTime < budget))
        {
            long roundStart = Stopwatch.GetTimestamp();
            Sample[] round = new Sample[candidates.Count];
            for (int i = 0; i < candidates.Count; i++)
            {
                int index = (samples.Count + i) % candidates.Count;
                round[index] = await takeAsync(index);
            }

            samples.Add(round);
            roundTime = Stopwatch.GetElapsedTime(roundStart);
        }

        return [.. candidates.Select((candidate, index) => new Measured(
            candidate.Name,
            [.. samples.Select(round => round[index].Microseconds)],
            [.. samples.Select(round => round[0].Microseconds)],
            Spread.Of(samples.Select(round => round[index].CpuMicroseconds)).Median,
            Spread.Of(samples.Select(round => round[index].AllocatedBytes)).Median))];
    }

    /// <summary>Readies one point: what it returns takes a sample of the candidate of that number.</summary>
    protected abstract ValueTask<Func<int, ValueTask<Sample>>> BeginAsync(Column column);
}

/// <summary>Measures candidates in this process, in turns.</summary>
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
        int together = candidate.Prepare is null ? runs : 1;
        for (int done = 0; done < runs; done += together)
        {
            candidate.Prepare?.Invoke();
            long allocatedBefore = GC.GetTotalAllocatedBytes(precise: true);
            TimeSpan cpuBefore = Environment.CpuUsage.TotalTime;
            long start = Stopwatch.GetTimestamp();
            for (int i = 0; i < together; i++)
            {
                await candidate.RunAsync();
            }

            ticks += Stopwatch.GetTimestamp() - start;
            cpu += Environment.CpuUsage.TotalTime - cpuBefore;
            allocated += GC.GetTotalAllocatedBytes(precise: true) - allocatedBefore;
        }

        return new Sample(
            Stopwatch.GetElapsedTime(0, ticks).TotalMicroseconds / runs, cpu.TotalMicroseconds / runs, (double)allocated / runs);
    }
}

/// <summary>
/// Measures each candidate in a process of its own, a new one for every sample: what one leaves in the heap, in pools and in the
/// just-in-time compiler's profile is not the others'. The process is this program, with the command of <see cref="Alone"/>.
/// </summary>
internal sealed class ProcessMeasurement(string key, int minRounds, int maxRounds) : Measurement(minRounds, maxRounds)
{
    /// <summary>Starts the benchmarks' program, which the report's has beside it; what it prints is redirected.</summary>
    internal static ProcessStartInfo Program(params ReadOnlySpan<string> arguments) => ProgramIn(AppContext.BaseDirectory, arguments);

    /// <summary>The same program in another folder.</summary>
    internal static ProcessStartInfo ProgramIn(string folder, params ReadOnlySpan<string> arguments)
        => new("dotnet", [Path.Join(folder, $"{typeof(ProcessMeasurement).Assembly.GetName().Name}.dll"), .. arguments])
        {
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        };

    internal override Task PrepareAsync(IReadOnlyList<Candidate> candidates) => Task.CompletedTask;

    protected override ValueTask<Func<int, ValueTask<Sample>>> BeginAsync(Column column)
        => ValueTask.FromResult<Func<int, ValueTask<Sample>>>(index => TakeAsync(column.Name, column.Candidates[index].Name));

    private async ValueTask<Sample> TakeAsync(string point, string way)
    {
        ProcessStartInfo start = Program(Alone.Command, key, point, way);

        // Methods are compiled for good as soon as they have been called often enough, and not once nothing new was called for a while: a
        // short life is enough then.
        start.Environment["DOTNET_TC_CallCountingDelayMs"] = "0";
        using Process process = Process.Start(start)!;
        Task<string> errors = process.StandardError.ReadToEndAsync();
        string output = await process.StandardOutput.ReadToEndAsync();
        await process.WaitForExitAsync();
        double[] figures = [.. output.Split(' ', StringSplitOptions.RemoveEmptyEntries | StringSplitOptions.TrimEntries)
            .Select(field => double.TryParse(field, CultureInfo.InvariantCulture, out double figure) ? figure : double.NaN)];
        return process.ExitCode == 0 && figures is [var microseconds, var cpu, var allocated]
            ? new Sample(microseconds, cpu, allocated)
            : throw new InvalidOperationException($"The process for {way} ended with status {process.ExitCode}: {output}{await errors}");
    }
}
