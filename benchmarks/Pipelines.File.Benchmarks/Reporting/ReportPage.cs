using System.Globalization;
using FilePipelinesBenchmarks.Measuring;

namespace FilePipelinesBenchmarks.Reporting;

/// <summary>Turns what was measured into the page that is read: the first table, where the library loses, the chapters, and how it was measured.</summary>
/// <param name="chapters">Those that were measured.</param>
/// <param name="failures">Those that were not, and why.</param>
/// <param name="surroundings">The machine.</param>
/// <param name="duration">How long it took.</param>
/// <param name="scale">How much was measured.</param>
internal sealed class ReportPage(
    IReadOnlyList<ReportChapter> chapters,
    IReadOnlyList<(string Title, string Error)> failures,
    Surroundings surroundings,
    TimeSpan duration,
    ReportScale scale)
{
    internal const string Title = "Files through pipelines, measured";

    private readonly Page _page = new();

    internal Page Write()
    {
        _page.Heading(1, Title);
        First();
        Losses();
        foreach (ReportChapter chapter in chapters)
        {
            _page.Heading(2, chapter.Title);
            chapter.Write(_page);
        }

        Method();
        return _page;
    }

    private void First()
    {
        _page.Paragraph(string.Create(CultureInfo.InvariantCulture, $"{surroundings.Date:yyyy-MM-dd}, commit `{surroundings.Commit}`, {surroundings.Machine}, {surroundings.System}, {surroundings.FileSystem}, {surroundings.Runtime}."));
        _page.Table(
            ["question", "this library", "the best of .NET", "the best of the others", "ratio", "where it loses"],
            chapters.SelectMany(chapter => chapter.Headlines).Select(line => (IReadOnlyList<string>)
            [
                line.Question,
                line.Own.Length == 0 ? "–" : $"**{line.Own}**",
                line.Net.Length == 0 ? "–" : line.Net,
                line.Other.Length == 0 ? "–" : line.Other,
                double.IsNaN(line.Ratio) ? "–" : $"**{Figures.Number(line.Ratio)}**",
                line.Losses.Length == 0 ? "nowhere" : line.Losses,
            ]),
            isText: true);
        _page.Paragraph("The ratio is the time that this library takes against the best of all the others: less than 1 is faster. A loss is more than 3 % with quartiles that do not overlap, where there are quartiles.");
        _page.Paragraph($"The others are {string.Join(", ", Packages.Versions)}{(Packages.HasPeers ? string.Empty : "; Nerdbank.Streams and Pipelines.Sockets.Unofficial were not built in (`-p:Peers=true`), so that their columns are left out")}.");
        if (scale.IsQuick)
        {
            _page.Paragraph("**This is the quick report**: fewer points and rounds, and smaller files where a title says so. Its figures are for a first look; what is within a tenth of each other is equal.");
        }

        if (failures.Count > 0)
        {
            _page.Paragraph("**Not measured**, because it failed:");
            _page.List(failures.Select(failure => $"{failure.Title}: {failure.Error}"));
        }
    }

    // Every point where a way of this library is slower than the baseline, or than the best that others have there.
    private void Losses()
    {
        _page.Heading(2, "Where it loses");
        List<IReadOnlyList<string>> rows = [];
        List<string> reasons = [];
        foreach (SectionResult result in chapters.SelectMany(chapter => chapter.Grids))
        {
            int before = rows.Count;
            foreach (string method in result.Methods.Where(Origins.IsOwn))
            {
                IReadOnlyList<Measured> own = result.Of(method);
                string toBaseline = string.Join("; ", own.Select((measured, index) => (result.Points[index].Point, measured.Ratio)).Where(point => point.Ratio.Median > Figures.Visible).Select(point => $"{point.Point}: {Figures.Ratio(point.Ratio)}"));
                string toBest = string.Join("; ", result.LossesOf(method).Where(loss => loss.Rival != result.Baseline).Select(loss => $"{loss.Point}: {Figures.Number(loss.Ratio)} ({loss.Rival})"));
                if (toBaseline.Length + toBest.Length > 0)
                {
                    rows.Add([result.Section.Title, method, toBaseline, toBest]);
                }
            }

            if (rows.Count > before && !reasons.Contains(result.Section.Reason))
            {
                reasons.Add(result.Section.Reason);
            }
        }

        if (rows.Count == 0)
        {
            _page.Paragraph("In this run, at no point of a grid.");
            return;
        }

        _page.Paragraph("Every point of a grid where one of this library's ways took more than 3 % longer than the grid's baseline, or than the fastest of the other ways there (if the quartiles do not overlap): its time divided by the other's. The reasons follow.");
        _page.Table(["grid", "way", "against the baseline", "against the fastest other"], rows, isText: true);
        _page.List(reasons);
    }

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
                ["packages of others", string.Join(", ", Packages.Versions)],
                ["when", string.Create(CultureInfo.InvariantCulture, $"{surroundings.Date:yyyy-MM-dd HH:mm} UTC, {duration.TotalMinutes:0.0} minutes")],
            ],
            isText: true);
        _page.List(
        [
            "All ways of one point run in one process, round by round, each round beginning with another of them. A ratio compares times of the same round only; what is given is the median of the rounds and, in parentheses, its quartiles. So what changes on the machine meanwhile changes both sides.",
            "Every run checks its own answer: the bytes or the sum that the file holds, the number that the parser has to find, the length of what was written. A wrong one ends its chapter, which the first page then names.",
            "Allocation is that of the whole process, thread-pool threads included. CPU time, best and worst rounds and the number of rounds are in [figures.csv](figures.csv).",
            "Files are in the page cache unless a title says otherwise, in large folios: they were written in pieces of 1 MiB.",
            "A cold run begins with `posix_fadvise(POSIX_FADV_DONTNEED)`. Before the first of them as much memory as it needs, and more, has been page cache once: memory that a virtual machine touches for the first time costs it more than the disk.",
            "One machine is one machine. Ratios hold better than times, and neither says anything about another disk.",
        ]);
        _page.Paragraph("Repeat it, which replaces these files:");
        _page.Code("dotnet run -c Release --project benchmarks/Pipelines.File.Benchmarks -- report");
        _page.Paragraph("Or a minute of it, into a folder of its own:");
        _page.Code("dotnet run -c Release --project benchmarks/Pipelines.File.Benchmarks -- report --quick");
    }
}
