using System.Diagnostics;
using System.Globalization;
using System.Text;
using FilePipelinesBenchmarks.Cold;
using FilePipelinesBenchmarks.Durable;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Follow;
using FilePipelinesBenchmarks.Measuring;
using FilePipelinesBenchmarks.Waiting;
using Spectre.Console;

namespace FilePipelinesBenchmarks.Reporting;

/// <summary><c>report [--minutes N] [--output FOLDER]</c>: measures the headline grids and writes benchmarks/report/.</summary>
internal static class ReportCommand
{
    private const double DefaultMinutes = 7;
    private const int DelayRounds = 5;
    private const double DelayWeight = 0.3;
    private const double CommitWeight = 0.6;
    private const double WaitsWeight = 2;
    private const int WaitsRounds = 7;
    private const double FollowWeight = 0.8;

    internal static async Task<int> RunAsync(string[] arguments)
    {
        double minutes = DefaultMinutes;
        string? output = null;
        for (int i = 0; i < arguments.Length; i++)
        {
            bool hasValue = i + 1 < arguments.Length;
            switch (arguments[i])
            {
                case "--minutes" when hasValue && double.TryParse(arguments[i + 1], CultureInfo.InvariantCulture, out minutes) && minutes > 0:
                    i++;
                    break;
                case "--output" when hasValue:
                    output = arguments[++i];
                    break;
                default:
                    await Console.Error.WriteLineAsync($"report does not understand '{arguments[i]}': report [--minutes N] [--output FOLDER]");
                    return 2;
            }
        }

        string? repository = FindRepository();
        if (repository is null && output is null)
        {
            await Console.Error.WriteLineAsync("report found no Pipelines.File.slnx here or above: say --output FOLDER");
            return 2;
        }

        output ??= Path.Join(repository, "benchmarks", "report");
        long start = Stopwatch.GetTimestamp();
        List<SectionResult> results = [];
        IReadOnlyList<WorkItemDelay> delays = [];
        IReadOnlyList<CommitFigures> commits = [];
        WaitsResult? waits = null;
        IReadOnlyList<FollowFigures> follows = [];
        Surroundings surroundings;
        using (TemporaryFolder folder = new())
        {
            surroundings = Surroundings.Look(repository ?? Environment.CurrentDirectory, folder.Path);
        }

        await AnsiConsole.Progress().Columns(new TaskDescriptionColumn { Alignment = Justify.Left }, new ProgressBarColumn(), new PercentageColumn(), new RemainingTimeColumn()).StartAsync(async context =>
        {
            double weights = ReportPlan.Sections.Sum(section => section.Weight) + DelayWeight + CommitWeight + WaitsWeight + FollowWeight;
            ProgressTask task = context.AddTask("all", maxValue: weights);
            double done = 0;
            foreach (ReportSection section in ReportPlan.Sections)
            {
                task.Description = section.Title.EscapeMarkup();
                results.Add(await MeasureAsync(section, TimeSpan.FromMinutes(minutes * section.Weight / weights), share => task.Value = done + (share * section.Weight)));
                done += section.Weight;
                task.Value = done;
            }

            task.Description = "Commits";
            commits = await CommitMeasurement.MeasureAsync(share => task.Value = done + (share * CommitWeight));
            if (PageCache.IsSupported)
            {
                task.Description = "Delay of an unrelated work item";
                delays = await MeasureDelaysAsync();
                task.Increment(DelayWeight);
                task.Description = "What waits";
                waits = await WaitsResult.MeasureAsync(WaitsRounds, () => task.Increment(WaitsWeight / WaitsResult.StepCount));
                task.Description = "Follow";
                follows = await FollowMeasurement.RunAsync(() => task.Increment(FollowWeight / FollowMeasurement.StepCount));
            }

            task.Value = task.MaxValue;
        });

        Page page = new ReportPage(results, delays, commits, waits, follows, surroundings, Stopwatch.GetElapsedTime(start)).Write();
        WriteFiles(page, results, delays, commits, waits, follows, output);
        AnsiConsole.WriteLine(string.Create(CultureInfo.InvariantCulture, $"{Stopwatch.GetElapsedTime(start).TotalMinutes:0.0} minutes; {Path.Join(output, "report.md")}, report.html, figures.csv and {page.Pictures.Count} pictures"));
        return 0;
    }

    private static async Task<SectionResult> MeasureAsync(ReportSection section, TimeSpan budget, Action<double> onShare)
    {
        long start = Stopwatch.GetTimestamp();
        using TemporaryFolder folder = new();
        IReadOnlyList<Column> columns = section.MakeColumns(folder);
        await section.Measurement.PrepareAsync(columns);
        List<(string Point, IReadOnlyList<Measured> Rows)> points = [];
        foreach (Column column in columns)
        {
            // What one point leaves over is the next ones'.
            TimeSpan share = (budget - Stopwatch.GetElapsedTime(start)) / (columns.Count - points.Count);
            int finished = points.Count;
            points.Add((column.Name, await section.Measurement.RunAsync(column, elapsed => onShare((finished + Math.Min(1, elapsed / share)) / columns.Count), share)));
        }

        return new SectionResult(section, points);
    }

    private static async Task<IReadOnlyList<WorkItemDelay>> MeasureDelaysAsync()
    {
        using TemporaryFolder folder = new();
        RandomReadCase point = ReportPlan.RandomReads(folder);
        List<double>[] delays = [.. RandomReadWays.All.Select(_ => new List<double>())];
        for (int round = 0; round < DelayRounds; round++)
        {
            for (int i = 0; i < delays.Length; i++)
            {
                int index = (round + i) % delays.Length;
                PageCache.Evict(point.File.Path);
                using ThreadPoolProbe probe = new();
                await RandomReadWays.All[index].RunAsync(point);
                delays[index].AddRange(probe.Stop());
            }
        }

        return [.. RandomReadWays.All.Select((way, index) =>
        {
            double[] sorted = [.. delays[index].Order()];
            return new WorkItemDelay(way.Name, sorted.Length, sorted[sorted.Length / 2], sorted[(int)((sorted.Length - 1) * 0.99)], sorted[^1]);
        })];
    }

    private static void WriteFiles(Page page, IReadOnlyList<SectionResult> results, IReadOnlyList<WorkItemDelay> delays, IReadOnlyList<CommitFigures> commits, WaitsResult? waits, IReadOnlyList<FollowFigures> follows, string folder)
    {
        Directory.CreateDirectory(folder);
        foreach (string old in Directory.EnumerateFiles(folder).Where(file => Path.GetExtension(file) is ".svg" or ".md" or ".html" or ".csv"))
        {
            File.Delete(old);
        }

        File.WriteAllText(Path.Join(folder, "report.md"), page.Markdown);
        File.WriteAllText(Path.Join(folder, "report.html"), page.ToHtml(ReportPage.Title));
        foreach ((string name, string svg) in page.Pictures)
        {
            File.WriteAllText(Path.Join(folder, name), svg);
        }

        StringBuilder csv = new("grid,point,method,rounds,us_min,us_lower_quartile,us_median,us_upper_quartile,us_max,ratio_min,ratio_lower_quartile,ratio_median,ratio_upper_quartile,ratio_max,cpu_us,allocated_bytes\n");
        foreach (SectionResult result in results)
        {
            foreach ((string point, IReadOnlyList<Measured> rows) in result.Points)
            {
                foreach (Measured row in rows)
                {
                    csv.Append(CultureInfo.InvariantCulture, $"{result.Section.Key},{Quoted(point)},{Quoted(row.Name)},{row.Rounds},{Fields(row.Microseconds, "0.0")},{Fields(row.Ratio, "0.0000")},{row.CpuMicroseconds:0.0},{row.AllocatedBytes:0}\n");
                }
            }
        }

        File.WriteAllText(Path.Join(folder, "figures.csv"), csv.ToString());
        csv.Clear().Append("method,producers,commits_per_second_min,lower_quartile,median,upper_quartile,max,ratio_median,us_median,us_99th_percentile\n");
        foreach (CommitFigures figures in commits)
        {
            csv.Append(CultureInfo.InvariantCulture, $"{Quoted(figures.Name)},{figures.Producers},{Fields(figures.PerSecond, "0")},{figures.Ratio.Median:0.0000},{figures.Median:0.0},{figures.NinetyNinth:0.0}\n");
        }

        File.WriteAllText(Path.Join(folder, "commits.csv"), csv.ToString());
        if (delays.Count > 0)
        {
            csv.Clear().Append("method,work_items,ms_median,ms_99th_percentile,ms_longest\n");
            foreach (WorkItemDelay delay in delays)
            {
                csv.Append(CultureInfo.InvariantCulture, $"{Quoted(delay.Name)},{delay.Samples},{delay.Median:0.000},{delay.NinetyNinth:0.000},{delay.Longest:0.000}\n");
            }

            File.WriteAllText(Path.Join(folder, "delays.csv"), csv.ToString());
        }

        if (follows.Count > 0)
        {
            File.WriteAllText(Path.Join(folder, "follow.csv"), FollowSection.ToCsv(follows));
        }

        if (waits is not null)
        {
            csv.Clear().Append("operation,at_once,method,per_second_median,ratio_lower_quartile,ratio_median,ratio_upper_quartile,ms_median,ms_99th_percentile,cpu_us,delay_ms_median,delay_ms_99th_percentile,delay_ms_longest,pool_threads\n");
            foreach ((bool isReads, int atOnce, IReadOnlyList<WaitingFigures> ways) in waits.Points)
            {
                foreach (WaitingFigures way in ways)
                {
                    csv.Append(CultureInfo.InvariantCulture, $"{(isReads ? "read" : "flush")},{atOnce},{Quoted(way.Way)},{way.OperationsPerSecond.Median:0},{way.Ratio.LowerQuartile:0.000},{way.Ratio.Median:0.000},{way.Ratio.UpperQuartile:0.000},{way.Median:0.000},{way.NinetyNinth:0.000},{way.CpuMicroseconds:0.0},{way.DelayMedian:0.000},{way.DelayNinetyNinth:0.000},{way.DelayLongest:0.000},{way.PoolThreads}\n");
                }
            }

            File.WriteAllText(Path.Join(folder, "waits.csv"), csv.ToString());
        }
    }

    private static string Fields(Spread spread, string format)
        => string.Join(',', new[] { spread.Minimum, spread.LowerQuartile, spread.Median, spread.UpperQuartile, spread.Maximum }.Select(value => value.ToString(format, CultureInfo.InvariantCulture)));

    private static string Quoted(string text) => text.Contains(',', StringComparison.Ordinal) ? $"\"{text}\"" : text;

    private static string? FindRepository()
    {
        string? folder = Environment.CurrentDirectory;
        while (folder is not null && !File.Exists(Path.Join(folder, "Pipelines.File.slnx")))
        {
            folder = Path.GetDirectoryName(folder);
        }

        return folder;
    }
}
