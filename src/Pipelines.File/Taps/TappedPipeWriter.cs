namespace Pipelines.File.Taps;

/// <summary>
/// A writer that passes each byte that its caller advances over to a delegate, on the caller's thread. All bytes go through
/// <see cref="Advance"/>: WriteAsync, AsStream and CopyFromAsync copy their bytes into the writer's memory and advance.
/// </summary>
internal sealed class TappedPipeWriter(PipeWriter writer, Action<ReadOnlySpan<byte>> append) : PipeWriter
{
    // The memory that GetMemory returned last, without the bytes that were advanced over since. Owned by the caller: one at a time.
    private Memory<byte> _memory;

    public override bool CanGetUnflushedBytes => writer.CanGetUnflushedBytes;

    public override long UnflushedBytes => writer.UnflushedBytes;

    public override Memory<byte> GetMemory(int sizeHint = 0) => _memory = writer.GetMemory(sizeHint);

    public override Span<byte> GetSpan(int sizeHint = 0) => GetMemory(sizeHint).Span;

    public override void Advance(int bytes)
    {
        // The writer below refuses a count that is negative or too large.
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
