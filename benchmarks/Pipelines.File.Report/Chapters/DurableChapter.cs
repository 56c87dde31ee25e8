using System.Globalization;
using System.Text;

namespace FilePipelines.Benchmarks.Reporting;

/// <summary>
/// What is on the device when it is done: commits of many producers, flushes one after the other, and files that are replaced.
/// </summary>
internal sealed class DurableChapter(Scale scale) : GridChapter([Writing.Durable(scale), .. Replacing.Grids(scale)])
{
    private const double CommitWeight = 45;
    private IReadOnlyList<(CommitFile File, Load Load)> _commits = [];

    internal override string Title => "Durable";

    internal override double Weight => base.Weight + CommitWeight;

    internal override IEnumerable<Headline> Headlines =>
    [
        Durably(CommitFile.Preallocated, "headline-commits-preallocated", "a preallocated file", Commits.ProducerCounts[^1]),
        Durably(CommitFile.Growing, "headline-commits-growing", "a growing file", Commits.ProducerCounts[^1]),
        Durably(CommitFile.Preallocated, "headline-commits-one", "a preallocated file", Commits.ProducerCounts[0]),
    ];

    internal override IEnumerable<(string FileName, string Text)> DataFiles
    {
        get
        {
            StringBuilder csv = new("method,file,producers,commits_per_second_min,lower_quartile,median,upper_quartile,max,"
                + "ratio_median,us_median,us_99th_percentile\n");
            foreach ((CommitFile file, Load load) in _commits)
            {
                csv.Append(CultureInfo.InvariantCulture,
                    $"{Figures.Quoted(load.Way)},{file},{load.AtOnce},{Figures.Fields(load.PerSecond, "0")},"
                    + $"{load.Ratio.Median:0.0000},{load.Median:0.0},{load.NinetyNinth:0.0}\n");
            }

            return [("commits.csv", csv.ToString())];
        }
    }

    internal override async Task MeasureAsync(Allowance allowance)
    {
        double share = CommitWeight / Weight;
        _commits = await Commits.MeasureAsync(
            scale.MinRounds, scale.Points(Commits.ProducerCounts, 0, 2), part => allowance.OnShare(part * share));
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
        foreach (IGrouping<CommitFile, Load> file in _commits.GroupBy(commit => commit.File, commit => commit.Load))
        {
            string kind = file.Key == CommitFile.Growing ? "a growing file" : "a preallocated file";
            page.Picture(
                $"commits-{file.Key.ToString().ToLowerInvariant()}.svg",
                BarChart.Draw($"Commits a second, {kind} (each group has its own scale)",
                    [.. file.GroupBy(load => load.AtOnce).Select(group => new BarGroup(Producers(group.Key), [.. group.Select(
                        load => (load.Way, load.PerSecond.Median, Figures.Count(load.PerSecond.Median)))]))]),
                $"Bars: commits a second by each way into {kind}, by the number of producers");
            page.Table(
                [$"commits a second, {kind}", .. file.Select(load => load.AtOnce).Distinct().Select(Producers)],
                file.GroupBy(load => load.Way).Select(way => (IReadOnlyList<string>)
                [
                    Figures.Emphasised(way.Key),
                    .. way.Select(load => Figures.Emphasised(way.Key, Figures.Count(load.PerSecond.Median))),
                ]));
        }

        page.Paragraph("Latencies are in [commits.csv](commits.csv).");
        foreach (GridResult result in Results)
        {
            page.Grid(result);
        }
    }

    // The figures are those of the last point, so of this number of producers.
    private Headline Durably(CommitFile file, string key, string what, int producers)
        => Headline.OfRates(
            key,
            $"Durable commits into {what}",
            $"commits a second of {CommitWay.RecordSize} B, {Producers(producers)}",
            [
                .. _commits.Where(commit => commit.File == file && commit.Load.AtOnce <= producers)
                    .GroupBy(commit => commit.Load.AtOnce, commit => commit.Load)
                    .Select(group => (Producers(group.Key),
                        (IReadOnlyList<(string, double)>)[.. group.Select(load => (load.Way, load.PerSecond.Median))])),
            ]);

    private static string Producers(int count) => count == 1 ? "1 producer" : $"{count} producers";
}
