namespace FilePipelines.Benchmarks;

/// <summary>One way to do something, which is measured against others at the same points.</summary>
/// <param name="Name">What it is called in tables.</param>
/// <param name="RunAsync">Does it once at a point, and checks its own answer.</param>
/// <param name="Prepare">What has to be done before each run and is not measured, such as emptying the page cache.</param>
internal sealed record Way<TPoint>(string Name, Func<TPoint, ValueTask<long>> RunAsync, Action<TPoint>? Prepare = null)
{
    /// <summary>This way at one point, ready to be measured.</summary>
    /// <param name="point">Where.</param>
    /// <param name="setting">What is added to the name where one way is measured with several settings.</param>
    internal Candidate At(TPoint point, string? setting = null)
        => new(setting is null ? Name : $"{Name}, {setting}", () => RunAsync(point), Prepare is null ? null : () => Prepare(point));
}

/// <summary>A <see cref="Way{TPoint}"/> at one point, or what has no points.</summary>
/// <param name="Name">What it is called in tables.</param>
/// <param name="RunAsync">Does it once, and checks its own answer.</param>
/// <param name="Prepare">What has to be done before each run and is not measured.</param>
internal sealed record Candidate(string Name, Func<ValueTask<long>> RunAsync, Action? Prepare = null);

/// <summary>One point of a grid: what is measured against each other there. The first candidate is the baseline.</summary>
internal sealed record Column(string Name, IReadOnlyList<Candidate> Candidates)
{
    /// <summary>All ways at one point.</summary>
    internal static Column Of<TPoint>(string name, IEnumerable<Way<TPoint>> ways, TPoint point)
        => new(name, [.. ways.Select(way => way.At(point))]);
}

/// <summary>What one candidate took in one round: for one run, on average.</summary>
internal readonly record struct Sample(double Microseconds, double CpuMicroseconds, double AllocatedBytes);

/// <summary>What came of one candidate at one point.</summary>
/// <param name="Name">The candidate's.</param>
/// <param name="Times">Microseconds for one run, in each round.</param>
/// <param name="BaselineTimes">The baseline's, in the same rounds.</param>
/// <param name="CpuMicroseconds">Of all cores together, for one run; the median.</param>
/// <param name="AllocatedBytes">By the whole process, for one run; the median.</param>
internal sealed record Measured(
    string Name, IReadOnlyList<double> Times, IReadOnlyList<double> BaselineTimes, double CpuMicroseconds, double AllocatedBytes)
{
    internal Spread Microseconds { get; } = Spread.Of(Times);
    internal Spread Ratio { get; } = Spread.Of(Times.Zip(BaselineTimes, static (own, others) => own / others));

    /// <summary>Its time against another one's of the same round.</summary>
    internal Spread Against(Measured other) => Spread.Of(Times.Zip(other.Times, static (own, others) => own / others));
}
