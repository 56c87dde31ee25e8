namespace FilePipelines.Benchmarks;

/// <summary>
/// <see cref="Usage"/>: tables of ratios to the baseline within half a minute, for tuning. A grid goes by its key in figures.csv, several
/// by the beginning of their keys.
/// </summary>
internal static class Pairs
{
    private const string Usage = "pairs [--quick] [--suite KEY]";

    internal static async Task<int> RunAsync(string[] arguments)
    {
        Arguments given = new(
            arguments, $"{Usage}, where KEY is one of {string.Join(", ", Grid.All(Scale.Full).Select(grid => grid.Key))}");
        bool isQuick = given.Flag("--quick");
        string[] keys = given.Text("--suite") is { } key ? [key] : ["read", "write", "small"];
        Grid[] grids = [.. Grid.All(new Scale(isQuick)).Where(
            grid => keys.Any(key => grid.Key == key || grid.Key.StartsWith($"{key}-", StringComparison.Ordinal)))];
        if (given.AreWrong(also: grids.Length == 0))
        {
            return 2;
        }

        foreach (Grid grid in grids)
        {
            Write(await grid.MeasureAsync(TimeSpan.FromSeconds(isQuick ? 10 : 60)));
        }

        return 0;
    }

    private static void Write(GridResult result)
    {
        Console.WriteLine($"{result.Grid.Title}: time / {result.Baseline}, median (quartiles)");
        List<string[]> rows = [["method", .. result.Points.Select(point => point.Point), "CPU (first column)", "allocated"]];
        foreach (string method in result.Methods)
        {
            IReadOnlyList<Measured> measured = result.Of(method);
            rows.Add([method, .. measured.Select(point => Figures.Ratio(point.Ratio)), Figures.Time(measured[0].CpuMicroseconds),
                $"{Figures.Count(measured[0].AllocatedBytes)} B"]);
        }

        rows.Add(["baseline, µs",
            .. result.Points.Select(point => point.Rows[0].Microseconds.Median.ToString("#,0.##", CultureInfo.InvariantCulture)), "", ""]);
        int[] widths = [.. rows[0].Select((_, column) => rows.Max(row => row[column].Length))];
        foreach (string[] row in rows)
        {
            Console.WriteLine(string.Join("  ", row.Select((cell, i) => i == 0 ? cell.PadRight(widths[0]) : cell.PadLeft(widths[i]))));
        }

        Console.WriteLine();
    }
}
