namespace FilePipelines.Benchmarks.Reporting;

/// <summary>Copies, many small files, and a large one from the device.</summary>
internal sealed class FilesChapter(Scale scale) : GridChapter(
[
    Copying.Grid(scale), Trees.Grid(scale), Writing.Compress(scale), SmallFiles.Grid(scale),
    .. PageCache.IsSupported ? (Grid[])[Reading.Cold(scale)] : [],
])
{
    internal override IEnumerable<Headline> Headlines =>
    [
        Headline.OfGrids("headline-copying", "Copying one file to a new one", "FilePipeReader to FilePipeWriter", [Find("copy")]),
        Headline.OfGrids("headline-trees", "Copying a folder of small files with SHA-256, 2 at once", "samples/Copy --sha256 --jobs 2",
            [Find("trees")]),
        Headline.OfGrids("headline-compress", "Compressing into a file", "FilePipeWriter.AsStream, gzip", [Find("compress")]),
    ];

    internal override string Title => "Copying, compressing, small files, a large file from the device";

    internal override void Write(Page page)
    {
        foreach (GridResult result in Results)
        {
            page.Grid(result);
        }
    }
}
