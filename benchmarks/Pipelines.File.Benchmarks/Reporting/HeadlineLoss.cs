namespace FilePipelinesBenchmarks.Reporting;

/// <summary>A point where another way is faster.</summary>
/// <param name="Point">Which one.</param>
/// <param name="Rival">The fastest other way there.</param>
/// <param name="Ratio">The time of this library against that way's.</param>
internal sealed record HeadlineLoss(string Point, string Rival, double Ratio);
