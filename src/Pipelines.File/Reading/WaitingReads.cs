using Pipelines.File.Threading;

namespace Pipelines.File.Reading;

/// <summary>
/// The loop that performs the reads of one reader that have to wait, and those that read ahead; and the calls that wait: for a read, or for
/// the release. Created when it is needed, because many files are read without it.
/// </summary>
/// <param name="reader">The reader.</param>
/// <param name="buffer">Its lock, which guards the methods whose names end in Locked.</param>
internal sealed class WaitingReads(FilePipeReader reader, ReadBuffer buffer) : LibraryLoop
{
    private readonly PendingResultPool<ReadResult> _pool = new();

    // The pending ReadAsync. Whoever takes it out, under the lock, completes it afterwards without the lock.
    private PendingResult<ReadResult>? _wait;

    internal bool HasWait => _wait is not null;

    /// <summary>The minimum size that the pending read has asked for, bytes.</summary>
    internal int MinimumSize { get; private set; }

    internal PendingResult<ReadResult> AddLocked(int minimumSize, CancellationToken cancellationToken)
    {
        buffer.AssertLocked();
        MinimumSize = minimumSize;
        _wait = _pool.Rent();
        _wait.CancellationToken = cancellationToken;
        return _wait;
    }

    internal PendingResult<ReadResult>? TakeLocked()
    {
        buffer.AssertLocked();
        PendingResult<ReadResult>? wait = _wait;
        _wait = null;
        return wait;
    }

    /// <summary>
    /// Takes the wait out if it has this token. A late cancellation may meet a later wait: if that has the same token, it ends, too.
    /// </summary>
    internal PendingResult<ReadResult>? TakeLocked(CancellationToken token) => _wait?.CancellationToken == token ? TakeLocked() : null;

    /// <summary>
    /// Runs as long as the reader lives, and sleeps when no read is set up. After a read it continues on the thread that performed the
    /// call, which then performs the next one; with a caller's memory pool, it continues on the application's pool.
    /// </summary>
    protected override async Task RunAsync()
    {
        while (true)
        {
            bool goesOn = reader.TryRunRead(out ValueTask run);
            if (goesOn)
            {
                await run.WithoutBox();
                goesOn = reader.EndWaitingRead();
            }

            if (!goesOn)
            {
                await SleepAsync();
            }
        }
    }
}
