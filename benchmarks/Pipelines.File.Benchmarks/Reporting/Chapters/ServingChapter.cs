using System.Globalization;
using FilePipelinesBenchmarks.Measuring;

namespace FilePipelinesBenchmarks.Reporting.Chapters;

/// <summary>
/// What benchmarks/serve.sh has printed, which measures servers from outside and is run by itself: quoted, with its own date.
/// </summary>
/// <param name="path">The file with it; <see langword="null"/> where there is none.</param>
internal sealed class ServingChapter(string? path) : ReportChapter
{
    internal const string FileName = "serving.md";

    private const string Command = "bash benchmarks/serve.sh | tee benchmarks/report/" + FileName;

    private string[] _lines = [];

    internal override string Title => "Serving files";

    internal override double Weight => 0;

    internal override IEnumerable<Headline> Headlines
    {
        get
        {
            (string Point, IReadOnlyList<(string Way, double PerSecond)> Ways)[] points = [.. Points()];
            return points.Length == 0 ? []
                : [Headline.OfRates("headline-serving", $"Serving files over HTTP, {points[^1].Point}", "requests a second", points)];
        }
    }

    internal override async Task MeasureAsync(Allowance allowance) => _lines = path is null ? [] : await File.ReadAllLinesAsync(path);

    internal override void Write(Page page)
    {
        if (_lines.Length == 0)
        {
            page.Paragraph($"Not measured here. `{Command}` does, and the next report quotes it.");
            return;
        }

        page.Paragraph($"What `{Command}` has printed, when it was run:");
        List<string[]> table = [];
        foreach (string line in _lines.Append(string.Empty))
        {
            if (line.StartsWith('|'))
            {
                table.Add(CellsOf(line));
                continue;
            }

            if (table.Count > 2)
            {
                page.Table(table[0], table[2..], isText: true);
                table = [];
            }

            if (line.Length > 0)
            {
                page.Paragraph(line);
            }
        }
    }

    // The rows "file | server | requests/s | …" by file, that of 64 KiB last. Kestrel as it comes, the same with this library, and nginx:
    // what else there is explains them.
    private IEnumerable<(string Point, IReadOnlyList<(string Way, double PerSecond)> Ways)> Points()
        => _lines.Where(line => line.StartsWith('|'))
            .Select(CellsOf)
            .Where(cells => cells.Length >= 3 && WayOf(cells[1]) is not null
                && double.TryParse(cells[2], NumberStyles.Number, CultureInfo.InvariantCulture, out _))
            .GroupBy(cells => cells[0])
            .Select(file => (
                file.Key,
                (IReadOnlyList<(string Way, double)>)[.. file.Select(
                    cells => (WayOf(cells[1])!, double.Parse(cells[2], NumberStyles.Number, CultureInfo.InvariantCulture)))]))
            .Where(point => point.Item2.Any(way => Origins.IsOwn(way.Way)) && point.Item2.Any(way => Origins.IsRival(way.Way)))
            .OrderBy(point => point.Key == "64 KiB");

    private static string? WayOf(string server) => server switch
    {
        "Kestrel, UseStaticFiles" => server,
        _ when server.EndsWith("with UseFilePipelines", StringComparison.Ordinal) => "FilePipelines",
        _ when server.StartsWith("nginx", StringComparison.Ordinal) => server,
        _ => null,
    };

    private static string[] CellsOf(string line) => line.Trim('|', ' ').Split('|', StringSplitOptions.TrimEntries);
}
