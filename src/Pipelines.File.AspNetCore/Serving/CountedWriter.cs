using System.IO.Pipelines;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// Wraps Kestrel's writer for an HTTP/1.1 response body that is not chunked. For its minimum data rate Kestrel counts the bytes of
/// WriteAsync, but not those of Advance. So the last 1/<see cref="Share"/> of the bytes of each flush goes through WriteAsync, from the
/// memory where they already are, and during the send the demanded rate is 1/<see cref="Share"/> of the configured one. A client then has
/// as much time as without this library: it grows with all bytes sent, over all responses of the connection. Used by one send at a time.
/// </summary>
internal sealed class CountedWriter : PipeWriter
{
    /// <summary>
    /// Kestrel counts headers in full, so each byte of them counts as much as this number of bytes of a file. A small number keeps that
    /// credit small, and a large one keeps the copying small.
    /// </summary>
    internal const int Share = 16;

    private PipeWriter _inner = null!;
    private Memory<byte> _memory;
    private ReadOnlyMemory<byte> _rest;

    /// <summary>Wraps the writer of the next response.</summary>
    internal CountedWriter Wrap(PipeWriter inner)
    {
        _inner = inner;
        return this;
    }

    public override Memory<byte> GetMemory(int sizeHint = 0) => _memory = _inner.GetMemory(sizeHint);

    public override Span<byte> GetSpan(int sizeHint = 0) => GetMemory(sizeHint).Span;

    public override void Advance(int bytes)
    {
        int counted = (bytes + Share - 1) / Share;
        _inner.Advance(bytes - counted);
        _rest = _memory.Slice(bytes - counted, counted);
        _memory = default;
    }

    public override ValueTask<FlushResult> FlushAsync(CancellationToken cancellationToken = default)
    {
        ReadOnlyMemory<byte> rest = _rest;
        _rest = default;
        return _inner.WriteAsync(rest, cancellationToken);
    }

    public override void CancelPendingFlush() => _inner.CancelPendingFlush();

    public override void Complete(Exception? exception = null) => _inner.Complete(exception);
}
