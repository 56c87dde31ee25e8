namespace FilePipelines.Benchmarks;

/// <summary>Figures as the report's text and tables show them.</summary>
internal static class Figures
{
    /// <summary>Less than this is within what two runs of the same code differ by.</summary>
    internal const double Visible = 1.03;

    internal static string Number(double value) => value.ToString(value < 10 ? "0.00" : "0.0", CultureInfo.InvariantCulture);
    internal static string Count(double value) => value.ToString("N0", CultureInfo.InvariantCulture);

    /// <summary>A ratio with its quartiles.</summary>
    internal static string Ratio(Spread ratio) => $"{Number(ratio.Median)} ({Number(ratio.LowerQuartile)}–{Number(ratio.UpperQuartile)})";

    internal static string Time(double microseconds) => microseconds switch
    {
        < 1 => string.Create(CultureInfo.InvariantCulture, $"{microseconds * 1000:0} ns"),
        < 10 => string.Create(CultureInfo.InvariantCulture, $"{microseconds:0.0} µs"),
        < 1000 => string.Create(CultureInfo.InvariantCulture, $"{microseconds:0} µs"),
        _ => string.Create(CultureInfo.InvariantCulture, $"{microseconds / 1000:0.0} ms"),
    };

    /// <summary>The least and the most.</summary>
    internal static string Amount(IEnumerable<double> bytes)
    {
        (string least, string most) = (SizeText.OfAmount(bytes.Min()), SizeText.OfAmount(bytes.Max()));
        return least == most ? least : $"{least} – {most}";
    }

    /// <summary>Bold where the way is this library's.</summary>
    internal static string Emphasised(string way, string? text = null) => Origins.IsOwn(way) ? $"**{text ?? way}**" : text ?? way;
    internal static double GeometricMean(IEnumerable<double> ratios) => Math.Exp(ratios.Average(Math.Log));

    /// <summary>A field of a CSV file.</summary>
    internal static string Quoted(string text) => text.Contains(',', StringComparison.Ordinal) ? $"\"{text}\"" : text;

    /// <summary>The five fields of a spread in a CSV file.</summary>
    internal static string Fields(Spread spread, string format)
        => string.Join(',', new[] { spread.Minimum, spread.LowerQuartile, spread.Median, spread.UpperQuartile, spread.Maximum }.Select(
            value => value.ToString(format, CultureInfo.InvariantCulture)));
}

/// <summary>Sizes as tables and axes show them.</summary>
internal static class SizeText
{
    /// <summary>512 B, 4 KiB, 1 MiB.</summary>
    internal static string Of(long bytes) => bytes switch
    {
        < 1024 => $"{bytes} B",
        < 1024 * 1024 => $"{bytes / 1024} KiB",
        _ => $"{bytes / (1024 * 1024)} MiB",
    };

    /// <summary>Bytes, to the byte while they are few.</summary>
    internal static string OfAmount(double bytes) => bytes switch
    {
        < 10_000 => string.Create(CultureInfo.InvariantCulture, $"{bytes:N0} B"),
        < 10_000_000 => string.Create(CultureInfo.InvariantCulture, $"{bytes / 1000:N0} kB"),
        _ => string.Create(CultureInfo.InvariantCulture, $"{bytes / 1_000_000:N0} MB"),
    };
}

/// <summary>A set of figures as a table shows it: the median, the quartiles around it, and the ends.</summary>
internal readonly record struct Spread(double Minimum, double LowerQuartile, double Median, double UpperQuartile, double Maximum)
{
    internal static Spread Of(IEnumerable<double> figures)
    {
        double[] sorted = [.. figures.Order()];
        return new Spread(sorted[0], At(0.25), At(0.5), At(0.75), sorted[^1]);

        double At(double fraction)
        {
            double place = fraction * (sorted.Length - 1);
            int below = (int)place;
            int above = Math.Min(below + 1, sorted.Length - 1);
            return sorted[below] + ((place - below) * (sorted[above] - sorted[below]));
        }
    }
}
