using System.Globalization;
using FilePipelinesBenchmarks.Durable;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Parsing;
using FilePipelinesBenchmarks.Reading;
using FilePipelinesBenchmarks.Reporting;
using FilePipelinesBenchmarks.SmallFiles;
using FilePipelinesBenchmarks.Writing;
using Spectre.Console;

namespace FilePipelinesBenchmarks.Measuring;

/// <summary>
/// <see cref="Usage"/>: tables of ratios to the baseline within half a minute, for tuning. A suite is one of those, or a grid of the report
/// by its key in figures.csv, or several by the beginning of their keys.
/// </summary>
internal static class Pairs
{
    private const int MiB = 1024 * 1024;
    private const string Usage =
        "pairs [--quick] [--suite read|write|small|lines|replace|alignment|memory|KEY] [--size MIB] [--all] [--async] [--sum] "
        + "[--preallocate]";

    private const int SmallFileCount = 500;

    private static readonly int[] s_bufferSizes = [2048, 4096, 16384, 65536, 262144];
    private static readonly int[] s_flushSizes = [512, 2048, 4096, 16384, 65536, 262144];

    internal static async Task<int> RunAsync(string[] arguments)
    {
        List<string> rest = [.. arguments];
        bool quick = rest.Remove("--quick");
        bool all = rest.Remove("--all");
        bool isAsync = rest.Remove("--async");
        bool sum = rest.Remove("--sum");
        bool preallocate = rest.Remove("--preallocate");
        string? suite = Take("--suite");
        string? sizeText = Take("--size");
        int? size = int.TryParse(sizeText, NumberStyles.None, CultureInfo.InvariantCulture, out int parsed) && parsed > 0 ? parsed : null;
        bool isKnown = suite is null or "read" or "write" or "small" or "lines" or "replace" or "alignment" or "memory";
        ReportSection[] sections = isKnown ? [] :
            [.. ReportPlan.Sections.Where(
                section => section.Key == suite || section.Key.StartsWith($"{suite}-", StringComparison.Ordinal))];
        isKnown |= sections.Length > 0;
        if (rest.Count > 0 || !isKnown || (sizeText is not null && size is null))
        {
            await Console.Error.WriteLineAsync($"pairs does not understand '{(rest.Count > 0 ? rest[0] : isKnown ? sizeText : suite)}': "
                + $"{Usage}, where KEY is one of {string.Join(", ", ReportPlan.Sections.Select(section => section.Key))}");
            return 2;
        }

        using TemporaryFolder folder = new();
        if (suite is null or "read")
        {
            FileOptions options = FileOptions.SequentialScan | (isAsync ? FileOptions.Asynchronous : FileOptions.None);
            foreach (int mebibytes in size is null ? (int[])[4, 128] : [size.Value])
            {
                using IntegerFile file = IntegerFile.Make(folder, mebibytes * (long)MiB);
                await ReadAsync(file, options, quick, all, sum);
            }
        }

        if (suite is "alignment")
        {
            using IntegerFile file = IntegerFile.Make(folder, 128L * MiB);
            await AlignmentAsync(file, quick);
        }

        if (suite is "lines")
        {
            await LinesAsync(folder, quick, size ?? 64);
        }

        foreach (ReportSection section in sections)
        {
            using TemporaryFolder own = new();
            await TableAsync(section.Title, section.MakeColumns(own), section.Measurement, TimeSpan.FromSeconds(quick ? 3 : 12));
        }

        if (suite is null or "write")
        {
            await WriteAsync(folder, size ?? 100, quick, all, preallocate);
        }

        if (suite is "replace")
        {
            await TableAsync(
                "Replacing a file of 4 KiB",
                [.. ((bool[])[false, true]).Select(isDurable => new Column(
                    isDurable ? "durable" : "no sync", ReplaceWays.Of(folder.PathOf(isDurable ? "durable" : "written"), isDurable)))],
                new PairedMeasurement(quick ? 7 : 31, quick ? 7 : 31, TimeSpan.FromMilliseconds(10)));
        }

        if (suite is null or "small")
        {
            await SmallAsync(folder, quick);
        }

        if (suite is "memory")
        {
            foreach (ReportSection section
                in ReportPlan.Sections.Where(section => section.Key.StartsWith("memory-", StringComparison.Ordinal)))
            {
                await TableAsync(
                    section.Title, section.MakeColumns(folder), new ProcessMeasurement(section.Key, quick ? 1 : 5, quick ? 1 : 5));
            }
        }

        return 0;

        string? Take(string option)
        {
            int index = rest.IndexOf(option);
            if (index < 0 || index + 1 == rest.Count)
            {
                return null;
            }

            string value = rest[index + 1];
            rest.RemoveRange(index, 2);
            return value;
        }
    }

    private static Task ReadAsync(IntegerFile file, FileOptions options, bool quick, bool all, bool sum)
    {
        IReadOnlyList<ReadWay> ways = all
            ? ReadWays.All
            : [ReadWays.FileStreamSync, ReadWays.FileStreamSyncRented, ReadWays.PipeReaderCreate, ReadWays.RandomAccessSync,
                ReadWays.SystemCall, ReadWays.FilePipeReader, ReadWays.FilePipeReaderAhead];
        return TableAsync(
            $"Read, {file.Length / MiB} MiB, {options}{(sum ? ", sum" : string.Empty)}",
            [.. s_bufferSizes.Select(size => new Column(SizeText.Of(size), [.. ways.Select(way =>
            {
                ReadCase point = new(file, size, options);
                return new Candidate(way.Name, sum ? () => way.ReadAsync<Int64Sum>(point) : () => way.ReadAsync<LastEightBytes>(point));
            })]))],
            new PairedMeasurement(quick ? 7 : 15, quick ? 7 : 15, TimeSpan.FromMilliseconds(quick ? 5 : 12)));
    }

    private static Task AlignmentAsync(IntegerFile file, bool quick) => TableAsync(
        $"Read, {file.Length / MiB} MiB, by the alignment of the memory",
        [.. s_bufferSizes.Select(size => new Column(SizeText.Of(size), [.. ReadWays.Aligned.Select(way =>
            new Candidate(way.Name, () => way.ReadAsync<LastEightBytes>(new ReadCase(file, size, FileOptions.SequentialScan))))]))],
        new PairedMeasurement(quick ? 7 : 15, quick ? 7 : 15, TimeSpan.FromMilliseconds(5)));

    private static async Task LinesAsync(TemporaryFolder folder, bool quick, int mebibytes)
    {
        PairedMeasurement measurement = new(quick ? 7 : 31, quick ? 7 : 31, TimeSpan.FromMilliseconds(10));
        using (TextFile little = TextFile.MakeLines(folder, MiB))
        {
            await measurement.PrepareAsync(ParseWays.Candidates<LineParser>(little));
        }

        using TextFile file = TextFile.MakeLines(folder, 64L * MiB);
        await TableAsync(
            $"Lines counted, {file.Length / MiB} MiB", [new Column("64 MiB", ParseWays.Candidates<LineParser>(file))], measurement);
        await LinesByLengthAsync<LineParser>(folder, "Lines counted", mebibytes, quick);
        await LinesByLengthAsync<FieldParser>(folder, "Lines split at blanks, and the fields added up", mebibytes, quick);
    }

    /// <summary>Every way to the lines of a file of numbers, a file for each length of line.</summary>
    private static async Task LinesByLengthAsync<TParser>(TemporaryFolder folder, string title, int mebibytes, bool quick)
        where TParser : struct, ILineParser
    {
        PairedMeasurement measurement = new(quick ? 5 : 15, quick ? 5 : 15, TimeSpan.FromMilliseconds(10));
        using TextFile ten = TextFile.MakeNumbers<TParser>(folder, mebibytes * (long)MiB, lineLength: 10);
        using TextFile thirty = TextFile.MakeNumbers<TParser>(folder, mebibytes * (long)MiB, lineLength: 30);
        using TextFile hundred = TextFile.MakeNumbers<TParser>(folder, mebibytes * (long)MiB, lineLength: 100);
        using TextFile thousand = TextFile.MakeNumbers<TParser>(folder, mebibytes * (long)MiB, lineLength: 1000);
        using TextFile little = TextFile.MakeNumbers<TParser>(folder, MiB, lineLength: 99);
        await measurement.PrepareAsync(LineWays.Candidates<TParser>(little));
        await TableAsync(
            $"{title}, {mebibytes} MiB",
            [new Column("10 B", LineWays.Candidates<TParser>(ten)), new Column("30 B", LineWays.Candidates<TParser>(thirty)),
                new Column("100 B", LineWays.Candidates<TParser>(hundred)), new Column("1,000 B", LineWays.Candidates<TParser>(thousand))],
            measurement);
    }

    private static Task WriteAsync(TemporaryFolder folder, int mebibytes, bool quick, bool all, bool preallocate)
    {
        IReadOnlyList<WriteWay> ways = all
            ? WriteWays.All
            : [WriteWays.FileStreamSync, WriteWays.PipeWriterCreate, WriteWays.RandomAccessSync, WriteWays.SystemCall,
                WriteWays.WriteBehind, WriteWays.Written];
        return TableAsync(
            $"Write, {mebibytes} MiB{(preallocate ? ", preallocated" : string.Empty)}, a flush after every",
            [.. s_flushSizes.Select(size => new Column(SizeText.Of(size), [.. ways.Select(way =>
            {
                WriteCase point = new(folder.PathOf("written.bin"), mebibytes * (long)MiB, size, preallocate);
                return new Candidate(way.Name, () => way.WriteAsync(point), () => File.Delete(point.Path));
            })]))],
            new PairedMeasurement(quick ? 3 : 7, quick ? 3 : 7, TimeSpan.FromMilliseconds(5)));
    }

    private static Task SmallAsync(TemporaryFolder folder, bool quick)
    {
        (string Name, SmallFileSet Files)[] sets =
        [
            ("1 KiB", SmallFileSet.Make(folder, SmallFileCount, 1024, 1024)),
            ("4 KiB", SmallFileSet.Make(folder, SmallFileCount, 4096, 4096)),
            ("16 KiB", SmallFileSet.Make(folder, SmallFileCount, 16384, 16384)),
            ("1 to 16 KiB", SmallFileSet.Make(folder, SmallFileCount, 1024, 16384)),
        ];
        return TableAsync(
            $"Small files, {SmallFileCount} one after the other",
            [.. sets.Select(set =>
                new Column(set.Name, [.. SmallFileWays.All.Select(way => new Candidate(way.Name, () => way.ReadAllAsync(set.Files)))]))],
            new PairedMeasurement(quick ? 7 : 15, quick ? 7 : 15, TimeSpan.FromMilliseconds(5)));
    }

    private static async Task TableAsync(
        string title, IReadOnlyList<Column> columns, Measurement measurement, TimeSpan? budgetOfColumn = null)
    {
        List<IReadOnlyList<Measured>> measured = [];
        await AnsiConsole.Progress().StartAsync(async context =>
        {
            ProgressTask task = context.AddTask(
                title.EscapeMarkup(), maxValue: columns.Sum(column => measurement.MaxRounds * column.Candidates.Count));
            await measurement.PrepareAsync(columns[^1].Candidates);
            foreach (Column column in columns)
            {
                measured.Add(await measurement.RunAsync(column, _ => task.Increment(1), budgetOfColumn));
            }
        });

        Table table = new Table()
            .Title($"{title}: time / {columns[0].Candidates[0].Name}, median (quartiles)".EscapeMarkup()).AddColumn("method");
        foreach (Column column in columns)
        {
            table.AddColumn(new TableColumn(column.Name).RightAligned());
        }

        table.AddColumn(new TableColumn("CPU (first column)").RightAligned());
        table.AddColumn(new TableColumn("allocated").RightAligned());
        for (int row = 0; row < columns[0].Candidates.Count; row++)
        {
            table.AddRow([columns[0].Candidates[row].Name, .. measured.Select(list => Figures.Ratio(list[row].Ratio)),
                Figures.Time(measured[0][row].CpuMicroseconds),
                measured[0][row].AllocatedBytes.ToString("N0", CultureInfo.InvariantCulture) + " B"]);
        }

        table.AddRow(["baseline, µs",
            .. measured.Select(list => list[0].Microseconds.Median.ToString("#,0.##", CultureInfo.InvariantCulture)),
            string.Empty, string.Empty]);
        AnsiConsole.Write(table);
    }
}
