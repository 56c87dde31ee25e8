using System.Buffers.Binary;
using System.Diagnostics;
using System.Runtime.InteropServices;

namespace Pipelines.File.Memory;

/// <summary>Turns the order of bytes within many values at once.</summary>
internal static class BinaryOrder
{
    /// <summary>Copies values of <paramref name="size"/> bytes each, 2, 4 or 8, with the bytes of each in reverse. Source and destination may be the same.</summary>
    internal static void Reverse(ReadOnlySpan<byte> source, Span<byte> destination, int size)
    {
        switch (size)
        {
            case sizeof(short):
                BinaryPrimitives.ReverseEndianness(MemoryMarshal.Cast<byte, short>(source), MemoryMarshal.Cast<byte, short>(destination));
                break;
            case sizeof(int):
                BinaryPrimitives.ReverseEndianness(MemoryMarshal.Cast<byte, int>(source), MemoryMarshal.Cast<byte, int>(destination));
                break;
            default:
                Debug.Assert(size == sizeof(long));
                BinaryPrimitives.ReverseEndianness(MemoryMarshal.Cast<byte, long>(source), MemoryMarshal.Cast<byte, long>(destination));
                break;
        }
    }
}
