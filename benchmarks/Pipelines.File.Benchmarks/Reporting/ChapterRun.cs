namespace FilePipelinesBenchmarks.Reporting;

/// <summary>How the measurement of a chapter went.</summary>
/// <param name="Chapter">The chapter.</param>
/// <param name="Duration">How long it took.</param>
/// <param name="OthersUse">The share of all processors that others have used meanwhile, 0 to 1.</param>
/// <param name="Error">Why it failed; <see langword="null"/> where it did not.</param>
internal sealed record ChapterRun(ReportChapter Chapter, TimeSpan Duration, double OthersUse, string? Error);
