using System.Diagnostics;
using System.Globalization;

namespace FilePipelines.Benchmarks.Reporting;

/// <summary>What benchmarks/serve.sh measures from outside: files served over HTTP, and uploads. Needs wrk and curl.</summary>
/// <param name="scale">How many rounds.</param>
/// <param name="repository">Has the script; <see langword="null"/> where it is not known.</param>
internal sealed class ServingChapter(Scale scale, string? repository) : ReportChapter
{
    private const string Script = "benchmarks/serve.sh";

    private static readonly string[] s_programs = ["bash", "wrk", "curl"];

    private string[] _served = [];
    private string[] _uploaded = [];

    internal override string Title => "Serving files";

    internal override double Weight => scale.IsQuick ? 33 : 127;

    internal override bool IsSupported
        => OperatingSystem.IsLinux() && repository is not null && Array.TrueForAll(s_programs, Programs.IsInstalled);

    internal override IEnumerable<Headline> Headlines
    {
        get
        {
            (string Point, IReadOnlyList<(string Way, double Figure)> Ways)[] served = [.. Points(_served, 2, "64 KiB")];
            (string Point, IReadOnlyList<(string Way, double Figure)> Ways)[] uploaded = [.. Points(_uploaded, 4, string.Empty)];
            return
            [
                .. served.Length == 0 ? [] : (Headline[])[Headline.OfRates(
                    "headline-serving", $"Serving files over HTTP, {served[^1].Point}", "requests a second", served)],
                .. uploaded.Length == 0 ? [] : (Headline[])[Headline.OfTimes(
                    "headline-uploads", "Receiving uploads", "CPU s of the server for a GiB", "Receiving uploads",
                    uploaded[^1].Ways)],
            ];
        }
    }

    internal override IEnumerable<(string FileName, string Text)> DataFiles =>
    [
        ("serving.md", string.Join('\n', _served) + "\n"), ("uploads.md", string.Join('\n', _uploaded) + "\n"),
    ];

    internal override async Task MeasureAsync(Allowance allowance)
    {
        string[] cases = scale.IsQuick ? ["1", "1", "65536"] : [$"{scale.MinSlowRounds}", "1", "1024", "16384", "65536"];
        _served = await RunAsync(cases);
        allowance.OnShare(0.8);
        _uploaded = await RunAsync(scale.IsQuick ? ["uploads", "1", "64"] : ["uploads", $"{scale.MinRounds}", "256"]);
        allowance.OnShare(1);
    }

    internal override void Write(Page page)
    {
        page.Paragraph($"What `{Script}` has measured from outside, in turns: servers on two cores, with their client beside them. "
            + "Other sizes and columns are in [serving.md](serving.md) and [uploads.md](uploads.md).");
        Quote(page, _served, columns: 5);
        page.Heading(3, "Uploads");
        page.Paragraph("`SaveBodyAsync` gives the file its name when it is whole; the other two write under the name or beside it. "
            + "nginx writes to a file of its own and renames it.");
        Quote(page, _uploaded, columns: 5);
    }

    // Without quartiles and further columns, which the files have.
    private static void Quote(Page page, string[] lines, int columns)
    {
        string[][] table = [.. lines.Where(line => line.StartsWith('|'))
            .Select(CellsOf).Where(cells => cells[0] is not ("1 KiB" or "16 KiB"))
            .Select(cells => cells.Take(columns).Select(cell => cell.Split(" (")[0]).ToArray())];
        if (table.Length > 2)
        {
            page.Table(table[0], table[2..], isText: true);
        }
    }

    private async Task<string[]> RunAsync(params string[] arguments)
    {
        ProcessStartInfo start = new("bash", [Script, .. arguments])
        {
            WorkingDirectory = repository,
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        };
        using Process process = Process.Start(start)!;
        Task<string> errors = process.StandardError.ReadToEndAsync();
        string output = await process.StandardOutput.ReadToEndAsync();
        await process.WaitForExitAsync();
        return process.ExitCode == 0 ? output.TrimEnd().Split('\n')
            : throw new InvalidOperationException($"{Script} ended with status {process.ExitCode}: {await errors}");
    }

    // The rows "file | server | …" by file, the chosen one last. Kestrel by itself, the same with this library, nginx and caddy count;
    // the other rows explain them.
    private static IEnumerable<(string Point, IReadOnlyList<(string Way, double Figure)> Ways)> Points(
        string[] lines, int column, string last)
        => lines.Where(line => line.StartsWith('|'))
            .Select(CellsOf)
            .Where(cells => cells.Length > column && WayOf(cells[1]) is not null
                && double.TryParse(cells[column], NumberStyles.Number, CultureInfo.InvariantCulture, out _))
            .GroupBy(cells => cells[0])
            .Select(file => (
                file.Key,
                (IReadOnlyList<(string Way, double)>)[.. file.Select(
                    cells => (WayOf(cells[1])!, double.Parse(cells[column], NumberStyles.Number, CultureInfo.InvariantCulture)))]))
            .Where(point => point.Item2.Any(way => Origins.IsOwn(way.Way)) && point.Item2.Any(way => Origins.IsRival(way.Way)))
            .OrderBy(point => point.Key == last);

    private static string? WayOf(string server) => server switch
    {
        "Kestrel, UseStaticFiles" or "caddy file-server" or "SaveBodyAsync" or "Body.CopyToAsync(FileStream)" => server,
        _ when server.EndsWith("with UseFilePipelines", StringComparison.Ordinal) => "FilePipelines",
        _ when server.StartsWith("nginx", StringComparison.Ordinal) => server,
        _ => null,
    };

    private static string[] CellsOf(string line) => line.Trim('|', ' ').Split('|', StringSplitOptions.TrimEntries);
}
