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
    /// <summary>The maximum number of bytes of a 64-bit integer, written seven bits at a time.</summary>
    private const int Max7BitEncodedInt64 = 10;

    /// <summary>The maximum number of UTF-8 bytes of one UTF-16 code unit.</summary>
    private const int MaxBytesPerChar = 3;

    /// <summary>The length of a string of at most this many characters fits into one byte.</summary>
    private const int ShortString = 127 / MaxBytesPerChar;

    private const int GuidSize = 16;

    /// <param name="writer">The writer that receives the bytes.</param>
    extension(IBufferWriter<byte> writer)
    {
        /// <summary>Writes one byte.</summary>
        /// <param name="value">The byte to write.</param>
        public void WriteByte(byte value) => Append(writer, value);

        /// <summary>Writes one byte.</summary>
        /// <inheritdoc cref="WriteByte"/>
        public void WriteSByte(sbyte value) => Append(writer, value);

        /// <summary>Writes one byte: 1 or 0, as <see cref="BinaryWriter"/> does.</summary>
        /// <param name="value">The value to write.</param>
        public void WriteBoolean(bool value) => Append(writer, (byte)(value ? 1 : 0));

        /// <summary>Writes a <see cref="short"/> in 2 bytes, the lowest byte first, as <see cref="BinaryWriter"/> does.</summary>
        /// <param name="value">The value to write.</param>
        public void WriteInt16LittleEndian(short value) => Append(writer, value, BinaryOrder.Little);

        /// <summary>Writes several <see cref="short"/> values of 2 bytes each, the lowest byte of each first, in one copy.</summary>
        /// <param name="values">The values to write, in this order.</param>
        public void WriteInt16LittleEndian(ReadOnlySpan<short> values) => AppendAll(writer, values, BinaryOrder.Little);

        /// <summary>Writes a <see cref="short"/> in 2 bytes, the highest byte first.</summary>
        /// <param name="value">The value to write.</param>
        public void WriteInt16BigEndian(short value) => Append(writer, value, BinaryOrder.Big);

        /// <summary>Writes several <see cref="short"/> values of 2 bytes each, the highest byte of each first, in one copy.</summary>
        /// <param name="values">The values to write, in this order.</param>
        public void WriteInt16BigEndian(ReadOnlySpan<short> values) => AppendAll(writer, values, BinaryOrder.Big);

        /// <summary>Writes a <see cref="ushort"/> in 2 bytes, the lowest byte first, as <see cref="BinaryWriter"/> does.</summary>
        /// <param name="value">The value to write.</param>
        public void WriteUInt16LittleEndian(ushort value) => Append(writer, value, BinaryOrder.Little);

        /// <summary>Writes several <see cref="ushort"/> values of 2 bytes each, the lowest byte of each first, in one copy.</summary>
        /// <param name="values">The values to write, in this order.</param>
        public void WriteUInt16LittleEndian(ReadOnlySpan<ushort> values) => AppendAll(writer, values, BinaryOrder.Little);

        /// <summary>Writes a <see cref="ushort"/> in 2 bytes, the highest byte first.</summary>
        /// <param name="value">The value to write.</param>
        public void WriteUInt16BigEndian(ushort value) => Append(writer, value, BinaryOrder.Big);

        /// <summary>Writes several <see cref="ushort"/> values of 2 bytes each, the highest byte of each first, in one copy.</summary>
        /// <param name="values">The values to write, in this order.</param>
        public void WriteUInt16BigEndian(ReadOnlySpan<ushort> values) => AppendAll(writer, values, BinaryOrder.Big);

        /// <summary>Writes an <see cref="int"/> in 4 bytes, the lowest byte first, as <see cref="BinaryWriter"/> does.</summary>
        /// <param name="value">The value to write.</param>
        public void WriteInt32LittleEndian(int value) => Append(writer, value, BinaryOrder.Little);

        /// <summary>Writes several <see cref="int"/> values of 4 bytes each, the lowest byte of each first, in one copy.</summary>
        /// <param name="values">The values to write, in this order.</param>
        public void WriteInt32LittleEndian(ReadOnlySpan<int> values) => AppendAll(writer, values, BinaryOrder.Little);

        /// <summary>Writes an <see cref="int"/> in 4 bytes, the highest byte first.</summary>
        /// <param name="value">The value to write.</param>
        public void WriteInt32BigEndian(int value) => Append(writer, value, BinaryOrder.Big);

        /// <summary>Writes several <see cref="int"/> values of 4 bytes each, the highest byte of each first, in one copy.</summary>
        /// <param name="values">The values to write, in this order.</param>
        public void WriteInt32BigEndian(ReadOnlySpan<int> values) => AppendAll(writer, values, BinaryOrder.Big);

        /// <summary>Writes a <see cref="uint"/> in 4 bytes, the lowest byte first, as <see cref="BinaryWriter"/> does.</summary>
        /// <param name="value">The value to write.</param>
        public void WriteUInt32LittleEndian(uint value) => Append(writer, value, BinaryOrder.Little);

        /// <summary>Writes several <see cref="uint"/> values of 4 bytes each, the lowest byte of each first, in one copy.</summary>
        /// <param name="values">The values to write, in this order.</param>
        public void WriteUInt32LittleEndian(ReadOnlySpan<uint> values) => AppendAll(writer, values, BinaryOrder.Little);

        /// <summary>Writes a <see cref="uint"/> in 4 bytes, the highest byte first.</summary>
        /// <param name="value">The value to write.</param>
        public void WriteUInt32BigEndian(uint value) => Append(writer, value, BinaryOrder.Big);

        /// <summary>Writes several <see cref="uint"/> values of 4 bytes each, the highest byte of each first, in one copy.</summary>
        /// <param name="values">The values to write, in this order.</param>
        public void WriteUInt32BigEndian(ReadOnlySpan<uint> values) => AppendAll(writer, values, BinaryOrder.Big);

        /// <summary>Writes a <see cref="long"/> in 8 bytes, the lowest byte first, as <see cref="BinaryWriter"/> does.</summary>
        /// <param name="value">The value to write.</param>
        public void WriteInt64LittleEndian(long value) => Append(writer, value, BinaryOrder.Little);

        /// <summary>Writes several <see cref="long"/> values of 8 bytes each, the lowest byte of each first, in one copy.</summary>
        /// <param name="values">The values to write, in this order.</param>
        public void WriteInt64LittleEndian(ReadOnlySpan<long> values) => AppendAll(writer, values, BinaryOrder.Little);

        /// <summary>Writes a <see cref="long"/> in 8 bytes, the highest byte first.</summary>
        /// <param name="value">The value to write.</param>
        public void WriteInt64BigEndian(long value) => Append(writer, value, BinaryOrder.Big);

        /// <summary>Writes several <see cref="long"/> values of 8 bytes each, the highest byte of each first, in one copy.</summary>
        /// <param name="values">The values to write, in this order.</param>
        public void WriteInt64BigEndian(ReadOnlySpan<long> values) => AppendAll(writer, values, BinaryOrder.Big);

        /// <summary>Writes a <see cref="ulong"/> in 8 bytes, the lowest byte first, as <see cref="BinaryWriter"/> does.</summary>
        /// <param name="value">The value to write.</param>
        public void WriteUInt64LittleEndian(ulong value) => Append(writer, value, BinaryOrder.Little);

        /// <summary>Writes several <see cref="ulong"/> values of 8 bytes each, the lowest byte of each first, in one copy.</summary>
        /// <param name="values">The values to write, in this order.</param>
        public void WriteUInt64LittleEndian(ReadOnlySpan<ulong> values) => AppendAll(writer, values, BinaryOrder.Little);

        /// <summary>Writes a <see cref="ulong"/> in 8 bytes, the highest byte first.</summary>
        /// <param name="value">The value to write.</param>
        public void WriteUInt64BigEndian(ulong value) => Append(writer, value, BinaryOrder.Big);

        /// <summary>Writes several <see cref="ulong"/> values of 8 bytes each, the highest byte of each first, in one copy.</summary>
        /// <param name="values">The values to write, in this order.</param>
        public void WriteUInt64BigEndian(ReadOnlySpan<ulong> values) => AppendAll(writer, values, BinaryOrder.Big);

        /// <summary>Writes a <see cref="Half"/> in 2 bytes, the lowest byte first, as <see cref="BinaryWriter"/> does.</summary>
        /// <param name="value">The value to write.</param>
        public void WriteHalfLittleEndian(Half value) => Append(writer, value, BinaryOrder.Little);

        /// <summary>Writes several <see cref="Half"/> values of 2 bytes each, the lowest byte of each first, in one copy.</summary>
        /// <param name="values">The values to write, in this order.</param>
        public void WriteHalfLittleEndian(ReadOnlySpan<Half> values) => AppendAll(writer, values, BinaryOrder.Little);

        /// <summary>Writes a <see cref="Half"/> in 2 bytes, the highest byte first.</summary>
        /// <param name="value">The value to write.</param>
        public void WriteHalfBigEndian(Half value) => Append(writer, value, BinaryOrder.Big);

        /// <summary>Writes several <see cref="Half"/> values of 2 bytes each, the highest byte of each first, in one copy.</summary>
        /// <param name="values">The values to write, in this order.</param>
        public void WriteHalfBigEndian(ReadOnlySpan<Half> values) => AppendAll(writer, values, BinaryOrder.Big);

        /// <summary>Writes a <see cref="float"/> in 4 bytes, the lowest byte first, as <see cref="BinaryWriter"/> does.</summary>
        /// <param name="value">The value to write.</param>
        public void WriteSingleLittleEndian(float value) => Append(writer, value, BinaryOrder.Little);

        /// <summary>Writes several <see cref="float"/> values of 4 bytes each, the lowest byte of each first, in one copy.</summary>
        /// <param name="values">The values to write, in this order.</param>
        public void WriteSingleLittleEndian(ReadOnlySpan<float> values) => AppendAll(writer, values, BinaryOrder.Little);

        /// <summary>Writes a <see cref="float"/> in 4 bytes, the highest byte first.</summary>
        /// <param name="value">The value to write.</param>
        public void WriteSingleBigEndian(float value) => Append(writer, value, BinaryOrder.Big);

        /// <summary>Writes several <see cref="float"/> values of 4 bytes each, the highest byte of each first, in one copy.</summary>
        /// <param name="values">The values to write, in this order.</param>
        public void WriteSingleBigEndian(ReadOnlySpan<float> values) => AppendAll(writer, values, BinaryOrder.Big);

        /// <summary>Writes a <see cref="double"/> in 8 bytes, the lowest byte first, as <see cref="BinaryWriter"/> does.</summary>
        /// <param name="value">The value to write.</param>
        public void WriteDoubleLittleEndian(double value) => Append(writer, value, BinaryOrder.Little);

        /// <summary>Writes several <see cref="double"/> values of 8 bytes each, the lowest byte of each first, in one copy.</summary>
        /// <param name="values">The values to write, in this order.</param>
        public void WriteDoubleLittleEndian(ReadOnlySpan<double> values) => AppendAll(writer, values, BinaryOrder.Little);

        /// <summary>Writes a <see cref="double"/> in 8 bytes, the highest byte first.</summary>
        /// <param name="value">The value to write.</param>
        public void WriteDoubleBigEndian(double value) => Append(writer, value, BinaryOrder.Big);

        /// <summary>Writes several <see cref="double"/> values of 8 bytes each, the highest byte of each first, in one copy.</summary>
        /// <param name="values">The values to write, in this order.</param>
        public void WriteDoubleBigEndian(ReadOnlySpan<double> values) => AppendAll(writer, values, BinaryOrder.Big);

        /// <summary>
        /// Writes a decimal in 16 bytes, as <see cref="BinaryWriter"/> does: the 96 bits of the number, then its scale and sign.
        /// </summary>
        /// <param name="value">The value to write.</param>
        public void WriteDecimal(decimal value)
        {
            Span<int> parts = stackalloc int[4];
            decimal.GetBits(value, parts);
            writer.WriteInt32LittleEndian(parts);
        }

        /// <summary>Writes the 16 bytes of <see cref="Guid.ToByteArray(bool)"/>.</summary>
        /// <param name="value">The value to write.</param>
        /// <param name="bigEndian">
        /// Whether the bytes have the order of the text (RFC 9562). If not, which is the default, the first three groups are little-endian,
        /// as in .NET's arrays.
        /// </param>
        public void WriteGuid(Guid value, bool bigEndian = false)
        {
            ArgumentNullException.ThrowIfNull(writer);
            value.TryWriteBytes(writer.GetSpan(GuidSize), bigEndian, out int written);
            writer.Advance(written);
        }

        /// <summary>
        /// Writes an integer with seven bits in each byte, the lowest bits first, in one to five bytes, as
        /// <see cref="BinaryWriter.Write7BitEncodedInt"/> does.
        /// </summary>
        /// <param name="value">The value; a negative one takes five bytes.</param>
        public void Write7BitEncodedInt(int value) => writer.Write7BitEncodedInt64((uint)value);

        /// <summary>
        /// Writes an integer with seven bits in each byte, the lowest bits first, in one to ten bytes, as
        /// <see cref="BinaryWriter.Write7BitEncodedInt64"/> does.
        /// </summary>
        /// <param name="value">The value; a negative one takes ten bytes.</param>
        public void Write7BitEncodedInt64(long value)
        {
            ArgumentNullException.ThrowIfNull(writer);
            Span<byte> destination = writer.GetSpan(Max7BitEncodedInt64);
            int length = 0;
            ulong rest = (ulong)value;
            for (; rest > 0x7F; rest >>= 7)
            {
                destination[length++] = (byte)(rest | 0x80);
            }

            destination[length++] = (byte)rest;
            writer.Advance(length);
        }

        /// <summary>
        /// Writes the length of a string and then its UTF-8 bytes, as <see cref="BinaryWriter"/> does. To write a text without a length,
        /// use
        /// <see cref="Utf8BufferWriterExtensions.WriteUtf8(IBufferWriter{byte}, string)"/>.
        /// </summary>
        /// <remarks>
        /// The length is the number of UTF-8 bytes, written with seven bits in each byte. A surrogate without its other half becomes
        /// U+FFFD.
        /// </remarks>
        /// <param name="value">The string to write.</param>
        public void WriteString(string value)
        {
            ArgumentNullException.ThrowIfNull(value);
            writer.WriteString(value.AsSpan());
        }

        /// <inheritdoc cref="WriteString(IBufferWriter{byte}, string)"/>
        public void WriteString(ReadOnlySpan<char> value)
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
    }

    /// <summary>Writes a value as it lies in memory.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private static void Append<T>(IBufferWriter<byte> writer, T value, bool isReversed = false)
        where T : unmanaged
    {
        value = isReversed ? BinaryOrder.Reverse(value) : value;
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
}
