namespace FilePipelinesBenchmarks.Charts;

/// <summary>Bars that are compared with each other.</summary>
/// <param name="Title">Above them; empty for none.</param>
/// <param name="Bars">From top to bottom: what it is, how long, and what is written at its end.</param>
internal sealed record BarGroup(string Title, IReadOnlyList<(string Name, double Value, string Text)> Bars);
