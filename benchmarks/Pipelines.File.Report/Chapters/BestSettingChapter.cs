namespace FilePipelines.Benchmarks.Reporting;

/// <summary>
/// Each way as it comes, and each way with the buffer that suits it best: the grids compare ways at one buffer size, which is not what
/// somebody who tunes a program compares.
/// </summary>
internal sealed class BestSettingChapter(Scale scale) : GridChapter([.. Reading.BestSettings(scale), .. Writing.BestSettings(scale)])
{
    internal override string Title => "Each way at its best setting";

    internal override IEnumerable<Headline> Headlines =>
    [
        Times("headline-best-reading", "Reading 128 MiB, each way at its best setting", Find("best-read-128")),
        Times("headline-default-reading", "Reading 128 MiB, each way with its default setting", Find("default-read")),
        Times("headline-best-writing", $"Writing {SizeText.Of(scale.WrittenBytes)}, each way at its best setting", Find("best-write")),
        Times("headline-default-writing",
            $"Writing {SizeText.Of(scale.WrittenBytes)} in pieces of 4 KiB, each way with its default setting", Find("default-write")),
    ];

    internal override void Write(Page page)
    {
        page.Paragraph("The grids below compare all ways at one buffer size. `FilePipeReader` fills many segments with one call, so it "
            + "takes nearly the same time whatever the size of its segments, and the others gain from larger buffers. Here every way is "
            + $"measured with buffers of {string.Join(", ", Reading.Settings.Select(size => SizeText.Of(size)))}, and its best setting is "
            + "compared with the best settings of the others. CPU time is that of all cores together.");
        foreach (GridResult result in Results)
        {
            Measured[] rows = [.. result.Points[0].Rows];
            Measured[] best = [.. rows.GroupBy(row => WayOf(row.Name)).Select(way => way.MinBy(row => row.Microseconds.Median)!)
                .OrderBy(row => row.Microseconds.Median)];
            Measured fastest = best[0];
            page.Paragraph($"**{result.Grid.Title}.** Times are medians with their quartiles.");
            page.Table(
                ["way", "best setting", "time, ms", "quartiles", "CPU, ms", "time, fastest = 1"],
                best.Select(row => (IReadOnlyList<string>)
                [
                    Figures.Emphasised(WayOf(row.Name)),
                    SettingOf(row.Name),
                    Figures.Emphasised(row.Name, Milliseconds(row.Microseconds.Median)),
                    $"{Milliseconds(row.Microseconds.LowerQuartile)}–{Milliseconds(row.Microseconds.UpperQuartile)}",
                    Milliseconds(row.CpuMicroseconds),
                    Figures.Number(row.Microseconds.Median / fastest.Microseconds.Median),
                ]), texts: 2);
        }
    }

    private static string Milliseconds(double microseconds) => Figures.Number(microseconds / 1000);

    private static string WayOf(string name) => name[..name.LastIndexOf(", ", StringComparison.Ordinal)];

    private static string SettingOf(string name) => name[(name.LastIndexOf(", ", StringComparison.Ordinal) + 2)..];

    private static Headline Times(string key, string question, GridResult result)
        => Headline.OfTimes(key, question, "ms (CPU of all cores)", question, [.. result.Points[0].Rows.Select(
            row => (row.Name, row.Microseconds.Median / 1000, (double?)(row.CpuMicroseconds / 1000)))]);
}
