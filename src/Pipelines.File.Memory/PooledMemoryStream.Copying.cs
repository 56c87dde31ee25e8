namespace Pipelines.File;

/// <content>Copies the content to other streams and to pipes.</content>
public sealed partial class PooledMemoryStream
{
    /// <summary>The maximum number of bytes that a pipe gets between two flushes.</summary>
    private const int MaxStep = 64 * 1024;

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
    /// Writes the content from <see cref="Position"/> to the end to a pipe, and flushes after every 64 KiB at most. Afterwards
    /// <see cref="Position"/> is after the bytes that the pipe has taken, so a second copy repeats nothing.
    /// </summary>
    /// <remarks>
    /// The copy ends before the end of the content if the pipe's reader has gone, or a flush was canceled or failed. A
    /// <see cref="FilePipeWriter"/> is flushed with its own guarantee once, at the end.
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
            : Place >= End ? Task.CompletedTask
            : destination is FilePipeWriter ? StreamPipeExtensions.CopyToAsync(this, destination, cancellationToken)
            : CopyToPipeAsync(destination, cancellationToken);
    }

    private static async Task CopyToStreamAsync(ReadOnlySequence<byte> content, Stream destination, CancellationToken cancellationToken)
    {
        foreach (ReadOnlyMemory<byte> memory in content)
        {
            await destination.WriteAsync(memory, cancellationToken).ConfigureAwait(false);
        }
    }

    private async Task CopyToPipeAsync(PipeWriter destination, CancellationToken cancellationToken)
    {
        while (Place < End)
        {
            // The pipe has the bytes that it was advanced over, even if the flush fails.
            MoveTo(Place + WriteStep(destination, At(Place, MaxStep)));
            FlushResult flush = await destination.FlushAsync(cancellationToken).ConfigureAwait(false);
            if (flush.IsCanceled)
            {
                throw new OperationCanceledException("The flush was canceled.");
            }

            if (flush.IsCompleted)
            {
                return;
            }
        }
    }

    /// <summary>Copies as many bytes as fit into the pipe's memory, advances over them, and returns their number.</summary>
    private static int WriteStep(PipeWriter destination, ReadOnlySpan<byte> bytes)
    {
        Span<byte> room = destination.GetSpan(bytes.Length);
        int length = Math.Min(bytes.Length, room.Length);
        if (length == 0)
        {
            throw new InvalidOperationException("The destination returned empty memory.");
        }

        bytes[..length].CopyTo(room);
        destination.Advance(length);
        return length;
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
