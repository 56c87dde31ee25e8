using System.Diagnostics;

namespace FilePipelinesBenchmarks.Measuring;

/// <summary>
/// Measures candidates against the first of them round by round: every round takes a sample of each, starting with another one each time,
/// and a ratio compares only times of the same round. So what changes on the machine meanwhile changes both sides.
/// </summary>
/// <param name="minRounds">How many, at least.</param>
/// <param name="maxRounds">How many, at most.</param>
internal abstract class Measurement(int minRounds, int maxRounds)
{
    internal int MaxRounds { get; } = maxRounds;

    /// <summary>What has to be done once before the first of a grid's points.</summary>
    /// <param name="candidates">The grid's, at one of its points or on little files.</param>
    internal abstract Task PrepareAsync(IReadOnlyList<Candidate> candidates);

    /// <param name="column">What is measured; the first candidate is the baseline.</param>
    /// <param name="onSample">Called after every sample with the time since the beginning.</param>
    /// <param name="budget">
    /// No round begins that would end later than this, once the least number is done; null for the greatest number of rounds.
    /// </param>
    internal async Task<IReadOnlyList<Measured>> RunAsync(Column column, Action<TimeSpan>? onSample = null, TimeSpan? budget = null)
    {
        long start = Stopwatch.GetTimestamp();
        IReadOnlyList<Candidate> candidates = column.Candidates;
        Func<int, ValueTask<Sample>> takeAsync = await BeginAsync(column);
        List<Sample[]> samples = [];
        TimeSpan roundTime = TimeSpan.Zero;
        while (samples.Count < MaxRounds
            && (samples.Count < minRounds || budget is null || Stopwatch.GetElapsedTime(start) + roundTime < budget))
        {
            long roundStart = Stopwatch.GetTimestamp();
            Sample[] round = new Sample[candidates.Count];
            for (int i = 0; i < candidates.Count; i++)
            {
                int index = (samples.Count + i) % candidates.Count;
                round[index] = await takeAsync(index);
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

    /// <summary>Readies one point: what it returns takes a sample of the candidate of that number.</summary>
    protected abstract ValueTask<Func<int, ValueTask<Sample>>> BeginAsync(Column column);
}
