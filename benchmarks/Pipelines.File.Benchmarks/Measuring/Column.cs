namespace FilePipelinesBenchmarks.Measuring;

/// <summary>One point of a grid: what is measured against each other there. The first candidate is the baseline.</summary>
internal sealed record Column(string Name, IReadOnlyList<Candidate> Candidates);
