using System.Text;

namespace FilePipelines.Benchmarks.Reporting;

/// <summary>The report's page in Markdown, with its pictures beside it.</summary>
internal sealed class Page
{
    // More lines than these cannot be distinguished: this library's ways, the limit, and the fastest of the others. figures.csv has all.
    private const int MostLines = 6;
    private readonly StringBuilder _markdown = new();

    /// <summary>The pictures by file name.</summary>
    internal Dictionary<string, string> PictureFiles { get; } = [];

    internal int Words => Markdown.Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries).Length;
    internal string Markdown => _markdown.ToString().TrimEnd() + "\n";
    internal void Heading(int level, string text) => _markdown.Append('#', level).Append(' ').Append(text).Append("\n\n");
    internal void Paragraph(string text) => _markdown.Append(text).Append("\n\n");
    internal void List(IEnumerable<string> items) => Paragraph(string.Join('\n', items.Select(item => $"- {item}")));
    internal void Code(string text) => Paragraph($"```sh\n{text}\n```");

    internal void Picture(string fileName, string svg, string alternative)
    {
        PictureFiles.Add(fileName, svg);
        Paragraph($"![{alternative}]({fileName})");
    }

    /// <summary>The first columns are text, the others are figures.</summary>
    internal void Table(IReadOnlyList<string> heads, IEnumerable<IReadOnlyList<string>> rows, int texts = 1)
    {
        _markdown.Append("| ").AppendJoin(" | ", heads).Append(" |\n|")
            .AppendJoin("|", heads.Select((_, index) => index < texts ? " --- " : " ---: ")).Append("|\n");
        foreach (IReadOnlyList<string> row in rows)
        {
            _markdown.Append("| ").AppendJoin(" | ", row).Append(" |\n");
        }

        _markdown.Append('\n');
    }

    /// <summary>A grid's table: the first row is a time, the others are ratios to it.</summary>
    internal void Grid(GridResult result)
    {
        int operations = result.Grid.Operations;
        bool isWide = result.Points.Count > 1;
        string[] methods = [result.Baseline, .. result.Methods.Intersect(MostTelling(result)).Where(method => method != result.Baseline)];
        Paragraph($"**{result.Grid.Title}**{(isWide ? $", by {result.Grid.Axis}" : string.Empty)}");
        Table(
            ["way", .. isWide ? result.Points.Select(point => point.Point) : ["against the first", "time"]],
            methods.Select((method, index) =>
            {
                IReadOnlyList<Measured> measured = result.Of(method);
                string[] absolute = isWide ? [] : [Figures.Time(measured[0].Microseconds.Median / operations)];
                IEnumerable<string> figures = index == 0
                    ? measured.Select(point => isWide ? Figures.Time(point.Microseconds.Median / operations) : "1")
                    : measured.Select(point => Figures.Emphasised(method, Figures.Number(point.Ratio.Median)));
                return (IReadOnlyList<string>)[Figures.Emphasised(method), .. figures, .. absolute];
            }));
    }

    /// <summary>A grid's chart: one line a way, six at most.</summary>
    /// <param name="result">What is drawn.</param>
    /// <param name="sizes">The points' places on the axis.</param>
    /// <param name="behind">Faint lines behind the others.</param>
    internal void Lines(GridResult result, IReadOnlyList<int> sizes, IEnumerable<LineSeries> behind)
    {
        IEnumerable<LineSeries> lines = MostTelling(result).Select(
            method => new LineSeries(method, [.. result.Of(method).Select((measured, index) => ((double)sizes[index], measured.Ratio))]));
        Picture(
            $"{result.Grid.Key}.svg",
            LineChart.Draw($"{result.Grid.Title}: time against {result.Baseline}", result.Grid.Axis,
                [.. sizes.Select(size => ((double)size, SizeText.Of(size)))], [.. behind, .. lines]),
            $"Lines: {result.Grid.Title}, time against {result.Baseline} by {result.Grid.Axis}");
    }

    private static IEnumerable<string> MostTelling(GridResult result)
    {
        string[] rivals = [.. result.Methods.Skip(1).Where(Origins.IsRival)
            .OrderBy(method => Figures.GeometricMean(result.Of(method).Select(measured => measured.Ratio.Median)))];
        return result.Methods.Where(Origins.IsOwn).Concat(result.Methods.Where(method => method == Reading.KernelCopyName))
            .Concat(rivals.GroupBy(Origins.Of).Select(origin => origin.First())).Concat(rivals).Distinct().Take(MostLines);
    }
}
