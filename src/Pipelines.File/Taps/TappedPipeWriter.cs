namespace Pipelines.File.Taps;

/// <summary>
/// A writer that shows each byte that its caller advances over. All bytes go through <see cref="Advance"/>: those of WriteAsync, AsStream
/// and CopyFromAsync are copied there.
/// </summary>
internal sealed class TappedPipeWriter(PipeWriter writer, Action<ReadOnlySpan<byte>> append) : PipeWriter
{
    // What GetMemory returned last, less what was advanced over since, until the writer takes it back. The caller's: one at a time.
    private Memory<byte> _memory;

    public override bool CanGetUnflushedBytes => writer.CanGetUnflushedBytes;

    public override long UnflushedBytes => writer.UnflushedBytes;

    public override Memory<byte> GetMemory(int sizeHint = 0) => _memory = writer.GetMemory(sizeHint);

    public override Span<byte> GetSpan(int sizeHint = 0) => GetMemory(sizeHint).Span;

    public override void Advance(int bytes)
    {
        // A count that is none is the writer's to refuse.
        int shown = (uint)bytes <= (uint)_memory.Length ? bytes : 0;
        if (shown > 0)
        {
            append(_memory.Span[..shown]);
        }

        writer.Advance(bytes);
        _memory = _memory[shown..];
    }

    public override ValueTask<FlushResult> FlushAsync(CancellationToken cancellationToken = default)
        => writer.FlushAsync(cancellationToken);

    public override ValueTask<FlushResult> WriteAsync(ReadOnlyMemory<byte> source, CancellationToken cancellationToken = default)
    {
        if (cancellationToken.IsCancellationRequested)
        {
            return ValueTask.FromCanceled<FlushResult>(cancellationToken);
        }

        this.Write(source.Span);
        return FlushAsync(cancellationToken);
    }

    public override void CancelPendingFlush() => writer.CancelPendingFlush();

    public override void Complete(Exception? exception = null)
    {
        _memory = default;
        writer.Complete(exception);
    }

    public override ValueTask CompleteAsync(Exception? exception = null)
    {
        _memory = default;
        return writer.CompleteAsync(exception);
    }
}
