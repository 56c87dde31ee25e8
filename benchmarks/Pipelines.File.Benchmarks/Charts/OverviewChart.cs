using FilePipelinesBenchmarks.Reporting;

namespace FilePipelinesBenchmarks.Charts;

/// <summary>The README's picture: for each of a few questions this library and the best alternative, with their figures.</summary>
internal static class OverviewChart
{
    internal const string FileName = "overview.svg";

    // The report's headlines that it shows, and what they are called to somebody who has read nothing yet.
    private static readonly (string Key, string Title)[] s_questions =
    [
        ("headline-best-reading", "Read 128 MiB from the page cache, each way at its best setting: ms (CPU), less is better"),
        ("headline-commits-preallocated", "Commit 512 B records to the device, 64 producers: commits a second, more is better"),
        ("headline-serving", "Serve a file of 64 KiB over HTTP: requests a second, more is better"),
        ("headline-follow", "Follow a file that grows: how late a line is, ms, less is better"),
    ];

    /// <summary>The chart, or <see langword="null"/> where a chapter is missing.</summary>
    internal static string? Draw(IReadOnlyList<Headline> headlines)
    {
        (Headline? Headline, string Title)[] shown =
            [.. s_questions.Select(question => (headlines.FirstOrDefault(line => line.Key == question.Key), question.Title))];
        return Array.Exists(shown, question => question.Headline is null) ? null : BarChart.Draw(
            "This library and the alternatives",
            [.. shown.Select(question => new BarGroup(question.Title,
                [.. question.Headline!.Bars.Select(bar => (bar.Way, bar.Value, bar.Text))]))]);
    }
}
