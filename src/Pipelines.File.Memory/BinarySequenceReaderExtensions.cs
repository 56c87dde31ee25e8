using Pipelines.File.Memory;

namespace Pipelines.File;

/// <summary>
/// Reads the values that <see cref="BinaryBufferWriterExtensions"/> or <see cref="BinaryWriter"/> has written. If the bytes are too few or
/// not a valid value, a method returns <see langword="false"/>, and the reader does not move. No method throws or allocates because of the
/// bytes.
/// </summary>
public static class BinarySequenceReaderExtensions
{
    private const int GuidSize = 16;

    /// <summary>How many values are copied at a time: their bytes fit into a span.</summary>
    private const int ValuesAtATime = 1 << 24;

    // The bits that the last part of a decimal may have: its sign, and the scale, 0 to 28.
    private const int DecimalSign = int.MinValue;
    private const int DecimalScale = 0x00FF0000;
    private const int MaxDecimalScale = 28 << 16;

    /// <param name="reader">The reader that the bytes are taken from.</param>
    extension(ref SequenceReader<byte> reader)
    {
        /// <summary>Reads one byte.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there. If not, the reader does not move.</returns>
        public bool TryReadByte(out byte value) => reader.TryRead(out value);

        /// <summary>Reads one byte.</summary>
        /// <inheritdoc cref="TryReadByte"/>
        public bool TryReadSByte(out sbyte value) => TryTake(ref reader, out value, isReversed: false);

        /// <summary>
        /// Reads one byte, as <see cref="BinaryReader"/> does: 0 is <see langword="false"/>, everything else <see langword="true"/>.
        /// </summary>
        /// <param name="value">The value; <see langword="false"/> if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there. If not, the reader does not move.</returns>
        public bool TryReadBoolean(out bool value)
        {
            bool isRead = reader.TryRead(out byte read);
            value = read != 0;
            return isRead;
        }

        /// <summary>Reads a <see cref="short"/> from 2 bytes, the lowest byte first.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there. If not, the reader does not move.</returns>
        public bool TryReadInt16LittleEndian(out short value) => TryTake(ref reader, out value, BinaryOrder.Little);

        /// <summary>Reads several <see cref="short"/> values of 2 bytes each, the lowest byte of each first, in one copy.</summary>
        /// <param name="values">Receives the values; unchanged if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there to fill <paramref name="values"/>. If not, the reader does not move.</returns>
        public bool TryReadInt16LittleEndian(scoped Span<short> values) => TryTakeAll(ref reader, values, BinaryOrder.Little);

        /// <summary>Reads a <see cref="short"/> from 2 bytes, the highest byte first.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there. If not, the reader does not move.</returns>
        public bool TryReadInt16BigEndian(out short value) => TryTake(ref reader, out value, BinaryOrder.Big);

        /// <summary>Reads several <see cref="short"/> values of 2 bytes each, the highest byte of each first, in one copy.</summary>
        /// <param name="values">Receives the values; unchanged if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there to fill <paramref name="values"/>. If not, the reader does not move.</returns>
        public bool TryReadInt16BigEndian(scoped Span<short> values) => TryTakeAll(ref reader, values, BinaryOrder.Big);

        /// <summary>Reads a <see cref="ushort"/> from 2 bytes, the lowest byte first.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there. If not, the reader does not move.</returns>
        public bool TryReadUInt16LittleEndian(out ushort value) => TryTake(ref reader, out value, BinaryOrder.Little);

        /// <summary>Reads several <see cref="ushort"/> values of 2 bytes each, the lowest byte of each first, in one copy.</summary>
        /// <param name="values">Receives the values; unchanged if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there to fill <paramref name="values"/>. If not, the reader does not move.</returns>
        public bool TryReadUInt16LittleEndian(scoped Span<ushort> values) => TryTakeAll(ref reader, values, BinaryOrder.Little);

        /// <summary>Reads a <see cref="ushort"/> from 2 bytes, the highest byte first.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there. If not, the reader does not move.</returns>
        public bool TryReadUInt16BigEndian(out ushort value) => TryTake(ref reader, out value, BinaryOrder.Big);

        /// <summary>Reads several <see cref="ushort"/> values of 2 bytes each, the highest byte of each first, in one copy.</summary>
        /// <param name="values">Receives the values; unchanged if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there to fill <paramref name="values"/>. If not, the reader does not move.</returns>
        public bool TryReadUInt16BigEndian(scoped Span<ushort> values) => TryTakeAll(ref reader, values, BinaryOrder.Big);

        /// <summary>Reads an <see cref="int"/> from 4 bytes, the lowest byte first.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there. If not, the reader does not move.</returns>
        public bool TryReadInt32LittleEndian(out int value) => TryTake(ref reader, out value, BinaryOrder.Little);

        /// <summary>Reads several <see cref="int"/> values of 4 bytes each, the lowest byte of each first, in one copy.</summary>
        /// <param name="values">Receives the values; unchanged if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there to fill <paramref name="values"/>. If not, the reader does not move.</returns>
        public bool TryReadInt32LittleEndian(scoped Span<int> values) => TryTakeAll(ref reader, values, BinaryOrder.Little);

        /// <summary>Reads an <see cref="int"/> from 4 bytes, the highest byte first.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there. If not, the reader does not move.</returns>
        public bool TryReadInt32BigEndian(out int value) => TryTake(ref reader, out value, BinaryOrder.Big);

        /// <summary>Reads several <see cref="int"/> values of 4 bytes each, the highest byte of each first, in one copy.</summary>
        /// <param name="values">Receives the values; unchanged if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there to fill <paramref name="values"/>. If not, the reader does not move.</returns>
        public bool TryReadInt32BigEndian(scoped Span<int> values) => TryTakeAll(ref reader, values, BinaryOrder.Big);

        /// <summary>Reads a <see cref="uint"/> from 4 bytes, the lowest byte first.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there. If not, the reader does not move.</returns>
        public bool TryReadUInt32LittleEndian(out uint value) => TryTake(ref reader, out value, BinaryOrder.Little);

        /// <summary>Reads several <see cref="uint"/> values of 4 bytes each, the lowest byte of each first, in one copy.</summary>
        /// <param name="values">Receives the values; unchanged if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there to fill <paramref name="values"/>. If not, the reader does not move.</returns>
        public bool TryReadUInt32LittleEndian(scoped Span<uint> values) => TryTakeAll(ref reader, values, BinaryOrder.Little);

        /// <summary>Reads a <see cref="uint"/> from 4 bytes, the highest byte first.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there. If not, the reader does not move.</returns>
        public bool TryReadUInt32BigEndian(out uint value) => TryTake(ref reader, out value, BinaryOrder.Big);

        /// <summary>Reads several <see cref="uint"/> values of 4 bytes each, the highest byte of each first, in one copy.</summary>
        /// <param name="values">Receives the values; unchanged if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there to fill <paramref name="values"/>. If not, the reader does not move.</returns>
        public bool TryReadUInt32BigEndian(scoped Span<uint> values) => TryTakeAll(ref reader, values, BinaryOrder.Big);

        /// <summary>Reads a <see cref="long"/> from 8 bytes, the lowest byte first.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there. If not, the reader does not move.</returns>
        public bool TryReadInt64LittleEndian(out long value) => TryTake(ref reader, out value, BinaryOrder.Little);

        /// <summary>Reads several <see cref="long"/> values of 8 bytes each, the lowest byte of each first, in one copy.</summary>
        /// <param name="values">Receives the values; unchanged if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there to fill <paramref name="values"/>. If not, the reader does not move.</returns>
        public bool TryReadInt64LittleEndian(scoped Span<long> values) => TryTakeAll(ref reader, values, BinaryOrder.Little);

        /// <summary>Reads a <see cref="long"/> from 8 bytes, the highest byte first.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there. If not, the reader does not move.</returns>
        public bool TryReadInt64BigEndian(out long value) => TryTake(ref reader, out value, BinaryOrder.Big);

        /// <summary>Reads several <see cref="long"/> values of 8 bytes each, the highest byte of each first, in one copy.</summary>
        /// <param name="values">Receives the values; unchanged if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there to fill <paramref name="values"/>. If not, the reader does not move.</returns>
        public bool TryReadInt64BigEndian(scoped Span<long> values) => TryTakeAll(ref reader, values, BinaryOrder.Big);

        /// <summary>Reads a <see cref="ulong"/> from 8 bytes, the lowest byte first.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there. If not, the reader does not move.</returns>
        public bool TryReadUInt64LittleEndian(out ulong value) => TryTake(ref reader, out value, BinaryOrder.Little);

        /// <summary>Reads several <see cref="ulong"/> values of 8 bytes each, the lowest byte of each first, in one copy.</summary>
        /// <param name="values">Receives the values; unchanged if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there to fill <paramref name="values"/>. If not, the reader does not move.</returns>
        public bool TryReadUInt64LittleEndian(scoped Span<ulong> values) => TryTakeAll(ref reader, values, BinaryOrder.Little);

        /// <summary>Reads a <see cref="ulong"/> from 8 bytes, the highest byte first.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there. If not, the reader does not move.</returns>
        public bool TryReadUInt64BigEndian(out ulong value) => TryTake(ref reader, out value, BinaryOrder.Big);

        /// <summary>Reads several <see cref="ulong"/> values of 8 bytes each, the highest byte of each first, in one copy.</summary>
        /// <param name="values">Receives the values; unchanged if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there to fill <paramref name="values"/>. If not, the reader does not move.</returns>
        public bool TryReadUInt64BigEndian(scoped Span<ulong> values) => TryTakeAll(ref reader, values, BinaryOrder.Big);

        /// <summary>Reads a <see cref="Half"/> from 2 bytes, the lowest byte first.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there. If not, the reader does not move.</returns>
        public bool TryReadHalfLittleEndian(out Half value) => TryTake(ref reader, out value, BinaryOrder.Little);

        /// <summary>Reads several <see cref="Half"/> values of 2 bytes each, the lowest byte of each first, in one copy.</summary>
        /// <param name="values">Receives the values; unchanged if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there to fill <paramref name="values"/>. If not, the reader does not move.</returns>
        public bool TryReadHalfLittleEndian(scoped Span<Half> values) => TryTakeAll(ref reader, values, BinaryOrder.Little);

        /// <summary>Reads a <see cref="Half"/> from 2 bytes, the highest byte first.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there. If not, the reader does not move.</returns>
        public bool TryReadHalfBigEndian(out Half value) => TryTake(ref reader, out value, BinaryOrder.Big);

        /// <summary>Reads several <see cref="Half"/> values of 2 bytes each, the highest byte of each first, in one copy.</summary>
        /// <param name="values">Receives the values; unchanged if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there to fill <paramref name="values"/>. If not, the reader does not move.</returns>
        public bool TryReadHalfBigEndian(scoped Span<Half> values) => TryTakeAll(ref reader, values, BinaryOrder.Big);

        /// <summary>Reads a <see cref="float"/> from 4 bytes, the lowest byte first.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there. If not, the reader does not move.</returns>
        public bool TryReadSingleLittleEndian(out float value) => TryTake(ref reader, out value, BinaryOrder.Little);

        /// <summary>Reads several <see cref="float"/> values of 4 bytes each, the lowest byte of each first, in one copy.</summary>
        /// <param name="values">Receives the values; unchanged if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there to fill <paramref name="values"/>. If not, the reader does not move.</returns>
        public bool TryReadSingleLittleEndian(scoped Span<float> values) => TryTakeAll(ref reader, values, BinaryOrder.Little);

        /// <summary>Reads a <see cref="float"/> from 4 bytes, the highest byte first.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there. If not, the reader does not move.</returns>
        public bool TryReadSingleBigEndian(out float value) => TryTake(ref reader, out value, BinaryOrder.Big);

        /// <summary>Reads several <see cref="float"/> values of 4 bytes each, the highest byte of each first, in one copy.</summary>
        /// <param name="values">Receives the values; unchanged if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there to fill <paramref name="values"/>. If not, the reader does not move.</returns>
        public bool TryReadSingleBigEndian(scoped Span<float> values) => TryTakeAll(ref reader, values, BinaryOrder.Big);

        /// <summary>Reads a <see cref="double"/> from 8 bytes, the lowest byte first.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there. If not, the reader does not move.</returns>
        public bool TryReadDoubleLittleEndian(out double value) => TryTake(ref reader, out value, BinaryOrder.Little);

        /// <summary>Reads several <see cref="double"/> values of 8 bytes each, the lowest byte of each first, in one copy.</summary>
        /// <param name="values">Receives the values; unchanged if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there to fill <paramref name="values"/>. If not, the reader does not move.</returns>
        public bool TryReadDoubleLittleEndian(scoped Span<double> values) => TryTakeAll(ref reader, values, BinaryOrder.Little);

        /// <summary>Reads a <see cref="double"/> from 8 bytes, the highest byte first.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there. If not, the reader does not move.</returns>
        public bool TryReadDoubleBigEndian(out double value) => TryTake(ref reader, out value, BinaryOrder.Big);

        /// <summary>Reads several <see cref="double"/> values of 8 bytes each, the highest byte of each first, in one copy.</summary>
        /// <param name="values">Receives the values; unchanged if the method returns <see langword="false"/>.</param>
        /// <returns>Whether enough bytes were there to fill <paramref name="values"/>. If not, the reader does not move.</returns>
        public bool TryReadDoubleBigEndian(scoped Span<double> values) => TryTakeAll(ref reader, values, BinaryOrder.Big);

        /// <summary>Reads a decimal from the 16 bytes that <see cref="BinaryWriter"/> writes for it.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether a decimal was there; <see langword="false"/> also if the 16 bytes are not a decimal.</returns>
        public bool TryReadDecimal(out decimal value)
        {
            Span<int> parts = stackalloc int[4];
            SequenceReader<byte> start = reader;
            bool isRead = reader.TryReadInt32LittleEndian(parts)
                && (parts[3] & ~(DecimalSign | DecimalScale)) == 0 && (parts[3] & DecimalScale) <= MaxDecimalScale;
            value = isRead ? new decimal(parts) : 0;
            reader = isRead ? reader : start;
            return isRead;
        }

        /// <summary>Reads a <see cref="Guid"/> from 16 bytes.</summary>
        /// <param name="value">The value; <see cref="Guid.Empty"/> if the method returns <see langword="false"/>.</param>
        /// <param name="bigEndian">
        /// Whether the bytes have the order of the text; see <see cref="BinaryBufferWriterExtensions.WriteGuid"/>.
        /// </param>
        /// <returns>Whether enough bytes were there. If not, the reader does not move.</returns>
        public bool TryReadGuid(out Guid value, bool bigEndian = false)
        {
            Span<byte> bytes = stackalloc byte[GuidSize];
            bool isRead = TryTakeAll(ref reader, bytes, isReversed: false);
            value = isRead ? new Guid(bytes, bigEndian) : default;
            return isRead;
        }

        /// <summary>Reads an integer that was written with seven bits in each byte.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether an integer was there; <see langword="false"/> also if it has more than five bytes or 32 bits.</returns>
        public bool TryRead7BitEncodedInt(out int value)
        {
            bool isRead = Decode7Bits(ref reader, bits: 32, out ulong read) == OperationStatus.Done;
            value = (int)read;
            return isRead;
        }

        /// <summary>Reads an integer that was written with seven bits in each byte.</summary>
        /// <param name="value">The value; 0 if the method returns <see langword="false"/>.</param>
        /// <returns>Whether an integer was there; <see langword="false"/> also if it has more than ten bytes or 64 bits.</returns>
        public bool TryRead7BitEncodedInt64(out long value)
        {
            bool isRead = Decode7Bits(ref reader, bits: 64, out ulong read) == OperationStatus.Done;
            value = (long)read;
            return isRead;
        }

        /// <summary>
        /// Reads a string in the format of <see cref="BinaryWriter"/>: the number of its UTF-8 bytes, with seven bits in each byte, and
        /// then the bytes. Bytes that are not UTF-8 become U+FFFD.
        /// </summary>
        /// <param name="value">
        /// The string; <see langword="null"/> if it was not read. It is created only when all its bytes are there.
        /// </param>
        /// <returns>Whether a string was there; <see langword="false"/> also if the length is invalid.</returns>
        public bool TryReadString([NotNullWhen(true)] out string? value)
            => reader.ReadString(int.MaxValue, out value) == OperationStatus.Done;

        /// <summary>
        /// Reads a string in the format of <see cref="BinaryWriter"/>, and distinguishes bytes that are not a string from bytes that have
        /// not come yet.
        /// </summary>
        /// <param name="maxBytes">
        /// The maximum number of UTF-8 bytes of the string. It detects a damaged length before the bytes have come.
        /// </param>
        /// <param name="value">The string; <see langword="null"/> if it was not read.</param>
        /// <returns>
        /// <see cref="OperationStatus.Done"/> if the string was read; <see cref="OperationStatus.NeedMoreData"/> if not all of its bytes
        /// are there; <see cref="OperationStatus.InvalidData"/> if the length is invalid or more than <paramref name="maxBytes"/>.
        /// </returns>
        /// <exception cref="ArgumentOutOfRangeException"><paramref name="maxBytes"/> is negative.</exception>
        public OperationStatus ReadString(int maxBytes, out string? value)
        {
            ArgumentOutOfRangeException.ThrowIfNegative(maxBytes);
            value = null;
            SequenceReader<byte> start = reader;
            OperationStatus status = Decode7Bits(ref reader, bits: 32, out ulong length);
            status = status != OperationStatus.Done ? status
                : length > (ulong)maxBytes ? OperationStatus.InvalidData
                : (ulong)reader.Remaining < length ? OperationStatus.NeedMoreData
                : OperationStatus.Done;
            if (status != OperationStatus.Done)
            {
                reader = start;
                return status;
            }

            value = (ulong)reader.UnreadSpan.Length >= length
                ? Encoding.UTF8.GetString(reader.UnreadSpan[..(int)length])
                : Encoding.UTF8.GetString(reader.UnreadSequence.Slice(0, (int)length));
            reader.Advance((int)length);
            return status;
        }
    }

    private static bool TryTake<T>(ref SequenceReader<byte> reader, out T value, bool isReversed)
        where T : unmanaged
    {
        value = default;
        Span<byte> bytes = MemoryMarshal.AsBytes(new Span<T>(ref value));
        if (!reader.TryCopyTo(bytes))
        {
            return false;
        }

        reader.Advance(bytes.Length);
        value = isReversed ? BinaryOrder.Reverse(value) : value;
        return true;
    }

    private static bool TryTakeAll<T>(ref SequenceReader<byte> reader, scoped Span<T> values, bool isReversed)
        where T : unmanaged
    {
        // Checked before the cast to bytes, because a span may be too short for the bytes of so many values.
        if (reader.Remaining / Unsafe.SizeOf<T>() < values.Length)
        {
            return false;
        }

        while (!values.IsEmpty)
        {
            Span<T> piece = values[..Math.Min(values.Length, ValuesAtATime)];
            Span<byte> bytes = MemoryMarshal.AsBytes(piece);
            reader.TryCopyTo(bytes);
            reader.Advance(bytes.Length);
            if (isReversed)
            {
                BinaryOrder.Reverse<T>(piece, piece);
            }

            values = values[piece.Length..];
        }

        return true;
    }

    /// <summary>Reads an integer. If that fails, the reader does not move.</summary>
    private static OperationStatus Decode7Bits(ref SequenceReader<byte> reader, int bits, out ulong value)
    {
        SequenceReader<byte> start = reader;
        OperationStatus status = OperationStatus.NeedMoreData;
        value = 0;
        for (int shift = 0; reader.TryRead(out byte next); shift += 7)
        {
            // The last byte has room for fewer bits, and no other byte follows it.
            if (bits - shift < 7 && next >> (bits - shift) != 0)
            {
                status = OperationStatus.InvalidData;
                break;
            }

            value |= ((ulong)next & 0x7F) << shift;
            if (next <= 0x7F)
            {
                return OperationStatus.Done;
            }
        }

        reader = start;
        value = 0;
        return status;
    }
}
