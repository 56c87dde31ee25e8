namespace Pipelines.File.Lines;

/// <summary>Copies lines that cross segments into one piece of memory, which the next such line reuses.</summary>
internal static class LineJoining
{
    /// <summary>The line in one piece, valid until the next call.</summary>
    internal static ReadOnlyMemory<byte> Join(this ArrayBufferWriter<byte> memory, ReadOnlySequence<byte> line)
    {
        if (line.IsSingleSegment)
        {
            return line.First;
        }

        // Without Advance, so that the next line overwrites this one.
        Memory<byte> joined = memory.GetMemory((int)line.Length)[..(int)line.Length];
        line.CopyTo(joined.Span);
        return joined;
    }
}
