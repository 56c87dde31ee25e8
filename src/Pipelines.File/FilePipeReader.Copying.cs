using Pipelines.File.Diagnostics;
using Pipelines.File.Memory;
using Pipelines.File.Reading;

namespace Pipelines.File;

// Copies the rest of the file: CopyToAsync.
public sealed partial class FilePipeReader
{
    /// <summary>
    /// Copies the rest of the file to <paramref name="destination"/>, with a flush after every read. The bytes are read straight into the
    /// destination's memory.
    /// </summary>
    /// <remarks>
    /// The copy ends at the end of the file, or when the destination's reader has gone (<see cref="FlushResult.IsCompleted"/>). It
    /// completes neither side. If it is canceled or fails, the bytes that the destination has are consumed, so another copy continues after
    /// them.
    /// </remarks>
    /// <inheritdoc/>
    public override Task CopyToAsync(PipeWriter destination, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(destination);
        lock (_buffer)
        {
            ThrowIfNotReadableLocked();
        }

        return cancellationToken.IsCancellationRequested ? Task.FromCanceled(cancellationToken) : CopyAsync(destination, cancellationToken);
    }

    /// <summary>
    /// Copies the rest of the file to <paramref name="destination"/>. If the copy is canceled or fails, the bytes that were given to the
    /// destination are consumed, so another copy continues after them.
    /// </summary>
    /// <inheritdoc/>
    public override Task CopyToAsync(Stream destination, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(destination);
        return cancellationToken.IsCancellationRequested ? Task.FromCanceled(cancellationToken) : CopyAsync(destination, cancellationToken);
    }

    private async Task CopyAsync(Stream destination, CancellationToken cancellationToken)
    {
        ReadResult read;
        do
        {
            read = await ReadAsync(cancellationToken).ConfigureAwait(false);
            SequencePosition consumed = read.Buffer.Start;
            try
            {
                ThrowIfCanceled(read);
                for (SequencePosition next = consumed; read.Buffer.TryGet(ref next, out ReadOnlyMemory<byte> memory);)
                {
                    cancellationToken.ThrowIfCancellationRequested();
                    consumed = next.GetObject() is null ? read.Buffer.End : next;
                    await destination.WriteAsync(memory, cancellationToken).ConfigureAwait(false);
                }
            }
            finally
            {
                AdvanceTo(consumed);
            }
        }
        while (!read.IsCompleted);
    }

    private async Task CopyAsync(PipeWriter destination, CancellationToken cancellationToken)
    {
        FilePipeWriter? file = destination as FilePipeWriter;
        long start = Position;
        file?.BeginCopy();
        try
        {
            if (await CopyBufferedAsync(destination, cancellationToken).ConfigureAwait(false))
            {
                await PumpAsync(destination, cancellationToken).ConfigureAwait(false);
            }

            if (file is not null && Position > start)
            {
                _ = FilePump.GoesOn(await file.FlushAsync(cancellationToken).ConfigureAwait(false));
            }
        }
        finally
        {
            file?.EndCopy();
        }
    }

    /// <summary>
    /// Copies what is buffered and what a running read adds to the buffer. Returns <see langword="true"/> if <see cref="_pump"/> is set up
    /// to copy the rest, <see langword="false"/> if the copy is over.
    /// </summary>
    private async ValueTask<bool> CopyBufferedAsync(PipeWriter destination, CancellationToken cancellationToken)
    {
        bool isOver = false;
        while (!TryBeginPump(out ReadResult read))
        {
            if (read.Buffer.IsEmpty && !isOver)
            {
                read = await ReadAsync(cancellationToken).ConfigureAwait(false);
                ThrowIfCanceled(read);
                isOver = read.IsCompleted;
            }

            if (read.Buffer.IsEmpty)
            {
                return false;
            }

            // Bytes that the destination was advanced over count as consumed, even if the flush fails.
            SequencePosition consumed = read.Buffer.Start;
            try
            {
                ThrowIfCanceled(read);
                consumed = read.Buffer.GetPosition(FilePump.Write(destination, read.Buffer.FirstSpan));
            }
            finally
            {
                AdvanceTo(consumed);
            }

            if (!FilePump.GoesOn(await FilePump.FlushStepAsync(destination, cancellationToken).ConfigureAwait(false)))
            {
                return false;
            }
        }

        return true;
    }

    /// <summary>
    /// Sets <see cref="_pump"/> up, if the reader itself has nothing left to deal with: no buffered bytes, error, cancellation or running
    /// call, and if every read ends. Otherwise it returns <see langword="false"/> and the buffered bytes.
    /// </summary>
    private bool TryBeginPump(out ReadResult buffered)
    {
        lock (_buffer)
        {
            ThrowIfNotReadableLocked();

            buffered = _buffer.Length > 0 ? _buffer.TakeResultLocked() : default;
            if (_stage != Stage.Idle || !buffered.Buffer.IsEmpty || _buffer.IsCancelRequested || _buffer.Error is not null
                || !OpenedFile.EndsReads)
            {
                return false;
            }

            // First, because it allocates: a stage without a pump would never end.
            Probe.Allocating();
            _pump = new FilePump(OpenedFile, _buffer.NextOffset, _buffer.Left);
            _stage = Stage.Pumping;
            return true;
        }
    }

    private async ValueTask PumpAsync(PipeWriter destination, CancellationToken cancellationToken)
    {
        FilePump pump = _pump!;
        try
        {
            _ = await pump.CopyToAsync(destination, cancellationToken).ConfigureAwait(false);
        }
        finally
        {
            FileSegment? freed;
            bool releases;
            lock (_buffer)
            {
                freed = _buffer.EndPumpLocked(pump);
                _pump = null;
                _stage = Stage.Idle;
                releases = _isCompleted;
            }

            pump.Dispose();
            _ = SegmentPool.Shared.Return(freed);
            ReleaseIf(releases);
        }

        // A cancellation that came too late to end a call is reported here. Otherwise it would be lost.
        if (pump.Canceled is { } canceled)
        {
            ExceptionDispatchInfo.Throw(canceled);
        }
    }

    private static void ThrowIfCanceled(ReadResult read)
    {
        if (read.IsCanceled)
        {
            throw CanceledException();
        }
    }
}
