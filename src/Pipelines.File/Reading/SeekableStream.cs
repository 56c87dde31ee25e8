namespace Pipelines.File.Reading;

/// <summary>A stream that reads at a position, which can be set. It has no buffer, and disposing of it does nothing.</summary>
internal abstract class SeekableStream : Stream
{
    private long _position;

    public override bool CanRead => true;

    public override bool CanSeek => true;

    public override bool CanWrite => false;

    public override long Position
    {
        get => _position;
        set
        {
            ArgumentOutOfRangeException.ThrowIfNegative(value);
            _position = value;
        }
    }

    public override long Seek(long offset, SeekOrigin origin)
    {
        long target = offset + origin switch
        {
            SeekOrigin.Begin => 0,
            SeekOrigin.Current => _position,
            SeekOrigin.End => Length,
            _ => throw new ArgumentException("Not a SeekOrigin.", nameof(origin)),
        };
        return target >= 0 ? _position = target : throw new IOException("The position would be before the beginning of the stream.");
    }

    public override async ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellationToken = default)
    {
        int read = await ReadAtAsync(buffer, _position, cancellationToken).ConfigureAwait(false);
        _position += read;
        return read;
    }

    public override Task<int> ReadAsync(byte[] buffer, int offset, int count, CancellationToken cancellationToken)
    {
        ValidateBufferArguments(buffer, offset, count);
        return ReadAsync(buffer.AsMemory(offset, count), cancellationToken).AsTask();
    }

    public override int Read(byte[] buffer, int offset, int count)
    {
        ValidateBufferArguments(buffer, offset, count);
        ValueTask<int> read = ReadAsync(buffer.AsMemory(offset, count));
        return read.IsCompleted ? read.Result : read.AsTask().GetAwaiter().GetResult();
    }

    public override void Flush()
    {
    }

    public override void SetLength(long value) => throw new NotSupportedException("The stream is read only.");

    public override void Write(byte[] buffer, int offset, int count) => throw new NotSupportedException("The stream is read only.");

    /// <summary>Reads at an offset. Returns 0 at the end.</summary>
    protected abstract ValueTask<int> ReadAtAsync(Memory<byte> buffer, long offset, CancellationToken cancellationToken);
}
