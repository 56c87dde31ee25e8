namespace Pipelines.File.Lines;

/// <summary>Memory for lines that cross segments, one after the other.</summary>
internal struct JoinedLine
{
    private byte[]? _bytes;

    /// <summary>The line in one piece, until the next one.</summary>
    internal ReadOnlyMemory<byte> Of(ReadOnlySequence<byte> line)
    {
        if (line.IsSingleSegment)
        {
            return line.First;
        }

        int length = (int)line.Length;
        if (_bytes is null || _bytes.Length < length)
        {
            Return();
            _bytes = ArrayPool<byte>.Shared.Rent(length);
        }

        line.CopyTo(_bytes);
        return _bytes.AsMemory(0, length);
    }

    /// <summary>Gives the memory back.</summary>
    internal void Return()
    {
        if (_bytes is not null)
        {
            ArrayPool<byte>.Shared.Return(_bytes);
            _bytes = null;
        }
    }
}
