namespace FilePipelines.Benchmarks.Reporting;

/// <summary>
/// Each way by default, and each way with the buffer that suits it best: the grids compare ways at one buffer size, which is not what
/// somebody who tunes a program compares.
/// </summary>
internal sealed class BestSettingChapter(Scale scale)
    : GridChapter("Each way at its best setting", [.. Reading.BestSettings(scale), .. Writing.BestSettings(scale)])
{
    internal override IEnumerable<Headline> Headlines => Results.Select(
        result => Headline.OfMilliseconds($"headline-{result.Grid.Key}", result.Grid.Title, result));

    internal override void Write(Page page)
    {
        page.Paragraph("The grids below compare all ways at one buffer size. Here every way has buffers of "
            + $"{string.Join(", ", Reading.Settings.Select(size => SizeText.Of(size)))}, and its best setting is compared with those "
            + "of the others.");
        foreach (GridResult result in Results.Where(result => result.Grid.Key.StartsWith("best-", StringComparison.Ordinal)))
        {
            Measured[] best = [.. result.Points[0].Rows.GroupBy(row => Split(row.Name).Way)
                .Select(way => way.MinBy(row => row.Microseconds.Median)!).OrderBy(row => row.Microseconds.Median)];
            page.Paragraph($"**{result.Grid.Title}**");
            page.Table(
                ["way", "best setting", "time, ms", "CPU, ms", "fastest = 1"],
                best.Select(row => (IReadOnlyList<string>)
                [
                    Figures.Emphasised(Split(row.Name).Way),
                    Split(row.Name).Setting,
                    Figures.Emphasised(row.Name, Figures.Number(row.Microseconds.Median / 1000)),
                    Figures.Number(row.CpuMicroseconds / 1000),
                    Figures.Number(row.Against(best[0]).Median),
                ]), texts: 2);
        }
    }

    private static (string Way, string Setting) Split(string name)
        => (name[..name.LastIndexOf(", ", StringComparison.Ordinal)], name[(name.LastIndexOf(", ", StringComparison.Ordinal) + 2)..]);
}
