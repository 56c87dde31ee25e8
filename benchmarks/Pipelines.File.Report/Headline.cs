namespace FilePipelines.Benchmarks.Reporting;

/// <summary>One question of the first page, and how well the best way of each origin answers it.</summary>
/// <param name="Key">What README.md's table chooses it by.</param>
/// <param name="Unit">What the figures are.</param>
/// <param name="IsRate">More is better; else less is.</param>
/// <param name="Bars">This library's first; then by hand, of .NET and of others, as far as there are any.</param>
internal sealed record Headline(string Key, string Question, string Unit, bool IsRate, IReadOnlyList<HeadlineBar> Bars)
{
    /// <summary>It is for machines.csv, and no row of the table.</summary>
    internal bool IsAside { get; init; }

    private static readonly Origin[] s_origins = [Origin.Own, Origin.ByHand, Origin.Net, Origin.Other];

    /// <summary>The best of all the others.</summary>
    internal HeadlineBar Rival => Bars.Skip(1).MaxBy(bar => bar.Ratio)!;
    internal bool IsLost => Rival.Ratio > Figures.Visible;

    /// <summary>The figure of the best way of that origin, and a dash where there is none.</summary>
    internal string FigureOf(Origin origin) => Bars.FirstOrDefault(bar => bar.Origin == origin)?.Text ?? "–";

    /// <summary>From grids with the same ways: times against a baseline, the geometric mean of all points.</summary>
    internal static Headline OfGrids(
        string key, string question, string own, IReadOnlyList<GridResult> results, string? baseline = null)
    {
        baseline ??= results[0].Baseline;
        int points = results.Sum(result => result.Points.Count);
        return Of(key, question, $"time against {baseline}{(points == 1 ? string.Empty : $", geometric mean of {points} points")}",
            isRate: false, results, own, way =>
            {
                double[] ratios = [.. results.SelectMany(result => result.Against(way, baseline))];
                string mean = Figures.Number(Figures.GeometricMean(ratios));
                return (Figures.GeometricMean(ratios), points == 1 || way != own ? mean
                    : $"{mean} ({Figures.Number(ratios.Min())}–{Figures.Number(ratios.Max())})");
            });
    }

    /// <summary>From one point, by this library's best way.</summary>
    /// <param name="key">What README.md's table chooses it by.</param>
    /// <param name="unit">What the figures are.</param>
    /// <param name="figureOf">The figure of a way there, and how it is written.</param>
    internal static Headline OfPoint(string key, string question, string unit, GridResult result,
        Func<Measured, (double Value, string Text)> figureOf, bool isRate = false)
    {
        IReadOnlyList<Measured> rows = result.Points[^1].Rows;
        string own = rows.Where(row => Origins.IsOwn(row.Name)).MinBy(row => row.Microseconds.Median)!.Name;
        return Of(key, question, unit, isRate, [result.Last], own,
            way => figureOf(rows.Single(row => row.Name == way)));
    }

    /// <summary>The same in operations a second; where several ways are this library's, with the name of the one.</summary>
    internal static Headline OfRate(string key, string question, string unit, GridResult result)
        => OfPoint(key, question, unit, result, row => (1e6 / row.Microseconds.Median, Figures.Count(1e6 / row.Microseconds.Median)
            + (Origins.IsOwn(row.Name) && result.Methods.Count(Origins.IsOwn) > 1 ? $" ({row.Name})" : string.Empty)), isRate: true);

    /// <summary>The same in milliseconds, with the CPU time of all cores.</summary>
    internal static Headline OfMilliseconds(string key, string question, GridResult result)
        => OfPoint(key, question, "ms (CPU of all cores)", result, row => (row.Microseconds.Median / 1000,
            $"{Figures.Number(row.Microseconds.Median / 1000)} ({Figures.Number(row.CpuMicroseconds / 1000)})"));

    // Which way is the best, and by how much, is told by the ratios of rounds.
    private static Headline Of(string key, string question, string unit, bool isRate, IReadOnlyList<GridResult> results, string own,
        Func<string, (double Value, string Text)> figureOf)
        => new(key, question, unit, isRate,
        [
            .. s_origins.Select(origin => results[0].Methods
                    .Where(way => origin == Origin.Own ? way == own : Origins.Of(way) == origin)
                    .Select(way => new HeadlineBar(origin, way, figureOf(way).Value, figureOf(way).Text,
                        Figures.GeometricMean(results.SelectMany(result => result.Against(own, way)))))
                    .MaxBy(bar => bar.Ratio))
                .OfType<HeadlineBar>(),
        ]);
}

/// <summary>The best way of one origin, in one headline.</summary>
/// <param name="Text">The figure as it is shown.</param>
/// <param name="Ratio">The time of this library against it, of the same rounds.</param>
internal sealed record HeadlineBar(Origin Origin, string Way, double Value, string Text, double Ratio);
