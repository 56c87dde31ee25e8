using System.Net;
using System.Text;
using System.Text.RegularExpressions;

namespace FilePipelines.Benchmarks.Reporting;

/// <summary>
/// The report's page, written once as Markdown with its pictures beside it, and once as HTML with them inside. Text may have `code`,
/// **bold** and [links](…).
/// </summary>
internal sealed partial class Page
{
    private readonly StringBuilder _markdown = new();
    private readonly StringBuilder _html = new();

    /// <summary>The pictures by file name.</summary>
    internal Dictionary<string, string> PictureFiles { get; } = [];

    internal int Words => Markdown.Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries).Length;

    internal string Markdown => _markdown.ToString().TrimEnd() + "\n";

    internal void Heading(int level, string text)
    {
        _markdown.Append('#', level).Append(' ').Append(text).Append("\n\n");
        _html.Append($"<h{level}>{Inline(text)}</h{level}>\n");
    }

    internal void Paragraph(string text)
    {
        _markdown.Append(text).Append("\n\n");
        _html.Append($"<p>{Inline(text)}</p>\n");
    }

    internal void List(IEnumerable<string> items)
    {
        _html.Append("<ul>\n");
        foreach (string item in items)
        {
            _markdown.Append("- ").Append(item).Append('\n');
            _html.Append($"<li>{Inline(item)}</li>\n");
        }

        _markdown.Append('\n');
        _html.Append("</ul>\n");
    }

    internal void Code(string text)
    {
        _markdown.Append("```sh\n").Append(text).Append("\n```\n\n");
        _html.Append($"<pre><code>{WebUtility.HtmlEncode(text)}</code></pre>\n");
    }

    internal void Picture(string fileName, string svg, string alternative)
    {
        PictureFiles.Add(fileName, svg);
        _markdown.Append($"![{alternative}]({fileName})\n\n");
        _html.Append("<figure>\n").Append(svg).Append("</figure>\n");
    }

    /// <summary>The first columns are text, the others are figures.</summary>
    internal void Table(IReadOnlyList<string> heads, IEnumerable<IReadOnlyList<string>> rows, bool isText = false, int texts = 1)
    {
        texts = isText ? heads.Count : texts;
        _markdown.Append("| ").AppendJoin(" | ", heads).Append(" |\n|")
            .AppendJoin("|", heads.Select((_, index) => index < texts ? " --- " : " ---: ")).Append("|\n");
        _html.Append($"<div class=\"wide\"><table{(isText ? " class=\"text\"" : texts > 1 ? " class=\"texts\"" : string.Empty)}>\n<tr>")
            .AppendJoin(string.Empty, heads.Select(head => $"<th>{Inline(head)}</th>")).Append("</tr>\n");
        foreach (IReadOnlyList<string> row in rows)
        {
            _markdown.Append("| ").AppendJoin(" | ", row).Append(" |\n");
            _html.Append("<tr>").AppendJoin(string.Empty, row.Select(cell => $"<td>{Inline(cell)}</td>")).Append("</tr>\n");
        }

        _markdown.Append('\n');
        _html.Append("</table></div>\n");
    }

    /// <summary>The page by itself, in one file.</summary>
    internal string ToHtml(string title)
        => $$"""
           <!DOCTYPE html>
           <html lang="en">
           <head>
           <meta charset="utf-8">
           <meta name="viewport" content="width=device-width, initial-scale=1">
           <meta name="color-scheme" content="light dark">
           <title>{{WebUtility.HtmlEncode(title)}}</title>
           <style>
           :root { color-scheme: light dark; --page: #ffffff; --ink: #1f2328; --rule: #d5dae0; --code: #f1f3f5; --link: #0b5cad;
             --chart-ink: #3d444d; --chart-faint: #848d97; }
           @media (prefers-color-scheme: dark) {
             :root { --page: #0f1318; --ink: #e6eaef; --rule: #313843; --code: #1b212a; --link: #6cb2ff; --chart-ink: #c3cad3;
               --chart-faint: #8b949e; }
           }
           body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 72rem; background: var(--page); color: var(--ink); font:
             16px/1.55 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
           h1 { font-size: 1.8rem; line-height: 1.2; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--rule); padding-bottom:
             .25rem; } h3 { margin-top: 1.75rem; }
           a { color: var(--link); }
           code { background: var(--code); padding: .1em .3em; border-radius: 3px; font-size: .9em; overflow-wrap: anywhere; } pre {
             background: var(--code); padding: .75rem 1rem; overflow-x: auto; border-radius: 4px; } pre code { padding: 0; overflow-wrap:
             normal; }
           p, ul { max-width: 52rem; } figure { margin: 1.25rem 0; overflow-x: auto; } figure svg { display: block; width: 100%; height:
             auto; min-width: 40rem; max-width: 860px; }
           .wide { overflow-x: auto; margin: 1rem 0; } table { border-collapse: collapse; font-size: .84rem; font-variant-numeric:
             tabular-nums; }
           th, td { padding: .3rem .55rem; border-bottom: 1px solid var(--rule); text-align: right; white-space: nowrap; vertical-align:
             top; } th { font-weight: 600; }
           th:first-child, td:first-child { text-align: left; padding-left: 0; } .texts td:nth-child(2), .texts th:nth-child(2) {
             text-align: left; white-space: normal; min-width: 11rem; } .texts td:first-child, .texts th { white-space: normal; } .text {
             min-width: 44rem; } .text th, .text td { text-align: left; white-space: normal; }
           </style>
           </head>
           <body>
           {{_html}}</body>
           </html>

           """;

    private static string Inline(string text)
    {
        string encoded = WebUtility.HtmlEncode(text).Replace("&#39;", "'", StringComparison.Ordinal);
        encoded = CodeText().Replace(encoded, "<code>$1</code>");
        encoded = BoldText().Replace(encoded, "<strong>$1</strong>");
        return LinkText().Replace(encoded, "<a href=\"$2\">$1</a>");
    }

    [GeneratedRegex("`([^`]+)`")]
    private static partial Regex CodeText();

    [GeneratedRegex(@"\*\*([^*]+)\*\*")]
    private static partial Regex BoldText();

    [GeneratedRegex(@"\[([^\]]+)\]\(([^)]+)\)")]
    private static partial Regex LinkText();
}

/// <summary>Grids on the page, as tables and as lines.</summary>
internal static class PageGrids
{
    /// <summary>The grid's table: the first row is a time, the others are ratios to it.</summary>
    internal static void Grid(this Page page, GridResult result)
    {
        int operations = result.Grid.Operations;
        bool isWide = result.Points.Count > 1;
        string[] methods = [result.Baseline, .. result.Methods.Intersect(MostTelling(result)).Where(method => method != result.Baseline)];
        page.Paragraph($"**{result.Grid.Title}**{(isWide ? $", by {result.Grid.Axis}" : string.Empty)}");
        page.Table(
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

    // More lines than these cannot be distinguished: this library's ways, the limit, and the fastest of the others. figures.csv has all.
    private const int MostLines = 6;

    private static IEnumerable<string> MostTelling(GridResult result)
    {
        string[] rivals = [.. result.Methods.Skip(1).Where(Origins.IsRival)
            .OrderBy(method => Figures.GeometricMean(result.Of(method).Select(measured => measured.Ratio.Median)))];
        string[] first = [.. result.Methods.Where(Origins.IsOwn),
            .. result.Methods.Where(method => method == Reading.KernelCopyName)];
        string[] ofEach = [.. rivals.GroupBy(Origins.Of).Select(origin => origin.First())];
        return first.Concat(ofEach).Concat(rivals).Distinct().Take(MostLines);
    }

    /// <summary>The grid's chart: one line a way, six at most.</summary>
    /// <param name="page">Where it goes.</param>
    /// <param name="result">What is drawn.</param>
    /// <param name="sizes">The points' places on the axis.</param>
    /// <param name="behind">Faint lines behind the others.</param>
    internal static void Lines(this Page page, GridResult result, IReadOnlyList<int> sizes, IEnumerable<LineSeries> behind)
    {
        IEnumerable<LineSeries> lines = MostTelling(result).Select(
            method => new LineSeries(method, [.. result.Of(method).Select((measured, index) => ((double)sizes[index], measured.Ratio))]));
        page.Picture(
            $"{result.Grid.Key}.svg",
            LineChart.Draw($"{result.Grid.Title}: time against {result.Baseline}", result.Grid.Axis,
                [.. sizes.Select(size => ((double)size, SizeText.Of(size)))], [.. behind, .. lines]),
            $"Lines: {result.Grid.Title}, time against {result.Baseline} by {result.Grid.Axis}");
    }
}
