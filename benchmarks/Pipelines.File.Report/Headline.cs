namespace FilePipelines.Benchmarks.Reporting;

/// <summary>One question of the first page, and how well the best way of each origin answers it.</summary>
/// <param name="Key">The file name of its picture.</param>
/// <param name="Question">What somebody wants done.</param>
/// <param name="Unit">What the figures are.</param>
/// <param name="IsRate">More is better; else less is.</param>
/// <param name="Bars">This library's first; then by hand, of .NET and of others, as far as there are any.</param>
/// <param name="Points">How many points were compared.</param>
/// <param name="Losses">Where another way is faster.</param>
internal sealed record Headline(
    string Key, string Question, string Unit, bool IsRate, IReadOnlyList<HeadlineBar> Bars, int Points, IReadOnlyList<HeadlineLoss> Losses)
{
    /// <summary>It explains another one, and is no question of its own: a picture, and no row of the table.</summary>
    internal bool IsAside { get; init; }

    private static readonly Origin[] s_origins = [Origin.Own, Origin.ByHand, Origin.Net, Origin.Other];

    /// <summary>The best of all the others.</summary>
    internal HeadlineBar Rival => IsRate ? Bars.Skip(1).MaxBy(bar => bar.Value)! : Bars.Skip(1).MinBy(bar => bar.Value)!;

    /// <summary>The time of this library against the best of all the others: less than 1 is faster.</summary>
    internal double Ratio => IsRate ? Rival.Value / Bars[0].Value : Bars[0].Value / Rival.Value;

    /// <summary>Whether the best of the others is visibly faster.</summary>
    internal bool IsLost => Ratio > Figures.Visible;

    /// <summary>From grids with one baseline: figures are geometric means of the times against it.</summary>
    /// <param name="key">The file name of the picture.</param>
    /// <param name="question">What is measured.</param>
    /// <param name="own">This library's way.</param>
    /// <param name="results">The grids, all with the same ways.</param>
    internal static Headline OfGrids(string key, string question, string own, IReadOnlyList<GridResult> results)
    {
        (string Way, double Mean)[] means =
        [
            .. results[0].Methods.Select(way =>
                (way, Figures.GeometricMean(results.SelectMany(result => result.Of(way)).Select(measured => measured.Ratio.Median)))),
        ];
        int points = results.Sum(result => result.Points.Count);
        return new Headline(
            key,
            question,
            points == 1 ? $"time against {results[0].Baseline}" : $"time against {results[0].Baseline}, geometric mean of {points} points",
            IsRate: false,
            [
                .. s_origins.Select(origin => means
                        .Where(mean => origin == Origin.Own ? mean.Way == own : Origins.Of(mean.Way) == origin)
                        .OrderBy(mean => mean.Mean)
                        .Select(mean => new HeadlineBar(origin, mean.Way, mean.Mean, Figures.Number(mean.Mean)))
                        .FirstOrDefault())
                    .OfType<HeadlineBar>(),
            ],
            points,
            [.. results.SelectMany(result =>
                result.LossesOf(own).Select(loss => new HeadlineLoss($"{result.Grid.Title}, {loss.Point}", loss.Rival, loss.Ratio)))]);
    }

    /// <summary>From times of one point, of which less is better.</summary>
    /// <param name="key">The file name of the picture.</param>
    /// <param name="question">What is measured.</param>
    /// <param name="unit">What the times are in.</param>
    /// <param name="point">What a loss is called.</param>
    /// <param name="times">The ways and their times, and the CPU time of all cores where that is shown.</param>
    internal static Headline OfTimes(
        string key, string question, string unit, string point, IReadOnlyList<(string Way, double Time, double? Cpu)> times)
    {
        (string Way, double Time, double? Cpu)[] best = [.. s_origins.Select(origin => times.Where(time => Origins.Of(time.Way) == origin)
            .OrderBy(time => time.Time).FirstOrDefault()).Where(time => time.Way is not null)];
        (string Way, double Time, double? Cpu) rival = times.Where(time => Origins.IsRival(time.Way)).MinBy(time => time.Time);
        return new Headline(
            key,
            question,
            unit,
            IsRate: false,
            [.. best.Select(time => new HeadlineBar(Origins.Of(time.Way), time.Way, time.Time,
                time.Cpu is { } cpu ? $"{Figures.Number(time.Time)} ({Figures.Number(cpu)})" : Figures.Number(time.Time)))],
            Points: 1,
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
            points.Count,
            [
                .. points
                    .Select(point => (
                        point.Point,
                        Own: point.Ways.Where(way => Origins.IsOwn(way.Way)).Max(way => way.PerSecond),
                        Rival: point.Ways.Where(way => Origins.IsRival(way.Way)).MaxBy(way => way.PerSecond)))
                    .Where(point => point.Rival.PerSecond > Figures.Visible * point.Own)
                    .Select(point => new HeadlineLoss($"{question}, {point.Point}", point.Rival.Way, point.Rival.PerSecond / point.Own)),
            ]);

    /// <summary>The figure of the best way of that origin, and a dash where there is none.</summary>
    internal string FigureOf(Origin origin) => Bars.FirstOrDefault(bar => bar.Origin == origin)?.Text ?? "–";
}

/// <summary>The best way of one origin, in one headline.</summary>
/// <param name="Origin">Whose it is.</param>
/// <param name="Way">Its name.</param>
/// <param name="Value">The figure, in the headline's unit.</param>
/// <param name="Text">The figure as it is shown.</param>
internal sealed record HeadlineBar(Origin Origin, string Way, double Value, string Text);

/// <summary>A point where another way is faster.</summary>
/// <param name="Point">Which one.</param>
/// <param name="Rival">The fastest other way there.</param>
/// <param name="Ratio">The time of this library against that way's.</param>
internal sealed record HeadlineLoss(string Point, string Rival, double Ratio);
