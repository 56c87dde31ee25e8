using FilePipelinesBenchmarks.Reporting.Chapters;

namespace FilePipelinesBenchmarks.Reporting;

/// <summary>What the report measures.</summary>
internal static class ReportPlan
{
    /// <summary>The chapters, in their order on the page, which is also that of the first page's lines.</summary>
    /// <param name="scale">How much of each.</param>
    /// <param name="repository">Has benchmarks/serve.sh; <see langword="null"/> where it is not known.</param>
    internal static IReadOnlyList<ReportChapter> MakeChapters(ReportScale scale, string? repository) =>
    [
        new BestSettingChapter(scale),
        new ReadingChapter(scale),
        new MappingChapter(scale),
        new WaitsChapter(scale),
        new WritingChapter(scale),
        new DurableChapter(scale),
        new FollowChapter(scale),
        new ParsingChapter(scale),
        new FilesChapter(scale),
        new FirstFileChapter(scale),
        new MemoryChapter(scale),
        new ServingChapter(scale, repository),
    ];

    /// <summary>Every grid of the whole report.</summary>
    internal static IEnumerable<ReportSection> Sections
        => MakeChapters(ReportScale.Full, repository: null).OfType<GridChapter>().SelectMany(chapter => chapter.Sections);
}
