using FilePipelinesBenchmarks.Measuring;

namespace FilePipelinesBenchmarks.Reporting;

/// <summary>A line of the first page: one question, and how well this library, the best of .NET and the best of the others answer it.</summary>
/// <param name="Question">What somebody wants done, and what the figures are.</param>
/// <param name="Own">This library's figure.</param>
/// <param name="Net">That of the best way that .NET has, and which it is.</param>
/// <param name="Other">That of the best of other packages or programs, and which it is; empty where none does this or was measured.</param>
/// <param name="Ratio">The time of this library against that of the better one of both: less than 1 is faster.</param>
/// <param name="Losses">Where another is faster; empty for nowhere.</param>
internal sealed record Headline(string Question, string Own, string Net, string Other, double Ratio, string Losses)
{
    /// <summary>From grids with one baseline: figures are geometric means of the times against it.</summary>
    /// <param name="question">What is measured; the points are added.</param>
    /// <param name="own">This library's way.</param>
    /// <param name="results">The grids, all with the same ways.</param>
    internal static Headline OfGrids(string question, string own, IReadOnlyList<SectionResult> results)
    {
        (string Way, double Mean)[] means = [.. results[0].Methods.Select(way => (way, Figures.GeometricMean(results.SelectMany(result => result.Of(way)).Select(measured => measured.Ratio.Median))))];
        double ownMean = means.Single(mean => mean.Way == own).Mean;
        (string Way, double Mean) best = means.Where(mean => Origins.IsRival(mean.Way)).MinBy(mean => mean.Mean);
        int points = results.Sum(result => result.Points.Count);
        List<(string Point, string Rival, double Ratio)> losses = [.. results.SelectMany(result => result.LossesOf(own).Select(loss => ($"{result.Section.Title}, {loss.Point}", loss.Rival, loss.Ratio)))];
        (string Point, string Rival, double Ratio) worst = losses.DefaultIfEmpty().MaxBy(loss => loss.Ratio);
        return new Headline(
            $"{question}: time against `{results[0].Baseline}`, geometric mean of {points} points",
            Figures.Number(ownMean),
            Best(Origin.Net),
            Best(Origin.Other),
            ownMean / best.Mean,
            losses.Count == 0 ? string.Empty : $"at {losses.Count} of {points} points, at worst {Figures.Number(worst.Ratio)} times {worst.Rival} ({worst.Point})");

        string Best(Origin origin)
        {
            (string Way, double Mean) mean = means.Where(mean => Origins.Of(mean.Way) == origin).DefaultIfEmpty().MinBy(mean => mean.Mean);
            return mean.Way is null ? string.Empty : $"{Figures.Number(mean.Mean)} ({mean.Way})";
        }
    }

    /// <summary>From operations a second, of which more is better.</summary>
    /// <param name="question">What is measured.</param>
    /// <param name="points">What distinguishes the points, and the ways at each with operations a second. The figures are those of the last point.</param>
    internal static Headline OfRates(string question, IReadOnlyList<(string Point, IReadOnlyList<(string Way, double PerSecond)> Ways)> points)
    {
        IReadOnlyList<(string Way, double PerSecond)> ways = points[^1].Ways;
        IEnumerable<string> losses = points.Select(point => (point.Point, Own: OwnOf(point.Ways), Rival: point.Ways.Where(way => Origins.IsRival(way.Way)).MaxBy(way => way.PerSecond)))
            .Where(point => point.Rival.PerSecond > Figures.Visible * point.Own.PerSecond)
            .Select(point => $"{point.Point}: {Figures.Number(point.Rival.PerSecond / point.Own.PerSecond)} times {point.Rival.Way}");
        return new Headline(
            question,
            $"{Figures.Count(OwnOf(ways).PerSecond)}/s",
            Best(Origin.Net),
            Best(Origin.Other),
            ways.Where(way => Origins.IsRival(way.Way)).Max(way => way.PerSecond) / OwnOf(ways).PerSecond,
            string.Join("; ", losses));

        string Best(Origin origin)
        {
            (string Way, double PerSecond) best = ways.Where(way => Origins.Of(way.Way) == origin).DefaultIfEmpty().MaxBy(way => way.PerSecond);
            return best.Way is null ? string.Empty : $"{Figures.Count(best.PerSecond)}/s ({best.Way})";
        }

        static (string Way, double PerSecond) OwnOf(IReadOnlyList<(string Way, double PerSecond)> ways) => ways.First(way => Origins.IsOwn(way.Way));
    }
}
