namespace FilePipelinesBenchmarks.Waiting;

/// <summary>One way to do what waits.</summary>
/// <param name="Name">What it is called in tables.</param>
/// <param name="HasOwnThreads">Every worker blocks a thread of its own; else they are tasks of the thread pool.</param>
/// <param name="MakeWorker">Makes the worker of that number.</param>
internal sealed record WaitingWay(string Name, bool HasOwnThreads, Func<WaitingCase, int, WaitingWorker> MakeWorker)
{
    internal const string OwnThreads = "a thread each";

    /// <summary>Every way to read; the first is the baseline.</summary>
    internal static IReadOnlyList<WaitingWay> Reads { get; } =
    [
        new(OwnThreads, true, static (point, worker) => new ReadWorker.Blocking(point.Reads!, worker)),
        new("RandomAccess.ReadAsync", false, static (point, worker) => new ReadWorker.Asynchronous(point.Reads!, worker)),
        new("FilePipeReader", false, static (point, worker) => new ReadWorker.Pipe(point.Reads!, worker)),
    ];

    /// <summary>Every way to flush; the first is the baseline.</summary>
    internal static IReadOnlyList<WaitingWay> Flushes { get; } =
    [
        new(OwnThreads, true, static (point, worker) => new FlushWorker.Blocking(point.PathOf(worker))),
        new("FileStream, Flush(true)", false, static (point, worker) => new FlushWorker.Stream(point.PathOf(worker))),
        new("FilePipeWriter", false, static (point, worker) => new FlushWorker.Pipe(point.PathOf(worker))),
    ];
}
