using System.IO.Pipelines;
using System.Runtime.CompilerServices;
using System.Runtime.ExceptionServices;
using Pipelines.File.Backends;
using Pipelines.File.Buffers;

namespace Pipelines.File;

/// <summary>
/// Copies an open file, from an offset on, straight into the memory of a <see cref="PipeWriter"/>, or, where the system can, from file to file. Used by one caller at a time,
/// who waits for every step; <see cref="Cancel"/> may come from any thread. It closes nothing.
/// </summary>
internal sealed class FileCopy : IFileOperationOwner, IDisposable
{
    /// <summary>Bytes that a step asks the destination for at most.</summary>
    private const int MaxStep = 64 * 1024;

    /// <summary>Bytes that a step asks for which most likely finds the end of the file.</summary>
    private const int LastStep = 4 * 1024;

    /// <summary>
    /// Bytes up to which a file goes through memory instead of copy_file_range(2), which may wait for the device and so needs another thread: a read that the page cache answers needs
    /// none, and the writer writes while the caller goes on. With more bytes it is the second copy that takes longer. docs/tuning.md
    /// </summary>
    private const int MaxThroughMemory = 1024 * 1024;

    private FileBackend _source;
    private long _offset;
    private long _length;

    // The caller's, but for the time when the back end has it.
    private FileOperation? _operation;
    private long _copied;

    // The last step was full where the end was: there is more than was known when the file was opened.
    private bool _hasGrown;

    // Guarded by this object.
    private PooledCompletion<bool>? _pending;
    private Exception? _canceled;

    // From the first step on that has to wait.
    private PooledCompletions<bool>? _completions;

    /// <param name="source">The file.</param>
    /// <param name="offset">The first byte, bytes.</param>
    /// <param name="length">At most so many bytes; <see langword="null"/>: to the end of the file.</param>
    internal FileCopy(FileBackend source, long offset, long? length = null)
    {
        _source = source;
        _offset = offset;
        _length = length ?? long.MaxValue - offset;
    }

    /// <summary>Bytes that the destination has. May be asked from any thread.</summary>
    internal long Copied => Volatile.Read(ref _copied);

    /// <summary>What reading the file has failed with.</summary>
    internal Exception? Error { get; private set; }

    /// <summary>Bytes that are left as far as opening told how long the file is; none or less where it is longer than that.</summary>
    private long KnownLeft => Math.Min(_source.Properties.Length - (_offset + _copied), _length - _copied);

    /// <summary>Whether a flush lets a copy go on: <see langword="false"/>, the destination takes no more.</summary>
    /// <exception cref="OperationCanceledException">The flush was canceled.</exception>
    internal static bool GoesOn(FlushResult flush)
        => flush.IsCanceled ? throw new OperationCanceledException("The flush was canceled.") : !flush.IsCompleted;

    /// <summary>What <see cref="Cancel"/> was called with first.</summary>
    internal Exception? Canceled => Volatile.Read(ref _canceled);

    /// <summary>
    /// Makes the step that is under way, or else the next one, throw <paramref name="reason"/>, as soon as the system has given the destination's memory back.
    /// What it returns is to be requested, without a lock.
    /// </summary>
    internal Cancellation Cancel(Exception reason)
    {
        lock (this)
        {
            _canceled ??= reason;
            return _pending is null ? default : new Cancellation(_operation!);
        }
    }

    internal void ThrowIfCanceled(CancellationToken cancellationToken)
    {
        cancellationToken.ThrowIfCancellationRequested();
        if (Canceled is { } canceled)
        {
            throw canceled;
        }
    }

    /// <summary>Copies what a reader has buffered, then everything else.</summary>
    internal async Task CopyToAsync(ReadState state, PipeWriter destination, CancellationToken cancellationToken)
    {
        // While this copies nobody else moves the chain.
        foreach (ReadOnlyMemory<byte> memory in state.Buffered)
        {
            ThrowIfCanceled(cancellationToken);
            FlushResult flush = default;
            try
            {
                flush = await destination.WriteAsync(memory, cancellationToken).ConfigureAwait(false);
            }
            finally
            {
                // Also where the write fails: the destination may have taken them, and each byte goes there once.
                FileSegment? freed;
                lock (state)
                {
                    freed = state.Skip(memory.Length);
                }

                _ = SegmentPool.Shared.Return(freed);
            }

            if (!GoesOn(flush))
            {
                return;
            }
        }

        // An error comes after what was read before it, and is not tried again.
        ThrowIfCanceled(cancellationToken);
        if (state.Error is not null)
        {
            _ = await state.Answer(default, state.Error).ConfigureAwait(false);
        }

        await CopyToAsync(destination, cancellationToken).ConfigureAwait(false);
    }

    /// <summary>Copies everything, with a flush after every step. Ends early where the destination takes no more.</summary>
    internal async Task CopyToAsync(PipeWriter destination, CancellationToken cancellationToken)
    {
        CancellationTokenRegistration registration = cancellationToken.UnsafeRegister(
            static (state, token) => ((FileCopy)state!).OnTokenCanceled(token), this);
        FilePipeWriter? file = destination as FilePipeWriter;
        file?.BeginCopy();
        try
        {
            bool goesOn = file is null || await CopyRangesAsync(file, cancellationToken).ConfigureAwait(false);
            while (goesOn && Copied < _length)
            {
                // A file's writer gives all the room that it has left, so that short reads do not take a segment each.
                int step = NextStep();
                if (await ReadAsync(destination, step, file is null ? step : Math.Min(step, LastStep)).ConfigureAwait(false) == 0)
                {
                    break;
                }

                // A durable file is synced once, in the end.
                goesOn = GoesOn(file is null
                    ? await destination.FlushAsync(cancellationToken).ConfigureAwait(false)
                    : await file.FlushAsExactlyAsync(FlushGuarantee.WriteBehind, cancellationToken).ConfigureAwait(false));
            }

            if (file is not null && Copied > 0)
            {
                _ = GoesOn(await file.FlushAsync(cancellationToken).ConfigureAwait(false));
            }
        }
        finally
        {
            file?.EndCopy();
            registration.Unregister();
        }
    }

    /// <summary>Reads once, at most <paramref name="count"/> bytes, and advances the destination over them. 0: the end of the file.</summary>
    internal ValueTask<int> ReadAsync(PipeWriter destination, int count) => ReadAsync(destination, count, sizeHint: count);

    private ValueTask<int> ReadAsync(PipeWriter destination, int count, int sizeHint)
    {
        ThrowIfCanceled(CancellationToken.None);
        Memory<byte> memory = destination.GetMemory(sizeHint);
        FileOperation operation = _operation ??= _source.Rent(this);
        operation.Begin(FileOperationKind.Read, _offset + _copied);
        operation.Add(memory[..(int)Math.Min(Math.Min(memory.Length, count), _length - _copied)], address: 0);
        try
        {
            operation.Pin();
        }
        catch
        {
            operation.Clear();
            GiveMemoryBack(destination);
            throw;
        }

        if (!_source.TryPerform(operation) || operation.IsCanceled)
        {
            return ReadLaterAsync(destination, operation);
        }

        FilePipeMetrics.ReadInline();
        return new ValueTask<int>(EndRead(destination, operation));
    }

    /// <summary>Copies something else from here on, from an offset to the end. It has been disposed of, and nobody cancels it any more.</summary>
    internal void Reuse(FileBackend source, long offset)
    {
        _source = source;
        _offset = offset;
        _length = long.MaxValue - offset;
        _copied = 0;
        _hasGrown = false;
        _canceled = null;
        Error = null;
    }

    /// <summary>Gives the operation back. No step is under way.</summary>
    public void Dispose()
    {
        _operation?.Return();
        _operation = null;
    }

    bool IFileOperationOwner.OnCompleted(FileOperation operation)
    {
        PooledCompletion<bool> pending;
        lock (this)
        {
            pending = _pending!;
            _pending = null;
        }

        pending.CompleteOnPool(true, null);
        return false;
    }

    private void OnTokenCanceled(CancellationToken token) => Cancel(new OperationCanceledException(token)).Request(_source);

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    private async ValueTask<int> ReadLaterAsync(PipeWriter destination, FileOperation operation)
    {
        await PerformAsync(operation).ConfigureAwait(false);
        return EndRead(destination, operation);
    }

    private int EndRead(PipeWriter destination, FileOperation operation)
    {
        int read = (int)operation.Transferred;
        operation.Clear();
        if (operation.Error is not null || operation.IsCanceled)
        {
            GiveMemoryBack(destination);
            Error = operation.Error;
            ExceptionDispatchInfo.Throw(operation.Error ?? _canceled!);
        }

        FilePipeMetrics.Read(read);
        _hasGrown = read >= LastStep && _offset + _copied >= _source.Properties.Length;

        // Also for 0: the destination's memory is not ours any more.
        destination.Advance(read);
        Volatile.Write(ref _copied, _copied + read);
        return read;
    }

    /// <summary>A file's writer that is completed from any thread from here on gives the memory back to the pool that it is from.</summary>
    private static void GiveMemoryBack(PipeWriter destination) => (destination as FilePipeWriter)?.Advance(0);

    /// <summary>
    /// Has the system copy from file to file (copy_file_range(2)) for as long as it can; whatever is left, the end of the file included, is for the ordinary way.
    /// <see langword="false"/>: the destination takes no more.
    /// </summary>
    private async ValueTask<bool> CopyRangesAsync(FilePipeWriter destination, CancellationToken cancellationToken)
    {
        // Direct I/O needs memory that is aligned, which the system's own is.
        if (KnownLeft <= (_source.ReadGranularity > 1 ? 0 : MaxThroughMemory) || !_source.CanCopyTo(destination.FileBackend))
        {
            return true;
        }

        destination.BeginDirect();
        try
        {
            while (_source.CanCopyTo(destination.FileBackend))
            {
                ThrowIfCanceled(cancellationToken);
                long length = KnownLeft;
                if (length <= 0)
                {
                    break;
                }

                // Nothing of the writer's may be on its way: the copy goes past its memory.
                if (!GoesOn(await destination.FlushDirectAsync(cancellationToken).ConfigureAwait(false)))
                {
                    return false;
                }

                FileOperation operation = _operation ??= _source.Rent(this);
                operation.BeginCopy(_offset + _copied, destination.FileBackend, destination.Skip(0), length);
                await PerformAsync(operation).ConfigureAwait(false);
                long copied = operation.Transferred;
                operation.Clear();
                if (operation.Error is { } error)
                {
                    Error = error;
                    throw error;
                }

                destination.Skip(copied);
                Volatile.Write(ref _copied, _copied + copied);
                if (copied == 0)
                {
                    break;
                }
            }

            return true;
        }
        finally
        {
            destination.EndDirect();
        }
    }

    /// <summary>Has the back end perform the operation, and waits until the system is done with its memory, canceled or not.</summary>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    private async ValueTask PerformAsync(FileOperation operation)
    {
        do
        {
            PooledCompletion<bool> pending = (_completions ??= new PooledCompletions<bool>()).Rent();
            ValueTask<bool> reported = pending.Task;
            Cancellation cancellation = default;
            lock (this)
            {
                _pending = pending;
                if (_canceled is not null)
                {
                    cancellation = new Cancellation(operation);
                }
            }

            _source.Start(operation);
            cancellation.Request(_source);
            await reported.ConfigureAwait(false);
            if (operation.TakeFallback(out int errno) is { } call)
            {
                FilePipeMetrics.FellBack(call, errno);
            }
        }
        while (operation.IsCanceled && Canceled is null); // What meant an earlier call and came too late: once more.
    }

    /// <summary>Bytes to ask for: never none.</summary>
    private int NextStep()
    {
        long known = _source.Properties.Length - (_offset + _copied);
        return known > 0 ? (int)Math.Min(known, MaxStep) : _source.Properties.Length > 0 && !_hasGrown ? LastStep : MaxStep;
    }
}
