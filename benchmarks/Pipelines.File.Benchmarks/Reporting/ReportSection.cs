using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Measuring;

namespace FilePipelinesBenchmarks.Reporting;

/// <summary>One grid of the report.</summary>
/// <param name="Key">In the CSV file and in picture names.</param>
/// <param name="Title">Above its table.</param>
/// <param name="Axis">What distinguishes its points.</param>
/// <param name="Weight">Its share of the time.</param>
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
}
