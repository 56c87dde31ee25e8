using System.Globalization;

namespace FilePipelinesBenchmarks.Published;

/// <summary>A figure of the 2019 report: what a method took, against a synchronous FileStream at the same point of the grid.</summary>
internal sealed record PublishedRatio(string Method, int BufferSize, bool IsAsynchronous, int MiB, double Ratio)
{
    /// <summary>All of them, from the data file beside this one.</summary>
    internal static IReadOnlyList<PublishedRatio> ReadGrid2019 { get; } =
    [
        .. PublishedTable.Load("read-grid-2019.csv").Select(fields => new PublishedRatio(
            fields[0],
            int.Parse(fields[1], CultureInfo.InvariantCulture),
            bool.Parse(fields[2]),
            int.Parse(fields[3], CultureInfo.InvariantCulture),
            double.Parse(fields[4], CultureInfo.InvariantCulture))),
    ];
}
