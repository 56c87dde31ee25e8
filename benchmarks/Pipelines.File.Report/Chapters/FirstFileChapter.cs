namespace FilePipelines.Benchmarks.Reporting;

/// <summary>The first file of a process, which is what a command-line tool feels.</summary>
internal sealed class FirstFileChapter(Scale scale) : ReportChapter
{
    private IReadOnlyList<(string Way, Spread Milliseconds)> _times = [];

    internal override string Title => "The first file of a process";

    internal override double Weight => 15;

    internal override IEnumerable<Headline> Headlines =>
    [
        Headline.OfTimes("headline-first", "The first file of a process, 4 KiB", "milliseconds, median", "The first file of a process",
            [.. _times.Select(time => (time.Way, time.Milliseconds.Median))]),
    ];

    internal override async Task MeasureAsync(Allowance allowance)
        => _times = await FirstFile.MeasureAsync(scale.Rounds ?? (scale.IsQuick ? 5 : 21), allowance.OnShare);

    internal override void Write(Page page)
    {
        page.Paragraph(
            "A file of 4 KiB is opened, read and closed by a process that has done nothing else, with all that the runtime loads and "
            + "compiles for it; a new process each time, the ways in turns. "
            + "The package has the library compiled ahead of time (ReadyToRun) for linux-x64, linux-arm64 and win-x64; a program that "
            + "refers to the project has the runtime compile it, as it does with its own code. "
            + "One file that is read whole needs no pipe: `File.ReadAllBytes` is compiled with the runtime.");
        page.Table(
            ["way", "median", "quartiles"],
            _times.Select(time => (IReadOnlyList<string>)
            [
                Figures.Emphasised(time.Way),
                Figures.Emphasised(time.Way, $"{Figures.Number(time.Milliseconds.Median)} ms"),
                $"{Figures.Number(time.Milliseconds.LowerQuartile)} – {Figures.Number(time.Milliseconds.UpperQuartile)}",
            ]));
    }
}
