using Pipelines.File.Diagnostics;
using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// The run of a <see cref="FileRequest"/>: the task that its owner awaits, its place among the calls that wait, and its cancellation.
/// Reusable: one run at a time.
/// </summary>
/// <remarks>
/// A run has begun when <see cref="OpenedFile.RunAsync"/> returns its task. The code after the await runs on the thread that ends the run,
/// or, with <see cref="ResumesOnPool"/>, on the application's pool; on the thread that awaits, which may be a caller's, if the run is over
/// by then. So that code makes no call that may wait.
/// </remarks>
internal abstract class FileRun : IWaitingCall, IThreadPoolWorkItem, IValueTaskSource
{
    private static readonly Action<object?> s_over = static _ => { };

    private OpenedFile? _file;

    // Interlocked: null until the run is awaited or over; then the continuation, or s_over.
    private Action<object?>? _continuation;
    private object? _continuationState;

    private int _generation;

    /// <summary>
    /// The number of the current use, for <see cref="OpenedFile.Cancel"/>: requests are reused, and a cancellation may come late. The owner
    /// changes it, any thread reads it.
    /// </summary>
    internal int Generation => Volatile.Read(ref _generation);

    /// <summary>
    /// The generation that was canceled, for a file that can end such waits itself. Written under the lock of that file, or of the poller.
    /// </summary>
    internal int CanceledGeneration { get; set; } = -1;

    /// <summary>
    /// Whether the current use is canceled. Read under the same lock; only <see cref="OverlappedFile"/> reads it without, before and after
    /// it has begun the call.
    /// </summary>
    internal bool IsCancelWanted => CanceledGeneration == Generation;

    /// <summary>
    /// The file whose readiness the request waits for, with a reference that keeps it open; <see langword="null"/> while it does not wait.
    /// Guarded by the poller.
    /// </summary>
    internal SafeFileHandle? Polled { get; set; }

    /// <summary>
    /// Whether the code after <see cref="OpenedFile.RunAsync"/> runs on a thread of the application's pool, because it runs a caller's
    /// code. Set by whoever rents the request.
    /// </summary>
    internal bool ResumesOnPool { get; set; }

    long IWaitingCall.QueuedAt { get; set; }

    IWaitingCall? IWaitingCall.Next { get; set; }

    public abstract WaitKind WaitKind { get; }

    /// <summary>Begins a run by the file, and returns its task, which is awaited once.</summary>
    internal ValueTask BeginRun(OpenedFile file)
    {
        Debug.Assert(_file is null);
        _file = file;
        _continuation = null;
        FilePipeMetrics.ReadsHandedOver.Add(WaitKind == WaitKind.Read ? 1 : 0);
        return new ValueTask(this, token: 0);
    }

    /// <summary>Has a waiting thread perform the request.</summary>
    internal void Queue() => WaitingThreads.Shared.Queue(this);

    /// <summary>
    /// Ends the run, when the system does not use the memory any more and the result is recorded. The request belongs to its owner again.
    /// The continuation runs within this call, or on the pool with <see cref="ResumesOnPool"/>.
    /// </summary>
    internal void Complete()
    {
        if (ResumesOnPool)
        {
            ThreadPool.UnsafeQueueUserWorkItem(this, preferLocal: false);
        }
        else
        {
            End();
        }
    }

    /// <summary>The file that the request waits for without a thread may be ready: called once for each such wait.</summary>
    internal void OnReady() => _file!.OnReady((FileRequest)this);

    /// <summary>Begins another use, which no late cancellation of the last one meets.</summary>
    protected void BeginUse() => Volatile.Write(ref _generation, _generation + 1);

    void IWaitingCall.Perform() => _file!.Perform((FileRequest)this);

    void IThreadPoolWorkItem.Execute() => End();

    void IValueTaskSource.GetResult(short token) => Debug.Assert(_continuation == s_over);

    ValueTaskSourceStatus IValueTaskSource.GetStatus(short token)
        => Volatile.Read(ref _continuation) == s_over ? ValueTaskSourceStatus.Succeeded : ValueTaskSourceStatus.Pending;

    void IValueTaskSource.OnCompleted(Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags)
    {
        _continuationState = state;
        if (Interlocked.CompareExchange(ref _continuation, continuation, null) is not null)
        {
            // It ended between GetStatus and this call.
            _continuationState = null;
            continuation(state);
        }
    }

    private void End()
    {
        // A request that is kept for its next use keeps no file.
        _file = null;
        if (Interlocked.Exchange(ref _continuation, s_over) is { } continuation)
        {
            object? state = _continuationState;
            _continuationState = null;
            continuation(state);
        }
    }
}
