using System.Buffers.Binary;
using FilePipelinesBenchmarks.Files;

namespace FilePipelinesBenchmarks.Reading;

/// <summary>
/// The work of the 2019 grid: the last eight bytes of every buffer. Each has to be the integer that stands there in the file.
/// </summary>
internal struct LastEightBytes : IBufferWork
{
    private long _bytes;
    private long _wrong;

    public void Take(ReadOnlySpan<byte> buffer)
    {
        _bytes += buffer.Length;
        if (_bytes % sizeof(long) == 0 && buffer.Length >= sizeof(long))
        {
            _wrong |= BinaryPrimitives.ReadInt64LittleEndian(buffer[^sizeof(long)..]) ^ ((_bytes / sizeof(long)) - 1);
        }
    }

    public readonly long Finish(IntegerFile file)
        => _bytes == file.Length && _wrong == 0
            ? _bytes
            : throw new InvalidDataException(
                $"{_bytes} bytes instead of {file.Length}, or a buffer that does not end where the file has its bytes.");
}
