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

/// <summary>
/// One question's bars, narrow enough for a telephone: every label stands on a line of its own above its bar, so none is cut off. What a
/// bar stands for is told by its text, not only by its colour.
/// </summary>
internal static class HeadlineChart
{
    private const double Width = 380;
    private const double LineHeight = 17;
    private const double RowHeight = 36;

    internal static string Draw(Headline headline)
    {
        string[] title = [.. LinesOf(headline.Question)];
        string[] unit = [.. LinesOf($"{headline.Unit}; {(headline.IsRate ? "more" : "less")} is better")];
        double y = ((title.Length + unit.Length) * LineHeight) + 10;
        SvgWriter svg = new(Width, y + (headline.Bars.Count * RowHeight) + 6, $"{headline.Question}: {headline.Unit}");
        for (int i = 0; i < title.Length + unit.Length; i++)
        {
            bool isTitle = i < title.Length;
            svg.Text(0, ((i + 1) * LineHeight) - 2, isTitle ? title[i] : unit[i - title.Length],
                colour: isTitle ? SvgWriter.Ink : SvgWriter.Faint, isBold: isTitle);
        }

        double longest = headline.Bars.Max(bar => bar.Value);
        foreach (HeadlineBar bar in headline.Bars)
        {
            bool isOwn = bar == headline.Bars[0];
            string colour = Palette.ColourOf(bar.Origin);
            svg.Text(0, y + 13, bar.Way, colour: isOwn ? colour : SvgWriter.Ink, isBold: isOwn);
            svg.Text(Width, y + 13, bar.Text, "end", isOwn ? colour : SvgWriter.Ink, isOwn);
            svg.Bar(0, y + 18, Math.Max(2, bar.Value / longest * Width), 10, colour);
            y += RowHeight;
        }

        return svg.ToString();
    }

    private static IEnumerable<string> LinesOf(string text)
    {
        string line = string.Empty;
        foreach (string word in text.Split(' '))
        {
            string longer = line.Length == 0 ? word : $"{line} {word}";
            if (SvgWriter.WidthOf(longer) <= Width)
            {
                line = longer;
                continue;
            }

            yield return line;
            line = word;
        }

        yield return line;
    }
}

/// <summary>The README's picture: for each of a few questions this library and the best alternative, with their figures.</summary>
internal static class OverviewChart
{
    internal const string FileName = "overview.svg";

    // The report's headlines that it shows, and what they are called to somebody who has read nothing yet.
    private static readonly (string Key, string Title)[] s_questions =
    [
        ("headline-best-reading", "Read 128 MiB from the page cache, each way at its best setting: ms (CPU), less is better"),
        ("headline-commits-preallocated", "Commit 512 B records to the device, 64 producers: commits a second, more is better"),
        ("headline-serving", "Serve a file of 64 KiB over HTTP: requests a second, more is better"),
        ("headline-follow", "Follow a file that grows: how late a line is, ms, less is better"),
    ];

    /// <summary>The chart, or <see langword="null"/> where a chapter is missing.</summary>
    internal static string? Draw(IReadOnlyList<Headline> headlines)
    {
        (Headline? Headline, string Title)[] shown =
            [.. s_questions.Select(question => (headlines.FirstOrDefault(line => line.Key == question.Key), question.Title))];
        return Array.Exists(shown, question => question.Headline is null) ? null : BarChart.Draw(
            "This library and the alternatives",
            [.. shown.Select(question => new BarGroup(question.Title,
                [.. question.Headline!.Bars.Select(bar => (bar.Way, bar.Value, bar.Text))]))]);
    }
}
