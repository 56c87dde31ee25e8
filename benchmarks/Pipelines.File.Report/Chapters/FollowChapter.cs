namespace FilePipelines.Benchmarks.Reporting;

/// <summary>Followed files: how late a line is, and what idle ones cost. Linux.</summary>
internal sealed class FollowChapter(Scale scale) : ReportChapter
{
    private IReadOnlyList<Followed> _figures = [];

    internal override string Title => "Follow";
    internal override double Weight => scale.IsQuick ? 12 : 22;
    internal override bool IsSupported => OperatingSystem.IsLinux();

    // One way after the other, so the ratio is one of medians.
    internal override IEnumerable<Headline> Headlines =>
    [
        Headline.OfPoint("headline-follow", "Following a file: how late a line is", "milliseconds, median",
            GridResult.Of("follow", [("one file", [.. _figures.Select(way => new Measured(way.Way, [way.Median], [1], 0, 0))])]),
            row => (row.Microseconds.Median, Figures.Number(row.Microseconds.Median))),
    ];

    internal override IEnumerable<(string FileName, string Text)> DataFiles => [("follow.csv", Following.ToCsv(_figures))];

    internal override async Task MeasureAsync(TimeSpan time)
        => _figures = await Following.MeasureAsync(Following.DefaultTime / (scale.IsQuick ? 4 : 2));

    internal override void Write(Page page)
    {
        page.Paragraph("How late a line is, from before it is appended until its follower has it, while lines come at random moments, "
            + "20 a second; and what a thousand idle files cost. `tail -F` is another process, whose output comes through a pipe.");
        page.Table(
            ["way", "late, p50", "late, p99", $"{Figures.Count(Following.IdleFiles)} idle files, of a core", "threads for it"],
            _figures.Select(way => (IReadOnlyList<string>)
            [
                Figures.Emphasised(way.Way),
                $"{Figures.Number(way.Median)} ms",
                $"{Figures.Number(way.NinetyNinth)} ms",
                $"{Figures.Number(way.IdleCores)} %",
                Figures.Count(way.Threads),
            ]));
        Followed own = _figures.First(way => Origins.IsOwn(way.Way));
        page.Paragraph($"Target: p50 of 1 ms and p99 of 5 ms ({Bar(own.Median <= 1 && own.NinetyNinth <= 5)}), "
            + "under 1 % of a core for a thousand idle files and no thread each "
            + $"({Bar(own.IdleCores < 1 && own.Threads < Following.IdleFiles / 10)}).");

        static string Bar(bool isMet) => isMet ? "met" : "**missed**";
    }
}
