using FilePipelinesBenchmarks.Measuring;

namespace FilePipelinesBenchmarks.Waiting;

/// <summary>What waits, measured: every point of both kinds, and the FIFOs.</summary>
/// <param name="Points">By kind and number at once: the ways, the baseline first.</param>
/// <param name="Fifos">By number of idle FIFOs: microseconds of a wake-up.</param>
internal sealed record WaitsResult(IReadOnlyList<(bool IsReads, int AtOnce, IReadOnlyList<WaitingFigures> Ways)> Points, IReadOnlyList<(int Count, Spread Microseconds)> Fifos)
{
    /// <summary>How many points and numbers of FIFOs there are.</summary>
    internal static int StepCount => (2 * WaitingMeasurement.Counts.Count) + IdleFifos.Counts.Count;

    /// <summary>Measures all of it. Linux.</summary>
    /// <param name="rounds">How often each way is measured at each point.</param>
    /// <param name="onStep">Told after each of <see cref="StepCount"/>.</param>
    internal static async Task<WaitsResult> MeasureAsync(int rounds, Action onStep)
    {
        List<(bool IsReads, int AtOnce, IReadOnlyList<WaitingFigures> Ways)> points = [];
        foreach (bool isReads in (bool[])[true, false])
        {
            foreach (int count in WaitingMeasurement.Counts)
            {
                points.Add((isReads, count, await WaitingMeasurement.RunAsync(isReads, count, rounds)));
                onStep();
            }
        }

        List<(int Count, Spread Microseconds)> fifos = [];
        foreach (int count in IdleFifos.Counts)
        {
            fifos.Add((count, await IdleFifos.RunAsync(count)));
            onStep();
        }

        return new WaitsResult(points, fifos);
    }
}
