using Pipelines.File.Threading;
using Pipelines.File.Writing;

namespace Pipelines.File;

/// <content>Writes memory, and copies streams.</content>
public sealed partial class FilePipeWriter
{
    /// <summary>The maximum number of bytes that WriteAsync copies before it flushes, which checks the thresholds.</summary>
    private const int MaxUnpacedWrite = 1024 * 1024;

    /// <summary>
    /// A shorter write, in bytes, is copied: the call then does not wait for the system, which saves more than the copy costs.
    /// </summary>
    private const int MinBorrowedWrite = 256 * 1024;

    /// <summary>The minimum memory that a copy reads the stream into, bytes.</summary>
    private const int MinStreamRead = 4 * 1024;

    /// <summary>
    /// Writes <paramref name="source"/> and flushes. Fewer than 256 KiB are copied first. From 256 KiB on the system reads your memory
    /// directly if the file can seek, so the call completes when the bytes are written, whatever the guarantee.
    /// </summary>
    /// <remarks>
    /// A call that is canceled keeps a prefix of <paramref name="source"/>, which is written exactly once. Fewer than 256 KiB are kept
    /// whole. A longer call waits for the system call that has its memory, and keeps the bytes that are written by then.
    /// <see cref="Position"/> tells how many these are. Where the memory is copied, because the file cannot seek, it keeps the bytes that
    /// were copied.
    /// </remarks>
    /// <inheritdoc cref="FlushAsync(CancellationToken)"/>
    /// <param name="source">The bytes. Do not change them until the call has completed.</param>
    /// <param name="cancellationToken">Ends the wait; the remarks say which bytes are written then.</param>
    public override ValueTask<FlushResult> WriteAsync(ReadOnlyMemory<byte> source, CancellationToken cancellationToken = default)
    {
        _calls.Enter();
        bool borrows = source.Length >= MinBorrowedWrite && _file.Opened is { CanSeek: true, EndsWrites: true };
        if (borrows || source.Length > MaxUnpacedWrite)
        {
            return WriteLongAsync(source, borrows, cancellationToken);
        }

        try
        {
            return CopyAsync(source.Span, _options.OfFlush, cancellationToken);
        }
        finally
        {
            _calls.Leave();
        }
    }

    /// <inheritdoc cref="CallsUnderWay.BeginCopy"/>
    internal void BeginCopy() => _calls.BeginCopy();

    internal void EndCopy() => _calls.EndCopy();

    /// <summary>
    /// Reads the stream to its end, straight into the writer's memory, and flushes after each read. A <see cref="FlushGuarantee.Durable"/>
    /// writer is synced once, at the end.
    /// </summary>
    protected override async Task CopyFromAsync(Stream source, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(source);
        _calls.BeginCopy();
        try
        {
            int read;
            do
            {
                Memory<byte> room = GetMemory(MinStreamRead);
                read = 0;
                try
                {
                    read = await source.ReadAsync(room, cancellationToken).ConfigureAwait(false);
                }
                finally
                {
                    // Also for 0 bytes: it ends the use of the memory.
                    _ = AdvanceRoom(read);
                }

                FlushGuarantee guarantee = read > 0 ? FlushGuarantee.WriteBehind : _options.OfFlush;
                if ((await FlushAsExactlyAsync(guarantee, cancellationToken).ConfigureAwait(false)).IsCanceled)
                {
                    throw new OperationCanceledException("The flush was canceled.");
                }
            }
            while (read > 0);
        }
        finally
        {
            _calls.EndCopy();
        }
    }

    /// <summary>
    /// Has the system take a long source out of the caller's memory; or copies it, in pieces with a flush after each, so that the
    /// thresholds hold. The call counts as running until the last byte is taken.
    /// </summary>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    private async ValueTask<FlushResult> WriteLongAsync(ReadOnlyMemory<byte> source, bool borrows, CancellationToken cancellationToken)
    {
        ValueTask<FlushResult> last;
        try
        {
            using MemoryHandle pin = borrows ? source.Pin() : default;
            int length;
            for (int start = 0; start < source.Length; start += length)
            {
                length = borrows ? source.Length : Math.Min(source.Length - start, MaxUnpacedWrite);
                FlushResult result = borrows
                    ? await BorrowAsync(source, pin, cancellationToken).ConfigureAwait(false)
                    : await CopyAsync(source.Span.Slice(start, length), FlushGuarantee.WriteBehind, cancellationToken)
                        .ConfigureAwait(false);
                if (result.IsCanceled)
                {
                    return result;
                }
            }

            last = FlushCoreAsync(_options.OfFlush, cancellationToken, isWritten: true);
        }
        finally
        {
            _calls.Leave();
        }

        return await last.ConfigureAwait(false);
    }

    /// <summary>
    /// Has the queue borrow the caller's memory. Completes when the queue does not use it any more: it was written, the wait was canceled,
    /// or the writer has failed or was aborted.
    /// </summary>
    private unsafe ValueTask<FlushResult> BorrowAsync(ReadOnlyMemory<byte> source, MemoryHandle pin, CancellationToken cancellationToken)
    {
        PendingResult<FlushResult> wait;
        bool runs;
        lock (_loop)
        {
            ThrowIfCompleted();
            if (_loop.Error is not null || _cancelRequested || cancellationToken.IsCancellationRequested)
            {
                bool isCanceled = _cancelRequested;
                _cancelRequested = false;
                return Ended(_loop.Error, isCanceled, cancellationToken);
            }

            wait = _loop.BorrowLocked(source, (nint)pin.Pointer, cancellationToken);
            runs = _loop.TryRunLocked();
        }

        _loop.Run(runs);
        return wait.EndWith(s_onTokenCanceled, this, cancellationToken);
    }

    private ValueTask<FlushResult> CopyAsync(ReadOnlySpan<byte> source, FlushGuarantee guarantee, CancellationToken cancellationToken)
    {
        Copy(source);
        return FlushCoreAsync(guarantee, cancellationToken, isWritten: !source.IsEmpty);
    }

    private void Copy(ReadOnlySpan<byte> left)
    {
        while (left.Length > 0)
        {
            Span<byte> room = GetRoom(0).Span;
            int length = Math.Min(room.Length, left.Length);
            left[..length].CopyTo(room);
            if (!AdvanceRoom(length))
            {
                // The writer was completed and these bytes are lost. The flush that ends the write would not report it.
                ThrowIfCompleted();
            }

            left = left[length..];
        }
    }
}
