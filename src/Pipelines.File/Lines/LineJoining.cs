namespace Pipelines.File.Lines;

/// <summary>Lines that cross segments in one piece, one after the other in the same memory.</summary>
internal static class LineJoining
{
    /// <summary>The line in one piece, until the next one.</summary>
    internal static ReadOnlyMemory<byte> Join(this ArrayBufferWriter<byte> memory, ReadOnlySequence<byte> line)
    {
        if (line.IsSingleSegment)
        {
            return line.First;
        }

        // Never advanced over, so that the next line is written over this one.
        Memory<byte> joined = memory.GetMemory((int)line.Length)[..(int)line.Length];
        line.CopyTo(joined.Span);
        return joined;
    }
}
