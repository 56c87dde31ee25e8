namespace FilePipelines.Benchmarks.Reporting;

/// <summary>One question of the first page, and how well the best way of each origin answers it.</summary>
/// <param name="Key">The file name of its picture.</param>
/// <param name="Question">What somebody wants done.</param>
/// <param name="Unit">What the figures are.</param>
/// <param name="IsRate">More is better; else less is.</param>
/// <param name="Bars">This library's first; then by hand, of .NET and of others, as far as there are any.</param>
/// <param name="Losses">Where another way is faster.</param>
internal sealed record Headline(
    string Key, string Question, string Unit, bool IsRate, IReadOnlyList<HeadlineBar> Bars, IReadOnlyList<HeadlineLoss> Losses)
{
    /// <summary>It is for machines.csv, and no row of the table.</summary>
    internal bool IsAside { get; init; }

    private static readonly Origin[] s_origins = [Origin.Own, Origin.ByHand, Origin.Net, Origin.Other];

    /// <summary>The best of all the others.</summary>
    internal HeadlineBar Rival => Bars.Skip(1).MaxBy(RatioTo)!;

    /// <summary>The time of this library against the best of all the others: less than 1 is faster.</summary>
    internal double Ratio => RatioTo(Rival);

    /// <summary>Whether the best of the others is visibly faster.</summary>
    internal bool IsLost => Ratio > Figures.Visible;

    /// <summary>From grids with one baseline: figures are geometric means of the times against it.</summary>
    /// <param name="key">The file name of the picture.</param>
    /// <param name="question">What is measured.</param>
    /// <param name="own">This library's way.</param>
    /// <param name="results">The grids, all with the same ways.</param>
    /// <param name="baseline">What the times are given against; the grids' own baseline where it is not said.</param>
    internal static Headline OfGrids(
        string key, string question, string own, IReadOnlyList<GridResult> results, string? baseline = null)
    {
        (string Way, double[] Ratios)[] ways = [.. results[0].Methods.Select(way => (way, Against(way, baseline ?? results[0].Baseline)))];
        int points = ways[0].Ratios.Length;
        return new Headline(
            key,
            question,
            points == 1 ? $"time against {baseline ?? results[0].Baseline}"
                : $"time against {baseline ?? results[0].Baseline}, geometric mean of {points} points",
            IsRate: false,
            [
                .. s_origins.Select(origin => ways
                        .Where(way => origin == Origin.Own ? way.Way == own : Origins.Of(way.Way) == origin)
                        .Select(way => new HeadlineBar(origin, way.Way, Figures.GeometricMean(way.Ratios), TextOf(way.Ratios, origin))
                        {
                            // By the rule of rounds, as every ratio of the report.
                            Ratio = Figures.GeometricMean(Against(own, way.Way)),
                        })
                        .MaxBy(bar => bar.Ratio))
                    .OfType<HeadlineBar>(),
            ],
            [.. results.SelectMany(result =>
                result.LossesOf(own).Select(loss => new HeadlineLoss($"{result.Grid.Title}, {loss.Point}", loss.Rival, loss.Ratio)))]);

        double[] Against(string way, string other)
            => [.. results.SelectMany(result => result.Of(way).Zip(result.Of(other), static (one, two) => one.Against(two).Median))];

        static string TextOf(double[] ratios, Origin origin)
            => ratios.Length > 1 && origin == Origin.Own
                ? $"{Figures.Number(Figures.GeometricMean(ratios))} ({Figures.Number(ratios.Min())}–{Figures.Number(ratios.Max())})"
                : Figures.Number(Figures.GeometricMean(ratios));
    }

    /// <summary>From a grid of one point, in milliseconds with the CPU time of all cores; the ways may have several settings.</summary>
    /// <param name="key">The file name of the picture.</param>
    /// <param name="question">What is measured.</param>
    /// <param name="result">The grid.</param>
    internal static Headline OfMilliseconds(string key, string question, GridResult result)
    {
        IReadOnlyList<Measured> rows = result.Points[0].Rows;
        Measured own = rows.Where(row => Origins.IsOwn(row.Name)).MinBy(row => row.Microseconds.Median)!;
        Headline headline = new(
            key,
            question,
            "ms (CPU of all cores)",
            IsRate: false,
            [
                .. s_origins.Select(origin => rows.Where(row => origin == Origin.Own ? row == own : Origins.Of(row.Name) == origin)
                        .MaxBy(row => own.Against(row).Median))
                    .OfType<Measured>()
                    .Select(row => new HeadlineBar(Origins.Of(row.Name), row.Name, row.Microseconds.Median / 1000,
                        $"{Figures.Number(row.Microseconds.Median / 1000)} ({Figures.Number(row.CpuMicroseconds / 1000)})")
                    {
                        Ratio = own.Against(row).Median,
                    }),
            ],
            []);
        return headline.IsLost ? headline with { Losses = [new HeadlineLoss(question, headline.Rival.Way, headline.Ratio)] } : headline;
    }

    /// <summary>From times of one point, of which less is better.</summary>
    /// <param name="key">The file name of the picture.</param>
    /// <param name="question">What is measured.</param>
    /// <param name="unit">What the times are in.</param>
    /// <param name="point">What a loss is called.</param>
    /// <param name="times">The ways and their times.</param>
    internal static Headline OfTimes(string key, string question, string unit, string point, IReadOnlyList<(string Way, double Time)> times)
    {
        (string Way, double Time)[] best = [.. s_origins.Select(origin => times.Where(time => Origins.Of(time.Way) == origin)
            .OrderBy(time => time.Time).FirstOrDefault()).Where(time => time.Way is not null)];
        (string Way, double Time) rival = times.Where(time => Origins.IsRival(time.Way)).MinBy(time => time.Time);
        return new Headline(
            key,
            question,
            unit,
            IsRate: false,
            [.. best.Select(time => new HeadlineBar(Origins.Of(time.Way), time.Way, time.Time, Figures.Number(time.Time)))],
            best[0].Time > Figures.Visible * rival.Time ? [new HeadlineLoss(point, rival.Way, best[0].Time / rival.Time)] : []);
    }

    /// <summary>From operations a second, of which more is better.</summary>
    /// <param name="key">The file name of the picture.</param>
    /// <param name="question">What is measured.</param>
    /// <param name="unit">What is counted, each second.</param>
    /// <param name="points">
    /// What distinguishes the points, and the ways at each with operations a second. The figures are those of the last point.
    /// </param>
    internal static Headline OfRates(
        string key, string question, string unit, IReadOnlyList<(string Point, IReadOnlyList<(string Way, double PerSecond)> Ways)> points)
        => new(
            key,
            question,
            unit,
            IsRate: true,
            [
                .. s_origins.Select(origin => points[^1].Ways
                        .Where(way => Origins.Of(way.Way) == origin)
                        .OrderByDescending(way => way.PerSecond)
                        .Select(way => new HeadlineBar(origin, way.Way, way.PerSecond, Figures.Count(way.PerSecond)))
                        .FirstOrDefault())
                    .OfType<HeadlineBar>(),
            ],
            [
                .. points
                    .Select(point => (
                        point.Point,
                        Own: point.Ways.Where(way => Origins.IsOwn(way.Way)).Max(way => way.PerSecond),
                        Rival: point.Ways.Where(way => Origins.IsRival(way.Way)).MaxBy(way => way.PerSecond)))
                    .Where(point => point.Rival.PerSecond > Figures.Visible * point.Own)
                    .Select(point => new HeadlineLoss($"{question}, {point.Point}", point.Rival.Way, point.Rival.PerSecond / point.Own)),
            ]);

    private double RatioTo(HeadlineBar bar) => bar.Ratio ?? (IsRate ? bar.Value / Bars[0].Value : Bars[0].Value / bar.Value);

    /// <summary>The figure of the best way of that origin, and a dash where there is none.</summary>
    internal string FigureOf(Origin origin) => Bars.FirstOrDefault(bar => bar.Origin == origin)?.Text ?? "–";
}

/// <summary>The best way of one origin, in one headline.</summary>
/// <param name="Origin">Whose it is.</param>
/// <param name="Way">Its name.</param>
/// <param name="Value">The figure, in the headline's unit.</param>
/// <param name="Text">The figure as it is shown.</param>
internal sealed record HeadlineBar(Origin Origin, string Way, double Value, string Text)
{
    /// <summary>The time of this library against it, of the same rounds; <see langword="null"/>: of the values.</summary>
    internal double? Ratio { get; init; }
}

/// <summary>A point where another way is faster.</summary>
/// <param name="Point">Which one.</param>
/// <param name="Rival">The fastest other way there.</param>
/// <param name="Ratio">The time of this library against that way's.</param>
internal sealed record HeadlineLoss(string Point, string Rival, double Ratio);
