namespace FilePipelines.Benchmarks.Reporting;

/// <summary>A mapped file against the ways that copy, for both ways in which the page cache may hold it.</summary>
internal sealed class MappingChapter(Scale scale) : GridChapter([Reading.Mapping(scale)])
{
    private string _truncation = string.Empty;

    internal override string Title => "Memory mapping";

    internal override IEnumerable<Headline> Headlines
        => [Headline.OfGrids("headline-mapping", "Reading, every byte looked at, with mappings", "FilePipeReader", Results)];

    internal override async Task MeasureAsync(Allowance allowance)
    {
        await base.MeasureAsync(allowance);
        if (OperatingSystem.IsLinux())
        {
            _truncation = $" In this run a process that did so ended with {await TruncatedMapping.RunInAnotherProcessAsync()}.";
        }
    }

    internal override void Write(Page page)
    {
        GridResult result = Results[0];
        Spread[] mapped = [.. result.Of("MemoryMappedFile").Select(measured => measured.Ratio)];
        Spread[] own = [.. result.Of("FilePipeReader").Select(measured => measured.Ratio)];
        page.Paragraph(
            "A mapping copies nothing. Whether it is faster depends on how the page cache holds the file. A file that was written in large "
            + $"pieces lies in large folios: the mapping took {Figures.Number(mapped[0].Median)} of the time of `FileStream.Read`, and "
            + $"`FilePipeReader` {Figures.Number(own[0].Median)}. One that was written a page at a time, as logs are, lies in small ones: "
            + $"{Figures.Number(mapped[^1].Median)} and {Figures.Number(own[^1].Median)}. A program cannot see which it has.");
        page.Grid(result);
        page.Paragraph(
            "**A file that is truncated while it is mapped kills the process** (SIGBUS)." + _truncation + " A `FilePipeReader` ends at the "
            + "new end. A page that is not cached blocks the thread that touches it; pipes, devices and /proc cannot be mapped.");
    }
}
