using System.Globalization;

namespace FilePipelines.Benchmarks.Reporting;

/// <summary>One line of a chart.</summary>
/// <param name="Name">At its end.</param>
/// <param name="Points">From left to right; the first of each pair is the place on the axis.</param>
/// <param name="IsFaint">Behind the others and without its spread: somebody else's figures.</param>
internal sealed record LineSeries(string Name, IReadOnlyList<(double X, Spread Y)> Points, bool IsFaint = false);

/// <summary>Ratios by size, both axes logarithmic: one line a method, its quartiles as whiskers, its name at its end.</summary>
internal static class LineChart
{
    private const double Width = 860;
    private const double Height = 440;
    private const double Left = 58;
    private const double Right = 258;
    private const double Top = 34;
    private const double Bottom = 46;
    private const double LabelHeight = 16;

    internal static string Draw(string title, string axis, IReadOnlyList<(double X, string Text)> ticks, IReadOnlyList<LineSeries> series)
    {
        SvgWriter svg = new(Width, Height, title);
        double lowest = Math.Min(0.5, series.SelectMany(line => line.Points).Min(point => point.Y.Median));
        double highest = Math.Max(2, series.SelectMany(line => line.Points).Max(point => point.Y.Median));
        double from = Math.Floor(Math.Log2(lowest / 1.05) * 2) / 2;
        double to = Math.Ceiling(Math.Log2(highest * 1.05) * 2) / 2;
        double firstX = Math.Log2(ticks[0].X);
        double lastX = Math.Log2(ticks[^1].X);
        svg.Text(0, 14, title, isBold: true);

        for (double power = Math.Ceiling(from); power <= to; power++)
        {
            bool isBaseline = power == 0;
            svg.Line(Left, YOf(Math.Pow(2, power)), Width - Right, YOf(Math.Pow(2, power)), SvgWriter.Faint, isBaseline ? 2 : 1,
                isBaseline ? 0.9 : 0.28);
            svg.Text(Left - 8, YOf(Math.Pow(2, power)) + 4,
                string.Create(CultureInfo.InvariantCulture, $"{Math.Pow(2, power):0.###}×"), "end");
        }

        foreach ((double x, string text) in ticks)
        {
            svg.Line(XOf(x), Top, XOf(x), Height - Bottom, SvgWriter.Faint, opacity: 0.15);
            svg.Text(XOf(x), Height - Bottom + 18, text, "middle");
        }

        svg.Text((Left + Width - Right) / 2, Height - 8, axis, "middle");

        List<(double Y, string Name, string Colour, bool IsOwn, double End)> labels = [(YOf(1), "FileStreamSync = 1",
            SvgWriter.Ink, false, YOf(1))];
        List<Action> foreground = [];
        foreach (LineSeries line in series)
        {
            bool isOwn = Origins.IsOwn(line.Name);
            string colour = line.IsFaint ? SvgWriter.Faint : Palette.ColourOf(line.Name);
            IReadOnlyList<(double X, double Y)> points = [.. line.Points.Select(point => (XOf(point.X), YOf(point.Y.Median)))];
            if (line.IsFaint)
            {
                svg.Polyline(points, colour, 1.5, 0.6, "5 4");
            }
            else
            {
                Action draw = () =>
                {
                    svg.Polyline(points, colour, isOwn ? 3.5 : 1.75);
                    foreach ((double x, Spread y) in line.Points)
                    {
                        svg.Line(XOf(x), YOf(y.LowerQuartile), XOf(x), YOf(y.UpperQuartile), colour, isOwn ? 7 : 4, 0.4);
                        svg.Dot(XOf(x), YOf(y.Median), isOwn ? 4.5 : 2.75, colour);
                    }
                };
                foreground.Insert(isOwn ? foreground.Count : 0, draw);
            }

            labels.Add((points[^1].Y, line.Name, colour, isOwn, points[^1].Y));
        }

        foreach (Action draw in foreground)
        {
            draw();
        }

        double[] places = Separate([.. labels.Select(label => label.Y)], Top, Height - Bottom + 10);
        for (int i = 0; i < labels.Count; i++)
        {
            double edge = Width - Right;
            svg.Polyline([(edge + 5, labels[i].End), (edge + 18, places[i]), (edge + 24, places[i])], labels[i].Colour, 1, 0.7);
            svg.Text(edge + 28, places[i] + 4, labels[i].Name, colour: labels[i].Colour, isBold: labels[i].IsOwn);
        }

        return svg.ToString();

        double XOf(double x) => Left + 14 + ((Math.Log2(x) - firstX) / (lastX - firstX) * (Width - Left - Right - 28));
        double YOf(double y) => Height - Bottom - ((Math.Log2(y) - from) / (to - from) * (Height - Top - Bottom));
    }

    // Labels in the order of their lines' ends, none nearer to another than its height: groups that touch grow around their middle.
    private static double[] Separate(double[] wanted, double top, double bottom)
    {
        int[] order = [.. Enumerable.Range(0, wanted.Length).OrderBy(index => wanted[index])];
        List<(double Sum, int Count)> groups = [];
        foreach (int index in order)
        {
            groups.Add((wanted[index], 1));
            while (groups.Count > 1 && StartOf(groups[^1]) < StartOf(groups[^2]) + (groups[^2].Count * LabelHeight))
            {
                groups[^2] = (groups[^2].Sum + groups[^1].Sum, groups[^2].Count + groups[^1].Count);
                groups.RemoveAt(groups.Count - 1);
            }
        }

        double[] places = new double[wanted.Length];
        int next = 0;
        foreach ((double Sum, int Count) group in groups)
        {
            double start = StartOf(group);
            for (int i = 0; i < group.Count; i++)
            {
                places[order[next++]] = start + ((i + 0.5) * LabelHeight);
            }
        }

        return places;

        double StartOf((double Sum, int Count) group)
            => Math.Clamp((group.Sum / group.Count) - (group.Count * LabelHeight / 2), top,
                Math.Max(top, bottom - (group.Count * LabelHeight)));
    }
}

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
