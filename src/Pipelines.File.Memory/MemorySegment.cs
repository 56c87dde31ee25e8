namespace Pipelines.File.Memory;

/// <summary>
/// One piece of a stream's content: an array of <see cref="ArrayPool{T}.Shared"/>, of which the bytes from 0 to <see cref="End"/> are
/// content. One stream owns it from <see cref="Rent"/> to <see cref="Return"/>.
/// </summary>
internal sealed class MemorySegment : ReadOnlySequenceSegment<byte>
{
    /// <summary>So many segments without an array a thread keeps, so that a warm stream allocates none.</summary>
    private const int MaxIdle = 64;

    // Segments without an array, linked by NextSegment, and their number. No other thread sees them.
    [ThreadStatic]
    private static MemorySegment? s_idle;

    [ThreadStatic]
    private static int s_idleCount;

    private MemorySegment()
    {
    }

    /// <summary>The whole array, written or not.</summary>
    internal byte[] Array { get; private set; } = [];

    /// <summary>How many bytes of <see cref="Array"/> are content.</summary>
    internal int End { get; private set; }

    internal MemorySegment? NextSegment
    {
        get => (MemorySegment?)Next;
        set => Next = value;
    }

    /// <summary>A segment of at least <paramref name="size"/> bytes, of which none is content.</summary>
    /// <param name="size">The number of bytes that are needed.</param>
    /// <param name="start">The number of bytes of the stream before the segment.</param>
    internal static MemorySegment Rent(int size, long start)
    {
        byte[] array = ArrayPool<byte>.Shared.Rent(size);
        MemorySegment segment;
        if (s_idle is { } idle)
        {
            segment = idle;
            s_idle = idle.NextSegment;
            s_idleCount--;
            segment.NextSegment = null;
        }
        else
        {
            segment = new MemorySegment();
        }

        segment.Array = array;
        segment.RunningIndex = start;
        return segment;
    }

    /// <summary>Gives back a segment and all that follow it. Nobody may use their memory any more.</summary>
    internal static void Return(MemorySegment? list)
    {
        while (list is { } segment)
        {
            list = segment.NextSegment;
            byte[] array = segment.Array;
            segment.Array = [];
            segment.Memory = default;
            segment.End = 0;
            segment.NextSegment = null;
            ArrayPool<byte>.Shared.Return(array);
            if (s_idleCount < MaxIdle)
            {
                segment.NextSegment = s_idle;
                s_idle = segment;
                s_idleCount++;
            }
        }
    }

    /// <summary>Makes the first <paramref name="end"/> bytes content, which a sequence shows.</summary>
    internal void SetEnd(int end)
    {
        End = end;
        Memory = Array.AsMemory(0, end);
    }
}
