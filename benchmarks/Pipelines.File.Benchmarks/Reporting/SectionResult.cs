using FilePipelinesBenchmarks.Measuring;

namespace FilePipelinesBenchmarks.Reporting;

/// <summary>What came of a section: for every point, its candidates in the same order.</summary>
internal sealed record SectionResult(ReportSection Section, IReadOnlyList<(string Point, IReadOnlyList<Measured> Rows)> Points)
{
    internal IReadOnlyList<string> Methods { get; } = [.. Points[0].Rows.Select(row => row.Name)];

    internal string Baseline => Methods[0];

    /// <summary>One method at every point.</summary>
    internal IReadOnlyList<Measured> Of(string method) => [.. Points.Select(point => point.Rows.Single(row => row.Name == method))];
}
