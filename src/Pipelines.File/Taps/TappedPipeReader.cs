using Pipelines.File.Reading;

namespace Pipelines.File.Taps;

/// <summary>
/// A reader that passes each byte that its caller consumes to a delegate, on the caller's thread. All bytes go through
/// <see cref="AdvanceTo(SequencePosition, SequencePosition)"/>, because copies and AsStream also read and advance.
/// </summary>
internal sealed class TappedPipeReader(PipeReader reader, Action<ReadOnlySpan<byte>> append) : PipeReader
{
    // The buffer of the last read, until AdvanceTo. Owned by the caller of the reader: one at a time.
    private ReadOnlySequence<byte>? _buffer;

    // How many bytes at the beginning of the buffer the delegate already got, from an AdvanceTo that threw.
    private long _shown;
    private volatile bool _isCompleted;

    public override bool TryRead(out ReadResult result)
    {
        bool isRead = reader.TryRead(out result);
        _buffer = isRead ? result.Buffer : _buffer;
        return isRead;
    }

    public override ValueTask<ReadResult> ReadAsync(CancellationToken cancellationToken = default)
        => KeepAsync(reader.ReadAsync(cancellationToken));

    public override void AdvanceTo(SequencePosition consumed) => AdvanceTo(consumed, consumed);

    public override void AdvanceTo(SequencePosition consumed, SequencePosition examined)
    {
        long length = 0;
        if (!_isCompleted && _buffer is { } buffer)
        {
            ReadOnlySequence<byte> bytes = default;
            try
            {
                bytes = buffer.Slice(buffer.Start, consumed);
            }
            catch (ArgumentOutOfRangeException)
            {
                // The position is not one of this buffer. The reader below refuses it.
            }

            length = bytes.Length;
            foreach (ReadOnlyMemory<byte> memory in bytes.Slice(Math.Min(_shown, length)))
            {
                append(memory.Span);
                _shown += memory.Length;
            }
        }

        reader.AdvanceTo(consumed, examined);
        _shown = Math.Max(0, _shown - length);
        _buffer = null;
    }

    public override void CancelPendingRead() => reader.CancelPendingRead();

    public override void Complete(Exception? exception = null)
    {
        _isCompleted = true;
        reader.Complete(exception);
    }

    public override ValueTask CompleteAsync(Exception? exception = null)
    {
        _isCompleted = true;
        return reader.CompleteAsync(exception);
    }

    /// <summary>
    /// Copies to the destination. Bytes that were written to it are consumed even if the flush fails, so a second copy repeats nothing.
    /// </summary>
    public override Task CopyToAsync(PipeWriter destination, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(destination);
        return PipeCopy.CopyAsync(this, destination, cancellationToken);
    }

    protected override ValueTask<ReadResult> ReadAtLeastAsyncCore(int minimumSize, CancellationToken cancellationToken)
        => KeepAsync(reader.ReadAtLeastAsync(minimumSize, cancellationToken));

    // Its task is not pooled, as in SharedFile.
    private async ValueTask<ReadResult> KeepAsync(ValueTask<ReadResult> reading)
    {
        ReadResult result = await reading.ConfigureAwait(false);
        _buffer = result.Buffer;
        return result;
    }
}
