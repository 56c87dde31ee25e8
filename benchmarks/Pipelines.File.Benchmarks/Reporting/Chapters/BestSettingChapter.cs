using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Measuring;
using FilePipelinesBenchmarks.Reading;
using FilePipelinesBenchmarks.Writing;

namespace FilePipelinesBenchmarks.Reporting.Chapters;

/// <summary>
/// Each way as it comes, and each way with the buffer that suits it best: the grids compare ways at one buffer size, which is not what
/// somebody who tunes a program compares.
/// </summary>
internal sealed class BestSettingChapter(ReportScale scale)
    : GridChapter(
    [
        Reading(scale, 128, 20), DefaultReading(scale), Writing(scale), DefaultWriting(scale),
    ])
{
    private const long MiB = 1024 * 1024;
    private const string NoSetting = "as it comes";

    private static readonly int[] s_settings = [16384, 65536, 262144, 1048576];

    internal override string Title => "Each way at its best setting";

    internal override IEnumerable<Headline> Headlines =>
    [
        Times("headline-best-reading", "Reading 128 MiB, each way at its best setting", Find("best-read-128")!),
        Times("headline-default-reading", "Reading 128 MiB, each way with its default setting", Find("default-read")!),
        Times("headline-best-writing", $"Writing {SizeText.Of(scale.WrittenBytes)}, each way at its best setting", Find("best-write")!),
        Times("headline-default-writing",
            $"Writing {SizeText.Of(scale.WrittenBytes)} in pieces of 4 KiB, each way with its default setting", Find("default-write")!),
    ];

    internal override void Write(Page page)
    {
        page.Paragraph("The grids below compare all ways at one buffer size. `FilePipeReader` fills many segments with one call, so it "
            + "takes nearly the same time whatever the size of its segments, and the others gain from larger buffers. Here every way is "
            + $"measured with buffers of {string.Join(", ", s_settings.Select(size => SizeText.Of(size)))}, and its best setting is "
            + "compared with the best settings of the others. CPU time is that of all cores together.");
        foreach (SectionResult result in Grids)
        {
            Measured[] rows = [.. result.Points[0].Rows];
            Measured[] best = [.. rows.GroupBy(row => WayOf(row.Name)).Select(way => way.MinBy(row => row.Microseconds.Median)!)
                .OrderBy(row => row.Microseconds.Median)];
            Measured fastest = best[0];
            page.Paragraph($"**{result.Section.Title}.** Times are medians with their quartiles.");
            page.Table(
                ["way", "best setting", "time, ms", "quartiles", "CPU, ms", "time, fastest = 1"],
                best.Select(row => (IReadOnlyList<string>)
                [
                    Figures.Emphasised(WayOf(row.Name)),
                    SettingOf(row.Name),
                    Figures.Emphasised(row.Name, Milliseconds(row.Microseconds.Median)),
                    $"{Milliseconds(row.Microseconds.LowerQuartile)}–{Milliseconds(row.Microseconds.UpperQuartile)}",
                    Milliseconds(row.CpuMicroseconds),
                    Figures.Number(row.Microseconds.Median / fastest.Microseconds.Median),
                ]), texts: 2);
        }
    }

    private static string Milliseconds(double microseconds) => Figures.Number(microseconds / 1000);

    private static string WayOf(string name) => name[..name.LastIndexOf(", ", StringComparison.Ordinal)];

    private static string SettingOf(string name) => name[(name.LastIndexOf(", ", StringComparison.Ordinal) + 2)..];

    private static Headline Times(string key, string question, SectionResult result)
        => Headline.OfTimes(key, question, "ms (CPU of all cores)", question, [.. result.Points[0].Rows.Select(
            row => (row.Name, row.Microseconds.Median / 1000, (double?)(row.CpuMicroseconds / 1000)))]);

    private static ReportSection Reading(ReportScale scale, int mebibytes, double weight)
        => new(
            $"best-read-{mebibytes}",
            $"Reading {mebibytes} MiB, each way at its best setting",
            "length",
            weight,
            new PairedMeasurement(scale.MinRounds, 15, scale.Sample),
            Reason,
            folder => [new Column($"{mebibytes} MiB", ReadCandidates(IntegerFile.Make(folder, mebibytes * MiB), scale))])
        {
            HasManySettings = true,
            MakeWarmUp = folder => ReadCandidates(IntegerFile.Make(folder, MiB), scale),
        };

    private static ReportSection DefaultReading(ReportScale scale)
        => new(
            "default-read",
            "Reading 128 MiB, each way with its default setting",
            "length",
            8,
            new PairedMeasurement(scale.MinRounds, 15, scale.Sample),
            Reason,
            folder => [new Column("128 MiB", DefaultCandidates(IntegerFile.Make(folder, 128 * MiB)))])
        {
            HasManySettings = true,
            MakeWarmUp = folder => DefaultCandidates(IntegerFile.Make(folder, MiB)),
        };

    private static ReportSection DefaultWriting(ReportScale scale)
        => new(
            "default-write",
            $"Writing {SizeText.Of(scale.WrittenBytes)} in pieces of 4 KiB, each way with its default setting",
            "length",
            8,
            new PairedMeasurement(scale.MinRounds, 9, TimeSpan.FromMilliseconds(1)),
            Reason,
            folder => [new Column(SizeText.Of(scale.WrittenBytes), DefaultWriteCandidates(folder, scale.WrittenBytes))])
        {
            HasManySettings = true,
            IsWarm = true,
        };

    private static ReportSection Writing(ReportScale scale)
        => new(
            "best-write",
            $"Writing {SizeText.Of(scale.WrittenBytes)}, each way at its best setting",
            "length",
            20,
            new PairedMeasurement(scale.MinRounds, 9, TimeSpan.FromMilliseconds(1)),
            Reason,
            folder => [new Column(SizeText.Of(scale.WrittenBytes), WriteCandidates(folder, scale, scale.WrittenBytes))])
        {
            HasManySettings = true,
            MakeWarmUp = folder => WriteCandidates(folder, scale, 2 * MiB),
        };

    private const string Reason = "**Best settings.** With its best buffer every way makes few calls, and the copy between the page cache "
        + "and the buffer is nearly all of the time. What differs is how much of it stays in the processor's cache.";

    private static IReadOnlyList<Candidate> ReadCandidates(IntegerFile file, ReportScale scale)
    {
        ReadWay[] ways =
        [
            ReadWays.FileStreamSync, ReadWays.FileStreamSyncRented, ReadWays.RandomAccessSync, ReadWays.PipeReaderCreate,
            ReadWays.FileStreamToPipe, new DotNextFileReaderRead(), ReadWays.FilePipeReader, ReadWays.FilePipeReaderAhead,
        ];
        return
        [
            .. ways.SelectMany(way => scale.Points(s_settings, 1, 2).Select(size => new Candidate($"{way.Name}, {SizeText.Of(size)}",
                () => way.ReadAsync<LastEightBytes>(new ReadCase(file, size, FileOptions.None))))),
            new Candidate($"{DefaultRead.OfLibrary.Name}, {NoSetting}",
                () => DefaultRead.OfLibrary.ReadAsync<LastEightBytes>(new ReadCase(file, 0, FileOptions.None))),
        ];
    }

    private static IReadOnlyList<Candidate> DefaultCandidates(IntegerFile file)
    {
        ReadCase point = new(file, 4096, FileOptions.None);
        return [.. new[] { ReadWays.FileStreamSyncBuffered, DefaultRead.OfPipeReader, new DotNextFileReaderRead(), DefaultRead.OfLibrary }
            .Select(way => new Candidate($"{way.Name}, {NoSetting}", () => way.ReadAsync<LastEightBytes>(point)))];
    }

    // RandomAccess.Write has no setting but the size of the piece.
    private static IReadOnlyList<Candidate> DefaultWriteCandidates(TemporaryFolder folder, long length)
    {
        WriteWay[] ways =
        [
            WriteWays.FileStreamSync, WriteWays.FileStreamSyncNew, WriteWays.RandomAccessSync, WriteWays.PipeWriterCreate,
            new DotNextFileWriterWrite(), WriteWays.WriteBehind,
        ];
        WriteCase point = new(folder.PathOf("written.bin"), length, 4096, Preallocate: false);
        return [.. ways.Select(
            way => new Candidate($"{way.Name}, {NoSetting}", () => way.WriteAsync(point), () => File.Delete(point.Path)))];
    }

    private static IReadOnlyList<Candidate> WriteCandidates(TemporaryFolder folder, ReportScale scale, long length)
    {
        WriteWay[] ways =
        [
            WriteWays.FileStreamSync, WriteWays.FileStreamSyncNew, WriteWays.RandomAccessSync, WriteWays.PipeWriterCreate,
            new DotNextFileWriterWrite(), WriteWays.WriteBehind,
        ];
        return [.. ways.SelectMany(way => scale.Points(s_settings, 1, 2).Select(size =>
        {
            WriteCase point = new(folder.PathOf("written.bin"), length, size, Preallocate: false);
            return new Candidate($"{way.Name}, {SizeText.Of(size)}", () => way.WriteAsync(point), () => File.Delete(point.Path));
        }))];
    }
}
