namespace FilePipelines.Benchmarks.Reporting;

/// <summary>
/// Each way by default, and each way with the buffer that suits it best: the grids compare ways at one buffer size, which is not what
/// somebody who tunes a program compares.
/// </summary>
internal sealed class BestSettingChapter(Scale scale) : GridChapter([.. Reading.BestSettings(scale), .. Writing.BestSettings(scale)])
{
    internal override string Title => "Each way at its best setting";

    internal override IEnumerable<Headline> Headlines =>
    [
        Headline.OfMilliseconds("headline-best-reading", "Reading 128 MiB, each way at its best setting", Find("best-read-128")),
        Headline.OfMilliseconds("headline-default-reading", "Reading 128 MiB, each way with its default setting", Find("default-read")),
        Headline.OfMilliseconds(
            "headline-best-writing", $"Writing {SizeText.Of(scale.WrittenBytes)}, each way at its best setting", Find("best-write")),
        Headline.OfMilliseconds("headline-default-writing",
            $"Writing {SizeText.Of(scale.WrittenBytes)} in pieces of 4 KiB, each way with its default setting", Find("default-write")),
    ];

    internal override void Write(Page page)
    {
        page.Paragraph("The grids below compare all ways at one buffer size. A read of `FilePipeReader` brings 256 KiB at least, whatever "
            + "the size of its buffer, and the others gain from larger ones. Here every way is measured with buffers of "
            + $"{string.Join(", ", Reading.Settings.Select(size => SizeText.Of(size)))}, and its best setting is compared with those "
            + "of the others. CPU time is that of all cores together.");
        foreach (GridResult result in Results.Where(result => result.Grid.Key.StartsWith("best-", StringComparison.Ordinal)))
        {
            Measured[] rows = [.. result.Points[0].Rows];
            Measured[] best = [.. rows.GroupBy(row => WayOf(row.Name)).Select(way => way.MinBy(row => row.Microseconds.Median)!)
                .OrderBy(row => row.Microseconds.Median)];
            Measured fastest = best[0];
            page.Paragraph($"**{result.Grid.Title}**");
            page.Table(
                ["way", "best setting", "time, ms", "CPU, ms", "fastest = 1"],
                best.Select(row => (IReadOnlyList<string>)
                [
                    Figures.Emphasised(WayOf(row.Name)),
                    SettingOf(row.Name),
                    Figures.Emphasised(row.Name, Milliseconds(row.Microseconds.Median)),
                    Milliseconds(row.CpuMicroseconds),
                    Figures.Number(row.Against(fastest).Median),
                ]), texts: 2);
        }
    }

    private static string Milliseconds(double microseconds) => Figures.Number(microseconds / 1000);

    private static string WayOf(string name) => name[..name.LastIndexOf(", ", StringComparison.Ordinal)];

    private static string SettingOf(string name) => name[(name.LastIndexOf(", ", StringComparison.Ordinal) + 2)..];

}
