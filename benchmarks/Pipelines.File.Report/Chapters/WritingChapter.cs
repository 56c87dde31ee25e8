namespace FilePipelines.Benchmarks.Reporting;

/// <summary>A new file, written in pieces.</summary>
internal sealed class WritingChapter(Scale scale) : GridChapter("Writing", [.. Writing.Pieces(scale), Writing.Flushes(scale)])
{
    internal override IEnumerable<Headline> Headlines =>
    [
        Headline.OfGrids("headline-writing", "Writing, a flush every 512 B to 256 KiB (here write-behind; the others' are with the system)",
            "FilePipeWriter", [.. Results.Take(2)]),
        Headline.OfGrids("headline-written", "A flush of 100 B to 16 KiB that the system has (Written)", WriteWays.Written.Name,
            [Find("flush")]),
    ];

    internal override void Write(Page page)
    {
        page.Paragraph("A new file, written in pieces with a flush after each (for the pipes) or one call a piece (for the others), and "
            + "closed. `FilePipeWriter` hands the bytes over and coalesces them; `written` waits until the system has them at every flush. "
            + "`FileMode.Create` truncates even a file that it has just made, and ext4 then begins to write it to the device when it is "
            + "closed; `CreateNew` does not.");
        page.Lines(Results[0], Writing.SizesOf(isPreallocated: false), []);
        page.Grid(Results[0]);
        page.Paragraph("One flush that returns when the system has the bytes, without a sync:");
        page.Grid(Find("flush"));
    }
}

/// <summary>
/// What is on the device when it is done: commits of many producers, flushes one after the other, and files that are replaced.
/// </summary>
internal sealed class DurableChapter(Scale scale) : GridChapter("Durable", [Writing.Durable(scale), Replacing.Grid(scale)])
{
    private const double CommitWeight = 45;
    private static readonly string[] s_kinds = [Commits.Preallocated, Commits.Growing];

    private IReadOnlyList<Load> _commits = [];

    internal override double Weight => base.Weight + CommitWeight;

    internal override IEnumerable<Headline> Headlines =>
    [
        Commit("commits-preallocated", Commits.Preallocated, Commits.ProducerCounts[^1]),
        Commit("commits-growing", Commits.Growing, Commits.ProducerCounts[^1]),
        Commit("commits-one", Commits.Preallocated, Commits.ProducerCounts[0]),
    ];

    internal override IEnumerable<GridResult> Others => s_kinds.Select(kind => ResultOf(kind));

    internal override IEnumerable<(string FileName, string Text)> DataFiles => [("commits.csv", Commits.ToCsv(_commits))];

    internal override async Task MeasureAsync(TimeSpan time)
    {
        _commits = await Commits.MeasureAsync(scale.MinRounds, scale.Points(Commits.ProducerCounts, 0, 2));
        await base.MeasureAsync(time * (1 - (CommitWeight / Weight)));
    }

    internal override void Write(Page page)
    {
        page.Paragraph(
            $"Records of {Commits.RecordSize} bytes, each on the device before its producer goes on to the next. "
            + "**By hand** is a `Channel`, one loop that writes all that waits to a `FileStream`, one `Flush(true)`, and the completion of "
            + "all. `FilePipeWriter` is shared by all producers under a lock; `Pipelines.File.Journal` also frames each record and chains "
            + "its checksum. A thread each has a place of its own in one file. Into a preallocated file, which has its blocks, a sync "
            + "writes the data alone; into a growing one, the file system's journal, too.");
        foreach (string kind in s_kinds)
        {
            string file = FileOf(kind);
            Load[] loads = [.. _commits.Where(load => load.Kind == kind)];
            page.Picture(
                $"commits-{kind.ToLowerInvariant()}.svg",
                BarChart.Draw($"Commits a second, {file} (each group has its own scale)",
                    [.. loads.GroupBy(load => load.AtOnce).Select(group => new BarGroup(Producers(group.Key), [.. group.Select(
                        load => (load.Way, load.PerSecond.Median, Figures.Count(load.PerSecond.Median)))]))]),
                $"Bars: commits a second by each way into {file}, by the number of producers");
            page.Table(
                [$"commits a second, {file}", .. loads.Select(load => load.AtOnce).Distinct().Select(Producers)],
                loads.GroupBy(load => load.Way).Select(way => (IReadOnlyList<string>)
                [
                    Figures.Emphasised(way.Key),
                    .. way.Select(load => Figures.Emphasised(way.Key, Figures.Count(load.PerSecond.Median))),
                ]));
        }

        page.Paragraph("Latencies are in [commits.csv](commits.csv).");
        base.Write(page);
    }

    private Headline Commit(string key, string kind, int producers) => Headline.OfRate(
        $"headline-{key}",
        $"Durable commits into {FileOf(kind)}",
        $"commits a second of {Commits.RecordSize} B, {Producers(producers)}",
        ResultOf(kind, producers));

    private GridResult ResultOf(string kind, int? producers = null) => GridResult.OfLoads($"commits, {FileOf(kind)}", "at once",
        _commits.Where(load => load.Kind == kind && (producers is null || load.AtOnce == producers)),
        "**Commits**: one producer waits for the loop, which is another thread.");

    private static string FileOf(string kind) => kind == Commits.Growing ? "a growing file" : "a preallocated file";
    private static string Producers(int count) => count == 1 ? "1 producer" : $"{count} producers";
}
