using FilePipelinesBenchmarks.Measuring;

namespace FilePipelinesBenchmarks.Waiting;

/// <summary>What came of one way at one point.</summary>
/// <param name="Way">The way.</param>
/// <param name="OperationsPerSecond">Of each round.</param>
/// <param name="Ratio">Operations a second against the baseline's of the same round.</param>
/// <param name="Median">Of one operation, milliseconds.</param>
/// <param name="NinetyNinth">Of one operation, milliseconds.</param>
/// <param name="CpuMicroseconds">Of the whole process, for one operation.</param>
/// <param name="DelayMedian">Of an unrelated work item, milliseconds.</param>
/// <param name="DelayNinetyNinth">Of an unrelated work item, milliseconds.</param>
/// <param name="DelayLongest">Of an unrelated work item, milliseconds.</param>
/// <param name="PoolThreads">The most threads that the thread pool had.</param>
internal sealed record WaitingFigures(
    string Way,
    Spread OperationsPerSecond,
    Spread Ratio,
    double Median,
    double NinetyNinth,
    double CpuMicroseconds,
    double DelayMedian,
    double DelayNinetyNinth,
    double DelayLongest,
    int PoolThreads);
