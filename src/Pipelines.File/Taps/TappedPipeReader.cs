using Pipelines.File.Reading;

namespace Pipelines.File.Taps;

/// <summary>
/// A reader that shows each byte that its caller consumes. All bytes go through
/// <see cref="AdvanceTo(SequencePosition, SequencePosition)"/>: copies and AsStream read and advance, too.
/// </summary>
internal sealed class TappedPipeReader(PipeReader reader, Action<ReadOnlySpan<byte>> append) : PipeReader
{
    /// <summary>Bytes that a copy writes before it flushes.</summary>
    private const int MaxStep = 64 * 1024;

    // What the last read returned, until it is advanced over. The caller's: one at a time.
    private ReadOnlySequence<byte>? _buffer;

    // So many bytes at its beginning were shown by an AdvanceTo that failed.
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
                bytes = buffer.Slice(0, consumed);
            }
            catch (ArgumentOutOfRangeException)
            {
                // A position that is none of the buffer's is the reader's to refuse.
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

    /// <summary>As ever, but that what the destination has got is consumed however its flush ends: a second copy repeats nothing.</summary>
    public override async Task CopyToAsync(PipeWriter destination, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(destination);
        for (bool goesOn = true; goesOn;)
        {
            ReadResult result = await ReadAsync(cancellationToken).ConfigureAwait(false);
            ReadOnlySequence<byte> bytes = result.Buffer.Slice(0, result.IsCanceled ? 0 : Math.Min(result.Buffer.Length, MaxStep));
            goesOn = !result.IsCompleted || bytes.Length < result.Buffer.Length;
            long written = 0;
            try
            {
                foreach (ReadOnlyMemory<byte> memory in bytes)
                {
                    destination.Write(memory.Span);
                    written += memory.Length;
                }
            }
            finally
            {
                AdvanceTo(bytes.GetPosition(written));
            }

            if (result.IsCanceled)
            {
                throw new OperationCanceledException("The read was canceled.");
            }

            goesOn &= written == 0 || FilePump.GoesOn(await destination.FlushAsync(cancellationToken).ConfigureAwait(false));
        }
    }

    protected override ValueTask<ReadResult> ReadAtLeastAsyncCore(int minimumSize, CancellationToken cancellationToken)
        => KeepAsync(reader.ReadAtLeastAsync(minimumSize, cancellationToken));

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    private async ValueTask<ReadResult> KeepAsync(ValueTask<ReadResult> reading)
    {
        ReadResult result = await reading.ConfigureAwait(false);
        _buffer = result.Buffer;
        return result;
    }
}
