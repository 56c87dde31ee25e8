using FilePipelinesBenchmarks.Measuring;

namespace FilePipelinesBenchmarks.Reporting;

/// <summary>What came of a section: for every point, its candidates in the same order.</summary>
internal sealed record SectionResult(ReportSection Section, IReadOnlyList<(string Point, IReadOnlyList<Measured> Rows)> Points)
{
    internal IReadOnlyList<string> Methods { get; } = [.. Points[0].Rows.Select(row => row.Name)];

    internal string Baseline => Methods[0];

    /// <summary>One method at every point.</summary>
    internal IReadOnlyList<Measured> Of(string method) => [.. Points.Select(point => point.Rows.Single(row => row.Name == method))];

    /// <summary>The points where the fastest way of somebody else takes visibly less time, with quartiles that do not overlap.</summary>
    internal IEnumerable<(string Point, string Rival, double Ratio)> LossesOf(string own)
    {
        foreach ((string point, IReadOnlyList<Measured> rows) in Points)
        {
            Spread ratio = rows.Single(row => row.Name == own).Ratio;
            Measured rival = rows.Where(row => Origins.IsRival(row.Name)).MinBy(row => row.Ratio.Median)!;
            if (ratio.Median > Figures.Visible * rival.Ratio.Median && ratio.LowerQuartile > rival.Ratio.UpperQuartile)
            {
                yield return (point, rival.Name, ratio.Median / rival.Ratio.Median);
            }
        }
    }
}
