namespace FilePipelinesBenchmarks.Follow;

/// <summary>One way to follow files.</summary>
/// <param name="Way">Its name.</param>
/// <param name="Median">Milliseconds from before a line is appended until its follower has it.</param>
/// <param name="NinetyNinth">The same, 99th percentile.</param>
/// <param name="IdleCores">
/// Processors that idle files keep busy, in per cent of one, the library's and the runtime's threads included.
/// </param>
/// <param name="Threads">Threads of the process meanwhile, the runtime's included.</param>
internal sealed record FollowFigures(string Way, double Median, double NinetyNinth, double IdleCores, int Threads);
