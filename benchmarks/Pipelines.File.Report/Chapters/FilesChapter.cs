namespace FilePipelines.Benchmarks.Reporting;

/// <summary>Copies, many small files, and a large one from the device.</summary>
internal sealed class FilesChapter(Scale scale) : GridChapter("Copying, compressing, small files, a large file from the device",
[
    Copying.Grid(scale), Trees.Grid(scale), Writing.Compress(scale), SmallFiles.Grid(scale),
    .. PageCache.IsSupported ? (Grid[])[Reading.Cold(scale)] : [],
])
{
    internal override IEnumerable<Headline> Headlines =>
    [
        Headline.OfGrids("headline-copying", "Copying one file to a new one", "FilePipeReader to FilePipeWriter", [Find("copy")]),
        Headline.OfGrids("headline-trees", "Copying a folder of small files with SHA-256, 2 at once", "samples/Copy --sha256 --jobs 2",
            [Find("trees")]),
        Headline.OfGrids("headline-compress", "Compressing into a file", "FilePipeWriter.AsStream, gzip", [Find("compress")]),
    ];
}

/// <summary>The first file of a process, which is what a command-line tool feels.</summary>
internal sealed class FirstFileChapter(Scale scale) : ReportChapter
{
    private IReadOnlyList<Measured> _ways = [];

    internal override string Title => "The first file of a process";
    internal override double Weight => 15;

    internal override IEnumerable<Headline> Headlines =>
    [
        Headline.OfPoint("headline-first", "The first file of a process, 4 KiB", "milliseconds, median", Others.Single(),
            row => (row.Microseconds.Median, Figures.Number(row.Microseconds.Median / 1000))),
    ];

    internal override IEnumerable<GridResult> Others
        => [GridResult.Of("first file", [("4 KiB", _ways)],
            "**First file**: the runtime has `File.ReadAllBytes` compiled, and no pipe to make.")];

    internal override async Task MeasureAsync(TimeSpan time)
        => _ways = await FirstFile.MeasureAsync(scale.Rounds ?? (scale.IsQuick ? 5 : 21));

    internal override void Write(Page page)
    {
        page.Paragraph(
            "A file of 4 KiB is opened, read and closed by a process that has done nothing else, with all that the runtime loads and "
            + "compiles for it; a new process each time. The package has the library compiled ahead of time (ReadyToRun) for linux-x64, "
            + "linux-arm64 and win-x64; for a program that refers to the project the runtime compiles it. One file that is read whole "
            + "needs no pipe.");
        page.Table(
            ["way", "median", "quartiles"],
            _ways.Select(row => (IReadOnlyList<string>)
            [
                Figures.Emphasised(row.Name),
                Figures.Emphasised(row.Name, $"{Figures.Number(row.Microseconds.Median / 1000)} ms"),
                $"{Figures.Number(row.Microseconds.LowerQuartile / 1000)} – {Figures.Number(row.Microseconds.UpperQuartile / 1000)}",
            ]));
    }
}
