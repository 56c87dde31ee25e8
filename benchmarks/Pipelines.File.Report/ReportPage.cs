namespace FilePipelines.Benchmarks.Reporting;

/// <summary>
/// Turns what was measured into the page that is read: the first table, where the library loses, the chapters, and how it was measured.
/// </summary>
/// <param name="machines">This machine's main ratios, and those that other machines have made before.</param>
internal sealed class ReportPage(
    IReadOnlyList<ChapterRun> runs, Surroundings surroundings, Scale scale, IReadOnlyList<MachineFigures> machines)
{
    // Others that use more than this share of the processors are told on the first page.
    private const double Disturbing = 0.1;
    private readonly Page _page = new();
    private readonly IReadOnlyList<ReportChapter> _chapters = [.. runs.Where(run => run.Error is null).Select(run => run.Chapter)];

    internal Page Write()
    {
        First();
        Losses();
        foreach (ReportChapter chapter in _chapters)
        {
            _page.Heading(2, chapter.Title);
            chapter.Write(_page);
        }

        Method();
        return _page;
    }

    private void First()
    {
        _page.Heading(1, "Files through pipelines, measured");
        _page.Paragraph(string.Create(CultureInfo.InvariantCulture, $"{surroundings.Date:yyyy-MM-dd}, commit `{surroundings.Commit}`, "
            + $"{surroundings.System}. The machine is named below the table."));
        _page.Paragraph("Each row has the best way of each kind. All ways of a row run alternately, and a ratio compares the times of one "
            + "round. A mean hides its points, so the least and the most of this library's stand beside it, and the next section has the "
            + "losses. Minima, quartiles, CPU time and the number of rounds are in [figures.csv](figures.csv).");
        Headline[] headlines = [.. _chapters.SelectMany(chapter => chapter.Headlines)];
        SpeedTable.Write(_page, headlines, surroundings);
        IReadOnlyList<(string Question, Headline Line)> rows = SpeedTable.Rows(headlines);
        if (rows.Count > 0)
        {
            _page.Picture("overview.svg", BarChart.Draw("This library and the best alternative",
                [.. rows.Select(row => new BarGroup($"{row.Question.Split(" (")[0]}: {row.Line.Unit.Split(',')[0]}, "
                    + $"{(row.Line.IsRate ? "more" : "less")} is better",
                    [.. new[] { row.Line.Bars[0], row.Line.Rival }.Select(bar => (bar.Way, bar.Value, bar.Text))]))]),
                "Bars: the rows of the table");
        }

        SpeedTable.WriteAll(_page, [.. headlines.Where(headline => !headline.IsAside)]);
        if (machines.Count > 1)
        {
            _page.Paragraph("Copies and calls cost differently on each machine, so a ratio to `FileStream` does not carry over; "
                + "the ratio to the kernel's bare copy does better:");
            _page.Table(
                ["machine", "commit", "reading, FileStream = 1", "reading, bare copy = 1", "writing, FileStream = 1"],
                machines.Select(machine => (IReadOnlyList<string>)[machine.Machine, $"`{machine.Commit}`", Figures.Number(machine.Reading),
                    Figures.Number(machine.Copy), Figures.Number(machine.Writing)]),
                texts: 2);
        }

        _page.Paragraph($"The others are {string.Join(", ", Packages.Versions)}.");
        if (scale.IsQuick)
        {
            _page.Paragraph("**This is the quick report**: fewer points and rounds, and smaller files where a title says so. "
                + "Its figures are for a first look; what is within a tenth of each other is equal.");
        }

        Told("**Not measured**, because it failed:", run => run.Error);
        Told("**The machine was not quiet.** So much of its processors was used by others, the kernel's own threads among them, while "
            + "these chapters were measured:", run => run.OthersUse > Disturbing ? Percent(run.OthersUse) : null);

        void Told(string text, Func<ChapterRun, string?> what)
        {
            ChapterRun[] told = [.. runs.Where(run => what(run) is not null)];
            if (told.Length > 0)
            {
                _page.Paragraph(text);
                _page.List(told.Select(run => $"{run.Chapter.Title}: {what(run)}"));
            }
        }
    }

    // Every point where a way of this library is slower than the best that others have there.
    private void Losses()
    {
        _page.Heading(2, "Where it loses");
        List<IReadOnlyList<string>> rows = [];
        List<string> reasons = [];
        foreach (GridResult result in _chapters.SelectMany(chapter => chapter.Results.Concat(chapter.Others))
            .Where(result => !result.Grid.HasManySettings))
        {
            int before = rows.Count;
            foreach (string method in result.Methods.Where(Origins.IsOwn))
            {
                (string Point, string Rival, double Ratio)[] losses = [.. result.LossesOf(method).OrderByDescending(loss => loss.Ratio)];
                if (losses.Length > 0)
                {
                    rows.Add([result.Grid.Key, method, $"{losses.Length}/{result.Points.Count}",
                        $"{Figures.Number(losses[0].Ratio)}, {losses[0].Point}: {losses[0].Rival}"]);
                }
            }

            if (rows.Count > before && result.Grid.Reason.Length > 0 && !reasons.Contains(result.Grid.Reason))
            {
                reasons.Add(result.Grid.Reason);
            }
        }

        if (rows.Count == 0)
        {
            _page.Paragraph("In this run, at no point.");
            return;
        }

        _page.Paragraph("Where one of this library's ways took more than 3 % longer than the fastest other way, in three of four rounds "
            + "at least: the grid's key in figures.csv (`pairs --suite KEY` repeats it), at how many points, and the most.");
        _page.Table(["grid", "way", "points", "most, where, against"], rows, texts: 4);
        _page.List(reasons);
    }

    private static string Percent(double share) => string.Create(CultureInfo.InvariantCulture, $"{share * 100:0} %");

    private void Method()
    {
        _page.Heading(2, "How it was measured");
        _page.Paragraph(string.Create(CultureInfo.InvariantCulture, $"{surroundings.Date:yyyy-MM-dd HH:mm} UTC, "
            + $"{runs.Sum(run => run.Duration.TotalMinutes):0.0} minutes; others used ")
            + Percent(runs.Sum(run => run.OthersUse * run.Duration.TotalSeconds) / Math.Max(1, runs.Sum(run => run.Duration.TotalSeconds)))
            + " of all processors meanwhile.");
        _page.List(
        [
            "Every run checks its result: bytes, sums, answers, lengths. A wrong one ends its chapter, which the first page then names.",
            "Allocation is that of the whole process, and CPU time that of all cores.",
            "Files are in the page cache unless a title says otherwise, in large folios: they were written in pieces of 1 MiB.",
            "A cold run begins with `posix_fadvise(POSIX_FADV_DONTNEED)`, in memory that has been page cache before.",
            "Ratios hold better than times, and neither says anything about another machine or disk.",
        ]);
        _page.Paragraph("Repeat it, which replaces these files; with `-- --quick` in two minutes, into a folder of its own:");
        _page.Code("dotnet run -c Release --project benchmarks/Pipelines.File.Report");
    }
}

/// <summary>The tables of the first page. The first is also in README.md, word for word; .ci/report compares the two.</summary>
internal static class SpeedTable
{
    private const string Begin = "<!-- speed: written by the report -->";
    private const string End = "<!-- end of speed -->";

    // What README.md shows of the headlines, losses among them, and what they are called to somebody who has read nothing yet.
    private static readonly (string Key, string Question)[] s_readme =
    [
        ("headline-reading", "Read files of 4 and 128 MiB with buffers of 2 to 256 KiB (a read brings 256 KiB here)"),
        ("headline-default-read", "Read 128 MiB with default settings"),
        ("headline-text", "Read lines of 10 to 1,000 B as strings"),
        ("headline-default-write", "Write 100 MiB in pieces of 4 KiB (here the file has all of them only at `CompleteAsync`)"),
        ("headline-commits-preallocated", "Commit records to the device, 64 callers"),
        ("headline-commits-one", "Commit records to the device, one caller"),
        ("headline-serving", "Serve a file of 64 KiB over HTTP"),
        ("headline-first", "Read the first file of a process, 4 KiB"),
    ];

    internal static void Write(Page page, IReadOnlyList<Headline> headlines, Surroundings surroundings)
    {
        Table(page, Rows(headlines));
        page.Paragraph("*By hand* is what a good engineer writes for that one purpose with .NET's own calls. The ratio is the time of one "
            + "operation here divided by that of the best other way, which is named.");
        if (surroundings.CallMicroseconds is { } call)
        {
            page.Paragraph(string.Create(CultureInfo.InvariantCulture, $"{surroundings.Machine}, {surroundings.FileSystem}, "
                + $"{surroundings.Runtime}. The shortest system call takes {call:0.00} µs here, and 0.1 to 0.2 µs on "
                + $"ordinary hardware."));
        }

        page.Paragraph($"Measured at commit `{surroundings.Commit}`, whose `src` is the tree `{surroundings.Sources}`.");
    }

    /// <summary>The rows of README.md.</summary>
    internal static IReadOnlyList<(string Question, Headline Line)> Rows(IReadOnlyList<Headline> headlines)
        => [.. s_readme.SelectMany(shown => headlines.Where(line => line.Key == shown.Key).Select(line => (shown.Question, line)))];

    /// <summary>Every other question, and how many are lost.</summary>
    internal static void WriteAll(Page page, IReadOnlyList<Headline> headlines)
    {
        page.Paragraph("The other rows:");
        Table(page, headlines.Where(line => !Array.Exists(s_readme, shown => shown.Key == line.Key)).Select(line => (line.Question, line)));
        page.Paragraph($"**Of all {headlines.Count} rows the library loses {headlines.Count(line => line.IsLost)}** by more than 3 %.");
    }

    private static void Table(Page page, IEnumerable<(string Question, Headline Line)> rows)
        => page.Table(
            ["question", "this library", "by hand", "ready made in .NET", "others", "ratio to the best alternative (below 1: faster)"],
            rows.Select(row => (IReadOnlyList<string>)
            [
                $"{row.Question}: {row.Line.Unit}",
                $"**{row.Line.FigureOf(Origin.Own)}**",
                row.Line.FigureOf(Origin.ByHand),
                row.Line.FigureOf(Origin.Net),
                row.Line.FigureOf(Origin.Other),
                $"**{Figures.Number(row.Line.Rival.Ratio)}** ({row.Line.Rival.Way})",
            ]));

    /// <summary>Puts the table into the README between its two comments.</summary>
    internal static void Update(string readmePath, IReadOnlyList<Headline> headlines, Surroundings surroundings)
    {
        string text = File.ReadAllText(readmePath);
        int begin = text.IndexOf(Begin, StringComparison.Ordinal) + Begin.Length;
        int end = text.IndexOf(End, StringComparison.Ordinal);
        if (begin < Begin.Length || end < begin)
        {
            throw new InvalidDataException($"{readmePath} has no place for the table: {Begin} … {End}");
        }

        Page table = new();
        Write(table, headlines, surroundings);
        File.WriteAllText(readmePath, $"{text[..begin]}\n{table.Markdown}{text[end..]}");
    }
}
