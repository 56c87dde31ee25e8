using System.IO.Pipelines;
using System.Runtime.CompilerServices;

namespace Pipelines.File;

/// <content>Reads what is committed, while it is written.</content>
public sealed partial class Journal : IJournalSource
{
    // Completed when a segment is sealed, or when none will be; null if nobody waits.
    private TaskCompletionSource? _sealedSignal;

    SegmentFile[] IJournalSource.Segments => _segments;

    SegmentFile? IJournalSource.NextOf(SegmentFile segment) => SegmentFile.Next(_segments, segment);

    bool IJournalSource.HasNext(SegmentFile segment, long first) => SegmentFile.Next(_segments, segment) is not null;

    long? IJournalSource.Limit => _committed.Next;

    /// <summary>
    /// Reads records in order, in batches. It returns only records that are committed: with <see cref="FlushGuarantee.Durable"/> they are
    /// on the device. Any number of readers may read at the same time, while records are appended.
    /// </summary>
    /// <param name="from">
    /// The sequence number of the first record; <see cref="Oldest"/>: of the oldest one that there is.
    /// </param>
    /// <param name="follow">
    /// Whether to wait at the end for what is committed next, without a thread, until the journal is closed. If the journal fails, the
    /// reader gets all committed records and then the error.
    /// </param>
    /// <param name="cancellationToken">Ends the wait.</param>
    /// <exception cref="ArgumentOutOfRangeException">
    /// <paramref name="from"/> is less than <see cref="Oldest"/>, or larger than <see cref="NextSequence"/>.
    /// </exception>
    /// <exception cref="JournalRecordsRemovedException">Records were removed before they were read, or the first one was.</exception>
    /// <exception cref="InvalidJournalException">A record that was committed is damaged.</exception>
    /// <exception cref="IOException">A file cannot be read; or a followed journal has failed.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    public IAsyncEnumerable<JournalBatch> ReadBatchesAsync(
        long from = 0, bool follow = false, CancellationToken cancellationToken = default)
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(from, Oldest);
        ArgumentOutOfRangeException.ThrowIfGreaterThan(from, NextSequence);
        return JournalCursor.ReadAsync(this, from, null, follow, cancellationToken);
    }

    /// <summary>Reads on from a place, if what was read before it is still there.</summary>
    /// <param name="from">The place: <see cref="JournalBatch.Position"/>, or what its text was parsed to.</param>
    /// <param name="follow">As above.</param>
    /// <param name="cancellationToken">Ends the wait.</param>
    /// <exception cref="JournalChangedException">
    /// The place is in another journal, or the journal was repaired, or remade from a copy, and has other records before it.
    /// </exception>
    /// <inheritdoc cref="ReadBatchesAsync(long, bool, CancellationToken)"/>
    public IAsyncEnumerable<JournalBatch> ReadBatchesAsync(
        JournalPosition from, bool follow = false, CancellationToken cancellationToken = default)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(from.Sequence, nameof(from));
        return from.Sequence <= NextSequence ? JournalCursor.ReadAsync(this, from.Sequence, from, follow, cancellationToken)
            : throw new JournalChangedException(
                $"The journal ends before the place: its next record gets the number {NextSequence}, and not {from.Sequence}.");
    }

    /// <summary>
    /// Returns the segments that are sealed: nothing is written to their files any more, so that they can be copied or shipped. The segment
    /// that is written comes when the next one has begun.
    /// </summary>
    /// <param name="from">Segments that have only records before this number are left out.</param>
    /// <param name="follow">Whether to wait for more until the journal is closed or has failed.</param>
    /// <param name="cancellationToken">Ends the wait.</param>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    public IAsyncEnumerable<JournalSegment> ReadSealedSegmentsAsync(
        long from = 0, bool follow = false, CancellationToken cancellationToken = default)
        => ReadSealedAsync(from, follow, cancellationToken);

    private async IAsyncEnumerable<JournalSegment> ReadSealedAsync(
        long from, bool follow, [EnumeratorCancellation] CancellationToken cancellationToken)
    {
        while (true)
        {
            // Made before the question and completed after the answer, so that none is missed.
            TaskCompletionSource made = new(TaskCreationOptions.RunContinuationsAsynchronously);
            TaskCompletionSource signal = Interlocked.CompareExchange(ref _sealedSignal, made, null) ?? made;
            bool isOver = !follow || _isClosed || Error is not null;
            SegmentFile[] segments = _segments;
            long sealedBefore = Volatile.Read(ref _sealedBefore);
            for (int i = 0; i < segments.Length - 1; i++)
            {
                if (segments[i + 1].First > from && segments[i + 1].First <= sealedBefore)
                {
                    from = segments[i + 1].First;
                    yield return new JournalSegment(segments[i].Path, segments[i].First, from);
                }
            }

            if (isOver)
            {
                yield break;
            }

            await signal.Task.WaitAsync(cancellationToken).ConfigureAwait(false);
        }
    }

    ValueTask IJournalSource.WriteOutAsync() => FlushCommittedAsync(FlushGuarantee.Written);

    /// <summary>Puts on the device what was committed so far, or throws.</summary>
    internal ValueTask SyncAsync()
        => _options.FlushGuarantee == FlushGuarantee.Durable ? default : FlushCommittedAsync(FlushGuarantee.Durable);

    /// <summary>Has the file, or the device, have what was committed so far, or throws.</summary>
    private async ValueTask FlushCommittedAsync(FlushGuarantee guarantee)
    {
        Task? closing;
        ValueTask<FlushResult> flushed = default;
        lock (_gate)
        {
            closing = _closing;
            if (closing is null)
            {
                // What has failed is not made up for: opened again, the journal may have another record of that number.
                ((IJournalSource)this).ThrowIfFailed();
                flushed = _active.FlushAsync(guarantee);
            }
        }

        await flushed.ConfigureAwait(false);
        if (closing is not null)
        {
            await closing.ConfigureAwait(false);
            ((IJournalSource)this).ThrowIfFailed();
        }
    }

    void IJournalSource.ThrowIfFailed()
    {
        if (Error is { } error)
        {
            throw Failed(error);
        }
    }

    async ValueTask<bool> IJournalSource.WaitAsync(long sequence, int looks, CancellationToken cancellationToken)
    {
        while (true)
        {
            // Made before the question and completed after the answer, so that no commit is missed.
            TaskCompletionSource made = new(TaskCreationOptions.RunContinuationsAsynchronously);
            TaskCompletionSource signal = Interlocked.CompareExchange(ref _committedSignal, made, null) ?? made;
            bool isClosed = _isClosed;
            if (_committed.Next > sequence)
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

    private void SignalCommitted()
    {
        Interlocked.Exchange(ref _committedSignal, null)?.TrySetResult();
        if (_isClosed || Error is not null)
        {
            SignalSealed();
        }
    }

    private void SignalSealed() => Interlocked.Exchange(ref _sealedSignal, null)?.TrySetResult();
}
