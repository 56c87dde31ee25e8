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
/// <param name="Rounds">How many times it was sampled.</param>
/// <param name="Microseconds">For one run.</param>
/// <param name="Ratio">To the baseline's time in the same round.</param>
/// <param name="CpuMicroseconds">Of all cores together, for one run; the median.</param>
/// <param name="AllocatedBytes">By the whole process, for one run; the median.</param>
/// <param name="Times">Microseconds for one run, in each round.</param>
internal sealed record Measured(string Name, int Rounds, Spread Microseconds, Spread Ratio, double CpuMicroseconds, double AllocatedBytes,
    IReadOnlyList<double> Times)
{
    /// <summary>Its time against another one's of the same round.</summary>
    internal Spread Against(Measured other) => Spread.Of(Times.Zip(other.Times, static (own, others) => own / others));
}

/// <summary>What came of many callers that work at once, by one way.</summary>
/// <param name="Way">Its name.</param>
/// <param name="AtOnce">How many callers.</param>
/// <param name="PerSecond">Operations a second, of the rounds.</param>
/// <param name="Ratio">To the baseline's of the same round.</param>
/// <param name="Median">Microseconds of one operation.</param>
/// <param name="NinetyNinth">Microseconds: one of a hundred took longer.</param>
internal sealed record Load(string Way, int AtOnce, Spread PerSecond, Spread Ratio, double Median, double NinetyNinth);
