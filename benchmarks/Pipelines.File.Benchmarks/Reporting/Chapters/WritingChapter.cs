using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Measuring;
using FilePipelinesBenchmarks.Writing;

namespace FilePipelinesBenchmarks.Reporting.Chapters;

/// <summary>A new file, written in pieces.</summary>
internal sealed class WritingChapter(ReportScale scale)
    : GridChapter([MakeSection(scale, preallocate: false, 40), MakeSection(scale, preallocate: true, 25), Flushes(scale)])
{
    private const string PreallocatedKey = "write-preallocated";
    private const string FlushKey = "flush";
    private const int FlushCount = 4096;

    private const long MiB = 1024 * 1024;

    private static readonly int[] s_flushSizes = [512, 2048, 4096, 16384, 65536, 262144];
    private static readonly int[] s_preallocatedSizes = [512, 4096, 65536, 262144];
    private static readonly int[] s_writtenSizes = [100, 512, 4096, 16384];

    internal override string Title => "Writing";

    internal override IEnumerable<Headline> Headlines =>
    [
        Headline.OfGrids("headline-writing", "Writing, a flush every 512 B to 256 KiB, same size for all", "FilePipeWriter",
            [.. Grids.Take(2)]),
        Headline.OfGrids("headline-written", "A flush of 100 B to 16 KiB that the system has (Written)", WriteWays.Written.Name,
            [Find(FlushKey)!]),
    ];

    internal override void Write(Page page)
    {
        page.Paragraph("A new file, written in pieces with a flush after each (for the pipes) or one call a piece (for the others), "
            + "closed, and its length checked. `FilePipeWriter` hands the bytes over and coalesces them; `written` waits until the system "
            + "has them at every flush.");
        page.Paragraph("`CreateNew` beside the others, which open with `FileMode.Create`: that truncates even a file that it has just "
            + "made, and ext4 then begins to write it to the device when it is closed. The file does not exist before either of them.");
        foreach (SectionResult result in Grids.Take(2))
        {
            page.Lines(result, SizesOf(result.Section.Key == PreallocatedKey), []);
            page.Grid(result);
        }

        page.Paragraph("What one flush costs that returns when the system has the bytes, without a sync: `FlushGuarantee.Written` against "
            + "`PipeWriter.Create` over an unbuffered `FileStream`, and the call by itself. `WriteBehind` hands the bytes over and "
            + "does not wait. The times are those of one flush.");
        page.Grid(Find(FlushKey)!);
    }

    /// <summary>Small flushes, each of which is a system call.</summary>
    internal static ReportSection Flushes(ReportScale scale)
        => new(
            FlushKey,
            "One flush that the system has",
            "bytes of a flush",
            10,
            new PairedMeasurement(scale.MinRounds, 21, TimeSpan.FromMilliseconds(1)),
            "**Written.** A flush is one system call and what a pipe costs around it; `RandomAccess.Write` is the call alone.",
            folder => [.. s_writtenSizes.Select(size => new Column(SizeText.Of(size), FlushCandidates(folder, size)))])
        {
            Operations = FlushCount,
        };

    private static IReadOnlyList<Candidate> FlushCandidates(TemporaryFolder folder, int size)
    {
        WriteWay[] ways =
        [
            WriteWays.PipeWriterCreate, WriteWays.FileStreamSyncUnbuffered, WriteWays.RandomAccessSync, WriteWays.Written,
            WriteWays.WriteBehind,
        ];
        WriteCase point = new(folder.PathOf("flushed.bin"), (long)FlushCount * size, size, Preallocate: false);
        return [.. ways.Select(way => new Candidate(way.Name, () => way.WriteAsync(point), () => File.Delete(point.Path)))];
    }

    private static int[] SizesOf(bool preallocate) => preallocate ? s_preallocatedSizes : s_flushSizes;

    private static ReportSection MakeSection(ReportScale scale, bool preallocate, double weight)
    {
        return new ReportSection(
            preallocate ? PreallocatedKey : "write",
            $"Writing {SizeText.Of(scale.GridBytes)}{(preallocate ? ", preallocated" : string.Empty)}",
            "bytes between two flushes",
            weight,
            new PairedMeasurement(scale.MinRounds, 21, TimeSpan.FromMilliseconds(1)),
            "**Writing.** From 64 KiB a flush on, a write of its own is already large, and `FilePipeWriter` copies the bytes once more, "
            + "into its segments. "
            + "`written` is one system call and one wait a flush, as `PipeWriter.Create` is, which is its fair comparison: "
            + "the baseline's `Write` of 512 B fills a buffer of 4 KiB and has given nothing to the system yet, and a `Write` of an array "
            + "hands the system the caller's own memory where a pipe has copied it first. "
            + "Use `Written` only when every flush must reach the operating system.",
            folder => [.. SizesOf(preallocate).Select(
                size => new Column(SizeText.Of(size), CandidatesFor(folder, scale.GridBytes, size)))])
        {
            MakeWarmUp = preallocate ? null : folder => CandidatesFor(folder, MiB, 4096),
            IsWarm = preallocate,
        };

        IReadOnlyList<Candidate> CandidatesFor(TemporaryFolder folder, long length, int flushSize)
            => [.. WriteWays.All.Select(way =>
            {
                WriteCase point = new(folder.PathOf("written.bin"), length, flushSize, preallocate);
                return new Candidate(way.Name, () => way.WriteAsync(point), () => File.Delete(point.Path));
            })];
    }
}
