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
                if (read.IsCanceled)
                {
                    throw CanceledException();
                }

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
            await CopyToEndAsync(destination, cancellationToken).ConfigureAwait(false);
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
    /// Flushes a step of a copy. A <see cref="FilePipeWriter"/> is flushed without its guarantee, which holds at the end of the copy: one
    /// sync instead of one for each step.
    /// </summary>
    private static ValueTask<FlushResult> FlushStepAsync(PipeWriter destination, CancellationToken cancellationToken)
        => destination is FilePipeWriter file ? file.FlushAsExactlyAsync(FlushGuarantee.WriteBehind, cancellationToken)
            : destination.FlushAsync(cancellationToken);

    /// <summary>
    /// Copies with a flush after every step: first what is buffered, and what a running read adds to the buffer, then by a pump.
    /// </summary>
    private async ValueTask CopyToEndAsync(PipeWriter destination, CancellationToken cancellationToken)
    {
        FilePump? pump = null;
        CancellationTokenRegistration registration = default;
        bool isOver = false;
        int copied = 0;
        try
        {
            do
            {
                ReadResult read = default;
                if (pump is null && (pump = TryBeginPump(out read)) is not null)
                {
                    registration = pump.EndWith(cancellationToken);
                }

                if (pump is not null)
                {
                    int step = NextStep(copied);
                    copied = step == 0 ? 0 : await pump.ReadAsync(destination, _buffer.NextOffset, step).ConfigureAwait(false);
                    EndStep(copied);
                }
                else
                {
                    if (read.Buffer.IsEmpty && !isOver)
                    {
                        read = await ReadAsync(cancellationToken).ConfigureAwait(false);
                        isOver = read.IsCompleted;
                    }

                    copied = FilePump.Copy(this, read, destination);
                }
            }
            while (copied > 0 && FilePump.GoesOn(await FlushStepAsync(destination, cancellationToken).ConfigureAwait(false)));
        }
        finally
        {
            registration.Unregister();
            if (pump is not null)
            {
                EndPump(pump);
            }
        }

        // A cancellation that came too late to end a call is reported here. Otherwise it would be lost.
        if (pump?.Canceled is { } canceled)
        {
            ExceptionDispatchInfo.Throw(canceled);
        }
    }

    /// <summary>
    /// Begins a pump, if the reader itself has nothing left to deal with: no buffered bytes, error, cancellation or running call, and if
    /// every read ends. Otherwise it returns <see langword="null"/> and the buffered bytes.
    /// </summary>
    private FilePump? TryBeginPump(out ReadResult buffered)
    {
        lock (_buffer)
        {
            ThrowIfNotReadableLocked();
            buffered = _buffer.Length > 0 ? _buffer.TakeResultLocked() : default;
            if (_stage != Stage.Idle || !buffered.Buffer.IsEmpty || _buffer.IsCancelRequested || _buffer.Error is not null
                || !OpenedFile.EndsReads)
            {
                return null;
            }

            // First, because it allocates: a stage without a pump would never end.
            Probe.Allocating();
            _pump = new FilePump(OpenedFile);
            _stage = Stage.Pumping;
            return _pump;
        }
    }

    /// <summary>The number of bytes that the next step asks for; 0 if no more may be read.</summary>
    /// <param name="copied">
    /// The number of bytes of the last step. If it is large, and began at the length at opening or after it, the file has grown.
    /// </param>
    private int NextStep(int copied)
    {
        long length = OpenedFile.Properties.Length;
        long known = length - _buffer.NextOffset;
        bool hasGrown = copied >= FilePump.LastStep && known + copied <= 0;
        long step = known > 0 ? Math.Min(known, FilePump.MaxStep) : length == 0 || hasGrown ? FilePump.MaxStep : FilePump.LastStep;
        return (int)Math.Min(step, _buffer.Left ?? long.MaxValue);
    }

    private void EndStep(int copied)
    {
        FileSegment? freed;
        lock (_buffer)
        {
            freed = _buffer.SkipLocked(copied);
        }

        _ = SegmentPool.Shared.Return(freed);
    }

    private void EndPump(FilePump pump)
    {
        bool releases;
        lock (_buffer)
        {
            _buffer.EndCopyLocked(pump.Error);
            _pump = null;
            _stage = Stage.Idle;
            releases = _isCompleted;
        }

        ReleaseIf(releases);
    }
}
