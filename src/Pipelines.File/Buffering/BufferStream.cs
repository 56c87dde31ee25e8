using Pipelines.File.Reading;

namespace Pipelines.File.Buffering;

/// <summary>The bytes of a pipe as a stream that can seek.</summary>
internal sealed class BufferStream(FileBufferingPipe pipe) : SeekableStream
{
    public override long Length => pipe.Length;

    protected override ValueTask<int> ReadAtAsync(Memory<byte> buffer, long offset, CancellationToken cancellationToken)
        => pipe.ReadAtAsync(buffer, offset, cancellationToken);
}
