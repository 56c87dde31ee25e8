using System.IO.Pipelines;

namespace Pipelines.File;

/// <content>Reads what is committed, while it is written.</content>
public sealed partial class Journal : IJournalSource
{
    SegmentFile[] IJournalSource.Segments => _segments;

    SegmentFile? IJournalSource.NextOf(SegmentFile segment) => SegmentFile.Next(_segments, segment);

    bool IJournalSource.HasSegment(long first) => Array.Exists(_segments, segment => segment.First == first);

    long? IJournalSource.Limit => Volatile.Read(ref _committed);

    /// <summary>
    /// Reads records in order, in batches. It returns only records that are committed: with <see cref="FlushGuarantee.Durable"/> they are
    /// on the device. Any number of readers may read at the same time, while records are appended.
    /// </summary>
    /// <param name="from">The sequence number of the first record; if it was removed, the oldest record that there is.</param>
    /// <param name="follow">
    /// Whether to wait at the end for what is committed next, without a thread, until the journal is closed. If the journal fails, the
    /// reader gets all committed records and then the error.
    /// </param>
    /// <param name="cancellationToken">Ends the wait.</param>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="from"/> is negative.</exception>
    /// <exception cref="InvalidJournalException">A record that was committed is damaged.</exception>
    /// <exception cref="IOException">
    /// A file cannot be read; records were removed before they were read; or a followed journal has failed.
    /// </exception>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    public IAsyncEnumerable<JournalBatch> ReadBatchesAsync(
        long from = 0, bool follow = false, CancellationToken cancellationToken = default)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(from);
        return JournalCursor.ReadBatchesAsync(this, from, follow, cancellationToken);
    }

    async ValueTask IJournalSource.WriteOutAsync()
    {
        Task? closing;
        ValueTask<FlushResult> written = default;
        lock (_gate)
        {
            closing = _closing;
            if (closing is null && _error is null)
            {
                written = _active.FlushAsync(FlushGuarantee.Written);
            }
        }

        await written.ConfigureAwait(false);
        await (closing ?? Task.CompletedTask).ConfigureAwait(false);
    }

    void IJournalSource.ThrowIfFailed()
    {
        if (Error is { } error)
        {
            throw Failed(error);
        }
    }

    async ValueTask<bool> IJournalSource.WaitAsync(long sequence, CancellationToken cancellationToken)
    {
        while (true)
        {
            // Made before the question and completed after the answer, so that no commit is missed.
            TaskCompletionSource made = new(TaskCreationOptions.RunContinuationsAsynchronously);
            TaskCompletionSource signal = Interlocked.CompareExchange(ref _committedSignal, made, null) ?? made;
            bool isClosed = _isClosed;
            if (Volatile.Read(ref _committed) > sequence)
            {
                return true;
            }

            ((IJournalSource)this).ThrowIfFailed();
            if (isClosed)
            {
                return false;
            }

            await signal.Task.WaitAsync(cancellationToken).ConfigureAwait(false);
        }
    }

    private void SignalCommitted() => Interlocked.Exchange(ref _committedSignal, null)?.TrySetResult();
}
