namespace FilePipelines.Benchmarks.Reporting;

/// <summary>A figure of FastStream's readme: what building doubles in memory took, for one stream.</summary>
internal sealed record PublishedBuild(string Way, int Doubles, double Microseconds, double AllocatedBytes)
{
    internal static IReadOnlyList<PublishedBuild> FastStream2019 { get; } = [.. Published.Load("faststream-2019.csv").Select(static fields
        => new PublishedBuild(fields[0], Published.Int(fields[1]), Published.Number(fields[2]) / 10, Published.Number(fields[3]) * 102.4))];
}

/// <summary>A figure of the 2019 report: what a method took, against a synchronous FileStream at the same point of the grid.</summary>
internal sealed record PublishedRatio(string Method, int BufferSize, int MiB, double Ratio)
{
    /// <summary>Those that were not asynchronous.</summary>
    internal static IReadOnlyList<PublishedRatio> ReadGrid2019 { get; } = [.. Published.Load("read-grid-2019.csv")
        .Where(static fields => fields[2] == "false").Select(static fields => new PublishedRatio(
            fields[0], Published.Int(fields[1]), Published.Int(fields[3]), Published.Number(fields[4])))];
}

/// <summary>Reads the data files of published figures: comments, a heading, and rows without quotes.</summary>
internal static class Published
{
    internal static IEnumerable<string[]> Load(string name)
    {
        using StreamReader reader = new(typeof(Published).Assembly.GetManifestResourceStream(name)!);
        return [.. reader.ReadToEnd().Split('\n', StringSplitOptions.RemoveEmptyEntries).Where(static line => !line.StartsWith('#'))
            .Skip(1).Select(static line => line.Split(','))];
    }

    internal static int Int(string field) => int.Parse(field, CultureInfo.InvariantCulture);
    internal static double Number(string field) => double.Parse(field, CultureInfo.InvariantCulture);
}
