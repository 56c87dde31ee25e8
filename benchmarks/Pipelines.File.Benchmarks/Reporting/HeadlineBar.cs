using FilePipelinesBenchmarks.Measuring;

namespace FilePipelinesBenchmarks.Reporting;

/// <summary>The best way of one origin, in one headline.</summary>
/// <param name="Origin">Whose it is.</param>
/// <param name="Way">Its name.</param>
/// <param name="Value">The figure, in the headline's unit.</param>
/// <param name="Text">The figure as it is shown.</param>
internal sealed record HeadlineBar(Origin Origin, string Way, double Value, string Text);
