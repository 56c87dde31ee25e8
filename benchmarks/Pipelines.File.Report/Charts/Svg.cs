using System.Globalization;
using System.Net;
using System.Text;

namespace FilePipelines.Benchmarks.Reporting;

/// <summary>
/// As much of SVG as a chart needs. Its greys are readable on white and on black; a page that knows its own background overrides them with
/// the CSS variables <c>--chart-ink</c> and <c>--chart-faint</c> when the picture stands inside it.
/// </summary>
internal sealed class SvgWriter
{
    internal const string Ink = "var(--chart-ink, #76808c)";
    internal const string Faint = "var(--chart-faint, #8a929c)";

    // Of a bold character against the size of the text, with room to spare: the reader's font is not known.
    private const double CharacterWidth = 0.66;
    internal const double FontSize = 13;

    private readonly StringBuilder _body = new();
    private readonly double _width;
    private readonly double _height;

    internal SvgWriter(double width, double height, string title)
    {
        _width = width;
        _height = height;
        _body.Append(CultureInfo.InvariantCulture, $"<title>{WebUtility.HtmlEncode(title)}</title>\n");
    }

    internal static double WidthOf(string text) => text.Length * FontSize * CharacterWidth;

    internal void Line(
        double x1, double y1, double x2, double y2, string colour, double width = 1, double opacity = 1, string? dashes = null)
        => _body.Append(CultureInfo.InvariantCulture,
            $"""<line x1="{x1:0.#}" y1="{y1:0.#}" x2="{x2:0.#}" y2="{y2:0.#}" """
            + $"""style="stroke:{colour}" stroke-width="{width}" opacity="{opacity}"{Dashes(dashes)}/>""").Append('\n');

    internal void Polyline(IEnumerable<(double X, double Y)> points, string colour, double width, double opacity = 1, string? dashes = null)
    {
        string list = string.Join(' ', points.Select(point => string.Create(CultureInfo.InvariantCulture, $"{point.X:0.#},{point.Y:0.#}")));
        _body.Append(CultureInfo.InvariantCulture,
            $"""<polyline points="{list}" fill="none" style="stroke:{colour}" stroke-width="{width}" """
            + $"""stroke-linejoin="round" opacity="{opacity}"{Dashes(dashes)}/>""").Append('\n');
    }

    internal void Dot(double x, double y, double radius, string colour)
        => _body.Append(CultureInfo.InvariantCulture,
            $"""<circle cx="{x:0.#}" cy="{y:0.#}" r="{radius}" style="fill:{colour}"/>""").Append('\n');

    internal void Bar(double x, double y, double width, double height, string colour)
        => _body.Append(CultureInfo.InvariantCulture,
            $"""<rect x="{x:0.#}" y="{y:0.#}" width="{width:0.#}" height="{height:0.#}" rx="2" style="fill:{colour}"/>""").Append('\n');

    /// <param name="x">Where the text begins, ends or has its middle, as <paramref name="anchor"/> says.</param>
    /// <param name="y">Its base line.</param>
    /// <param name="text">What it says.</param>
    /// <param name="anchor">start, middle or end.</param>
    /// <param name="colour">Of the text.</param>
    /// <param name="isBold">Whether it stands out.</param>
    internal void Text(double x, double y, string text, string anchor = "start", string colour = Ink, bool isBold = false)
        => _body.Append(CultureInfo.InvariantCulture,
            $"""<text x="{x:0.#}" y="{y:0.#}" text-anchor="{anchor}" style="fill:{colour}"{(isBold ? " font-weight=\"700\"" : "")}>"""
            + $"""{WebUtility.HtmlEncode(text)}</text>""").Append('\n');

    public override string ToString()
        => string.Create(CultureInfo.InvariantCulture,
            $"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_width:0} {_height:0}" width="{_width:0}" height="{_height:0}" """
            + $"""font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="{FontSize:0}" role="img">""")
            + "\n" + _body + "</svg>\n";

    private static string Dashes(string? dashes) => dashes is null ? string.Empty : $" stroke-dasharray=\"{dashes}\"";
}

/// <summary>
/// The colour of each way, the same in every chart. All of them are readable on white and on black; this library's are the warm ones.
/// </summary>
internal static class Palette
{
    private const string Own = "#e8590c";
    private const string OwnOther = "#e0930a";

    internal static string ColourOf(Origin origin) => origin switch
    {
        Origin.Own => Own,
        Origin.ByHand => "#4d8df5",
        Origin.Net => "#7f8a96",
        _ => "#a07a2c",
    };

    internal static string ColourOf(string name) => name switch
    {
        "FilePipeReader" or "FilePipeWriter" or "PooledMemoryStream" or "PooledMemoryStream to FilePipeWriter" => Own,
        _ when Origins.IsOwn(name) => OwnOther,
        "RecyclableMemoryStream" or "RecyclableMemoryStream with BinaryWriter" or "RecyclableMemoryStream to FileStream" => "#12a0ac",
        "MemoryStream" or "MemoryStream with BinaryWriter" or "MemoryStream to FileStream" or "FileStreamSync"
            or "StreamReader.ReadLineAsync" => "#7f8a96",
        "FileStreamSync, rented buffer" => "#4d8df5",
        "FileStreamAsync" => "#9a6bef",
        "PipeReader.Create" or "PipeWriter.Create" => "#d355a0",
        "PipeReader.Create, 64 KiB" => "#a8508f",
        "FileStream to Pipe" => "#2f9e68",
        "RandomAccess.Read" or "RandomAccess.Write" => "#12a0ac",
        "RandomAccess.ReadAsync" or "RandomAccess.WriteAsync" => "#8b8f3c",
        "pread(2)" or "pwrite(2)" or "already in memory" or "a thread each" => "#b0705a",
        "FileStreamSync, CreateNew" => "#4d8df5",
        "StreamConnection.GetReader" => "#5c7cfa",
        "MemoryMappedPipeReader" => "#74a312",
        "Nerdbank UsePipeReader" or "Nerdbank UsePipeWriter" => "#a07a2c",
        "Nerdbank UseStrictPipeReader" => "#c4566b",
        _ => "#6b7bd0",
    };
}
