namespace FilePipelines.Benchmarks.Reporting;

/// <summary>What benchmarks/serve.sh measures from outside: files served over HTTP, and uploads. Needs wrk and curl.</summary>
/// <param name="scale">How many rounds.</param>
/// <param name="repository">Has the script; <see langword="null"/> where it is not known.</param>
internal sealed class ServingChapter(Scale scale, string? repository) : ReportChapter
{
    private const string Script = "benchmarks/serve.sh";
    private const string Largest = "65536";
    private static readonly string[] s_programs = ["bash", "wrk", "curl"];

    // By the script's names. Its other ways explain these.
    private static readonly Dictionary<string, string> s_ways = new()
    {
        ["plain"] = "Kestrel, UseStaticFiles",
        ["kept"] = "FilePipelines",
        ["nginx_sendfile"] = "nginx, sendfile",
        ["nginx_read"] = "nginx, without",
        ["nginx_cache"] = "nginx, sendfile, open_file_cache",
        ["caddy"] = "caddy file-server",
        ["copied"] = "Body.CopyToAsync(FileStream)",
        ["saved"] = "SaveBodyAsync",
        ["nginx"] = "nginx, PUT",
    };

    private string _served = string.Empty;
    private string _uploaded = string.Empty;
    private GridResult? _serving;
    private GridResult? _uploads;

    internal override string Title => "Serving files";
    internal override double Weight => scale.IsQuick ? 33 : 127;

    internal override bool IsSupported
        => OperatingSystem.IsLinux() && repository is not null && Array.TrueForAll(s_programs, Programs.IsInstalled);

    internal override IEnumerable<Headline> Headlines =>
    [
        Headline.OfRate("headline-serving", "Serving files over HTTP, 64 KiB", "requests a second", _serving!),
        Headline.OfPoint("headline-uploads", "Receiving uploads", "CPU s of the server for a GiB", _uploads!,
            row => (row.Microseconds.Median, Figures.Number(row.Microseconds.Median))),
    ];

    internal override IEnumerable<GridResult> Others => [_serving!, _uploads!];

    internal override IEnumerable<(string FileName, string Text)> DataFiles => [("serving.md", _served), ("uploads.md", _uploaded)];

    internal override async Task MeasureAsync(TimeSpan time)
    {
        (_served, _serving) = await RunAsync("serving", "**Serving**: `sendfile(2)` copies nothing into a program.",
            fields => 1e6 / fields[0], scale.IsQuick ? ["1", "1", Largest] : [$"{scale.MinSlowRounds}", "1", "1024", "16384", Largest]);
        (_uploaded, _uploads) = await RunAsync("uploads", "**Uploads**: nginx reads a body with fewer calls.",
            fields => fields[1], scale.IsQuick ? ["uploads", "1", "64"] : ["uploads", $"{scale.MinRounds}", "256"]);
    }

    internal override void Write(Page page)
    {
        page.Paragraph($"What `{Script}` has measured from outside: servers on two cores, with their client beside them. "
            + "Other sizes and columns are in [serving.md](serving.md) and [uploads.md](uploads.md).");
        Quote(page, _served);
        page.Heading(3, "Uploads");
        page.Paragraph("`SaveBodyAsync` gives the file its name when it is whole, as nginx does; the others write under the name or "
            + "beside it.");
        Quote(page, _uploaded);
    }

    // Without quartiles and further columns, which the files have.
    private static void Quote(Page page, string text)
    {
        string[][] table = [.. text.Split('\n').Where(line => line.StartsWith('|'))
            .Select(line => line.Trim('|', ' ').Split('|', StringSplitOptions.TrimEntries))
            .Where(cells => cells[0] is not ("1 KiB" or "16 KiB"))
            .Select(cells => cells.Take(5).Select(cell => cell.Split(" (")[0]).ToArray())];
        page.Table(table[0], table[2..], texts: table[0].Length);
    }

    // What the script prints, and the time of each round: "case way figure…", round by round.
    private async Task<(string Text, GridResult Result)> RunAsync(
        string key, string reason, Func<double[], double> timeOf, string[] arguments)
    {
        using TemporaryFolder folder = new();
        string results = folder.PathOf("results");
        ProcessStartInfo start = new("bash", [Script, .. arguments])
        {
            WorkingDirectory = repository,
            RedirectStandardOutput = true,
            RedirectStandardError = true,
            Environment = { ["PIPELINES_FILE_RESULTS"] = results },
        };
        using Process process = Process.Start(start)!;
        Task<string> errors = process.StandardError.ReadToEndAsync();
        string output = await process.StandardOutput.ReadToEndAsync();
        await process.WaitForExitAsync();
        if (process.ExitCode != 0)
        {
            throw new InvalidOperationException($"{Script} ended with status {process.ExitCode}: {await errors}");
        }

        return (output.TrimEnd() + "\n", GridResult.Of(key, File.ReadLines(results).Select(line => line.Split(' '))
            .Where(fields => s_ways.ContainsKey(fields[1])).GroupBy(fields => fields[0]).Select(point =>
            {
                (string Way, double[] Times)[] ways = [.. point.GroupBy(fields => fields[1]).OrderBy(
                    way => Array.IndexOf([.. s_ways.Keys], way.Key)).Select(way => (s_ways[way.Key], way.Select(
                        fields => timeOf([.. fields[2..].Select(field => double.Parse(field, CultureInfo.InvariantCulture))])).ToArray()))];
                return (int.TryParse(point.Key, CultureInfo.InvariantCulture, out int size) ? SizeText.Of(size) : "256 MiB",
                    (IReadOnlyList<Measured>)[.. ways.Select(way => new Measured(way.Way, way.Times, ways[0].Times, 0, 0))]);
            }), reason));
    }
}
