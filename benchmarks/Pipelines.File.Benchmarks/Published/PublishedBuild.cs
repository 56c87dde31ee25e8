using System.Globalization;

namespace FilePipelinesBenchmarks.Published;

/// <summary>A figure of FastStream's readme: what building doubles in memory took.</summary>
/// <param name="Way">How.</param>
/// <param name="Doubles">How many in a stream.</param>
/// <param name="Microseconds">For one stream.</param>
/// <param name="AllocatedBytes">For one stream.</param>
internal sealed record PublishedBuild(string Way, int Doubles, double Microseconds, double AllocatedBytes)
{
    private const int Streams = 10;

    /// <summary>All of them, from the data file beside this one.</summary>
    internal static IReadOnlyList<PublishedBuild> FastStream2019 { get; } =
    [
        .. PublishedTable.Load("faststream-2019.csv").Select(fields => new PublishedBuild(
            fields[0],
            int.Parse(fields[1], CultureInfo.InvariantCulture),
            double.Parse(fields[2], CultureInfo.InvariantCulture) / Streams,
            double.Parse(fields[3], CultureInfo.InvariantCulture) * 1024 / Streams)),
    ];
}
