using Pipelines.File.Reading;
using Pipelines.File.Writing;

namespace Pipelines.File;

/// <content>Copies the content to other streams and to pipes.</content>
public sealed partial class PooledMemoryStream
{
    /// <summary>Writes the whole content to a stream, whatever <see cref="Position"/> is.</summary>
    /// <param name="stream">The stream that receives the content.</param>
    /// <exception cref="ObjectDisposedException">This stream was disposed.</exception>
    public void WriteTo(Stream stream)
    {
        ArgumentNullException.ThrowIfNull(stream);
        ThrowIfDisposed();

        // A stream that writes to itself would change the bytes that are still to be written: it writes a copy.
        Write(stream == this ? new ReadOnlySequence<byte>(ToArray()) : Sequence, stream);
    }

    /// <summary>
    /// Writes the content from <see cref="Position"/> to the end to a stream, one segment after the other, and moves Position to the end.
    /// </summary>
    /// <inheritdoc/>
    public override void CopyTo(Stream destination, int bufferSize)
    {
        ValidateCopyToArguments(destination, bufferSize);
        ThrowIfDisposed();
        Write(TakeRest(), destination);
    }

    /// <summary>
    /// Writes the content from <see cref="Position"/> to the end to a stream, one segment after the other, and moves Position to the end.
    /// </summary>
    /// <inheritdoc/>
    public override Task CopyToAsync(Stream destination, int bufferSize, CancellationToken cancellationToken)
    {
        ValidateCopyToArguments(destination, bufferSize);
        ThrowIfDisposed();
        return cancellationToken.IsCancellationRequested ? Task.FromCanceled(cancellationToken)
            : CopyToStreamAsync(TakeRest(), destination, cancellationToken);
    }

    /// <summary>
    /// Writes the content from <see cref="Position"/> to the end to a pipe, and flushes after each segment. Afterwards
    /// <see cref="Position"/> is after the bytes that the pipe has taken, so a second copy repeats nothing.
    /// </summary>
    /// <remarks>
    /// The copy ends before the end of the content if the pipe's reader has gone, or a flush was canceled or failed. A copy into a
    /// <see cref="FilePipeWriter"/> is one write with one flush. The system writes large content from the segments themselves, without a
    /// copy, and has written it when the task completes.
    /// </remarks>
    /// <param name="destination">The writer that receives the content. It is not completed.</param>
    /// <param name="cancellationToken">Cancels the wait for a flush, and the rest of the copy.</param>
    /// <returns>A task that completes with the last flush.</returns>
    /// <exception cref="OperationCanceledException">A flush was canceled.</exception>
    /// <exception cref="ObjectDisposedException">This stream was disposed.</exception>
    public Task CopyToAsync(PipeWriter destination, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(destination);
        ThrowIfDisposed();
        return cancellationToken.IsCancellationRequested ? Task.FromCanceled(cancellationToken)
            : Place < End ? destination is FilePipeWriter file ? CopyToFileAsync(file, cancellationToken)
                : CopyToPipeAsync(destination, cancellationToken)
            : Task.CompletedTask;
    }

    private static async Task CopyToStreamAsync(ReadOnlySequence<byte> content, Stream destination, CancellationToken cancellationToken)
    {
        foreach (ReadOnlyMemory<byte> memory in content)
        {
            await destination.WriteAsync(memory, cancellationToken).ConfigureAwait(false);
        }
    }

    private async Task CopyToFileAsync(FilePipeWriter destination, CancellationToken cancellationToken)
    {
        // The memory is not returned to the pool before the copy is over, because the system may use it.
        Interlocked.Increment(ref _copies);
        try
        {
            long start = Place;
            long position = start - destination.Taken;
            try
            {
                _ = FilePump.GoesOn(await destination.WriteAsync(Sequence.Slice(start), cancellationToken).ConfigureAwait(false));
            }
            finally
            {
                // The bytes that the file's writer has taken are written once, so a second copy begins after them. The writer may have
                // taken more from others meanwhile, so the position is limited.
                MoveTo(Math.Clamp(position + destination.Taken, start, Math.Max(start, End)));
            }
        }
        finally
        {
            if (Interlocked.Decrement(ref _copies) == 0 && _isDisposed)
            {
                ReturnAll();
            }
        }
    }

    private async Task CopyToPipeAsync(PipeWriter destination, CancellationToken cancellationToken)
    {
        while (Place < End)
        {
            // The pipe has the bytes that it was advanced over, even if the flush fails.
            MoveTo(Place + FilePump.Write(destination, At(Place, int.MaxValue)));
            if (!FilePump.GoesOn(await destination.FlushAsync(cancellationToken).ConfigureAwait(false)))
            {
                return;
            }
        }
    }

    /// <summary>Returns the content from <see cref="Position"/> to the end, and moves Position to the end.</summary>
    private ReadOnlySequence<byte> TakeRest()
    {
        long position = Place;
        MoveTo(Math.Max(position, End));
        return position < End ? Sequence.Slice(position) : default;
    }

    // An empty sequence makes no write: a write of 0 bytes may have an effect on the destination.
    private static void Write(ReadOnlySequence<byte> content, Stream destination)
    {
        foreach (ReadOnlyMemory<byte> memory in content)
        {
            destination.Write(memory.Span);
        }
    }
}
