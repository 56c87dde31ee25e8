using Pipelines.File.Reading;

namespace Pipelines.File.Buffering;

/// <summary>The bytes of a pipe as a stream that can seek.</summary>
internal sealed class BufferStream(FileBufferingPipe pipe) : SeekableStream
{
    private const int MinCopy = 64 * 1024;

    public override long Length => pipe.Length;

    // Stream takes 1 byte at a time if its length is that of the position when the copy begins.
    public override Task CopyToAsync(Stream destination, int bufferSize, CancellationToken cancellationToken)
        => base.CopyToAsync(destination, Math.Max(bufferSize, MinCopy), cancellationToken);

    public override void CopyTo(Stream destination, int bufferSize) => base.CopyTo(destination, Math.Max(bufferSize, MinCopy));

    protected override ValueTask<int> ReadAtAsync(Memory<byte> buffer, long offset, CancellationToken cancellationToken)
        => pipe.ReadAtAsync(buffer, offset, cancellationToken);
}
