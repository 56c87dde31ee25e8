using Pipelines.File.Threading;

namespace Pipelines.File.Reading;

/// <summary>
/// What a reader needs from the first read on that has to wait: the loop that has such reads performed, and those ahead, and who waits for
/// one of them or for the release. Many files need none.
/// </summary>
/// <param name="reader">The reader.</param>
/// <param name="buffer">Its lock, which guards the methods whose names end in Locked.</param>
internal sealed class WaitingReads(FilePipeReader reader, ReadBuffer buffer) : LibraryLoop
{
    private readonly PendingResultPool<ReadResult> _pool = new();

    // The pending ReadAsync. Whoever takes it out, under the lock, is the one who completes it.
    private PendingResult<ReadResult>? _wait;

    internal bool HasWait => _wait is not null;

    /// <summary>What the pending read asks for, bytes.</summary>
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
    /// A cancellation that comes late may meet a later wait: with the same token that one ends as well, with another it does not.
    /// </summary>
    internal PendingResult<ReadResult>? TakeLocked(CancellationToken token) => _wait?.CancellationToken == token ? TakeLocked() : null;

    /// <summary>
    /// Lives as long as the reader. It goes on with each read on the thread that performed the call, and has the next one performed right
    /// there; with a caller's memory pool it goes on on a thread of the application's pool.
    /// </summary>
    protected override async Task RunAsync()
    {
        while (true)
        {
            await reader.RunReadAsync().WithoutBox();
            if (!reader.EndWaitingRead())
            {
                await SleepAsync();
            }
        }
    }
}
