using System.Globalization;
using System.Text;
using FilePipelinesBenchmarks.Reporting;

namespace FilePipelinesBenchmarks.Follow;

/// <summary>The report's section on followed files, and its figures as a file.</summary>
internal static class FollowSection
{
    internal static void Write(Page page, IReadOnlyList<FollowFigures> figures)
    {
        page.Heading(2, "Follow");
        page.Paragraph("How late a line is, from before it is appended until its follower has it, while lines come every few milliseconds; and what a thousand files cost that nothing comes to. `tail -F` is another process, whose output comes through a pipe.");
        page.Table(
            ["way", "late, median", "late, 99th percentile", $"{FollowMeasurement.IdleFiles:N0} idle files, of a core", "threads of the process"],
            figures.Select(way => (IReadOnlyList<string>)
            [
                way.Way,
                string.Create(CultureInfo.InvariantCulture, $"{way.Median:0.00} ms"),
                string.Create(CultureInfo.InvariantCulture, $"{way.NinetyNinth:0.00} ms"),
                string.Create(CultureInfo.InvariantCulture, $"{way.IdleCores:0.00} %"),
                way.Threads.ToString(CultureInfo.InvariantCulture),
            ]));
        FollowFigures ours = figures[0];
        page.Paragraph(string.Create(
            CultureInfo.InvariantCulture,
            $"Asked for: 1 ms in the median and 5 ms at the 99th percentile ({Bar(ours.Median <= 1 && ours.NinetyNinth <= 5)}), under 1 % of a core for a thousand idle files and no thread each ({Bar(ours.IdleCores < 1 && ours.Threads < FollowMeasurement.IdleFiles / 10)})."));
    }

    internal static string ToCsv(IReadOnlyList<FollowFigures> figures)
    {
        StringBuilder csv = new("method,ms_median,ms_99th_percentile,idle_percent_of_a_core,threads\n");
        foreach (FollowFigures way in figures)
        {
            csv.Append(CultureInfo.InvariantCulture, $"\"{way.Way}\",{way.Median:0.000},{way.NinetyNinth:0.000},{way.IdleCores:0.000},{way.Threads}\n");
        }

        return csv.ToString();
    }

    private static string Bar(bool isMet) => isMet ? "met" : "**missed**";
}
