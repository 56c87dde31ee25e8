namespace FilePipelinesBenchmarks.Reporting.Chapters;

/// <summary>A chapter of grids that are measured one after the other.</summary>
/// <param name="sections">Each gets its share of the chapter's time by its weight.</param>
internal abstract class GridChapter(IReadOnlyList<ReportSection> sections) : ReportChapter
{
    private readonly List<SectionResult> _results = [];

    internal IReadOnlyList<ReportSection> Sections => sections;

    internal override double Weight => sections.Sum(section => section.Weight);

    internal override IReadOnlyList<SectionResult> Grids => _results;

    internal override async Task MeasureAsync(Allowance allowance)
    {
        double weight = sections.Sum(section => section.Weight);
        double done = 0;
        foreach (ReportSection section in sections)
        {
            double share = section.Weight / weight;
            double before = done;
            _results.Add(
                await section.MeasureAsync(new Allowance(allowance.Time * share, part => allowance.OnShare(before + (part * share)))));
            done += share;
        }
    }

    private protected SectionResult? Find(string key) => _results.Find(result => result.Section.Key == key);
}
