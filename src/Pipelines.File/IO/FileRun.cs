using Pipelines.File.Diagnostics;
using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// The run of a <see cref="FileRequest"/>: the task that its owner awaits, its place among the calls that wait, and its cancellation.
/// Reusable: one run at a time.
/// </summary>
/// <remarks>
/// A run that <see cref="OpenedFile.Run"/> has begun ends with a call of its owner. One that <see cref="OpenedFile.RunAsync"/> has begun is
/// awaited: the code after the await runs on the thread that ends the run, or, with <see cref="ResumesOnPool"/>, on the application's pool;
/// on the thread that awaits, which may be a caller's, if the run is over by then. So that code makes no call that may wait.
/// </remarks>
internal abstract class FileRun : IWaitingCall, IThreadPoolWorkItem, IValueTaskSource
{
    private static readonly Action<object?> s_over = static _ => { };

    private OpenedFile? _file;

    // Whom the end of the run is told; null if the run is awaited.
    private IRequestOwner? _owner;

    // Interlocked: null until the run is awaited or over; then the continuation, or s_over.
    private Action<object?>? _continuation;
    private object? _continuationState;

    /// <summary>
    /// Whether the request is to end early. Set by <see cref="OpenedFile.Cancel"/> and read under the lock of a file that can end its waits
    /// itself, or of the poller. Only <see cref="OverlappedFile"/> uses it without a lock: it reads it before and after it begins the call.
    /// </summary>
    internal bool IsCancelWanted { get; set; }

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

    public abstract WaitKind WaitKind { get; }

    /// <summary>Begins a run by the file, and returns its task, which is awaited once.</summary>
    internal ValueTask BeginRun(OpenedFile file)
    {
        BeginRun(file, owner: null);
        return new ValueTask(this, token: 0);
    }

    /// <summary>Begins a run by the file, whose end is told to the owner.</summary>
    internal void BeginRun(OpenedFile file, IRequestOwner? owner)
    {
        Debug.Assert(_file is null && _owner is null);
        _file = file;
        _owner = owner;
        _continuation = null;
        FilePipeMetrics.ReadsHandedOver.Add(WaitKind == WaitKind.Read ? 1 : 0);
    }

    /// <summary>Has a waiting thread perform the request.</summary>
    internal void Queue() => WaitingThreads.Shared.Queue(this);

    /// <summary>
    /// Ends the run, when the system does not use the memory any more and the result is recorded. The request belongs to its owner again.
    /// The owner is told, or the continuation runs, within this call, or on the pool with <see cref="ResumesOnPool"/>.
    /// </summary>
    internal void Complete()
    {
        if (ResumesOnPool && _owner is { } owner)
        {
            owner.Resume((FileRequest)this);
        }
        else if (ResumesOnPool)
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

    /// <summary>Tells the end of the run: called once by <see cref="Complete"/>, or by what <see cref="IRequestOwner.Resume"/> has
    /// chosen.</summary>
    internal void End()
    {
        // A request that is kept for its next use keeps no file.
        _file = null;
        if (_owner is { } owner)
        {
            _owner = null;
            owner.OnEnded((FileRequest)this);
        }
        else if (Interlocked.Exchange(ref _continuation, s_over) is { } continuation)
        {
            object? state = _continuationState;
            _continuationState = null;
            continuation(state);
        }
    }
}
