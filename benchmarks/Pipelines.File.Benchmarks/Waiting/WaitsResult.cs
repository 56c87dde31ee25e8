using FilePipelinesBenchmarks.Measuring;

namespace FilePipelinesBenchmarks.Waiting;

/// <summary>What waits, measured: every point of both kinds, and the FIFOs.</summary>
/// <param name="Points">By kind and number at once: the ways, the baseline first.</param>
/// <param name="Fifos">By number of idle FIFOs: microseconds of a wake-up.</param>
internal sealed record WaitsResult(IReadOnlyList<(bool IsReads, int AtOnce, IReadOnlyList<WaitingFigures> Ways)> Points,
    IReadOnlyList<(int Count, Spread Microseconds)> Fifos)
{
    /// <summary>Measures all of it. Linux.</summary>
    /// <param name="rounds">How often each way is measured at each point.</param>
    /// <param name="counts">How many operate at once.</param>
    /// <param name="onShare">Told how much of it is done.</param>
    internal static async Task<WaitsResult> MeasureAsync(int rounds, IReadOnlyList<int> counts, Action<double> onShare)
    {
        double steps = (2 * counts.Count) + IdleFifos.Counts.Count;
        List<(bool IsReads, int AtOnce, IReadOnlyList<WaitingFigures> Ways)> points = [];
        foreach (bool isReads in (bool[])[true, false])
        {
            foreach (int count in counts)
            {
                points.Add((isReads, count, await WaitingMeasurement.RunAsync(isReads, count, rounds)));
                onShare(points.Count / steps);
            }
        }

        List<(int Count, Spread Microseconds)> fifos = [];
        foreach (int count in IdleFifos.Counts)
        {
            fifos.Add((count, await IdleFifos.RunAsync(count)));
            onShare((points.Count + fifos.Count) / steps);
        }

        return new WaitsResult(points, fifos);
    }
}
