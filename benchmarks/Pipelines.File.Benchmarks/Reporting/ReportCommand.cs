using System.Diagnostics;
using System.Globalization;
using System.Text;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Measuring;
using FilePipelinesBenchmarks.Reporting.Chapters;
using Spectre.Console;

namespace FilePipelinesBenchmarks.Reporting;

/// <summary><c>report [--quick] [--minutes N] [--output FOLDER]</c>: measures every chapter and writes benchmarks/report/, or with --quick benchmarks/report-quick/.</summary>
internal static class ReportCommand
{
    private const string Usage = "report [--quick] [--minutes N] [--output FOLDER]";

    internal static async Task<int> RunAsync(string[] arguments)
    {
        bool isQuick = false;
        double? minutes = null;
        string? output = null;
        for (int i = 0; i < arguments.Length; i++)
        {
            bool hasValue = i + 1 < arguments.Length;
            switch (arguments[i])
            {
                case "--quick":
                    isQuick = true;
                    break;
                case "--minutes" when hasValue && double.TryParse(arguments[i + 1], CultureInfo.InvariantCulture, out double value) && value > 0:
                    minutes = value;
                    i++;
                    break;
                case "--output" when hasValue:
                    output = arguments[++i];
                    break;
                default:
                    await Console.Error.WriteLineAsync($"report does not understand '{arguments[i]}': {Usage}");
                    return 2;
            }
        }

        string? repository = FindRepository();
        if (repository is null && output is null)
        {
            await Console.Error.WriteLineAsync($"report found no Pipelines.File.slnx here or above: say --output FOLDER ({Usage})");
            return 2;
        }

        output ??= Path.Join(repository, "benchmarks", isQuick ? "report-quick" : "report");
        ReportScale scale = new(isQuick);
        string? serving = new[] { output, Path.Join(repository, "benchmarks", "report") }.Select(folder => Path.Join(folder, ServingChapter.FileName)).FirstOrDefault(File.Exists);
        long start = Stopwatch.GetTimestamp();
        Surroundings surroundings;
        using (TemporaryFolder folder = new())
        {
            surroundings = Surroundings.Look(repository ?? Environment.CurrentDirectory, folder.Path);
        }

        (IReadOnlyList<ReportChapter> chapters, List<(string Title, string Error)> failures) = await MeasureAsync(ReportPlan.MakeChapters(scale, serving), TimeSpan.FromMinutes(minutes ?? scale.Minutes));
        WriteFigures(chapters, output);
        Page page = new ReportPage(chapters, failures, surroundings, Stopwatch.GetElapsedTime(start), scale).Write();
        WritePage(page, output);
        AnsiConsole.WriteLine(string.Create(CultureInfo.InvariantCulture, $"{Stopwatch.GetElapsedTime(start).TotalMinutes:0.0} minutes; {Path.Join(output, "report.md")}, report.html, figures.csv and {page.Pictures.Count} pictures"));
        foreach ((string title, string error) in failures)
        {
            await Console.Error.WriteLineAsync($"{title} was not measured: {error}");
        }
        return failures.Count == 0 ? 0 : 1;
    }

    private static async Task<(IReadOnlyList<ReportChapter> Chapters, List<(string Title, string Error)> Failures)> MeasureAsync(IReadOnlyList<ReportChapter> all, TimeSpan time)
    {
        long start = Stopwatch.GetTimestamp();
        List<ReportChapter> measured = [];
        List<(string Title, string Error)> failures = [];
        List<(string Title, TimeSpan Time)> durations = [];
        await AnsiConsole.Progress().Columns(new TaskDescriptionColumn { Alignment = Justify.Left }, new ProgressBarColumn(), new PercentageColumn(), new RemainingTimeColumn()).StartAsync(async context =>
        {
            Queue<ReportChapter> left = new(all.Where(chapter => chapter.IsSupported));
            ProgressTask progress = context.AddTask("all", maxValue: left.Sum(chapter => chapter.Weight));
            while (left.Count > 0)
            {
                ReportChapter chapter = left.Peek();
                long chapterStart = Stopwatch.GetTimestamp();
                double before = progress.Value;
                progress.Description = chapter.Title.EscapeMarkup();

                // What one chapter leaves over, or takes beyond its share, is the next ones'.
                TimeSpan share = Max(TimeSpan.Zero, time - Stopwatch.GetElapsedTime(start)) * (chapter.Weight / Math.Max(1, left.Sum(each => each.Weight)));
                try
                {
                    Task measuring = Task.Run(() => chapter.MeasureAsync(new Allowance(share, part => progress.Value = before + (part * chapter.Weight))));
                    await measuring.WaitAsync(Max(TimeSpan.FromMinutes(4), share * 3));
                    measured.Add(chapter);
                }
                catch (TimeoutException e)
                {
                    // It goes on, and would disturb whatever is measured beside it.
                    failures.Add((chapter.Title, e.Message));
                    failures.AddRange(left.Skip(1).Select(next => (next.Title, "what was measured before it does not end")));
                    return;
                }
                catch (Exception e)
                {
                    failures.Add((chapter.Title, e.Message));
                }

                durations.Add((chapter.Title, Stopwatch.GetElapsedTime(chapterStart)));
                progress.Value = before + chapter.Weight;
                left.Dequeue();
            }
        });
        foreach ((string title, TimeSpan duration) in durations)
        {
            AnsiConsole.WriteLine(string.Create(CultureInfo.InvariantCulture, $"{duration.TotalSeconds,6:0.0} s  {title}"));
        }

        return (measured, failures);

        static TimeSpan Max(TimeSpan one, TimeSpan other) => one > other ? one : other;
    }

    private static void WriteFigures(IReadOnlyList<ReportChapter> chapters, string folder)
    {
        Directory.CreateDirectory(folder);
        StringBuilder csv = new("grid,point,method,rounds,us_min,us_lower_quartile,us_median,us_upper_quartile,us_max,ratio_min,ratio_lower_quartile,ratio_median,ratio_upper_quartile,ratio_max,cpu_us,allocated_bytes\n");
        foreach (SectionResult result in chapters.SelectMany(chapter => chapter.Grids))
        {
            foreach ((string point, IReadOnlyList<Measured> rows) in result.Points)
            {
                foreach (Measured row in rows)
                {
                    csv.Append(CultureInfo.InvariantCulture, $"{result.Section.Key},{Figures.Quoted(point)},{Figures.Quoted(row.Name)},{row.Rounds},{Figures.Fields(row.Microseconds, "0.0")},{Figures.Fields(row.Ratio, "0.0000")},{row.CpuMicroseconds:0.0},{row.AllocatedBytes:0}\n");
                }
            }
        }

        File.WriteAllText(Path.Join(folder, "figures.csv"), csv.ToString());
        foreach ((string name, string text) in chapters.SelectMany(chapter => chapter.DataFiles))
        {
            File.WriteAllText(Path.Join(folder, name), text);
        }
    }

    private static void WritePage(Page page, string folder)
    {
        File.WriteAllText(Path.Join(folder, "report.md"), page.Markdown);
        File.WriteAllText(Path.Join(folder, "report.html"), page.ToHtml(ReportPage.Title));
        foreach ((string name, string svg) in page.Pictures)
        {
            File.WriteAllText(Path.Join(folder, name), svg);
        }
    }

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
