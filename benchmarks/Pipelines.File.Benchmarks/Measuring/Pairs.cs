using System.Globalization;
using Spectre.Console;

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
            await MeasureAsync(grid, TimeSpan.FromSeconds(isQuick ? 3 : 12));
        }

        return 0;
    }

    private static async Task MeasureAsync(Grid grid, TimeSpan budgetOfColumn)
    {
        using TemporaryFolder folder = new();
        GridResult? result = null;
        await AnsiConsole.Progress().StartAsync(async context =>
        {
            IReadOnlyList<Column> columns = grid.MakeColumns(folder);
            ProgressTask task = context.AddTask(
                grid.Title.EscapeMarkup(), maxValue: columns.Sum(column => grid.Measurement.MaxRounds * column.Candidates.Count));
            await grid.Measurement.PrepareAsync(columns[^1].Candidates);
            List<(string Point, IReadOnlyList<Measured> Rows)> points = [];
            foreach (Column column in columns)
            {
                points.Add((column.Name, await grid.Measurement.RunAsync(column, _ => task.Increment(1), budgetOfColumn)));
            }

            result = new GridResult(grid, points);
        });
        Write(result!);
    }

    private static void Write(GridResult result)
    {
        string title = $"{result.Grid.Title}: time / {result.Baseline}, median (quartiles)";
        Table table = new Table().Title(title.EscapeMarkup()).AddColumn("method");
        foreach (string head in (string[])[.. result.Points.Select(point => point.Point), "CPU (first column)", "allocated"])
        {
            table.AddColumn(new TableColumn(head).RightAligned());
        }

        foreach (string method in result.Methods)
        {
            IReadOnlyList<Measured> measured = result.Of(method);
            table.AddRow([method, .. measured.Select(point => Figures.Ratio(point.Ratio)), Figures.Time(measured[0].CpuMicroseconds),
                $"{Figures.Count(measured[0].AllocatedBytes)} B"]);
        }

        table.AddRow(["baseline, µs",
            .. result.Points.Select(point => point.Rows[0].Microseconds.Median.ToString("#,0.##", CultureInfo.InvariantCulture)),
            string.Empty, string.Empty]);
        AnsiConsole.Write(table);
    }
}
