using System.IO.Pipelines;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// Kestrel's body of an HTTP/1.1 response that is not chunked. Towards its minimum data rate Kestrel counts what is written, and not what
/// is advanced over: so every <see cref="Share"/>th byte of a segment, its last ones, is written here, from the memory where it is already,
/// and for the time being the rate that is asked for is that part of the configured one. The time that a client has is then what it has
/// without this library: it grows with all bytes sent, over all responses of the connection.
/// </summary>
internal sealed class CountedWriter : PipeWriter
{
    /// <summary>
    /// Headers are counted in full, so each makes as many bytes of credit more: a small number keeps that small, and a large one the
    /// copying.
    /// </summary>
    internal const int Share = 16;

    private PipeWriter _inner = null!;
    private Memory<byte> _memory;
    private ReadOnlyMemory<byte> _rest;

    /// <summary>The writer of the response that is sent next.</summary>
    internal CountedWriter On(PipeWriter inner)
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
