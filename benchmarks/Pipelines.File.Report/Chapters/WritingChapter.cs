namespace FilePipelines.Benchmarks.Reporting;

/// <summary>A new file, written in pieces.</summary>
internal sealed class WritingChapter(Scale scale) : GridChapter([.. Writing.Pieces(scale), Writing.Flushes(scale)])
{
    private const string FlushKey = "flush";

    internal override string Title => "Writing";

    internal override IEnumerable<Headline> Headlines =>
    [
        Headline.OfGrids("headline-writing", "Writing, a flush every 512 B to 256 KiB (here write-behind; the others' are with the system)",
            "FilePipeWriter", [.. Results.Take(2)]),
        Headline.OfGrids("headline-written", "A flush of 100 B to 16 KiB that the system has (Written)", WriteWays.Written.Name,
            [Find(FlushKey)]),
    ];

    internal override void Write(Page page)
    {
        page.Paragraph("A new file, written in pieces with a flush after each (for the pipes) or one call a piece (for the others), "
            + "closed, and its length checked. `FilePipeWriter` hands the bytes over and coalesces them; `written` waits until the system "
            + "has them at every flush.");
        page.Paragraph("`CreateNew` beside the others, which open with `FileMode.Create`: that truncates even a file that it has just "
            + "made, and ext4 then begins to write it to the device when it is closed. The file does not exist before either of them.");
        page.Lines(Results[0], Writing.SizesOf(isPreallocated: false), []);
        page.Grid(Results[0]);
        page.Paragraph("What one flush costs that returns when the system has the bytes, without a sync: `FlushGuarantee.Written` against "
            + "`PipeWriter.Create` over an unbuffered `FileStream`, and the call by itself. `WriteBehind` hands the bytes over and "
            + "does not wait. The times are those of one flush.");
        page.Grid(Find(FlushKey));
    }
}
