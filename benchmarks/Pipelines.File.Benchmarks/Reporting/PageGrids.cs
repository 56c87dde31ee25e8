using FilePipelinesBenchmarks.Charts;
using FilePipelinesBenchmarks.Measuring;

namespace FilePipelinesBenchmarks.Reporting;

/// <summary>Grids on the page, as tables and as lines.</summary>
internal static class PageGrids
{
    /// <summary>The grid's table: the first row is a time, the others are ratios to it.</summary>
    internal static void Grid(this Page page, SectionResult result)
    {
        int operations = result.Section.Operations;
        bool isWide = result.Points.Count > 1;
        page.Paragraph($"**{result.Section.Title}.** The first row is a time, the others are ratios to "
            + $"it{(isWide ? $"; columns: {result.Section.Axis}" : string.Empty)}.");
        page.Table(
            ["way", .. isWide ? result.Points.Select(point => point.Point) : ["against the baseline", "time", "CPU"], "allocated"],
            result.Methods.Select((method, index) =>
            {
                IReadOnlyList<Measured> measured = result.Of(method);
                string[] absolute = isWide ? [] :
                    [Figures.Time(measured[0].Microseconds.Median / operations), Figures.Time(measured[0].CpuMicroseconds / operations)];
                IEnumerable<string> figures = index == 0
                    ? measured.Select(point => isWide ? Figures.Time(point.Microseconds.Median / operations) : "1")
                    : measured.Select(point => $"{Figures.Emphasised(method, Figures.Number(point.Ratio.Median))} "
                        + $"({Figures.Number(point.Ratio.LowerQuartile)}–{Figures.Number(point.Ratio.UpperQuartile)})");
                return (IReadOnlyList<string>)[Figures.Emphasised(method), .. figures, .. absolute,
                    Figures.Amount(measured.Select(point => point.AllocatedBytes / operations))];
            }));
    }

    // More lines than these cannot be told apart: this library's ways, the limit, and the fastest of the others. The table has all.
    private const int MostLines = 6;

    private static IEnumerable<string> MostTelling(SectionResult result)
    {
        string[] rivals = [.. result.Methods.Skip(1).Where(Origins.IsRival)
            .OrderBy(method => Figures.GeometricMean(result.Of(method).Select(measured => measured.Ratio.Median)))];
        string[] first = [.. result.Methods.Where(Origins.IsOwn),
            .. result.Methods.Where(method => method == Reading.ReadWays.KernelCopyName)];
        string[] ofEach = [.. rivals.GroupBy(Origins.Of).Select(origin => origin.First())];
        return first.Concat(ofEach).Concat(rivals).Distinct().Take(MostLines);
    }

    /// <summary>The grid's chart: one line a way, six at most.</summary>
    /// <param name="page">Where it goes.</param>
    /// <param name="result">What is drawn.</param>
    /// <param name="sizes">The points' places on the axis.</param>
    /// <param name="behind">Faint lines behind the others.</param>
    internal static void Lines(this Page page, SectionResult result, IReadOnlyList<int> sizes, IEnumerable<LineSeries> behind)
    {
        IEnumerable<LineSeries> lines = MostTelling(result).Select(
            method => new LineSeries(method, [.. result.Of(method).Select((measured, index) => ((double)sizes[index], measured.Ratio))]));
        page.Picture(
            $"{result.Section.Key}.svg",
            LineChart.Draw($"{result.Section.Title}: time against {result.Baseline}", result.Section.Axis,
                [.. sizes.Select(size => ((double)size, SizeText.Of(size)))], [.. behind, .. lines]),
            $"Lines: {result.Section.Title}, time against {result.Baseline} by {result.Section.Axis}");
    }
}
