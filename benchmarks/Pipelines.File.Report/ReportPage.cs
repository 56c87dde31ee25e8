using System.Globalization;

namespace FilePipelines.Benchmarks.Reporting;

/// <summary>
/// Turns what was measured into the page that is read: the first table, where the library loses, the chapters, and how it was measured.
/// </summary>
/// <param name="runs">The chapters, and how they went.</param>
/// <param name="surroundings">The machine.</param>
/// <param name="scale">How much was measured.</param>
/// <param name="machines">This machine's main ratios, and those that other machines have made before.</param>
internal sealed class ReportPage(
    IReadOnlyList<ChapterRun> runs, Surroundings surroundings, Scale scale, IReadOnlyList<MachineFigures> machines)
{
    internal const string Title = "Files through pipelines, measured";

    // Others that use more than this share of the processors are told on the first page.
    private const double Disturbing = 0.1;

    private readonly Page _page = new();
    private readonly IReadOnlyList<ReportChapter> _chapters = [.. runs.Where(run => run.Error is null).Select(run => run.Chapter)];

    internal Page Write()
    {
        _page.Heading(1, Title);
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
        _page.Paragraph(string.Create(CultureInfo.InvariantCulture, $"{surroundings.Date:yyyy-MM-dd}, commit `{surroundings.Commit}`, "
            + $"{surroundings.Machine}, {surroundings.System}, {surroundings.FileSystem}, {surroundings.Runtime}."));
        Headline[] headlines = [.. _chapters.SelectMany(chapter => chapter.Headlines)];
        _page.Pictures([.. headlines.Select(
            headline => ($"{headline.Key}.svg", HeadlineChart.Draw(headline), $"Bars: {headline.Question}, {headline.Unit}"))]);
        if (OverviewChart.Draw(headlines) is { } overview)
        {
            _page.PictureFiles.Add(OverviewChart.FileName, overview);
        }

        SpeedTable.Write(_page, headlines, surroundings);
        _page.Paragraph("All questions:");
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

        ChapterRun[] failed = [.. runs.Where(run => run.Error is not null)];
        if (failed.Length > 0)
        {
            _page.Paragraph("**Not measured**, because it failed:");
            _page.List(failed.Select(run => $"{run.Chapter.Title}: {run.Error}"));
        }

        ChapterRun[] disturbed = [.. runs.Where(run => run.OthersUse > Disturbing)];
        if (disturbed.Length > 0)
        {
            _page.Paragraph("**The machine was not quiet.** So much of its processors was used by others, the kernel's own threads among "
                + "them, while these chapters were measured:");
            _page.List(disturbed.Select(run => $"{run.Chapter.Title}: {Percent(run.OthersUse)}"));
        }
    }

    // Every point where a way of this library is slower than the baseline, or than the best that others have there.
    private void Losses()
    {
        _page.Heading(2, "Where it loses");
        List<IReadOnlyList<string>> rows = [];
        List<string> reasons = [];
        foreach (GridResult result in _chapters.SelectMany(chapter => chapter.Results).Where(result => !result.Grid.HasManySettings))
        {
            int before = rows.Count;
            foreach (string method in result.Methods.Where(Origins.IsOwn))
            {
                IReadOnlyList<Measured> own = result.Of(method);
                string toBaseline = string.Join("; ", own.Select((measured, index) => (result.Points[index].Point, measured.Ratio))
                    .Where(point => point.Ratio.Median > Figures.Visible).Select(point => $"{point.Point}: {Figures.Ratio(point.Ratio)}"));
                string toBest = string.Join("; ", result.LossesOf(method).Where(loss => loss.Rival != result.Baseline)
                    .Select(loss => $"{loss.Point}: {Figures.Number(loss.Ratio)} ({loss.Rival})"));
                if (toBaseline.Length + toBest.Length > 0)
                {
                    rows.Add([result.Grid.Title, method, toBaseline, toBest]);
                }
            }

            if (rows.Count > before && !reasons.Contains(result.Grid.Reason))
            {
                reasons.Add(result.Grid.Reason);
            }
        }

        HeadlineLoss[] rates = [.. _chapters.SelectMany(chapter => chapter.Headlines).Where(headline => headline.IsRate)
            .SelectMany(headline => headline.Losses)];
        if (rates.Length > 0)
        {
            _page.Paragraph("Of the rates:");
            _page.Table(["point", "the best other", "time against it"],
                rates.Select(loss => (IReadOnlyList<string>)[loss.Point, loss.Rival, Figures.Number(loss.Ratio)]), isText: true);
        }

        if (rows.Count == 0)
        {
            _page.Paragraph("In this run, at no point of a grid.");
            return;
        }

        _page.Paragraph("Every point of a grid where one of this library's ways took more than 3 % longer than the grid's baseline, "
            + "or than the fastest of the other ways there (if the quartiles do not overlap): its time divided by the other's. "
            + "The reasons follow.");
        _page.Table(["grid", "way", "against the baseline", "against the fastest other"], rows, isText: true);
        _page.List(reasons);
    }

    private static string Percent(double share) => string.Create(CultureInfo.InvariantCulture, $"{share * 100:0} %");

    private void Method()
    {
        _page.Heading(2, "How it was measured");
        _page.Table(
            ["", "this run"],
            [
                ["machine", surroundings.Machine],
                ["system", surroundings.System],
                ["file system", surroundings.FileSystem],
                [".NET", surroundings.Runtime],
                ["commit", $"`{surroundings.Commit}`"],
                ["tree of src", $"`{surroundings.Sources}`"],
                ["packages of others", string.Join(", ", Packages.Versions)],
                ["when", string.Create(CultureInfo.InvariantCulture,
                    $"{surroundings.Date:yyyy-MM-dd HH:mm} UTC, {runs.Sum(run => run.Duration.TotalMinutes):0.0} minutes")],
                ["used by others meanwhile", Percent(runs.Sum(run => run.OthersUse * run.Duration.TotalSeconds)
                    / Math.Max(1, runs.Sum(run => run.Duration.TotalSeconds))) + " of all processors"],
            ],
            isText: true);
        _page.List(
        [
            "All ways of one point run in one process, round by round, each round beginning with another of them. "
            + "A ratio compares times of the same round only; what is given is the median of the rounds and, in parentheses, its "
            + "quartiles. So what changes on the machine meanwhile changes both sides.",
            "Every run checks its own answer: the bytes or the sum that the file holds, the number that the parser has to find, the length "
            + "of what was written. A wrong one ends its chapter, which the first page then names.",
            "Allocation is that of the whole process, thread-pool threads included. CPU time, best and worst rounds and the number of "
            + "rounds are in [figures.csv](figures.csv).",
            "Files are in the page cache unless a title says otherwise, in large folios: they were written in pieces of 1 MiB.",
            "A cold run begins with `posix_fadvise(POSIX_FADV_DONTNEED)`. Before the first of them as much memory as it needs, and more, "
            + "has been page cache once: memory that a virtual machine touches for the first time costs it more than the disk.",
            "One machine is one machine. Ratios hold better than times, and neither says anything about another disk.",
        ]);
        _page.Paragraph("Repeat it, which replaces these files:");
        _page.Code("dotnet run -c Release --project benchmarks/Pipelines.File.Report");
        _page.Paragraph("Or two minutes of it, into a folder of its own:");
        _page.Code("dotnet run -c Release --project benchmarks/Pipelines.File.Report -- --quick");
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
        ("headline-reading", "Read files of 4 and 128 MiB with buffers of 2 to 256 KiB (a read brings 256 KiB here, whatever the buffer)"),
        ("headline-default-reading", "Read 128 MiB with default settings"),
        ("headline-text", "Read lines of 10 to 1,000 B as strings"),
        ("headline-default-writing", "Write 100 MiB in pieces of 4 KiB (here the file has all of them only at `CompleteAsync`)"),
        ("headline-commits-preallocated", "Commit records to the device, 64 callers"),
        ("headline-commits-one", "Commit records to the device, one caller"),
        ("headline-serving", "Serve a file of 64 KiB over HTTP"),
        ("headline-first", "Read the first file of a process, 4 KiB"),
    ];

    internal static void Write(Page page, IReadOnlyList<Headline> headlines, Surroundings surroundings)
    {
        Rows(page, s_readme.SelectMany(shown => headlines.Where(line => line.Key == shown.Key)
            .Select(line => ($"{shown.Question}: {line.Unit}", line))));
        page.Paragraph("*By hand* is what a good engineer writes for that one purpose with .NET's own calls. The ratio is the time of one "
            + "operation here divided by that of the best other way, which is named.");
        if (surroundings.CallMicroseconds is { } call)
        {
            page.Paragraph(string.Create(CultureInfo.InvariantCulture, $"{surroundings.Machine}, {surroundings.FileSystem}, "
                + $"{surroundings.Runtime}. The shortest system call takes {call:0.00} µs here, and 0.1 to 0.2 µs on ordinary hardware. "
                + $"Slow calls favor few large calls, and disadvantage opening many files and changing threads."));
        }

        page.Paragraph($"Measured at commit `{surroundings.Commit}`, whose `src` is the tree `{surroundings.Sources}`.");
    }

    /// <summary>Every question, and how many are lost.</summary>
    internal static void WriteAll(Page page, IReadOnlyList<Headline> headlines)
    {
        Rows(page, headlines.Select(line => ($"{line.Question}: {line.Unit}", line)));
        page.Paragraph($"**The library loses {headlines.Count(line => line.IsLost)} of {headlines.Count}** by more than 3 %.");
    }

    private static void Rows(Page page, IEnumerable<(string Question, Headline Line)> rows)
        => page.Table(
            ["question", "this library", "by hand", "ready made in .NET", "others", "ratio to the best alternative (below 1: faster)"],
            rows.Select(row => (IReadOnlyList<string>)
            [
                row.Question,
                $"**{row.Line.FigureOf(Origin.Own)}**",
                row.Line.FigureOf(Origin.ByHand),
                row.Line.FigureOf(Origin.Net),
                row.Line.FigureOf(Origin.Other),
                $"**{Figures.Number(row.Line.Ratio)}** ({row.Line.Rival.Way})",
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
