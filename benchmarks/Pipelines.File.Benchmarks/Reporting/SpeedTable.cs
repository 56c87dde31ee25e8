using System.Globalization;
using FilePipelinesBenchmarks.Measuring;

namespace FilePipelinesBenchmarks.Reporting;

/// <summary>The table that is both on the report's first page and in README.md, word for word; .ci/report compares the two.</summary>
internal static class SpeedTable
{
    private const string Begin = "<!-- speed: written by the report -->";
    private const string End = "<!-- end of speed -->";

    internal static void Write(Page page, IReadOnlyList<Headline> headlines, Surroundings surroundings)
    {
        page.Table(
            ["question", "this library", "by hand", "ready made in .NET", "others", "ratio to the best alternative (below 1: faster)"],
            headlines.Select(line => (IReadOnlyList<string>)
            [
                $"{line.Question}: {line.Unit}",
                $"**{line.FigureOf(Origin.Own)}**",
                line.FigureOf(Origin.ByHand),
                line.FigureOf(Origin.Net),
                line.FigureOf(Origin.Other),
                $"**{Figures.Number(line.Ratio)}** ({line.Rival.Way})",
            ]));
        page.Paragraph($"**The library loses {headlines.Count(line => line.IsLost)} of {headlines.Count}** by more than 3 %. "
            + "*By hand* is what a good engineer writes for that one purpose with .NET's own calls. The ratio is the time of one operation "
            + "here divided by that of the best other way, which is named.");
        if (surroundings.CallMicroseconds is { } call)
        {
            page.Paragraph(string.Create(CultureInfo.InvariantCulture, $"Measured where the shortest system call takes {call:0.00} µs; on "
                + $"ordinary hardware it takes 0.1 to 0.2. Slow calls favor code that makes few of them for many bytes, and "
                + $"disadvantage code that opens many files or often changes threads."));
        }

        page.Paragraph($"Measured at commit `{surroundings.Commit}`, whose `src` is the tree `{surroundings.Sources}`.");
    }

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
