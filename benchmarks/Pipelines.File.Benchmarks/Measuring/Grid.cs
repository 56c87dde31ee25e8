namespace FilePipelines.Benchmarks;

/// <summary>Points at which the same ways are measured against each other.</summary>
/// <param name="Reason">Why this library loses here, where it does.</param>
/// <param name="MakeColumns">Makes its files in a folder, and its points.</param>
internal sealed record Grid(
    string Key, string Title, string Axis, double Weight, Measurement Measurement, string Reason,
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

    /// <summary>Its ways were compiled for a grid before it.</summary>
    internal bool IsWarm { get; init; }

    /// <summary>Every grid: those of the report, and those that only the pairs measure.</summary>
    internal static IEnumerable<Grid> All(Scale scale) =>
    [
        .. Reading.BestSettings(scale), .. Writing.BestSettings(scale), .. Reading.Of2019(scale), Reading.Mapping(scale),
        .. Writing.Pieces(scale), Writing.Flushes(scale), Writing.Durable(scale), Replacing.Grid(scale), .. Lines.Parsers(scale),
        .. Lines.ByLength(scale), Lines.WithTwo(scale), Counting.Counts(scale), Counting.Searches(scale), Records.Grid(scale),
        Copying.Grid(scale), Trees.Grid(scale), Writing.Compress(scale), SmallFiles.Grid(scale), Reading.Cold(scale),
        .. Memory.Grids(scale),
    ];

    /// <summary>Measures all points, within about so much time; the least numbers of rounds are measured all the same.</summary>
    internal async Task<GridResult> MeasureAsync(TimeSpan time)
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
            TimeSpan share = (time - Stopwatch.GetElapsedTime(start)) / (columns.Count - points.Count);
            points.Add((column.Name, await Measurement.RunAsync(column, share)));
        }

        return new GridResult(this, points);
    }
}

/// <summary>What came of a grid: for every point, its candidates in the same order.</summary>
internal sealed record GridResult(Grid Grid, IReadOnlyList<(string Point, IReadOnlyList<Measured> Rows)> Points)
{
    internal IReadOnlyList<string> Methods { get; } = [.. Points[0].Rows.Select(row => row.Name)];
    internal string Baseline => Methods[0];

    /// <summary>What was measured otherwise than as a grid.</summary>
    internal static GridResult Of(string key, IEnumerable<(string Point, IReadOnlyList<Measured> Rows)> points, string reason = "")
        => new(new Grid(key, key, string.Empty, 0, null!, reason, static _ => []), [.. points]);

    /// <summary>Ways that many callers use at once.</summary>
    internal static GridResult OfLoads(string key, string callers, IEnumerable<Load> loads, string reason = "")
        => Of(key, loads.GroupBy(load => load.AtOnce).Select(point => ($"{point.Key} {callers}",
            (IReadOnlyList<Measured>)[.. point.Select(load => load.ToMeasured(point.First()))])), reason);

    /// <summary>One method at every point.</summary>
    internal IReadOnlyList<Measured> Of(string method) => [.. Points.Select(point => point.Rows.Single(row => row.Name == method))];

    /// <summary>One way's time against another's of the same round, at every point.</summary>
    internal IEnumerable<double> Against(string way, string other)
        => Of(way).Zip(Of(other), static (one, two) => one.Against(two).Median);

    /// <summary>The last of its points alone.</summary>
    internal GridResult Last => new(Grid, [Points[^1]]);

    /// <summary>The points where the fastest way of somebody else takes visibly less time, in three of four rounds at least.</summary>
    internal IEnumerable<(string Point, string Rival, double Ratio)> LossesOf(string own)
    {
        foreach ((string point, IReadOnlyList<Measured> rows) in Points)
        {
            Measured mine = rows.Single(row => row.Name == own);
            Measured rival = rows.Where(row => Origins.IsRival(row.Name)).MaxBy(row => mine.Against(row).Median)!;
            Spread ratio = mine.Against(rival);
            if (ratio.Median > Figures.Visible && ratio.LowerQuartile > 1)
            {
                yield return (point, rival.Name, ratio.Median);
            }
        }
    }
}
