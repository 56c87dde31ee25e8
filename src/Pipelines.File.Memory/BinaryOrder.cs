using System.Buffers.Binary;

namespace Pipelines.File.Memory;

/// <summary>
/// Reverses the order of the bytes within values of 2, 4 or 8 bytes. The JIT compiler removes the branches of the other sizes.
/// </summary>
internal static class BinaryOrder
{
    /// <summary>Whether little-endian values have to be reversed on this processor.</summary>
    internal static bool Little => !BitConverter.IsLittleEndian;

    /// <summary>Whether big-endian values have to be reversed on this processor.</summary>
    internal static bool Big => BitConverter.IsLittleEndian;

    internal static T Reverse<T>(T value)
        where T : unmanaged
        => Unsafe.SizeOf<T>() switch
        {
            sizeof(ushort) => Unsafe.BitCast<ushort, T>(BinaryPrimitives.ReverseEndianness(Unsafe.BitCast<T, ushort>(value))),
            sizeof(uint) => Unsafe.BitCast<uint, T>(BinaryPrimitives.ReverseEndianness(Unsafe.BitCast<T, uint>(value))),
            _ => Unsafe.BitCast<ulong, T>(BinaryPrimitives.ReverseEndianness(Unsafe.BitCast<T, ulong>(value))),
        };

    /// <summary>Copies values with the bytes of each in reverse. Source and destination may be the same.</summary>
    internal static void Reverse<T>(ReadOnlySpan<T> source, Span<T> destination)
        where T : unmanaged
    {
        switch (Unsafe.SizeOf<T>())
        {
            case sizeof(ushort):
                BinaryPrimitives.ReverseEndianness(MemoryMarshal.Cast<T, ushort>(source), MemoryMarshal.Cast<T, ushort>(destination));
                break;
            case sizeof(uint):
                BinaryPrimitives.ReverseEndianness(MemoryMarshal.Cast<T, uint>(source), MemoryMarshal.Cast<T, uint>(destination));
                break;
            default:
                BinaryPrimitives.ReverseEndianness(MemoryMarshal.Cast<T, ulong>(source), MemoryMarshal.Cast<T, ulong>(destination));
                break;
        }
    }
}
