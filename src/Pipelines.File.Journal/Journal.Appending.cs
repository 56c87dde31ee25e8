using System.Buffers;
using System.Diagnostics.CodeAnalysis;
using System.Runtime.CompilerServices;

namespace Pipelines.File;

/// <content>Appends: takes records in order, and completes their callers when they are committed.</content>
public sealed partial class Journal
{
    // Appends that the journal has not taken, in the order of their calls: there is no room, or the next segment begins.
    private readonly Queue<QueuedAppend> _queue = new();

    // How many are in it, readable without the lock.
    private int _queued;

    // The bytes of all records that were taken; the lock guards it.
    private long _appendedBytes;

    // Interlocked, and only ever larger: the number behind the last committed record, and the bytes up to there.
    private long _committed;
    private long _committedBytes;

    // Interlocked: how often a committed record was the first one of those that waited together.
    private long _rounds;
    private long _roundEnd;

    // Completed when more is committed, or when nothing will be; null if nobody waits.
    private TaskCompletionSource? _committedSignal;

    /// <summary>
    /// Appends a record. Completes when it and all records before it are on the device, or as
    /// <see cref="JournalOptions.FlushGuarantee"/> says.
    /// </summary>
    /// <param name="record">The bytes. Do not change them until the call has completed.</param>
    /// <param name="cancellationToken">
    /// Ends the wait: <see cref="JournalAppendCanceledException.MayAppear"/> says whether the journal has taken the record.
    /// </param>
    /// <returns>The record's sequence number.</returns>
    /// <exception cref="ArgumentOutOfRangeException">The record is longer than <see cref="JournalOptions.MaxRecordLength"/>.</exception>
    /// <exception cref="JournalAppendCanceledException">The token was canceled.</exception>
    /// <exception cref="ObjectDisposedException">The journal is closed.</exception>
    /// <exception cref="IOException">
    /// A write or a sync has failed, in this append or an earlier one. The journal takes no more records until it is opened again.
    /// </exception>
    public ValueTask<long> AppendAsync(ReadOnlyMemory<byte> record, CancellationToken cancellationToken = default)
    {
        if (record.Length > _options.MaxRecordLength)
        {
            throw new ArgumentOutOfRangeException(
                nameof(record), record.Length, $"The record is longer than MaxRecordLength, {_options.MaxRecordLength} bytes.");
        }

        return BeginAppendAsync(record, null, cancellationToken);
    }

    /// <summary>
    /// Appends a record that <paramref name="write"/> writes, for example a serializer. It is called once, before this method returns, on
    /// the caller's thread. If it throws, nothing is appended.
    /// </summary>
    /// <typeparam name="TState">The type of what is passed to <paramref name="write"/>.</typeparam>
    /// <param name="state">What is passed to <paramref name="write"/>, so that it need not capture anything.</param>
    /// <param name="write">Writes the record's bytes. It must not use the writer later.</param>
    /// <param name="cancellationToken">As above.</param>
    /// <inheritdoc cref="AppendAsync(ReadOnlyMemory{byte}, CancellationToken)"/>
    public ValueTask<long> AppendAsync<TState>(
        TState state, Action<IBufferWriter<byte>, TState> write, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(write);
        RecordBuffer buffer = RecordBuffer.Rent(_options.MaxRecordLength);
        try
        {
            write(buffer, state);
        }
        catch
        {
            buffer.Return();
            throw;
        }

        return BeginAppendAsync(buffer.Written, buffer, cancellationToken);
    }

    private ValueTask<long> BeginAppendAsync(ReadOnlyMemory<byte> record, RecordBuffer? buffer, CancellationToken cancellationToken)
    {
        if (cancellationToken.IsCancellationRequested)
        {
            buffer?.Return();
            return ValueTask.FromException<long>(new JournalAppendCanceledException(mayAppear: false, cancellationToken));
        }

        uint crc = Crc32C.Append(_seed, record.Span);
        QueuedAppend? queued = null;
        TakenAppend taken;
        lock (_gate)
        {
            if (ErrorLocked() is { } error)
            {
                buffer?.Return();
                return ValueTask.FromException<long>(error);
            }

            if (_queue.Count > 0 || !TryTakeLocked(record.Span, crc, out taken))
            {
                taken = default;
                queued = new QueuedAppend(record, crc);
                EnqueueLocked(queued);
            }
        }

        if (queued is not null)
        {
            return CommitQueuedAsync(queued, buffer, cancellationToken);
        }

        buffer?.Return();
        return cancellationToken.CanBeCanceled && !taken.Flush.IsCompleted
            ? CommitUntilCanceledAsync(CommitAsync(taken).AsTask(), cancellationToken) : CommitAsync(taken);
    }

    /// <summary>
    /// Gives a record the next number and hands it to the writer. <see langword="false"/>: there is no room for it now.
    /// </summary>
    private bool TryTakeLocked(ReadOnlySpan<byte> record, uint crc, out TakenAppend taken)
    {
        taken = default;
        long size = JournalFormat.SizeOf(record.Length);
        long pending = _appendedBytes - Volatile.Read(ref _committedBytes);
        if (_isRolling || (pending > 0 && pending + size > _options.PauseAppendThreshold))
        {
            return false;
        }

        if (!_active.HasRoom(_next, size, _options.SegmentSize))
        {
            BeginSegmentLocked();
            return false;
        }

        AddZerosLocked(size);
        if (!_active.HasBlocks(size))
        {
            return false;
        }

        PrepareLocked();

        try
        {
            _crc = _active.Write(record, crc, isStatement: false, _crc, UncommittedLocked(), _next);
            _appendedBytes += size;
            taken = new TakenAppend(_next, _appendedBytes, _active.FlushAsync(_options.FlushGuarantee));
            Volatile.Write(ref _next, _next + 1);
            return true;
        }
        catch (Exception e)
        {
            // The writer may have a part of the record, so it must not write more.
            throw FailLocked(e);
        }
    }

    /// <summary>How many records directly before the next one may not be on the device.</summary>
    private uint UncommittedLocked()
    {
        // The records of earlier segments are on the device, whatever the guarantee.
        long proven = _options.FlushGuarantee == FlushGuarantee.Durable
            ? Math.Max(Volatile.Read(ref _committed), _active.File.First) : Math.Max(_opened, _active.File.First);
        return (uint)Math.Min(_next - proven, uint.MaxValue);
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    private async ValueTask<long> CommitAsync(TakenAppend taken)
    {
        try
        {
            await taken.Flush.ConfigureAwait(false);
        }
        catch (Exception e)
        {
            throw Fail(e);
        }

        OnCommitted(taken);
        return taken.Sequence;
    }

    private async ValueTask<long> CommitQueuedAsync(QueuedAppend queued, RecordBuffer? buffer, CancellationToken cancellationToken)
    {
        try
        {
            Task<long> commit = CommitQueuedAsync(queued);
            try
            {
                return await commit.WaitAsync(cancellationToken).ConfigureAwait(false);
            }
            catch (OperationCanceledException)
            {
                bool mayAppear;
                lock (_gate)
                {
                    mayAppear = !queued.TryCancelLocked();
                }

                if (mayAppear && commit.IsCompleted)
                {
                    return await commit.ConfigureAwait(false);
                }

                ObserveError(commit);
                throw new JournalAppendCanceledException(mayAppear, cancellationToken);
            }
        }
        finally
        {
            // After a cancellation the journal does not use the bytes any more, either: it has copied them, or it never will.
            buffer?.Return();
        }
    }

    private async Task<long> CommitQueuedAsync(QueuedAppend queued)
        => await CommitAsync(await queued.Taken.ConfigureAwait(false)).ConfigureAwait(false);

    private static async ValueTask<long> CommitUntilCanceledAsync(Task<long> commit, CancellationToken cancellationToken)
    {
        try
        {
            return await commit.WaitAsync(cancellationToken).ConfigureAwait(false);
        }
        catch (OperationCanceledException)
        {
            if (commit.IsCompleted)
            {
                return await commit.ConfigureAwait(false);
            }

            ObserveError(commit);
            throw new JournalAppendCanceledException(mayAppear: true, cancellationToken);
        }
    }

    // Nobody awaits the commit any more. The journal keeps its error, which later appends throw.
    private static void ObserveError(Task commit)
        => commit.ContinueWith(
            static task => _ = task.Exception, CancellationToken.None,
            TaskContinuationOptions.OnlyOnFaulted | TaskContinuationOptions.ExecuteSynchronously, TaskScheduler.Default);

    private void OnCommitted(TakenAppend taken)
    {
        if (taken.Sequence >= Volatile.Read(ref _roundEnd))
        {
            Raise(ref _roundEnd, NextSequence);
            Interlocked.Increment(ref _rounds);
        }

        Raise(ref _committed, taken.Sequence + 1);
        Raise(ref _committedBytes, taken.Bytes);
        if (Volatile.Read(ref _committedSignal) is not null)
        {
            SignalCommitted();
        }

        if (Volatile.Read(ref _queued) > 0)
        {
            Release();
        }
    }

    private static void Raise(ref long value, long atLeast)
    {
        long seen = Volatile.Read(ref value);
        while (seen < atLeast && Interlocked.CompareExchange(ref value, atLeast, seen) is long now && now != seen)
        {
            seen = now;
        }
    }

    private void EnqueueLocked(QueuedAppend queued)
    {
        _queue.Enqueue(queued);

        // A commit that has not seen the number is seen here: both sides write first and read then.
        Interlocked.Increment(ref _queued);
        ReleaseLocked();
    }

    /// <summary>Takes the records of waiting appends, as far as there is room.</summary>
    private void Release()
    {
        lock (_gate)
        {
            ReleaseLocked();
        }
    }

    [SuppressMessage("Design", "CA1031:Do not catch general exception types",
        Justification = "The journal has failed and keeps the error.")]
    private void ReleaseLocked()
    {
        long pending = _appendedBytes - Volatile.Read(ref _committedBytes);
        if (pending > _options.PauseAppendThreshold / 2 || _error is not null)
        {
            return;
        }

        while (_queue.TryPeek(out QueuedAppend? queued))
        {
            if (!queued.IsCanceled)
            {
                TakenAppend taken;
                try
                {
                    if (!TryTakeLocked(queued.Record.Span, queued.Crc, out taken))
                    {
                        return;
                    }
                }
                catch (Exception)
                {
                    // All that wait have this error now.
                    return;
                }

                queued.Take(taken);
            }

            DequeueLocked();
        }
    }

    private void DequeueLocked()
    {
        _queue.Dequeue();
        Interlocked.Decrement(ref _queued);
    }

    /// <summary>Why the journal takes no record; <see langword="null"/> if it does.</summary>
    private Exception? ErrorLocked()
        => _closing is not null ? new ObjectDisposedException(nameof(Journal), "The journal is closed.")
            : _error is not null ? Failed(_error) : null;

    private IOException Fail(Exception error)
    {
        lock (_gate)
        {
            return FailLocked(error);
        }
    }

    /// <summary>Keeps the first error, and ends all waiting appends with it. Returns what the caller throws.</summary>
    private IOException FailLocked(Exception error)
    {
        if (_error is null)
        {
            Volatile.Write(ref _error, error);
            foreach (QueuedAppend queued in _queue)
            {
                queued.Fail(Failed(error));
            }

            Interlocked.Exchange(ref _queued, 0);
            _queue.Clear();
            SignalCommitted();
        }

        return Failed(_error);
    }

    private static IOException Failed(Exception error)
        => new($"The journal has failed and takes no more records until it is opened again. {error.Message}", error)
        {
            HResult = error.HResult,
        };
}
