namespace FilePipelines.Benchmarks;

/// <summary>
/// How much is measured: all of it, or what a minute allows (<c>--quick</c>): fewer points and rounds, and smaller files where a
/// title says so.
/// </summary>
/// <param name="IsQuick">What a minute allows.</param>
/// <param name="Rounds">How many rounds of one point at least, where somebody says so: with 1 every way is tried.</param>
internal sealed record Scale(bool IsQuick, int? Rounds = null)
{
    private const long MiB = 1024 * 1024;

    internal static Scale Full { get; } = new(IsQuick: false);

    /// <summary>Minutes that the report aims at.</summary>
    internal double Minutes => IsQuick ? 1.5 : 7.5;

    /// <summary>Rounds of one point, at least.</summary>
    internal int MinRounds => Rounds ?? (IsQuick ? 3 : 5);

    /// <summary>The same, where a sample is slow.</summary>
    internal int MinSlowRounds => Rounds ?? (IsQuick ? 1 : 3);

    /// <summary>How long one way runs in one round where it is short.</summary>
    internal TimeSpan Sample => TimeSpan.FromMilliseconds(IsQuick ? 4 : 10);
    internal long WrittenBytes => IsQuick ? 16 * MiB : 100 * MiB;

    /// <summary>Of each point of the grid of flushes, where a flush of 512 B is a call for some ways.</summary>
    internal long GridBytes => IsQuick ? 16 * MiB : 32 * MiB;
    internal long ParsedBytes => IsQuick ? 16 * MiB : 32 * MiB;
    internal long CountedBytes => IsQuick ? 32 * MiB : 256 * MiB;
    internal long CompressedBytes => IsQuick ? 4 * MiB : 32 * MiB;
    internal int Records => IsQuick ? 500_000 : 5_000_000;
    internal long MappedBytes => IsQuick ? 32 * MiB : 128 * MiB;
    internal long ColdBytes => IsQuick ? 64 * MiB : 256 * MiB;

    /// <summary>All of them, or those that the quick report measures, too.</summary>
    internal IReadOnlyList<T> Points<T>(IReadOnlyList<T> all, params ReadOnlySpan<int> quick)
    {
        if (!IsQuick)
        {
            return all;
        }

        List<T> points = [];
        foreach (int index in quick)
        {
            points.Add(all[index]);
        }

        return points;
    }
}
