using System.Buffers;
using System.Runtime.CompilerServices;

namespace Pipelines.File;

/// <content>Appends: takes records in order, and completes their callers when they are committed.</content>
public sealed partial class Journal
{
    // Appends that the journal has not taken, in the order of their calls: there is no room, or the next segment begins.
    private readonly Queue<QueuedAppend> _queue = new();

    // How many are in it, readable without the lock.
    private int _queued;

    // The bytes of their records; the lock guards it.
    private long _queuedBytes;

    // The bytes of all records that were taken; the lock guards it.
    private long _appendedBytes;

    // Another one when the journal is opened again.
    private volatile CommitProgress _committed;

    // Interlocked: the number behind the records that wait together with the one that was committed last.
    private long _roundEnd;

    // Interlocked: when the lock was looked at.
    private long _lookedAtLock;

    // Completed when more is committed, or when nothing will be; null if nobody waits.
    private TaskCompletionSource? _committedSignal;

    // What became of an attempt to append.
    private enum Attempt
    {
        Taken,
        NoRoom,
        Conflict,
    }

    /// <summary>
    /// Appends a record. Completes when it and all records before it are on the device, or as
    /// <see cref="JournalOptions.FlushGuarantee"/> says.
    /// </summary>
    /// <param name="record">The bytes. They are copied before this method returns.</param>
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
        => BeginAppend(Copy(record), isTry: false, cancellationToken, out _);

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

        return BeginAppend(
            new PendingAppend(buffer, null, null, Crc32C.Append(0, buffer.Written.Span), null), isTry: false, cancellationToken, out _);
    }

    /// <summary>
    /// Appends records that are there whole or not at all, after a crash, too, and with no other one between them.
    /// </summary>
    /// <param name="records">
    /// One record at least; at most 1 GiB together, with 32 to 39 bytes for each. They are copied before this method returns.
    /// </param>
    /// <param name="expectedSequence">
    /// The number that the first one must get, for example behind what the caller has read: if others have come before,
    /// <see cref="JournalConflictException"/> is thrown, and nothing is appended. <see langword="null"/>: any.
    /// </param>
    /// <param name="cancellationToken">As of <see cref="AppendAsync(ReadOnlyMemory{byte}, CancellationToken)"/>.</param>
    /// <returns>The sequence number of the first one.</returns>
    /// <exception cref="ArgumentException">There is no record, or they are too long together.</exception>
    /// <exception cref="ArgumentOutOfRangeException">A record is longer than <see cref="JournalOptions.MaxRecordLength"/>.</exception>
    /// <exception cref="JournalConflictException">The next record has another number than expected.</exception>
    /// <inheritdoc cref="AppendAsync(ReadOnlyMemory{byte}, CancellationToken)" path="/exception[position() > 1]"/>
    public ValueTask<long> AppendBatchAsync(
        IReadOnlyList<ReadOnlyMemory<byte>> records, long? expectedSequence = null, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(records);
        int count = records.Count;
        if (count == 0)
        {
            throw new ArgumentException("A batch has one record at least.", nameof(records));
        }

        RecordBuffer buffer = RecordBuffer.Rent(JournalFormat.MaxRecordLength);
        try
        {
            // Whoever reads a batch has it in memory whole, with its headers.
            long size = (long)count * RecordHeader.Length;
            ThrowIfBatchIsTooLong(size, nameof(records));
            size = 0;
            int[] ends = new int[count];
            uint[] crcs = new uint[count];
            for (int i = 0; i < count; i++)
            {
                ReadOnlyMemory<byte> record = records[i];
                ThrowIfTooLong(record.Length, nameof(records));
                ThrowIfBatchIsTooLong(size += JournalFormat.SizeOf(record.Length), nameof(records));
                int start = buffer.Length;
                buffer.Append(record.Span);
                ends[i] = buffer.Length;
                crcs[i] = Crc32C.Append(0, buffer.Written.Span[start..]);
            }

            return BeginAppend(new PendingAppend(buffer, ends, crcs, 0, expectedSequence), isTry: false, cancellationToken, out _);
        }
        catch
        {
            buffer.Return();
            throw;
        }
    }

    /// <summary>
    /// Appends a record unless <see cref="JournalOptions.PauseAppendThreshold"/> bytes wait already. For callers that would rather drop or
    /// refuse something than wait.
    /// </summary>
    /// <param name="record">The bytes. They are copied before this method returns.</param>
    /// <param name="appended">What <see cref="AppendAsync(ReadOnlyMemory{byte}, CancellationToken)"/> returns. Await it.</param>
    /// <returns><see langword="false"/>: the queue is full, and nothing was appended.</returns>
    /// <exception cref="ArgumentOutOfRangeException">The record is longer than <see cref="JournalOptions.MaxRecordLength"/>.</exception>
    public bool TryAppend(ReadOnlyMemory<byte> record, out ValueTask<long> appended)
    {
        appended = BeginAppend(Copy(record), isTry: true, CancellationToken.None, out bool isFull);
        return !isFull;
    }

    private static void ThrowIfBatchIsTooLong(long size, string name)
    {
        if (size > JournalFormat.SizeOf(JournalFormat.MaxRecordLength))
        {
            throw new ArgumentException("A batch has 1 GiB at most, with 32 to 39 bytes for each record.", name);
        }
    }

    private void ThrowIfTooLong(int length, string name)
    {
        if (length > _options.MaxRecordLength)
        {
            throw new ArgumentOutOfRangeException(
                name, length, $"The record is longer than MaxRecordLength, {_options.MaxRecordLength} bytes.");
        }
    }

    /// <summary>
    /// Takes a copy: the caller's memory may throw, and may change, and must do neither under the lock or behind its checksum.
    /// </summary>
    private PendingAppend Copy(ReadOnlyMemory<byte> record)
    {
        ThrowIfTooLong(record.Length, nameof(record));
        RecordBuffer buffer = RecordBuffer.Rent(_options.MaxRecordLength);
        try
        {
            buffer.Append(record.Span);
        }
        catch
        {
            buffer.Return();
            throw;
        }

        return new PendingAppend(buffer, null, null, Crc32C.Append(0, buffer.Written.Span), null);
    }

    private ValueTask<long> BeginAppend(in PendingAppend pending, bool isTry, CancellationToken cancellationToken, out bool isFull)
    {
        isFull = false;
        if (cancellationToken.IsCancellationRequested)
        {
            pending.Buffer.Return();
            return ValueTask.FromException<long>(new JournalAppendCanceledException(mayAppear: false, cancellationToken));
        }

        LookAtLock();
        QueuedAppend? queued = null;
        Exception? error;
        TakenAppend taken = default;
        lock (_gate)
        {
            error = ErrorLocked();
            if (error is null && isTry)
            {
                long waiting = _appendedBytes - _committed.Bytes + _queuedBytes;
                isFull = waiting > 0 && waiting + pending.Size > _options.PauseAppendThreshold;
            }

            if (error is null && !isFull)
            {
                Attempt attempt = _queue.Count > 0 ? Attempt.NoRoom : TryTakeLocked(pending, out taken, out error);
                if (attempt == Attempt.NoRoom && error is null)
                {
                    EnqueueLocked(queued = new QueuedAppend(pending));
                }
            }
        }

        if (queued is not null)
        {
            return Measured(CommitQueuedAsync(queued, cancellationToken));
        }

        pending.Buffer.Return();
        return isFull ? default
            : error is not null ? ValueTask.FromException<long>(error)
            : Measured(cancellationToken.CanBeCanceled && !taken.Flush.IsCompleted
                ? CommitUntilCanceledAsync(CommitAsync(taken).AsTask(), cancellationToken) : CommitAsync(taken));
    }

    /// <summary>
    /// Looks, once in a tick of the clock, whether the folder's lock is still what the journal has: a second writer could write into the
    /// same segment. None of the records that come then is acknowledged.
    /// </summary>
    private void LookAtLock()
    {
        long now = Environment.TickCount64;
        if (Interlocked.Exchange(ref _lookedAtLock, now) != now && !_fileLock.IsInPlace && _closing is null)
        {
            Fail(JournalFolder.NotInPlace(_fileLock));
        }
    }

    private ValueTask<long> Measured(ValueTask<long> append)
        => !append.IsCompleted && JournalMetrics.IsAppendMeasured ? JournalMetrics.MeasureAsync(append, Name) : append;

    /// <summary>Gives records the next numbers and hands them to the writer.</summary>
    private Attempt TryTakeLocked(in PendingAppend pending, out TakenAppend taken, out Exception? error)
    {
        taken = default;
        error = null;
        long size = pending.Size;
        long waiting = _appendedBytes - _committed.Bytes;
        if (_isRolling || (waiting > 0 && waiting + size > _options.PauseAppendThreshold))
        {
            return Attempt.NoRoom;
        }

        if (pending.Expected is { } expected && expected != _next)
        {
            error = new JournalConflictException(expected, _next);
            return Attempt.Conflict;
        }

        if (_next > long.MaxValue - pending.Count)
        {
            error = new InvalidOperationException("The journal has no more sequence numbers.");
            return Attempt.Conflict;
        }

        if (!_active.HasRoom(_next, size, _options.SegmentSize))
        {
            BeginSegmentLocked();
            return Attempt.NoRoom;
        }

        AddZerosLocked(size);
        if (!_active.HasBlocks(size))
        {
            return Attempt.NoRoom;
        }

        PrepareLocked();
        try
        {
            taken = WriteLocked(pending, size);
            return Attempt.Taken;
        }
        catch (Exception e)
        {
            // The writer may have a part of the records, so it must not write more.
            error = FailLocked(e);
            return Attempt.Conflict;
        }
    }

    private TakenAppend WriteLocked(in PendingAppend pending, long size)
    {
        long first = _next;
        uint crc = _crc;
        for (int i = 0; i < pending.Count; i++)
        {
            crc = _active.Write(pending[i], new RecordHeader(
                0, 0, IsStatement: false, pending.CrcOf(i), crc, UncommittedLocked(first + i), (uint)(pending.Count - 1 - i), first + i));
        }

        _crc = crc;
        _appendedBytes += size;
        Volatile.Write(ref _next, first + pending.Count);
        return new TakenAppend(
            first, pending.Count, _appendedBytes, _committed, JournalMetrics.Now(), _active.FlushAsync(_options.FlushGuarantee));
    }

    /// <summary>How many records directly before this one may not be on the device: whole batches.</summary>
    private uint UncommittedLocked(long sequence)
    {
        // The records of earlier segments are on the device, whatever the guarantee.
        long proven = _options.FlushGuarantee == FlushGuarantee.Durable
            ? Math.Max(_committed.Next, _active.File.First) : Math.Max(_opened, _active.File.First);
        return (uint)Math.Min(sequence - proven, uint.MaxValue);
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
            throw Fail(e, taken.Progress);
        }

        OnCommitted(taken);
        return taken.Sequence;
    }

    private async ValueTask<long> CommitQueuedAsync(QueuedAppend queued, CancellationToken cancellationToken)
    {
        try
        {
            Task<long> commit = CommitQueuedAsync(queued);
            try
            {
                return await commit.WaitAsync(cancellationToken).ConfigureAwait(false);
            }
            catch (OperationCanceledException) when (cancellationToken.IsCancellationRequested)
            {
                bool mayAppear;
                lock (_gate)
                {
                    mayAppear = !queued.TryCancelLocked();
                }

                ObserveError(commit);
                throw new JournalAppendCanceledException(mayAppear, cancellationToken);
            }
        }
        finally
        {
            // After a cancellation the journal does not use the bytes any more, either: it has copied them, or it never will.
            queued.Pending.Buffer.Return();
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
        catch (OperationCanceledException) when (cancellationToken.IsCancellationRequested)
        {
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
            long end = NextSequence;
            CommitProgress.Raise(ref _roundEnd, end);
            _meter.OnRound(end - taken.Sequence, taken.Started);
        }

        taken.Progress.Raise(taken.Sequence + taken.Count, taken.Bytes);
        if (Volatile.Read(ref _committedSignal) is not null)
        {
            SignalCommitted();
        }

        if (Volatile.Read(ref _queued) > 0)
        {
            Release();
        }
    }

    private void EnqueueLocked(QueuedAppend queued)
    {
        _queue.Enqueue(queued);
        _queuedBytes += queued.Size;

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

    private void ReleaseLocked()
    {
        long waiting = _appendedBytes - _committed.Bytes;
        if (waiting > _options.PauseAppendThreshold / 2 || _error is not null)
        {
            return;
        }

        while (_queue.TryPeek(out QueuedAppend? queued))
        {
            if (!queued.IsCanceled)
            {
                Attempt attempt = TryTakeLocked(queued.Pending, out TakenAppend taken, out Exception? error);
                if (attempt == Attempt.NoRoom || _error is not null)
                {
                    // All that wait have the error, if there is one.
                    return;
                }

                if (error is not null)
                {
                    queued.Refuse(error);
                }
                else
                {
                    queued.Take(taken);
                }
            }

            DequeueLocked();
        }
    }

    private void DequeueLocked()
    {
        _queuedBytes -= _queue.Dequeue().Size;
        Interlocked.Decrement(ref _queued);
    }

    /// <summary>Why the journal takes no record; <see langword="null"/> if it does.</summary>
    private Exception? ErrorLocked()
        => _closing is not null ? new ObjectDisposedException(nameof(Journal), "The journal is closed.")
            : _error is not null ? Failed(_error) : null;

    private IOException Fail(Exception error) => Fail(error, _committed);

    private IOException Fail(Exception error, CommitProgress progress)
    {
        lock (_gate)
        {
            // What has failed before the journal was opened again is the caller's alone.
            return progress == _committed ? FailLocked(error) : Failed(error);
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
            _queuedBytes = 0;
            SignalCommitted();

            // A logger is somebody else's code: not under the lock.
            _ = Task.Run(() => JournalLog.Failed(_options.Log, error, Name));
        }

        return Failed(_error);
    }

    private static IOException Failed(Exception error)
        => new($"The journal has failed and takes no more records until it is opened again. {error.Message}", error)
        {
            HResult = error.HResult,
        };
}
