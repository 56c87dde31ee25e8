using System.Globalization;
using System.Text;
using FilePipelinesBenchmarks.Charts;
using FilePipelinesBenchmarks.Durable;
using FilePipelinesBenchmarks.Measuring;
using FilePipelinesBenchmarks.Writing;

namespace FilePipelinesBenchmarks.Reporting.Chapters;

/// <summary>
/// What is on the device when it is done: commits of many producers, flushes one after the other, and files that are replaced.
/// </summary>
internal sealed class DurableChapter(ReportScale scale) : GridChapter(MakeSections(scale))
{
    private const double CommitWeight = 45;
    private const int DurablePieces = 128;

    private static readonly int[] s_flushSizes = [512, 4096, 65536];

    private IReadOnlyList<CommitFigures> _commits = [];

    internal override string Title => "Durable";

    internal override double Weight => base.Weight + CommitWeight;

    internal override IEnumerable<Headline> Headlines =>
    [
        Commits(CommitFile.Preallocated, "headline-commits-preallocated", "a preallocated file"),
        Commits(CommitFile.Growing, "headline-commits-growing", "a growing file"),
    ];

    internal override IEnumerable<(string FileName, string Text)> DataFiles
    {
        get
        {
            StringBuilder csv = new("method,file,producers,commits_per_second_min,lower_quartile,median,upper_quartile,max,"
                + "ratio_median,us_median,us_99th_percentile\n");
            foreach (CommitFigures figures in _commits)
            {
                csv.Append(CultureInfo.InvariantCulture,
                    $"{Figures.Quoted(figures.Name)},{figures.File},{figures.Producers},{Figures.Fields(figures.PerSecond, "0")},"
                    + $"{figures.Ratio.Median:0.0000},{figures.Median:0.0},{figures.NinetyNinth:0.0}\n");
            }

            return [("commits.csv", csv.ToString())];
        }
    }

    internal override async Task MeasureAsync(Allowance allowance)
    {
        double share = CommitWeight / Weight;
        _commits = await CommitMeasurement.MeasureAsync(
            scale.IsQuick ? 3 : 5, scale.Points(CommitMeasurement.ProducerCounts, 0, 2), part => allowance.OnShare(part * share));
        await base.MeasureAsync(new Allowance(allowance.Time * (1 - share), part => allowance.OnShare(share + (part * (1 - share)))));
    }

    internal override void Write(Page page)
    {
        page.Paragraph(
            $"Records of {CommitWay.RecordSize} bytes, each on the device before its producer goes on to the next. "
            + "**By hand** is a `Channel`, one loop that writes all that waits to a `FileStream`, one `Flush(true)`, and the completion of "
            + "all. `FilePipeWriter` is shared by all producers under a lock, and each awaits its own flush; `Pipelines.File.Journal` also "
            + "frames each record and chains its checksum. A thread each has a place of its own in one file. "
            + "Like is compared with like: into a preallocated file, whose blocks are filled with zeros ahead (by the journal while it "
            + "runs, by the others before) and overwritten, a sync writes the data alone; into a growing one, by every way, it writes the "
            + "file system's journal, too. A ratio compares the commits a second of one round: more is faster.");
        foreach (IGrouping<CommitFile, CommitFigures> file in _commits.GroupBy(figures => figures.File))
        {
            string kind = file.Key == CommitFile.Growing ? "a growing file" : "a preallocated file";
            page.Picture(
                $"commits-{file.Key.ToString().ToLowerInvariant()}.svg",
                BarChart.Draw($"Commits a second, {kind} (each group has its own scale)",
                    [.. file.GroupBy(figures => figures.Producers).Select(group =>
                        new BarGroup(Producers(group.Key), [.. group.Select(
                            figures => (figures.Name, figures.PerSecond.Median, Figures.Count(figures.PerSecond.Median)))]))]),
                $"Bars: commits a second by each way into {kind}, by the number of producers");
            page.Table(
                ["way", "producers", "commits a second", "against by hand", "p50", "p99"],
                file.Select(figures => (IReadOnlyList<string>)
                [
                    Figures.Emphasised(figures.Name),
                    Producers(figures.Producers),
                    Figures.Emphasised(figures.Name, Figures.Count(figures.PerSecond.Median)),
                    Figures.Ratio(figures.Ratio),
                    Figures.Time(figures.Median),
                    Figures.Time(figures.NinetyNinth),
                ]));
        }

        if (!Packages.HasSqlite)
        {
            page.Paragraph("SQLite was not built in: `-p:Sqlite=true` where Microsoft.Data.Sqlite restores.");
        }

        foreach (SectionResult result in Grids)
        {
            page.Grid(result);
        }
    }

    private Headline Commits(CommitFile file, string key, string what)
        => Headline.OfRates(
            key,
            $"Durable commits into {what}",
            $"commits a second of {CommitWay.RecordSize} B, {CommitMeasurement.ProducerCounts[^1]} producers",
            [
                .. _commits.Where(figures => figures.File == file)
                    .GroupBy(figures => figures.Producers)
                    .Select(group => (Producers(group.Key),
                        (IReadOnlyList<(string, double)>)[.. group.Select(figures => (figures.Name, figures.PerSecond.Median))])),
            ]);

    private static string Producers(int count) => count == 1 ? "1 producer" : $"{count} producers";

    private static List<ReportSection> MakeSections(ReportScale scale)
    {
        List<ReportSection> sections =
        [
            new(
                "durable",
                $"{DurablePieces} durable flushes, each on the device",
                "bytes between two flushes",
                10,
                new PairedMeasurement(scale.MinRounds, 21, TimeSpan.FromMilliseconds(1)),
                "**Durable flushes.** One after the other, each is a sync, and the device takes most of the time; `FlushAsync` hands the "
                + "sync to another thread and comes back, which `Flush(true)` does not: it blocks its thread. "
                + "Flushes that wait together share one sync.",
                folder => [.. s_flushSizes.Select(size => new Column(SizeText.Of(size), [.. WriteWays.AllDurable.Select(way =>
                {
                    WriteCase point = new(folder.PathOf("durable.bin"), DurablePieces * (long)size, size, Preallocate: false);
                    return new Candidate(way.Name, () => way.WriteAsync(point), () => File.Delete(point.Path));
                })]))]),
        ];
        if (OperatingSystem.IsLinux())
        {
            sections.Add(new(
                "replace",
                "Replacing a file of 4 KiB",
                "guarantee",
                8,
                new PairedMeasurement(scale.MinRounds, 41, scale.Sample),
                "**Replacing.** `CompleteAsync` hands its calls to another thread and comes back on one of the pool, `Complete` makes them "
                + "on its own. Beside the calls of the baseline the library looks at the file that it has opened. `File.WriteAllBytes` and "
                + "`File.Move` do less: the new file has not the old one's mode, and its name is not synced.",
                folder => [.. ((bool[])[false, true]).Select(isDurable => new Column(
                    isDurable ? "durable" : "no sync", ReplaceWays.Of(folder.PathOf(isDurable ? "durable" : "written"), isDurable)))]));
        }

        return sections;
    }
}
