namespace Pipelines.File.Reading;

/// <summary>A destination that makes a copy its own call.</summary>
internal interface ICopyDestination
{
    /// <summary>Copies the rest of the reader: see <see cref="PipeCopy.CopyAsync"/>.</summary>
    Task CopyFromAsync(PipeReader source, CancellationToken cancellationToken);
}

/// <summary>Copies a reader to a <see cref="PipeWriter"/>, and loses and repeats nothing if a step is canceled or fails.</summary>
internal static class PipeCopy
{
    /// <summary>The maximum number of bytes between two flushes, however much the reader has buffered.</summary>
    private const int MaxStep = 256 * 1024;

    /// <summary>The maximum memory that a destination is asked for at once, bytes.</summary>
    private const int MaxHint = 64 * 1024;

    /// <summary>Copies the rest of the reader, with a flush after each step.</summary>
    /// <exception cref="OperationCanceledException">A read or a flush was canceled. What the destination has is consumed.</exception>
    internal static Task CopyAsync(PipeReader reader, PipeWriter destination, CancellationToken cancellationToken)
        => destination is ICopyDestination own ? own.CopyFromAsync(reader, cancellationToken)
            : CopyStepsAsync(reader, destination, cancellationToken);

    private static async Task CopyStepsAsync(PipeReader reader, PipeWriter destination, CancellationToken cancellationToken)
    {
        bool goesOn;
        bool hasEnded = false;
        ReadResult read = await reader.ReadAsync(cancellationToken).ConfigureAwait(false);
        do
        {
            // An end is reported once, and the steps before the last one leave bytes behind.
            hasEnded |= read.IsCompleted;
            bool isEnd = hasEnded && read.Buffer.Length <= MaxStep;
            int copied = CopyStep(reader, read, destination);
            goesOn = copied > 0 || !isEnd;
            if (copied > 0)
            {
                goesOn = TakesMore(await destination.FlushAsync(cancellationToken).ConfigureAwait(false));
            }

            if (goesOn && isEnd)
            {
                // A cancellation that came during the flush is reported. But the file is not asked for its end again: a terminal would
                // wait for another one (Ctrl-D).
                cancellationToken.ThrowIfCancellationRequested();
                goesOn = reader.TryRead(out read);
            }
            else if (goesOn)
            {
                read = await reader.ReadAsync(cancellationToken).ConfigureAwait(false);
            }
        }
        while (goesOn);
    }

    /// <summary>
    /// Copies the first bytes of a read into the destination's memory. The destination is advanced over them, and the reader, even if the
    /// destination throws then, so that a second copy repeats nothing. Returns their number.
    /// </summary>
    private static int CopyStep(PipeReader reader, in ReadResult read, PipeWriter destination)
    {
        int copied = 0;
        try
        {
            if (read.IsCanceled)
            {
                throw new OperationCanceledException("The read was canceled.");
            }

            int step = (int)Math.Min(read.Buffer.Length, MaxStep);
            while (copied < step)
            {
                Span<byte> room = destination.GetSpan(Math.Min(step - copied, MaxHint));
                int length = Math.Min(step - copied, room.Length);
                if (length == 0)
                {
                    // Otherwise the copy would go round for ever.
                    throw new InvalidOperationException("The destination returned empty memory.");
                }

                read.Buffer.Slice(copied, length).CopyTo(room);
                destination.Advance(length);
                copied += length;
            }

            return copied;
        }
        finally
        {
            reader.AdvanceTo(read.Buffer.GetPosition(copied));
        }
    }

    /// <summary>Whether the destination of a copy takes more bytes.</summary>
    /// <exception cref="OperationCanceledException">The flush was canceled.</exception>
    internal static bool TakesMore(FlushResult flush)
        => flush.IsCanceled ? throw new OperationCanceledException("The flush was canceled.") : !flush.IsCompleted;
}
