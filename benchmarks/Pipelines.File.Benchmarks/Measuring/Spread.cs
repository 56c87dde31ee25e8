namespace FilePipelinesBenchmarks.Measuring;

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
