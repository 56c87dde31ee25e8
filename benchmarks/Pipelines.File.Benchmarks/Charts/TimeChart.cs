using System.Globalization;

namespace FilePipelinesBenchmarks.Charts;

/// <summary>Amounts over time, both axes linear from 0 on: one line a way, its name at its end.</summary>
internal static class TimeChart
{
    private const double Width = 860;
    private const double Height = 360;
    private const double Left = 64;
    private const double Right = 150;
    private const double Top = 34;
    private const double Bottom = 46;
    private const double LabelHeight = 16;

    private static readonly string[] s_colours = ["#7f8a96", "#4d8df5", "#e8590c"];

    internal static string Draw(
        string title, string xAxis, double yTick, IReadOnlyList<(string Name, IReadOnlyList<(double X, double Y)> Points)> lines)
    {
        SvgWriter svg = new(Width, Height, title);
        double lastX = Math.Ceiling(lines.Max(line => line.Points[^1].X) * 2) / 2;
        double lastY = Math.Ceiling(lines.Max(line => line.Points.Max(point => point.Y)) / yTick) * yTick;
        svg.Text(0, 14, title, isBold: true);
        for (double y = 0; y <= lastY; y += yTick)
        {
            svg.Line(Left, YOf(y), Width - Right, YOf(y), SvgWriter.Faint, opacity: 0.28);
            svg.Text(Left - 8, YOf(y) + 4, string.Create(CultureInfo.InvariantCulture, $"{y:#,0}"), "end");
        }

        for (double x = 0; x <= lastX; x += 0.5)
        {
            svg.Line(XOf(x), Top, XOf(x), Height - Bottom, SvgWriter.Faint, opacity: 0.15);
            svg.Text(XOf(x), Height - Bottom + 18, string.Create(CultureInfo.InvariantCulture, $"{x:0.#}"), "middle");
        }

        svg.Text((Left + Width - Right) / 2, Height - 8, xAxis, "middle");

        // Names in the order of their lines' ends, none nearer to another than its height.
        double lowest = double.MaxValue;
        foreach (((string name, IReadOnlyList<(double X, double Y)> points), string colour)
            in lines.Zip(s_colours).OrderBy(static line => line.First.Points[^1].Y))
        {
            svg.Polyline(points.Select(point => (XOf(point.X), YOf(point.Y))), colour, 2.5);
            svg.Dot(XOf(points[^1].X), YOf(points[^1].Y), 4, colour);
            lowest = Math.Min(YOf(points[^1].Y) + 4, lowest - LabelHeight);
            svg.Text(Width - Right + 12, lowest, name, colour: colour, isBold: true);
        }

        return svg.ToString();

        double XOf(double x) => Left + (x / lastX * (Width - Left - Right));
        double YOf(double y) => Height - Bottom - (Math.Max(0, y) / lastY * (Height - Top - Bottom));
    }
}
