using System.Globalization;

namespace FilePipelines.Benchmarks.Reporting;

/// <summary>Reads the data files of published figures: comments, a heading, and rows without quotes.</summary>
internal static class PublishedTable
{
    internal static IEnumerable<string[]> Load(string name)
    {
        using StreamReader reader = new(typeof(PublishedTable).Assembly.GetManifestResourceStream(name)!);
        bool isAfterHeading = false;
        while (reader.ReadLine() is { } line)
        {
            if (line.StartsWith('#'))
            {
                continue;
            }

            if (isAfterHeading)
            {
                yield return line.Split(',');
            }

            isAfterHeading = true;
        }
    }
}

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
