using System.Buffers;
using Microsoft.Win32.SafeHandles;

namespace Pipelines.File;

/// <summary>Reads a file from front to back through memory that does not grow, however long a record is. Its calls wait.</summary>
internal sealed class FileWindow(SafeFileHandle handle, SegmentFile file, CancellationToken cancellationToken) : IDisposable
{
    private const int Size = 256 * 1024;

    private readonly byte[] _bytes = ArrayPool<byte>.Shared.Rent(Size);
    private long _start;
    private int _length;

    public void Dispose() => ArrayPool<byte>.Shared.Return(_bytes);

    /// <summary>The bytes from an offset on: at least so many, unless the file ends before. Valid until the next call.</summary>
    internal ReadOnlySpan<byte> At(long position, int least)
    {
        if (position < _start || position + least > _start + _length)
        {
            cancellationToken.ThrowIfCancellationRequested();
            _start = position;
            _length = file.Read(handle, _bytes.AsSpan(0, Size), position);
        }

        return _bytes.AsSpan((int)(position - _start), (int)(_start + _length - position));
    }
}
