namespace FilePipelinesBenchmarks.Measuring;

/// <summary>What one candidate took in one round: for one run, on average.</summary>
internal readonly record struct Sample(double Microseconds, double CpuMicroseconds, double AllocatedBytes);
