using FilePipelinesBenchmarks.Reporting;

namespace FilePipelinesBenchmarks.Charts;

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
