using FilePipelinesBenchmarks.Measuring;

namespace FilePipelinesBenchmarks.Durable;

/// <summary>What came of one way with one number of producers.</summary>
/// <param name="Name">The way's.</param>
/// <param name="File">What its file was like.</param>
/// <param name="Producers">How many committed at once.</param>
/// <param name="PerSecond">Commits a second, of the rounds.</param>
/// <param name="Ratio">To those of <see cref="GroupCommitByHand"/> with such a file and as many producers, in the same round.</param>
/// <param name="Median">Microseconds that a commit took.</param>
/// <param name="NinetyNinth">Microseconds: one of a hundred took longer.</param>
internal sealed record CommitFigures(
    string Name, CommitFile File, int Producers, Spread PerSecond, Spread Ratio, double Median, double NinetyNinth);
