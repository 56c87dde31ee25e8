namespace FilePipelines.Benchmarks.Reporting;

/// <summary>Bars that are compared with each other.</summary>
/// <param name="Title">Above them; empty for none.</param>
/// <param name="Bars">From top to bottom: what it is, how long, and what is written at its end.</param>
internal sealed record BarGroup(string Title, IReadOnlyList<(string Name, double Value, string Text)> Bars);

/// <summary>Horizontal bars with their values at their ends.</summary>
internal static class BarChart
{
    private const double Width = 860;
    private const double RowHeight = 24;
    private const double TitleHeight = 30;

    /// <param name="title">Above the chart.</param>
    /// <param name="groups">Each has a scale of its own.</param>
    /// <param name="logarithmicFrom">Where a logarithmic axis begins; null for a linear one from 0.</param>
    internal static string Draw(string title, IReadOnlyList<BarGroup> groups, double? logarithmicFrom = null)
    {
        double height = TitleHeight + groups.Sum(group => (group.Title.Length > 0 ? TitleHeight : 0) + (group.Bars.Count * RowHeight)) + 8;
        double left = groups.SelectMany(group => group.Bars).Max(bar => SvgWriter.WidthOf(bar.Name)) + 18;
        double textRoom = groups.SelectMany(group => group.Bars).Max(bar => SvgWriter.WidthOf(bar.Text)) + 14;
        SvgWriter svg = new(Width, height, title);
        svg.Text(0, 14, title, isBold: true);
        double y = TitleHeight;
        foreach (BarGroup group in groups)
        {
            if (group.Title.Length > 0)
            {
                svg.Text(0, y + TitleHeight - 12, group.Title);
                y += TitleHeight;
            }

            double longest = group.Bars.Max(bar => bar.Value);
            foreach ((string name, double value, string text) in group.Bars)
            {
                bool isOwn = Origins.IsOwn(name);
                string colour = Palette.ColourOf(name);
                double share = logarithmicFrom is { } from
                    ? Math.Log(Math.Max(value, from) / from) / Math.Log(longest / from) : value / longest;
                double length = Math.Max(2, share * (Width - left - textRoom));
                svg.Text(left - 10, y + 16, name, "end", isOwn ? colour : SvgWriter.Ink, isOwn);
                svg.Bar(left, y + 4, length, RowHeight - 8, colour);
                svg.Text(left + length + 7, y + 16, text, isBold: isOwn);
                y += RowHeight;
            }
        }

        return svg.ToString();
    }
}

/// <summary>The README's picture: the rows of its table, each with this library and the best alternative.</summary>
internal static class OverviewChart
{
    internal const string FileName = "overview.svg";

    /// <summary>The chart, or <see langword="null"/> where nothing was measured.</summary>
    /// <param name="rows">What each is called, and its figures.</param>
    internal static string? Draw(IReadOnlyList<(string Question, Headline Line)> rows)
        => rows.Count == 0 ? null : BarChart.Draw(
            "This library and the best alternative",
            [.. rows.Select(row => new BarGroup($"{row.Question.Split(" (")[0]}: "
                + $"{row.Line.Unit.Split(',')[0]}, {(row.Line.IsRate ? "more" : "less")} is better",
                [.. new[] { row.Line.Bars[0], row.Line.Rival }.Select(bar => (bar.Way, bar.Value, bar.Text))]))]);
}
