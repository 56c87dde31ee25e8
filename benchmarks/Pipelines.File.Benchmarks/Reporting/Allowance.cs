namespace FilePipelinesBenchmarks.Reporting;

/// <summary>What a chapter may spend.</summary>
/// <param name="Time">How long it should take; the least numbers of rounds are measured all the same.</param>
/// <param name="OnShare">To be told how much of it is done, 0 to 1.</param>
internal sealed record Allowance(TimeSpan Time, Action<double> OnShare);
