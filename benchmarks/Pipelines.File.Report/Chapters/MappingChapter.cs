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
            "A mapping copies nothing, so it can be faster than everything that reads; whether it is depends on how the page cache holds "
            + "the file. The system makes pages accessible one folio at a time, when they are touched first. A file that was written, or "
            + $"read from the device, in large pieces lies in large folios: there the mapping took {Figures.Number(mapped[0].Median)} of "
            + $"the time of `FileStream.Read`, and `FilePipeReader` {Figures.Number(own[0].Median)}. "
            + "A file that was written a page at a time, as logs and downloads are, lies in small ones: "
            + $"there the mapping took {Figures.Number(mapped[^1].Median)}, and `FilePipeReader` {Figures.Number(own[^1].Median)}. "
            + "A program cannot see which it has. The files here got their folios by being written, in one case in pieces of 1 MiB, in the "
            + "other in pieces of 4 KiB; every byte is added up, and no file was read from the device.");
        page.Grid(result);
        page.Paragraph(
            "What a mapping costs besides. **A file that is truncated while it is mapped kills the process**: a touch of a page that is "
            + "behind the new end raises SIGBUS, .NET makes a fatal error of it that no program can catch, and nothing keeps another "
            + "program from truncating." + _truncation
            + " A `FilePipeReader` ends at the new end. A page that is not in the page cache blocks the thread that touches it, where "
            + "nothing can be awaited; an I/O error is a signal, too; and pipes, devices and /proc cannot be mapped. "
            + "`MemoryMappedPipeReader` maps the file one buffer at a time, anew for each.");
    }
}
