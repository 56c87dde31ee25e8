using System.Buffers;
using System.Buffers.Binary;
using System.Diagnostics.CodeAnalysis;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;
using Pipelines.File.Memory;

namespace Pipelines.File;

/// <summary>
/// Reads what <see cref="BinaryBufferWriterExtensions"/> or <see cref="BinaryWriter"/> wrote. None of these methods throws or allocates for what the bytes say: where
/// they are too few, or are no value of that type, it returns <see langword="false"/> and the reader stays where it was.
/// </summary>
public static class BinarySequenceReaderExtensions
{
    private const int GuidSize = 16;

    /// <summary>How many values are copied at a time: their bytes fit into a span.</summary>
    private const int ValuesAtATime = 1 << 24;

    // What a decimal's last part may have set: its sign, and the scale, 0 to 28.
    private const int DecimalSign = int.MinValue;
    private const int DecimalScale = 0x00FF0000;
    private const int MaxDecimalScale = 28 << 16;

    /// <summary>Reads one byte.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one.</returns>
    public static bool TryReadByte(ref this SequenceReader<byte> reader, out byte value) => reader.TryRead(out value);

    /// <summary>Reads one byte.</summary>
    /// <inheritdoc cref="TryReadByte"/>
    public static bool TryReadSByte(ref this SequenceReader<byte> reader, out sbyte value) => TryTake(ref reader, out value, isReversed: false);

    /// <summary>Reads one byte, as <see cref="BinaryReader"/> does: 0 is <see langword="false"/>, everything else <see langword="true"/>.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value.</param>
    /// <returns>Whether there is one.</returns>
    public static bool TryReadBoolean(ref this SequenceReader<byte> reader, out bool value)
    {
        bool isRead = reader.TryRead(out byte read);
        value = read != 0;
        return isRead;
    }

    /// <summary>Reads 2 bytes, the lowest first.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one.</returns>
    public static bool TryReadInt16LittleEndian(ref this SequenceReader<byte> reader, out short value) => TryTake(ref reader, out value, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Reads values of 2 bytes each, the lowest byte of each first, in one copy.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="values">Where to; where it returns <see langword="false"/>, it is as it was.</param>
    /// <returns>Whether there are enough to fill <paramref name="values"/>.</returns>
    public static bool TryReadInt16LittleEndian(ref this SequenceReader<byte> reader, scoped Span<short> values) => TryTakeAll(ref reader, values, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Reads 2 bytes, the highest first.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one.</returns>
    public static bool TryReadInt16BigEndian(ref this SequenceReader<byte> reader, out short value) => TryTake(ref reader, out value, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Reads values of 2 bytes each, the highest byte of each first, in one copy.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="values">Where to; where it returns <see langword="false"/>, it is as it was.</param>
    /// <returns>Whether there are enough to fill <paramref name="values"/>.</returns>
    public static bool TryReadInt16BigEndian(ref this SequenceReader<byte> reader, scoped Span<short> values) => TryTakeAll(ref reader, values, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Reads 2 bytes, the lowest first.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one.</returns>
    public static bool TryReadUInt16LittleEndian(ref this SequenceReader<byte> reader, out ushort value) => TryTake(ref reader, out value, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Reads values of 2 bytes each, the lowest byte of each first, in one copy.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="values">Where to; where it returns <see langword="false"/>, it is as it was.</param>
    /// <returns>Whether there are enough to fill <paramref name="values"/>.</returns>
    public static bool TryReadUInt16LittleEndian(ref this SequenceReader<byte> reader, scoped Span<ushort> values) => TryTakeAll(ref reader, values, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Reads 2 bytes, the highest first.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one.</returns>
    public static bool TryReadUInt16BigEndian(ref this SequenceReader<byte> reader, out ushort value) => TryTake(ref reader, out value, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Reads values of 2 bytes each, the highest byte of each first, in one copy.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="values">Where to; where it returns <see langword="false"/>, it is as it was.</param>
    /// <returns>Whether there are enough to fill <paramref name="values"/>.</returns>
    public static bool TryReadUInt16BigEndian(ref this SequenceReader<byte> reader, scoped Span<ushort> values) => TryTakeAll(ref reader, values, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Reads 4 bytes, the lowest first.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one.</returns>
    public static bool TryReadInt32LittleEndian(ref this SequenceReader<byte> reader, out int value) => TryTake(ref reader, out value, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Reads values of 4 bytes each, the lowest byte of each first, in one copy.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="values">Where to; where it returns <see langword="false"/>, it is as it was.</param>
    /// <returns>Whether there are enough to fill <paramref name="values"/>.</returns>
    public static bool TryReadInt32LittleEndian(ref this SequenceReader<byte> reader, scoped Span<int> values) => TryTakeAll(ref reader, values, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Reads 4 bytes, the highest first.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one.</returns>
    public static bool TryReadInt32BigEndian(ref this SequenceReader<byte> reader, out int value) => TryTake(ref reader, out value, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Reads values of 4 bytes each, the highest byte of each first, in one copy.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="values">Where to; where it returns <see langword="false"/>, it is as it was.</param>
    /// <returns>Whether there are enough to fill <paramref name="values"/>.</returns>
    public static bool TryReadInt32BigEndian(ref this SequenceReader<byte> reader, scoped Span<int> values) => TryTakeAll(ref reader, values, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Reads 4 bytes, the lowest first.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one.</returns>
    public static bool TryReadUInt32LittleEndian(ref this SequenceReader<byte> reader, out uint value) => TryTake(ref reader, out value, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Reads values of 4 bytes each, the lowest byte of each first, in one copy.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="values">Where to; where it returns <see langword="false"/>, it is as it was.</param>
    /// <returns>Whether there are enough to fill <paramref name="values"/>.</returns>
    public static bool TryReadUInt32LittleEndian(ref this SequenceReader<byte> reader, scoped Span<uint> values) => TryTakeAll(ref reader, values, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Reads 4 bytes, the highest first.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one.</returns>
    public static bool TryReadUInt32BigEndian(ref this SequenceReader<byte> reader, out uint value) => TryTake(ref reader, out value, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Reads values of 4 bytes each, the highest byte of each first, in one copy.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="values">Where to; where it returns <see langword="false"/>, it is as it was.</param>
    /// <returns>Whether there are enough to fill <paramref name="values"/>.</returns>
    public static bool TryReadUInt32BigEndian(ref this SequenceReader<byte> reader, scoped Span<uint> values) => TryTakeAll(ref reader, values, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Reads 8 bytes, the lowest first.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one.</returns>
    public static bool TryReadInt64LittleEndian(ref this SequenceReader<byte> reader, out long value) => TryTake(ref reader, out value, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Reads values of 8 bytes each, the lowest byte of each first, in one copy.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="values">Where to; where it returns <see langword="false"/>, it is as it was.</param>
    /// <returns>Whether there are enough to fill <paramref name="values"/>.</returns>
    public static bool TryReadInt64LittleEndian(ref this SequenceReader<byte> reader, scoped Span<long> values) => TryTakeAll(ref reader, values, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Reads 8 bytes, the highest first.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one.</returns>
    public static bool TryReadInt64BigEndian(ref this SequenceReader<byte> reader, out long value) => TryTake(ref reader, out value, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Reads values of 8 bytes each, the highest byte of each first, in one copy.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="values">Where to; where it returns <see langword="false"/>, it is as it was.</param>
    /// <returns>Whether there are enough to fill <paramref name="values"/>.</returns>
    public static bool TryReadInt64BigEndian(ref this SequenceReader<byte> reader, scoped Span<long> values) => TryTakeAll(ref reader, values, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Reads 8 bytes, the lowest first.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one.</returns>
    public static bool TryReadUInt64LittleEndian(ref this SequenceReader<byte> reader, out ulong value) => TryTake(ref reader, out value, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Reads values of 8 bytes each, the lowest byte of each first, in one copy.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="values">Where to; where it returns <see langword="false"/>, it is as it was.</param>
    /// <returns>Whether there are enough to fill <paramref name="values"/>.</returns>
    public static bool TryReadUInt64LittleEndian(ref this SequenceReader<byte> reader, scoped Span<ulong> values) => TryTakeAll(ref reader, values, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Reads 8 bytes, the highest first.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one.</returns>
    public static bool TryReadUInt64BigEndian(ref this SequenceReader<byte> reader, out ulong value) => TryTake(ref reader, out value, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Reads values of 8 bytes each, the highest byte of each first, in one copy.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="values">Where to; where it returns <see langword="false"/>, it is as it was.</param>
    /// <returns>Whether there are enough to fill <paramref name="values"/>.</returns>
    public static bool TryReadUInt64BigEndian(ref this SequenceReader<byte> reader, scoped Span<ulong> values) => TryTakeAll(ref reader, values, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Reads 2 bytes, the lowest first.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one.</returns>
    public static bool TryReadHalfLittleEndian(ref this SequenceReader<byte> reader, out Half value) => TryTake(ref reader, out value, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Reads values of 2 bytes each, the lowest byte of each first, in one copy.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="values">Where to; where it returns <see langword="false"/>, it is as it was.</param>
    /// <returns>Whether there are enough to fill <paramref name="values"/>.</returns>
    public static bool TryReadHalfLittleEndian(ref this SequenceReader<byte> reader, scoped Span<Half> values) => TryTakeAll(ref reader, values, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Reads 2 bytes, the highest first.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one.</returns>
    public static bool TryReadHalfBigEndian(ref this SequenceReader<byte> reader, out Half value) => TryTake(ref reader, out value, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Reads values of 2 bytes each, the highest byte of each first, in one copy.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="values">Where to; where it returns <see langword="false"/>, it is as it was.</param>
    /// <returns>Whether there are enough to fill <paramref name="values"/>.</returns>
    public static bool TryReadHalfBigEndian(ref this SequenceReader<byte> reader, scoped Span<Half> values) => TryTakeAll(ref reader, values, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Reads 4 bytes, the lowest first.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one.</returns>
    public static bool TryReadSingleLittleEndian(ref this SequenceReader<byte> reader, out float value) => TryTake(ref reader, out value, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Reads values of 4 bytes each, the lowest byte of each first, in one copy.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="values">Where to; where it returns <see langword="false"/>, it is as it was.</param>
    /// <returns>Whether there are enough to fill <paramref name="values"/>.</returns>
    public static bool TryReadSingleLittleEndian(ref this SequenceReader<byte> reader, scoped Span<float> values) => TryTakeAll(ref reader, values, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Reads 4 bytes, the highest first.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one.</returns>
    public static bool TryReadSingleBigEndian(ref this SequenceReader<byte> reader, out float value) => TryTake(ref reader, out value, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Reads values of 4 bytes each, the highest byte of each first, in one copy.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="values">Where to; where it returns <see langword="false"/>, it is as it was.</param>
    /// <returns>Whether there are enough to fill <paramref name="values"/>.</returns>
    public static bool TryReadSingleBigEndian(ref this SequenceReader<byte> reader, scoped Span<float> values) => TryTakeAll(ref reader, values, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Reads 8 bytes, the lowest first.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one.</returns>
    public static bool TryReadDoubleLittleEndian(ref this SequenceReader<byte> reader, out double value) => TryTake(ref reader, out value, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Reads values of 8 bytes each, the lowest byte of each first, in one copy.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="values">Where to; where it returns <see langword="false"/>, it is as it was.</param>
    /// <returns>Whether there are enough to fill <paramref name="values"/>.</returns>
    public static bool TryReadDoubleLittleEndian(ref this SequenceReader<byte> reader, scoped Span<double> values) => TryTakeAll(ref reader, values, isReversed: !BitConverter.IsLittleEndian);

    /// <summary>Reads 8 bytes, the highest first.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one.</returns>
    public static bool TryReadDoubleBigEndian(ref this SequenceReader<byte> reader, out double value) => TryTake(ref reader, out value, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Reads values of 8 bytes each, the highest byte of each first, in one copy.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="values">Where to; where it returns <see langword="false"/>, it is as it was.</param>
    /// <returns>Whether there are enough to fill <paramref name="values"/>.</returns>
    public static bool TryReadDoubleBigEndian(ref this SequenceReader<byte> reader, scoped Span<double> values) => TryTakeAll(ref reader, values, isReversed: BitConverter.IsLittleEndian);

    /// <summary>Reads the 16 bytes that <see cref="BinaryWriter"/> writes of a decimal.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one: <see langword="false"/> also for bytes that are no decimal.</returns>
    public static bool TryReadDecimal(ref this SequenceReader<byte> reader, out decimal value)
    {
        Span<int> parts = stackalloc int[4];
        SequenceReader<byte> start = reader;
        if (reader.TryReadInt32LittleEndian(parts))
        {
            int flags = parts[3];
            if ((flags & ~(DecimalSign | DecimalScale)) == 0 && (flags & DecimalScale) <= MaxDecimalScale)
            {
                value = new decimal(parts);
                return true;
            }

            reader = start;
        }

        value = 0;
        return false;
    }

    /// <summary>Reads 16 bytes.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or <see cref="Guid.Empty"/>.</param>
    /// <param name="bigEndian">Whether in the order that the text shows; see <see cref="BinaryBufferWriterExtensions.WriteGuid"/>.</param>
    /// <returns>Whether there is one.</returns>
    public static bool TryReadGuid(ref this SequenceReader<byte> reader, out Guid value, bool bigEndian = false)
    {
        Span<byte> bytes = stackalloc byte[GuidSize];
        if (!TryTakeAll(ref reader, bytes, isReversed: false))
        {
            value = default;
            return false;
        }

        value = new Guid(bytes, bigEndian);
        return true;
    }

    /// <summary>Reads an integer that was written seven bits at a time.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one: <see langword="false"/> also for more than five bytes or 32 bits.</returns>
    public static bool TryRead7BitEncodedInt(ref this SequenceReader<byte> reader, out int value)
    {
        bool isRead = TryDecode7Bits(ref reader, bits: 32, out ulong read);
        value = (int)read;
        return isRead;
    }

    /// <summary>Reads an integer that was written seven bits at a time.</summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The value, or 0.</param>
    /// <returns>Whether there is one: <see langword="false"/> also for more than ten bytes or 64 bits.</returns>
    public static bool TryRead7BitEncodedInt64(ref this SequenceReader<byte> reader, out long value)
    {
        bool isRead = TryDecode7Bits(ref reader, bits: 64, out ulong read);
        value = (long)read;
        return isRead;
    }

    /// <summary>
    /// Reads a string in the format of <see cref="BinaryWriter"/>: the number of its UTF-8 bytes, seven bits at a time, and the bytes. What is not UTF-8 becomes U+FFFD.
    /// </summary>
    /// <param name="reader">Where from.</param>
    /// <param name="value">The string, or <see langword="null"/>. It is made only when all its bytes are there.</param>
    /// <returns>Whether there is one: <see langword="false"/> also for a length that is none.</returns>
    public static bool TryReadString(ref this SequenceReader<byte> reader, [NotNullWhen(true)] out string? value)
    {
        SequenceReader<byte> start = reader;
        if (reader.TryRead7BitEncodedInt(out int length) && length >= 0 && reader.Remaining >= length)
        {
            value = reader.UnreadSpan.Length >= length
                ? Encoding.UTF8.GetString(reader.UnreadSpan[..length])
                : Encoding.UTF8.GetString(reader.UnreadSequence.Slice(0, length));
            reader.Advance(length);
            return true;
        }

        reader = start;
        value = null;
        return false;
    }

    /// <summary>Reads a string in the format of <see cref="BinaryWriter"/>, and tells bytes that are no string from bytes that have not come yet: see <see cref="TryReadString(ref SequenceReader{byte}, out string?)"/>.</summary>
    /// <param name="reader">Where from. It stays where it was unless the string is read.</param>
    /// <param name="maxBytes">The most UTF-8 bytes that the string may have: a length that was damaged is known by the length alone.</param>
    /// <param name="value">The string, or <see langword="null"/>.</param>
    /// <returns>
    /// <see cref="OperationStatus.Done"/>; <see cref="OperationStatus.NeedMoreData"/> where its bytes are not all there; <see cref="OperationStatus.InvalidData"/> for a length that is none, or more than
    /// <paramref name="maxBytes"/>.
    /// </returns>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="maxBytes"/> is negative.</exception>
    public static OperationStatus TryReadString(ref this SequenceReader<byte> reader, int maxBytes, out string? value)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(maxBytes);
        value = null;
        SequenceReader<byte> start = reader;
        OperationStatus status = Decode7Bits(ref reader, bits: 32, out ulong length);
        reader = start;
        return status != OperationStatus.Done ? status
            : length > (ulong)maxBytes ? OperationStatus.InvalidData
            : reader.TryReadString(out value) ? OperationStatus.Done
            : OperationStatus.NeedMoreData;
    }

    private static bool TryTake<T>(ref SequenceReader<byte> reader, out T value, bool isReversed)
        where T : unmanaged
    {
        ReadOnlySpan<byte> span = reader.UnreadSpan;
        if (span.Length < Unsafe.SizeOf<T>())
        {
            return TryTakeSlowly(ref reader, out value, isReversed);
        }

        value = MemoryMarshal.Read<T>(span);
        value = isReversed ? Reverse(value) : value;
        reader.Advance(Unsafe.SizeOf<T>());
        return true;
    }

    // The value lies in more than one segment, or there is none.
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static bool TryTakeSlowly<T>(ref SequenceReader<byte> reader, out T value, bool isReversed)
        where T : unmanaged
    {
        value = default;
        return TryTakeAll(ref reader, new Span<T>(ref value), isReversed);
    }

    // Only the branch of the type's size is left of it.
    private static T Reverse<T>(T value)
        where T : unmanaged
        => Unsafe.SizeOf<T>() switch
        {
            sizeof(ushort) => Unsafe.BitCast<ushort, T>(BinaryPrimitives.ReverseEndianness(Unsafe.BitCast<T, ushort>(value))),
            sizeof(uint) => Unsafe.BitCast<uint, T>(BinaryPrimitives.ReverseEndianness(Unsafe.BitCast<T, uint>(value))),
            _ => Unsafe.BitCast<ulong, T>(BinaryPrimitives.ReverseEndianness(Unsafe.BitCast<T, ulong>(value))),
        };

    private static bool TryTakeAll<T>(ref SequenceReader<byte> reader, scoped Span<T> values, bool isReversed)
        where T : unmanaged
    {
        // Compared first, since so many values may have more bytes than a span can.
        if (reader.Remaining / Unsafe.SizeOf<T>() < values.Length)
        {
            return false;
        }

        while (!values.IsEmpty)
        {
            Span<T> piece = values.Length <= ValuesAtATime ? values : values[..ValuesAtATime];
            Span<byte> bytes = MemoryMarshal.AsBytes(piece);
            reader.TryCopyTo(bytes);
            reader.Advance(bytes.Length);
            if (isReversed)
            {
                BinaryOrder.Reverse(bytes, bytes, Unsafe.SizeOf<T>());
            }

            values = values[piece.Length..];
        }

        return true;
    }

    private static bool TryDecode7Bits(ref SequenceReader<byte> reader, int bits, out ulong value)
    {
        SequenceReader<byte> start = reader;
        if (Decode7Bits(ref reader, bits, out value) == OperationStatus.Done)
        {
            return true;
        }

        reader = start;
        value = 0;
        return false;
    }

    /// <summary>Takes an integer, and leaves the reader anywhere where there is none.</summary>
    private static OperationStatus Decode7Bits(ref SequenceReader<byte> reader, int bits, out ulong value)
    {
        value = 0;
        for (int shift = 0; shift < bits; shift += 7)
        {
            if (!reader.TryRead(out byte next))
            {
                return OperationStatus.NeedMoreData;
            }

            ulong part = (ulong)next & 0x7F;
            if (bits - shift < 7 && part >> (bits - shift) != 0)
            {
                break;
            }

            value |= part << shift;
            if (next <= 0x7F)
            {
                return OperationStatus.Done;
            }
        }

        return OperationStatus.InvalidData;
    }
}
