using Pipelines.File.Memory;

namespace Pipelines.File;

/// <summary>
/// Writes binary values straight into the memory of an <see cref="IBufferWriter{T}"/>: a <see cref="FilePipeWriter"/> or any other pipe, a
/// <see cref="PooledMemoryStream"/>, a response's body. <see cref="BinarySequenceReaderExtensions"/> reads them.
/// </summary>
/// <remarks>
/// A method that uses the format of <see cref="BinaryWriter"/> says so; <see cref="BinaryReader"/> can read what it writes.
/// </remarks>
public static class BinaryBufferWriterExtensions
{
    /// <summary>The most bytes of a 32-bit integer written seven bits at a time.</summary>
    private const int Max7BitEncodedInt = 5;

    /// <summary>The most bytes of a 64-bit integer written seven bits at a time.</summary>
    private const int Max7BitEncodedInt64 = 10;

    /// <summary>The most UTF-8 bytes of one UTF-16 code unit.</summary>
    private const int MaxBytesPerChar = 3;

    /// <summary>Up to so many characters the length of a string surely takes one byte.</summary>
    private const int ShortString = 127 / MaxBytesPerChar;

    private const int GuidSize = 16;

    /// <summary>Writes one byte.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The byte to write.</param>
    public static void WriteByte(this IBufferWriter<byte> writer, byte value) => Append(writer, value);

    /// <summary>Writes one byte.</summary>
    /// <inheritdoc cref="WriteByte"/>
    public static void WriteSByte(this IBufferWriter<byte> writer, sbyte value) => Append(writer, value);

    /// <summary>Writes one byte: 1 or 0, as <see cref="BinaryWriter"/> does.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value to write.</param>
    public static void WriteBoolean(this IBufferWriter<byte> writer, bool value) => Append(writer, (byte)(value ? 1 : 0));

    /// <summary>Writes a <see cref="short"/> in 2 bytes, the lowest byte first, as <see cref="BinaryWriter"/> does.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value to write.</param>
    public static void WriteInt16LittleEndian(this IBufferWriter<byte> writer, short value)
        => Append(writer, BitConverter.IsLittleEndian ? value : BinaryOrder.Reverse(value));

    /// <summary>Writes several <see cref="short"/> values of 2 bytes each, the lowest byte of each first, in one copy.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="values">The values to write, in this order.</param>
    public static void WriteInt16LittleEndian(this IBufferWriter<byte> writer, ReadOnlySpan<short> values)
        => AppendAll(writer, values, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Writes a <see cref="short"/> in 2 bytes, the highest byte first.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value to write.</param>
    public static void WriteInt16BigEndian(this IBufferWriter<byte> writer, short value)
        => Append(writer, BitConverter.IsLittleEndian ? BinaryOrder.Reverse(value) : value);

    /// <summary>Writes several <see cref="short"/> values of 2 bytes each, the highest byte of each first, in one copy.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="values">The values to write, in this order.</param>
    public static void WriteInt16BigEndian(this IBufferWriter<byte> writer, ReadOnlySpan<short> values)
        => AppendAll(writer, values, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Writes a <see cref="ushort"/> in 2 bytes, the lowest byte first, as <see cref="BinaryWriter"/> does.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value to write.</param>
    public static void WriteUInt16LittleEndian(this IBufferWriter<byte> writer, ushort value)
        => Append(writer, BitConverter.IsLittleEndian ? value : BinaryOrder.Reverse(value));

    /// <summary>Writes several <see cref="ushort"/> values of 2 bytes each, the lowest byte of each first, in one copy.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="values">The values to write, in this order.</param>
    public static void WriteUInt16LittleEndian(this IBufferWriter<byte> writer, ReadOnlySpan<ushort> values)
        => AppendAll(writer, values, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Writes a <see cref="ushort"/> in 2 bytes, the highest byte first.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value to write.</param>
    public static void WriteUInt16BigEndian(this IBufferWriter<byte> writer, ushort value)
        => Append(writer, BitConverter.IsLittleEndian ? BinaryOrder.Reverse(value) : value);

    /// <summary>Writes several <see cref="ushort"/> values of 2 bytes each, the highest byte of each first, in one copy.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="values">The values to write, in this order.</param>
    public static void WriteUInt16BigEndian(this IBufferWriter<byte> writer, ReadOnlySpan<ushort> values)
        => AppendAll(writer, values, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Writes an <see cref="int"/> in 4 bytes, the lowest byte first, as <see cref="BinaryWriter"/> does.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value to write.</param>
    public static void WriteInt32LittleEndian(this IBufferWriter<byte> writer, int value)
        => Append(writer, BitConverter.IsLittleEndian ? value : BinaryOrder.Reverse(value));

    /// <summary>Writes several <see cref="int"/> values of 4 bytes each, the lowest byte of each first, in one copy.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="values">The values to write, in this order.</param>
    public static void WriteInt32LittleEndian(this IBufferWriter<byte> writer, ReadOnlySpan<int> values)
        => AppendAll(writer, values, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Writes an <see cref="int"/> in 4 bytes, the highest byte first.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value to write.</param>
    public static void WriteInt32BigEndian(this IBufferWriter<byte> writer, int value)
        => Append(writer, BitConverter.IsLittleEndian ? BinaryOrder.Reverse(value) : value);

    /// <summary>Writes several <see cref="int"/> values of 4 bytes each, the highest byte of each first, in one copy.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="values">The values to write, in this order.</param>
    public static void WriteInt32BigEndian(this IBufferWriter<byte> writer, ReadOnlySpan<int> values)
        => AppendAll(writer, values, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Writes a <see cref="uint"/> in 4 bytes, the lowest byte first, as <see cref="BinaryWriter"/> does.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value to write.</param>
    public static void WriteUInt32LittleEndian(this IBufferWriter<byte> writer, uint value)
        => Append(writer, BitConverter.IsLittleEndian ? value : BinaryOrder.Reverse(value));

    /// <summary>Writes several <see cref="uint"/> values of 4 bytes each, the lowest byte of each first, in one copy.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="values">The values to write, in this order.</param>
    public static void WriteUInt32LittleEndian(this IBufferWriter<byte> writer, ReadOnlySpan<uint> values)
        => AppendAll(writer, values, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Writes a <see cref="uint"/> in 4 bytes, the highest byte first.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value to write.</param>
    public static void WriteUInt32BigEndian(this IBufferWriter<byte> writer, uint value)
        => Append(writer, BitConverter.IsLittleEndian ? BinaryOrder.Reverse(value) : value);

    /// <summary>Writes several <see cref="uint"/> values of 4 bytes each, the highest byte of each first, in one copy.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="values">The values to write, in this order.</param>
    public static void WriteUInt32BigEndian(this IBufferWriter<byte> writer, ReadOnlySpan<uint> values)
        => AppendAll(writer, values, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Writes a <see cref="long"/> in 8 bytes, the lowest byte first, as <see cref="BinaryWriter"/> does.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value to write.</param>
    public static void WriteInt64LittleEndian(this IBufferWriter<byte> writer, long value)
        => Append(writer, BitConverter.IsLittleEndian ? value : BinaryOrder.Reverse(value));

    /// <summary>Writes several <see cref="long"/> values of 8 bytes each, the lowest byte of each first, in one copy.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="values">The values to write, in this order.</param>
    public static void WriteInt64LittleEndian(this IBufferWriter<byte> writer, ReadOnlySpan<long> values)
        => AppendAll(writer, values, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Writes a <see cref="long"/> in 8 bytes, the highest byte first.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value to write.</param>
    public static void WriteInt64BigEndian(this IBufferWriter<byte> writer, long value)
        => Append(writer, BitConverter.IsLittleEndian ? BinaryOrder.Reverse(value) : value);

    /// <summary>Writes several <see cref="long"/> values of 8 bytes each, the highest byte of each first, in one copy.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="values">The values to write, in this order.</param>
    public static void WriteInt64BigEndian(this IBufferWriter<byte> writer, ReadOnlySpan<long> values)
        => AppendAll(writer, values, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Writes a <see cref="ulong"/> in 8 bytes, the lowest byte first, as <see cref="BinaryWriter"/> does.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value to write.</param>
    public static void WriteUInt64LittleEndian(this IBufferWriter<byte> writer, ulong value)
        => Append(writer, BitConverter.IsLittleEndian ? value : BinaryOrder.Reverse(value));

    /// <summary>Writes several <see cref="ulong"/> values of 8 bytes each, the lowest byte of each first, in one copy.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="values">The values to write, in this order.</param>
    public static void WriteUInt64LittleEndian(this IBufferWriter<byte> writer, ReadOnlySpan<ulong> values)
        => AppendAll(writer, values, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Writes a <see cref="ulong"/> in 8 bytes, the highest byte first.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value to write.</param>
    public static void WriteUInt64BigEndian(this IBufferWriter<byte> writer, ulong value)
        => Append(writer, BitConverter.IsLittleEndian ? BinaryOrder.Reverse(value) : value);

    /// <summary>Writes several <see cref="ulong"/> values of 8 bytes each, the highest byte of each first, in one copy.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="values">The values to write, in this order.</param>
    public static void WriteUInt64BigEndian(this IBufferWriter<byte> writer, ReadOnlySpan<ulong> values)
        => AppendAll(writer, values, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Writes a <see cref="Half"/> in 2 bytes, the lowest byte first, as <see cref="BinaryWriter"/> does.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value to write.</param>
    public static void WriteHalfLittleEndian(this IBufferWriter<byte> writer, Half value)
        => Append(writer, BitConverter.IsLittleEndian ? value : BinaryOrder.Reverse(value));

    /// <summary>Writes several <see cref="Half"/> values of 2 bytes each, the lowest byte of each first, in one copy.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="values">The values to write, in this order.</param>
    public static void WriteHalfLittleEndian(this IBufferWriter<byte> writer, ReadOnlySpan<Half> values)
        => AppendAll(writer, values, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Writes a <see cref="Half"/> in 2 bytes, the highest byte first.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value to write.</param>
    public static void WriteHalfBigEndian(this IBufferWriter<byte> writer, Half value)
        => Append(writer, BitConverter.IsLittleEndian ? BinaryOrder.Reverse(value) : value);

    /// <summary>Writes several <see cref="Half"/> values of 2 bytes each, the highest byte of each first, in one copy.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="values">The values to write, in this order.</param>
    public static void WriteHalfBigEndian(this IBufferWriter<byte> writer, ReadOnlySpan<Half> values)
        => AppendAll(writer, values, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Writes a <see cref="float"/> in 4 bytes, the lowest byte first, as <see cref="BinaryWriter"/> does.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value to write.</param>
    public static void WriteSingleLittleEndian(this IBufferWriter<byte> writer, float value)
        => Append(writer, BitConverter.IsLittleEndian ? value : BinaryOrder.Reverse(value));

    /// <summary>Writes several <see cref="float"/> values of 4 bytes each, the lowest byte of each first, in one copy.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="values">The values to write, in this order.</param>
    public static void WriteSingleLittleEndian(this IBufferWriter<byte> writer, ReadOnlySpan<float> values)
        => AppendAll(writer, values, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Writes a <see cref="float"/> in 4 bytes, the highest byte first.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value to write.</param>
    public static void WriteSingleBigEndian(this IBufferWriter<byte> writer, float value)
        => Append(writer, BitConverter.IsLittleEndian ? BinaryOrder.Reverse(value) : value);

    /// <summary>Writes several <see cref="float"/> values of 4 bytes each, the highest byte of each first, in one copy.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="values">The values to write, in this order.</param>
    public static void WriteSingleBigEndian(this IBufferWriter<byte> writer, ReadOnlySpan<float> values)
        => AppendAll(writer, values, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Writes a <see cref="double"/> in 8 bytes, the lowest byte first, as <see cref="BinaryWriter"/> does.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value to write.</param>
    public static void WriteDoubleLittleEndian(this IBufferWriter<byte> writer, double value)
        => Append(writer, BitConverter.IsLittleEndian ? value : BinaryOrder.Reverse(value));

    /// <summary>Writes several <see cref="double"/> values of 8 bytes each, the lowest byte of each first, in one copy.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="values">The values to write, in this order.</param>
    public static void WriteDoubleLittleEndian(this IBufferWriter<byte> writer, ReadOnlySpan<double> values)
        => AppendAll(writer, values, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Writes a <see cref="double"/> in 8 bytes, the highest byte first.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value to write.</param>
    public static void WriteDoubleBigEndian(this IBufferWriter<byte> writer, double value)
        => Append(writer, BitConverter.IsLittleEndian ? BinaryOrder.Reverse(value) : value);

    /// <summary>Writes several <see cref="double"/> values of 8 bytes each, the highest byte of each first, in one copy.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="values">The values to write, in this order.</param>
    public static void WriteDoubleBigEndian(this IBufferWriter<byte> writer, ReadOnlySpan<double> values)
        => AppendAll(writer, values, isReversed: BitConverter.IsLittleEndian);

    /// <summary>
    /// Writes a decimal in 16 bytes, as <see cref="BinaryWriter"/> does: the 96 bits of the number, then its scale and sign.
    /// </summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value to write.</param>
    public static void WriteDecimal(this IBufferWriter<byte> writer, decimal value)
    {
        Span<int> parts = stackalloc int[4];
        decimal.GetBits(value, parts);
        writer.WriteInt32LittleEndian(parts);
    }

    /// <summary>Writes the 16 bytes of <see cref="Guid.ToByteArray(bool)"/>.</summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value to write.</param>
    /// <param name="bigEndian">
    /// Whether the bytes have the order of the text (RFC 9562). If not, which is the default, the first three groups are little-endian, as
    /// in .NET's arrays.
    /// </param>
    public static void WriteGuid(this IBufferWriter<byte> writer, Guid value, bool bigEndian = false)
    {
        ArgumentNullException.ThrowIfNull(writer);
        value.TryWriteBytes(writer.GetSpan(GuidSize), bigEndian, out int written);
        writer.Advance(written);
    }

    /// <summary>
    /// Writes an integer with seven bits in each byte, the lowest bits first, in one to five bytes, as
    /// <see cref="BinaryWriter.Write7BitEncodedInt"/> does.
    /// </summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value; a negative one takes five bytes.</param>
    public static void Write7BitEncodedInt(this IBufferWriter<byte> writer, int value)
    {
        ArgumentNullException.ThrowIfNull(writer);
        writer.Advance(Encode7Bits(writer.GetSpan(Max7BitEncodedInt), (uint)value));
    }

    /// <summary>
    /// Writes an integer with seven bits in each byte, the lowest bits first, in one to ten bytes, as
    /// <see cref="BinaryWriter.Write7BitEncodedInt64"/> does.
    /// </summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The value; a negative one takes ten bytes.</param>
    public static void Write7BitEncodedInt64(this IBufferWriter<byte> writer, long value)
    {
        ArgumentNullException.ThrowIfNull(writer);
        writer.Advance(Encode7Bits(writer.GetSpan(Max7BitEncodedInt64), (ulong)value));
    }

    /// <summary>
    /// Writes the length of a string and then its UTF-8 bytes, as <see cref="BinaryWriter"/> does. To write a text without a length, use
    /// <see cref="Utf8BufferWriterExtensions.WriteUtf8(IBufferWriter{byte}, string)"/>.
    /// </summary>
    /// <remarks>
    /// The length is the number of UTF-8 bytes, written with seven bits in each byte. A surrogate without its other half becomes U+FFFD.
    /// </remarks>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="value">The string to write.</param>
    public static void WriteString(this IBufferWriter<byte> writer, string value)
    {
        ArgumentNullException.ThrowIfNull(value);
        writer.WriteString(value.AsSpan());
    }

    /// <inheritdoc cref="WriteString(IBufferWriter{byte}, string)"/>
    public static void WriteString(this IBufferWriter<byte> writer, ReadOnlySpan<char> value)
    {
        ArgumentNullException.ThrowIfNull(writer);
        if (value.Length <= ShortString)
        {
            Span<byte> span = writer.GetSpan(1 + (value.Length * MaxBytesPerChar));
            int length = Encoding.UTF8.GetBytes(value, span[1..]);
            span[0] = (byte)length;
            writer.Advance(1 + length);
            return;
        }

        writer.Write7BitEncodedInt(Encoding.UTF8.GetByteCount(value));
        writer.WriteUtf8(value);
    }

    /// <summary>Writes a value as it lies in memory.</summary>
    private static void Append<T>(IBufferWriter<byte> writer, T value)
        where T : unmanaged
    {
        if (writer is not PooledMemoryStream stream || !stream.TryAppend(value))
        {
            AppendSlowly(writer, value);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void AppendSlowly<T>(IBufferWriter<byte> writer, T value)
        where T : unmanaged
    {
        ArgumentNullException.ThrowIfNull(writer);
        MemoryMarshal.Write(writer.GetSpan(Unsafe.SizeOf<T>()), in value);
        writer.Advance(Unsafe.SizeOf<T>());
    }

    private static void AppendAll<T>(IBufferWriter<byte> writer, ReadOnlySpan<T> values, bool isReversed)
        where T : unmanaged
    {
        ArgumentNullException.ThrowIfNull(writer);
        while (!values.IsEmpty)
        {
            Span<T> room = MemoryMarshal.Cast<byte, T>(writer.GetSpan(Unsafe.SizeOf<T>()));
            ReadOnlySpan<T> piece = values[..Math.Min(values.Length, room.Length)];
            if (isReversed)
            {
                BinaryOrder.Reverse(piece, room);
            }
            else
            {
                piece.CopyTo(room);
            }

            writer.Advance(piece.Length * Unsafe.SizeOf<T>());
            values = values[piece.Length..];
        }
    }

    private static int Encode7Bits(Span<byte> destination, ulong value)
    {
        int length = 0;
        while (value > 0x7F)
        {
            destination[length++] = (byte)(value | 0x80);
            value >>= 7;
        }

        destination[length++] = (byte)value;
        return length;
    }
}
