namespace FilePipelinesBenchmarks.Reporting;

/// <summary>How long unrelated work items waited for the thread pool while a way to read at random was at work.</summary>
/// <param name="Name">The way's.</param>
/// <param name="Samples">How many work items there were.</param>
/// <param name="Median">Milliseconds.</param>
/// <param name="NinetyNinth">Milliseconds: one of a hundred waited longer.</param>
/// <param name="Longest">Milliseconds.</param>
internal sealed record WorkItemDelay(string Name, int Samples, double Median, double NinetyNinth, double Longest);
