using System.Globalization;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Reading;
using Spectre.Console;

namespace FilePipelinesBenchmarks.Measuring;

/// <summary>
/// <c>pairs [--quick] [--suite read] [--size 4|128] [--all] [--async] [--sum]</c>: a table of ratios to the baseline within half a minute, for tuning.
/// </summary>
internal static class Pairs
{
    private const int MiB = 1024 * 1024;
    private const int RedirectedWidth = 160;

    internal static readonly int[] BufferSizes = [2048, 4096, 16384, 65536, 262144];

    internal static async Task<int> RunAsync(string[] arguments)
    {
        List<string> rest = [.. arguments];
        bool quick = rest.Remove("--quick");
        bool all = rest.Remove("--all");
        bool isAsync = rest.Remove("--async");
        bool sum = rest.Remove("--sum");
        string? suite = Take("--suite");
        string? size = Take("--size");
        if (rest.Count > 0)
        {
            await Console.Error.WriteLineAsync($"pairs does not know '{rest[0]}'");
            return 2;
        }

        if (Console.IsOutputRedirected)
        {
            AnsiConsole.Profile.Width = RedirectedWidth;
        }

        using TemporaryFolder folder = new();
        if (suite is null or "read")
        {
            FileOptions options = FileOptions.SequentialScan | (isAsync ? FileOptions.Asynchronous : FileOptions.None);
            foreach (int mebibytes in size is null ? [4, 128] : new[] { int.Parse(size, CultureInfo.InvariantCulture) })
            {
                using IntegerFile file = IntegerFile.Make(folder, mebibytes * (long)MiB);
                await ReadAsync(file, options, quick, all, sum);
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
            : [ReadWays.FileStreamSync, ReadWays.FileStreamSyncRented, ReadWays.PipeReaderCreate, ReadWays.RandomAccessSync, ReadWays.SystemCall, ReadWays.FilePipeReader, ReadWays.FilePipeReaderAhead];
        return TableAsync(
            $"Read, {file.Length / MiB} MiB, {options}{(sum ? ", sum" : string.Empty)}: time / FileStreamSync, median (best)",
            BufferSizes,
            size => [.. ways.Select(way =>
            {
                ReadCase point = new(file, size, options);
                return new Candidate(way.Name, sum ? () => way.ReadAsync<Int64Sum>(point) : () => way.ReadAsync<LastEightBytes>(point));
            })],
            quick);
    }

    private static async Task TableAsync(string title, int[] sizes, Func<int, IReadOnlyList<Candidate>> candidatesFor, bool quick)
    {
        PairedMeasurement measurement = new(quick ? 7 : 15, TimeSpan.FromMilliseconds(quick ? 5 : 12));
        IReadOnlyList<Candidate>[] candidates = [.. sizes.Select(candidatesFor)];
        IReadOnlyList<Measured>[] measured = new IReadOnlyList<Measured>[sizes.Length];
        await AnsiConsole.Progress().StartAsync(async context =>
        {
            ProgressTask task = context.AddTask(title.EscapeMarkup(), maxValue: candidates.Sum(list => measurement.SamplesFor(list.Count)));
            await PairedMeasurement.CompileAsync(candidates[^1]);
            for (int i = 0; i < sizes.Length; i++)
            {
                measured[i] = await measurement.RunAsync(candidates[i], () => task.Increment(1));
            }
        });

        Table table = new Table().Title(title.EscapeMarkup()).AddColumn("method");
        foreach (int size in sizes)
        {
            table.AddColumn(new TableColumn(SizeText(size)).RightAligned());
        }

        table.AddColumn(new TableColumn("allocated").RightAligned());
        for (int row = 0; row < candidates[0].Count; row++)
        {
            table.AddRow([candidates[0][row].Name, .. measured.Select(list => Cell(list, row)), measured[0][row].AllocatedBytes.ToString("N0", CultureInfo.InvariantCulture) + " B"]);
        }

        table.AddRow(["baseline, µs", .. measured.Select(list => list[0].Microseconds.Median.ToString("N0", CultureInfo.InvariantCulture)), string.Empty]);
        AnsiConsole.Write(table);
    }

    private static string Cell(IReadOnlyList<Measured> list, int row)
    {
        double best = list[row].Microseconds.Minimum / list[0].Microseconds.Minimum;
        return string.Create(CultureInfo.InvariantCulture, $"{list[row].Ratio.Median:0.00} ({best:0.00})");
    }

    private static string SizeText(int bytes) => bytes < 1024 ? $"{bytes} B" : $"{bytes / 1024} KiB";
}
