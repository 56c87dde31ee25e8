using System.Text;

namespace FilePipelines.Benchmarks.Reporting;

/// <summary>
/// <see cref="Usage"/>: measures every chapter, or those with one of the words in their titles, and writes benchmarks/report/ and the table
/// in README.md, or with --quick benchmarks/report-quick/ and nothing else.
/// </summary>
internal static class Program
{
    /// <summary>How much longer than it should a chapter may take before it is given up.</summary>
    private static readonly TimeSpan s_patience = TimeSpan.FromMinutes(4);

    private static readonly string s_endless = $"it did not end within {s_patience.TotalMinutes} minutes more than it should take";

    // Who reads it has a quarter of an hour.
    private const int MostWords = 6000;
    private const int MostPictures = 8;
    private const string Usage = "[--quick] [--minutes N] [--output FOLDER] [--only WORD,… --output FOLDER] [--rounds N --output FOLDER]";

    private static async Task<int> Main(string[] arguments)
    {
        Arguments given = new(arguments, Usage);
        bool isQuick = given.Flag("--quick");
        int rounds = given.Number("--rounds", 0);
        Scale scale = new(isQuick, rounds > 0 ? rounds : null);
        double minutes = given.Number("--minutes", 0) is > 0 and int asked ? asked : scale.Minutes;
        string? output = given.Text("--output");
        string? only = given.Text("--only");
        if (given.AreWrong())
        {
            return 2;
        }

        string? repository = FindRepository();
        if (repository is null && output is null)
        {
            await Console.Error.WriteLineAsync($"There is no Pipelines.File.slnx here or above: say --output FOLDER ({Usage})");
            return 2;
        }

        if ((only is not null || scale.Rounds is not null) && output is null)
        {
            await Console.Error.WriteLineAsync($"A part of the report is not the report: say --output FOLDER ({Usage})");
            return 2;
        }

        // A report that goes elsewhere is a trial.
        bool isTheReport = output is null && !isQuick;
        output ??= Path.Join(repository, "benchmarks", isQuick ? "report-quick" : "report");
        long start = Stopwatch.GetTimestamp();
        Surroundings surroundings;
        using (TemporaryFolder folder = new())
        {
            surroundings = Surroundings.Look(repository ?? Environment.CurrentDirectory, folder.Path);
        }

        IReadOnlyList<ChapterRun> runs = await MeasureAsync(
            [.. Chapters(scale, repository).Where(
                chapter => only is null || only.Split(',').Any(word => chapter.Title.Contains(word, StringComparison.OrdinalIgnoreCase)))],
            TimeSpan.FromMinutes(minutes));
        WriteFigures([.. runs.Where(run => run.Error is null).Select(run => run.Chapter)], output);
        Headline[] headlines = [.. runs.Where(run => run.Error is null).SelectMany(run => run.Chapter.Headlines)];
        IReadOnlyList<MachineFigures> machines = MachineFigures.Collect(output, surroundings, headlines);
        File.WriteAllText(Path.Join(output, MachineFigures.FileName), MachineFigures.ToCsv(machines));
        Page page = new ReportPage(runs, surroundings, scale, machines).Write();
        WritePage(page, output);
        if (isTheReport)
        {
            // Pictures that the last report had and this one has not.
            foreach (string old in Directory.GetFiles(output, "*.svg")
                .Where(path => !page.PictureFiles.ContainsKey(Path.GetFileName(path))))
            {
                File.Delete(old);
            }

            SpeedTable.Update(Path.Join(repository, "README.md"), headlines, surroundings);
        }

        Console.WriteLine(string.Create(CultureInfo.InvariantCulture, $"{Stopwatch.GetElapsedTime(start).TotalMinutes:0.0} minutes; "
            + $"{Path.Join(output, "report.md")}, figures.csv and {page.PictureFiles.Count} pictures; {page.Words} words"));
        if (page.Words > MostWords || page.PictureFiles.Count > MostPictures)
        {
            await Console.Error.WriteLineAsync($"The report is too long: {MostWords} words and {MostPictures} pictures at most.");
        }

        return runs.All(run => run.Error is null) ? 0 : 1;
    }

    // In their order on the page, which is also that of the first page's lines.
    private static ReportChapter[] Chapters(Scale scale, string? repository) =>
    [
        new BestSettingChapter(scale), new ReadingChapter(scale), new MappingChapter(scale), new WaitsChapter(scale),
        new WritingChapter(scale), new DurableChapter(scale), new FollowChapter(scale), new ParsingChapter(scale),
        new FilesChapter(scale), new FirstFileChapter(scale), new MemoryChapter(scale), new ServingChapter(scale, repository),
    ];

    private static async Task<IReadOnlyList<ChapterRun>> MeasureAsync(IReadOnlyList<ReportChapter> all, TimeSpan time)
    {
        long start = Stopwatch.GetTimestamp();
        List<ChapterRun> runs = [];
        Queue<ReportChapter> left = new(all.Where(chapter => chapter.IsSupported));
        while (left.Count > 0)
        {
            // What one chapter leaves over, or takes beyond its share, is the next ones'.
            double share = left.Peek().Weight / Math.Max(1, left.Sum(chapter => chapter.Weight));
            TimeSpan rest = time - Stopwatch.GetElapsedTime(start);
            ReportChapter chapter = left.Dequeue();
            runs.Add(runs.Exists(run => run.Error == s_endless)
                ? new ChapterRun(chapter, TimeSpan.Zero, 0, "a chapter before it does not end")
                : await MeasureAsync(chapter, rest > TimeSpan.Zero ? rest * share : TimeSpan.Zero));
            Console.WriteLine(string.Create(CultureInfo.InvariantCulture, $"{runs[^1].Duration.TotalSeconds,6:0.0} s  {chapter.Title}"
                + $"{(runs[^1].Error is { } error ? $": failed, {error}" : string.Empty)}; {left.Count} chapters left"));
        }

        return runs;
    }

    private static async Task<ChapterRun> MeasureAsync(ReportChapter chapter, TimeSpan time)
    {
        long start = Stopwatch.GetTimestamp();
        MachineUse before = MachineUse.Now();
        string? error = null;
        try
        {
            await Task.Run(() => chapter.MeasureAsync(time)).WaitAsync(time + s_patience);

            // What cannot be written must not cost the other chapters their page.
            _ = chapter.Headlines.Count();
            chapter.Write(new Page());
        }
        catch (TimeoutException)
        {
            // It is still at work, and would disturb whatever is measured beside it.
            error = s_endless;
        }
        catch (Exception e)
        {
            error = e.Message;
        }

        return new ChapterRun(chapter, Stopwatch.GetElapsedTime(start), MachineUse.Now().OthersSince(before), error);
    }

    private static void WriteFigures(IReadOnlyList<ReportChapter> chapters, string folder)
    {
        Directory.CreateDirectory(folder);
        StringBuilder csv = new("grid,point,method,rounds,us_min,us_lower_quartile,us_median,us_upper_quartile,us_max,"
            + "ratio_min,ratio_lower_quartile,ratio_median,ratio_upper_quartile,ratio_max,cpu_us,allocated_bytes\n");
        foreach (GridResult result in chapters.SelectMany(chapter => chapter.Results))
        {
            foreach ((string point, IReadOnlyList<Measured> rows) in result.Points)
            {
                foreach (Measured row in rows)
                {
                    csv.Append(CultureInfo.InvariantCulture, $"{result.Grid.Key},{Figures.Quoted(point)},{Figures.Quoted(row.Name)},"
                        + $"{row.Times.Count},{Figures.Fields(row.Microseconds, "0.0")},{Figures.Fields(row.Ratio, "0.0000")},"
                        + $"{row.CpuMicroseconds:0.0},{row.AllocatedBytes:0}\n");
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
        foreach ((string name, string svg) in page.PictureFiles)
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

/// <summary>How the measurement of a chapter went.</summary>
/// <param name="OthersUse">The share of all processors that others have used meanwhile, 0 to 1.</param>
/// <param name="Error">Why it failed; <see langword="null"/> where it did not.</param>
internal sealed record ChapterRun(ReportChapter Chapter, TimeSpan Duration, double OthersUse, string? Error);
