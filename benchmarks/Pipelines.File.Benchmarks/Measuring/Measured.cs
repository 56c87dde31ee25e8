namespace FilePipelinesBenchmarks.Measuring;

/// <summary>What came of one candidate at one point.</summary>
/// <param name="Name">The candidate's.</param>
/// <param name="Rounds">How many times it was sampled.</param>
/// <param name="Microseconds">For one run.</param>
/// <param name="Ratio">To the baseline's time in the same round.</param>
/// <param name="CpuMicroseconds">Of all cores together, for one run; the median.</param>
/// <param name="AllocatedBytes">By the whole process, for one run; the median.</param>
internal sealed record Measured(string Name, int Rounds, Spread Microseconds, Spread Ratio, double CpuMicroseconds, double AllocatedBytes);
