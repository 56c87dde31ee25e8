using System.Net;
using System.Text;

namespace FilePipelines.Benchmarks.Reporting;

/// <summary>As much of SVG as a chart needs, in colours that are readable on white and on black, and in the reader's font.</summary>
internal sealed class Svg
{
    internal const double Width = 860;
    internal const string Ink = "#76808c";
    internal const string Faint = "#8a929c";

    // Of a bold character, with room to spare: the reader's font is not known.
    private const double CharacterWidth = 13 * 0.66;
    private static readonly string[] s_colours = ["#4d8df5", "#12a0ac", "#9a6bef", "#d355a0", "#2f9e68", "#a07a2c", "#7f8a96", "#b0705a"];
    private readonly StringBuilder _body = new();
    private readonly double _height;

    internal Svg(double height, string title)
    {
        _height = height;
        _body.Append(CultureInfo.InvariantCulture, $"<title>{WebUtility.HtmlEncode(title)}</title>\n");
        Text(0, 14, title, isBold: true);
    }

    /// <summary>This library's are the warm ones.</summary>
    internal static string ColourOf(string way, int index)
        => Origins.IsOwn(way) ? way.Contains(',', StringComparison.Ordinal) ? "#e0930a" : "#e8590c" : s_colours[index % s_colours.Length];

    internal static double WidthOf(string text) => text.Length * CharacterWidth;

    internal void Polyline(IEnumerable<(double X, double Y)> points, string colour, double width, double opacity = 1, string dashes = "")
    {
        string list = string.Join(' ', points.Select(point => string.Create(CultureInfo.InvariantCulture, $"{point.X:0.#},{point.Y:0.#}")));
        _body.Append(CultureInfo.InvariantCulture, $"""<polyline points="{list}" fill="none" stroke="{colour}" stroke-width="{width}" """
            + $"""stroke-linejoin="round" opacity="{opacity}" stroke-dasharray="{dashes}"/>""").Append('\n');
    }

    internal void Dot(double x, double y, double radius, string colour)
        => _body.Append(CultureInfo.InvariantCulture, $"""<circle cx="{x:0.#}" cy="{y:0.#}" r="{radius}" fill="{colour}"/>""").Append('\n');

    internal void Bar(double x, double y, double width, double height, string colour)
        => _body.Append(CultureInfo.InvariantCulture,
            $"""<rect x="{x:0.#}" y="{y:0.#}" width="{width:0.#}" height="{height:0.#}" rx="2" fill="{colour}"/>""").Append('\n');

    internal void Text(double x, double y, string text, string anchor = "start", string colour = Ink, bool isBold = false)
        => _body.Append(CultureInfo.InvariantCulture, $"""<text x="{x:0.#}" y="{y:0.#}" text-anchor="{anchor}" fill="{colour}" """
            + $"""font-weight="{(isBold ? 700 : 400)}">{WebUtility.HtmlEncode(text)}</text>""").Append('\n');

    public override string ToString()
        => string.Create(CultureInfo.InvariantCulture,
            $"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {Width:0} {_height:0}" width="{Width:0}" height="{_height:0}" """
            + $"""font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="13" role="img">""")
            + "\n" + _body + "</svg>\n";
}

/// <summary>Bars that are compared with each other: what each is, how long, and what is written at its end.</summary>
internal sealed record BarGroup(string Title, IReadOnlyList<(string Name, double Value, string Text)> Bars);

/// <summary>Horizontal bars with their values at their ends; each group has a scale of its own.</summary>
internal static class BarChart
{
    private const double RowHeight = 24;
    private const double TitleHeight = 30;

    internal static string Draw(string title, IReadOnlyList<BarGroup> groups)
    {
        double left = groups.SelectMany(group => group.Bars).Max(bar => Svg.WidthOf(bar.Name)) + 18;
        double room = Svg.Width - left - groups.SelectMany(group => group.Bars).Max(bar => Svg.WidthOf(bar.Text)) - 14;
        Svg svg = new((TitleHeight * (groups.Count + 1)) + groups.Sum(group => group.Bars.Count * RowHeight) + 8, title);
        double y = TitleHeight;
        foreach (BarGroup group in groups)
        {
            svg.Text(0, y + TitleHeight - 12, group.Title);
            y += TitleHeight;
            double longest = group.Bars.Max(bar => bar.Value);
            foreach ((string name, double value, string text) in group.Bars)
            {
                bool isOwn = Origins.IsOwn(name);
                string colour = isOwn ? Svg.ColourOf(name, 0) : Svg.Faint;
                double length = Math.Max(2, value / longest * room);
                svg.Text(left - 10, y + 16, name, "end", isOwn ? colour : Svg.Ink, isOwn);
                svg.Bar(left, y + 4, length, RowHeight - 8, colour);
                svg.Text(left + length + 7, y + 16, text, isBold: isOwn);
                y += RowHeight;
            }
        }

        return svg.ToString();
    }
}

/// <summary>One line of a chart.</summary>
/// <param name="Name">At its end.</param>
/// <param name="Points">From left to right; the first of each pair is the place on the axis.</param>
/// <param name="IsFaint">Behind the others and without its spread: somebody else's figures.</param>
internal sealed record LineSeries(string Name, IReadOnlyList<(double X, Spread Y)> Points, bool IsFaint = false);

/// <summary>Ratios by size, both axes logarithmic: one line a method, its quartiles as whiskers, its name at its end.</summary>
internal static class LineChart
{
    private const double Height = 440;
    private const double Left = 58;
    private const double Edge = Svg.Width - 258;
    private const double Top = 34;
    private const double Bottom = Height - 46;
    private const double LabelHeight = 16;

    internal static string Draw(string title, string axis, IReadOnlyList<(double X, string Text)> ticks, IReadOnlyList<LineSeries> series)
    {
        Svg svg = new(Height, title);
        double[] medians = [.. series.SelectMany(line => line.Points).Select(point => point.Y.Median)];
        double from = Math.Floor(Math.Log2(Math.Min(0.5, medians.Min()) / 1.05) * 2) / 2;
        double to = Math.Ceiling(Math.Log2(Math.Max(2, medians.Max()) * 1.05) * 2) / 2;
        double firstX = Math.Log2(ticks[0].X);
        double lastX = Math.Log2(ticks[^1].X);
        for (double power = Math.Ceiling(from); power <= to; power++)
        {
            double y = YOf(Math.Pow(2, power));
            svg.Polyline([(Left, y), (Edge, y)], Svg.Faint, power == 0 ? 2 : 1, power == 0 ? 0.9 : 0.28);
            svg.Text(Left - 8, y + 4, string.Create(CultureInfo.InvariantCulture, $"{Math.Pow(2, power):0.###}×"), "end");
        }

        foreach ((double x, string text) in ticks)
        {
            svg.Polyline([(XOf(x), Top), (XOf(x), Bottom)], Svg.Faint, 1, 0.15);
            svg.Text(XOf(x), Bottom + 18, text, "middle");
        }

        svg.Text((Left + Edge) / 2, Height - 8, axis, "middle");
        List<(double Y, string Name, string Colour)> labels = [(YOf(1), "FileStreamSync = 1", Svg.Ink)];

        // This library's lines are drawn last, in front of the others.
        foreach ((int index, LineSeries line) in series.Index().OrderBy(
            line => line.Item.IsFaint ? 0 : Origins.IsOwn(line.Item.Name) ? 2 : 1))
        {
            bool isOwn = Origins.IsOwn(line.Name);
            string colour = line.IsFaint ? Svg.Faint : Svg.ColourOf(line.Name, index);
            IEnumerable<(double X, double Y)> points = line.Points.Select(point => (XOf(point.X), YOf(point.Y.Median)));
            svg.Polyline(points, colour, isOwn ? 3.5 : 1.75, line.IsFaint ? 0.6 : 1, line.IsFaint ? "5 4" : string.Empty);
            foreach ((double x, Spread y) in line.IsFaint ? [] : line.Points)
            {
                svg.Polyline([(XOf(x), YOf(y.LowerQuartile)), (XOf(x), YOf(y.UpperQuartile))], colour, isOwn ? 7 : 4, 0.4);
                svg.Dot(XOf(x), YOf(y.Median), isOwn ? 4.5 : 2.75, colour);
            }

            labels.Add((points.Last().Y, line.Name, colour));
        }

        // Labels in the order of their lines' ends, none nearer to the one above than its height.
        double place = Top;
        foreach ((double y, string name, string colour) in labels.OrderBy(label => label.Y))
        {
            place = Math.Max(place, Math.Min(y, Bottom + 10 - (LabelHeight * labels.Count(label => label.Y > y))));
            svg.Polyline([(Edge + 5, y), (Edge + 18, place), (Edge + 24, place)], colour, 1, 0.7);
            svg.Text(Edge + 28, place + 4, name, colour: colour, isBold: Origins.IsOwn(name));
            place += LabelHeight;
        }

        return svg.ToString();

        double XOf(double x) => Left + 14 + ((Math.Log2(x) - firstX) / (lastX - firstX) * (Edge - Left - 28));
        double YOf(double y) => Bottom - ((Math.Log2(y) - from) / (to - from) * (Bottom - Top));
    }
}
