using System.Diagnostics;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Measuring;

namespace FilePipelinesBenchmarks.Reporting;

/// <summary>One grid of the report.</summary>
/// <param name="Key">In the CSV file and in picture names.</param>
/// <param name="Title">Above its table.</param>
/// <param name="Axis">What distinguishes its points.</param>
/// <param name="Weight">Its share of the report's time.</param>
/// <param name="Measurement">How it is measured.</param>
/// <param name="Reason">Why this library loses here, where it does.</param>
/// <param name="MakeColumns">Makes its files in a folder, and its points.</param>
internal sealed record ReportSection(
    string Key,
    string Title,
    string Axis,
    double Weight,
    Measurement Measurement,
    string Reason,
    Func<TemporaryFolder, IReadOnlyList<Column>> MakeColumns)
{
    /// <summary>How many operations one run does, where its figures are given for one of them.</summary>
    internal int Operations { get; init; } = 1;

    /// <summary>
    /// The same candidates on little files, for the just-in-time compiler: a loop over a large file is one call, begins in slow code, is
    /// replaced while it runs (OSR), and is never as fast as one that is called again. Without it the last point's candidates do.
    /// </summary>
    internal Func<TemporaryFolder, IReadOnlyList<Candidate>>? MakeWarmUp { get; init; }

    /// <summary>Its candidates are one way with several settings each: only the best of each way tells anything.</summary>
    internal bool HasManySettings { get; init; }

    /// <summary>Its ways were compiled for a section before it.</summary>
    internal bool IsWarm { get; init; }

    /// <summary>Measures all points.</summary>
    internal async Task<SectionResult> MeasureAsync(Allowance allowance)
    {
        long start = Stopwatch.GetTimestamp();
        using TemporaryFolder folder = new();
        if (MakeWarmUp is not null)
        {
            using TemporaryFolder little = new();
            await Measurement.PrepareAsync(MakeWarmUp(little));
        }

        IReadOnlyList<Column> columns = MakeColumns(folder);
        if (MakeWarmUp is null && !IsWarm)
        {
            await Measurement.PrepareAsync(columns[^1].Candidates);
        }

        List<(string Point, IReadOnlyList<Measured> Rows)> points = [];
        foreach (Column column in columns)
        {
            // What one point leaves over is the next ones'.
            TimeSpan share = (allowance.Time - Stopwatch.GetElapsedTime(start)) / (columns.Count - points.Count);
            int finished = points.Count;
            points.Add((column.Name, await Measurement.RunAsync(
                column, elapsed => allowance.OnShare((finished + Math.Clamp(elapsed / share, 0, 1)) / columns.Count), share)));
        }

        return new SectionResult(this, points);
    }
}
