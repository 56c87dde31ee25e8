using FilePipelinesBenchmarks.Measuring;

namespace FilePipelinesBenchmarks.Charts;

/// <summary>One line of a chart.</summary>
/// <param name="Name">At its end.</param>
/// <param name="Points">From left to right; the first of each pair is the place on the axis.</param>
/// <param name="IsFaint">Behind the others and without its spread: somebody else's figures.</param>
internal sealed record LineSeries(string Name, IReadOnlyList<(double X, Spread Y)> Points, bool IsFaint = false);
