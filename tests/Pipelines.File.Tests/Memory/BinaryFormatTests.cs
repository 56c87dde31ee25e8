using System.Buffers.Binary;

namespace FilePipelines.Tests;

/// <summary>
/// Binary values written into buffer writers and read from sequences, with <see cref="BinaryWriter"/> and <see cref="BinaryReader"/> as
/// oracles, and numbers as they are in memory.
/// </summary>
public sealed class BinaryFormatTests
{
    /// <summary>One type: how it is written and read by us, by the BCL, and what values it has.</summary>
    /// <param name="Write">Ours, into a buffer writer.</param>
    /// <param name="WriteOracle">The BCL's.</param>
    /// <param name="ReadOracle">The BCL's.</param>
    /// <param name="TryRead">Ours, from a sequence; null for false.</param>
    public sealed record Format(Action<IBufferWriter<byte>, object> Write, Action<BinaryWriter, object> WriteOracle,
        Func<BinaryReader, object> ReadOracle, TryRead TryRead);

    public delegate object? TryRead(ref SequenceReader<byte> reader);

    public sealed record Item(string Format, object Value);

    /// <summary>
    /// What it is written into: a pipe's blocks, one array, our stream's segments, or pieces so small that values lie across them.
    /// </summary>
    public enum Target
    {
        ArrayBufferWriter,
        PooledMemoryStream,
        OverwrittenPooledMemoryStream,
        Pipe,
        FilePipeWriter,
    }

    private delegate bool TryReadOne<T>(ref SequenceReader<byte> reader, out T value);

    private delegate bool TryReadAll<T>(ref SequenceReader<byte> reader, T[] values);

    private static readonly Dictionary<string, Format> s_formats = new(
        [
            .. Number<short>("Int16LittleEndian", (w, v) => w.WriteInt16LittleEndian(v), (w, v) => w.WriteInt16LittleEndian(v.AsSpan()),
                (ref r, out v) => r.TryReadInt16LittleEndian(out v), (ref r, v) => r.TryReadInt16LittleEndian(v.AsSpan())),
            .. Number<short>("Int16BigEndian", (w, v) => w.WriteInt16BigEndian(v), (w, v) => w.WriteInt16BigEndian(v.AsSpan()),
                (ref r, out v) => r.TryReadInt16BigEndian(out v), (ref r, v) => r.TryReadInt16BigEndian(v.AsSpan())),
            .. Number<ushort>("UInt16LittleEndian", (w, v) => w.WriteUInt16LittleEndian(v), (w, v) => w.WriteUInt16LittleEndian(v.AsSpan()),
                (ref r, out v) => r.TryReadUInt16LittleEndian(out v), (ref r, v) => r.TryReadUInt16LittleEndian(v.AsSpan())),
            .. Number<ushort>("UInt16BigEndian", (w, v) => w.WriteUInt16BigEndian(v), (w, v) => w.WriteUInt16BigEndian(v.AsSpan()),
                (ref r, out v) => r.TryReadUInt16BigEndian(out v), (ref r, v) => r.TryReadUInt16BigEndian(v.AsSpan())),
            .. Number<int>("Int32LittleEndian", (w, v) => w.WriteInt32LittleEndian(v), (w, v) => w.WriteInt32LittleEndian(v.AsSpan()),
                (ref r, out v) => r.TryReadInt32LittleEndian(out v), (ref r, v) => r.TryReadInt32LittleEndian(v.AsSpan())),
            .. Number<int>("Int32BigEndian", (w, v) => w.WriteInt32BigEndian(v), (w, v) => w.WriteInt32BigEndian(v.AsSpan()),
                (ref r, out v) => r.TryReadInt32BigEndian(out v), (ref r, v) => r.TryReadInt32BigEndian(v.AsSpan())),
            .. Number<uint>("UInt32LittleEndian", (w, v) => w.WriteUInt32LittleEndian(v), (w, v) => w.WriteUInt32LittleEndian(v.AsSpan()),
                (ref r, out v) => r.TryReadUInt32LittleEndian(out v), (ref r, v) => r.TryReadUInt32LittleEndian(v.AsSpan())),
            .. Number<uint>("UInt32BigEndian", (w, v) => w.WriteUInt32BigEndian(v), (w, v) => w.WriteUInt32BigEndian(v.AsSpan()),
                (ref r, out v) => r.TryReadUInt32BigEndian(out v), (ref r, v) => r.TryReadUInt32BigEndian(v.AsSpan())),
            .. Number<long>("Int64LittleEndian", (w, v) => w.WriteInt64LittleEndian(v), (w, v) => w.WriteInt64LittleEndian(v.AsSpan()),
                (ref r, out v) => r.TryReadInt64LittleEndian(out v), (ref r, v) => r.TryReadInt64LittleEndian(v.AsSpan())),
            .. Number<long>("Int64BigEndian", (w, v) => w.WriteInt64BigEndian(v), (w, v) => w.WriteInt64BigEndian(v.AsSpan()),
                (ref r, out v) => r.TryReadInt64BigEndian(out v), (ref r, v) => r.TryReadInt64BigEndian(v.AsSpan())),
            .. Number<ulong>("UInt64LittleEndian", (w, v) => w.WriteUInt64LittleEndian(v), (w, v) => w.WriteUInt64LittleEndian(v.AsSpan()),
                (ref r, out v) => r.TryReadUInt64LittleEndian(out v), (ref r, v) => r.TryReadUInt64LittleEndian(v.AsSpan())),
            .. Number<ulong>("UInt64BigEndian", (w, v) => w.WriteUInt64BigEndian(v), (w, v) => w.WriteUInt64BigEndian(v.AsSpan()),
                (ref r, out v) => r.TryReadUInt64BigEndian(out v), (ref r, v) => r.TryReadUInt64BigEndian(v.AsSpan())),
            .. Number<Half>("HalfLittleEndian", (w, v) => w.WriteHalfLittleEndian(v), (w, v) => w.WriteHalfLittleEndian(v.AsSpan()),
                (ref r, out v) => r.TryReadHalfLittleEndian(out v), (ref r, v) => r.TryReadHalfLittleEndian(v.AsSpan())),
            .. Number<Half>("HalfBigEndian", (w, v) => w.WriteHalfBigEndian(v), (w, v) => w.WriteHalfBigEndian(v.AsSpan()),
                (ref r, out v) => r.TryReadHalfBigEndian(out v), (ref r, v) => r.TryReadHalfBigEndian(v.AsSpan())),
            .. Number<float>("SingleLittleEndian", (w, v) => w.WriteSingleLittleEndian(v), (w, v) => w.WriteSingleLittleEndian(v.AsSpan()),
                (ref r, out v) => r.TryReadSingleLittleEndian(out v), (ref r, v) => r.TryReadSingleLittleEndian(v.AsSpan())),
            .. Number<float>("SingleBigEndian", (w, v) => w.WriteSingleBigEndian(v), (w, v) => w.WriteSingleBigEndian(v.AsSpan()),
                (ref r, out v) => r.TryReadSingleBigEndian(out v), (ref r, v) => r.TryReadSingleBigEndian(v.AsSpan())),
            .. Number<double>("DoubleLittleEndian", (w, v) => w.WriteDoubleLittleEndian(v), (w, v) => w.WriteDoubleLittleEndian(v.AsSpan()),
                (ref r, out v) => r.TryReadDoubleLittleEndian(out v), (ref r, v) => r.TryReadDoubleLittleEndian(v.AsSpan())),
            .. Number<double>("DoubleBigEndian", (w, v) => w.WriteDoubleBigEndian(v), (w, v) => w.WriteDoubleBigEndian(v.AsSpan()),
                (ref r, out v) => r.TryReadDoubleBigEndian(out v), (ref r, v) => r.TryReadDoubleBigEndian(v.AsSpan())),
        ])
    {
        ["Byte"] = new((w, v) => w.WriteByte((byte)v), (w, v) => w.Write((byte)v), r => r.ReadByte(),
            (ref r) => r.TryReadByte(out byte v) ? v : null),
        ["SByte"] = new((w, v) => w.WriteSByte((sbyte)v), (w, v) => w.Write((sbyte)v), r => r.ReadSByte(),
            (ref r) => r.TryReadSByte(out sbyte v) ? v : null),
        ["Boolean"] = new((w, v) => w.WriteBoolean((bool)v), (w, v) => w.Write((bool)v), r => r.ReadBoolean(),
            (ref r) => r.TryReadBoolean(out bool v) ? v : null),
        ["Decimal"] = new((w, v) => w.WriteDecimal((decimal)v), (w, v) => w.Write((decimal)v), r => r.ReadDecimal(),
            (ref r) => r.TryReadDecimal(out decimal v) ? v : null),
        ["Guid"] = new((w, v) => w.WriteGuid((Guid)v), (w, v) => w.Write(((Guid)v).ToByteArray()), r => new Guid(r.ReadBytes(16)),
            (ref r) => r.TryReadGuid(out Guid v) ? v : null),
        ["GuidBigEndian"] = new(
            (w, v) => w.WriteGuid((Guid)v, bigEndian: true),
            (w, v) => w.Write(((Guid)v).ToByteArray(bigEndian: true)),
            r => new Guid(r.ReadBytes(16), bigEndian: true),
            (ref r) => r.TryReadGuid(out Guid v, bigEndian: true) ? v : null),
        ["7BitEncodedInt"] = new((w, v) => w.Write7BitEncodedInt((int)v), (w, v) => w.Write7BitEncodedInt((int)v),
            r => r.Read7BitEncodedInt(), (ref r) => r.TryRead7BitEncodedInt(out int v) ? v : null),
        ["7BitEncodedInt64"] = new((w, v) => w.Write7BitEncodedInt64((long)v), (w, v) => w.Write7BitEncodedInt64((long)v),
            r => r.Read7BitEncodedInt64(), (ref r) => r.TryRead7BitEncodedInt64(out long v) ? v : null),
        ["String"] = new((w, v) => w.WriteString((string)v), (w, v) => w.Write((string)v), r => r.ReadString(),
            (ref r) => r.TryReadString(out string? v) ? v : null),
        ["String of a span"] = new((w, v) => w.WriteString(((string)v).AsSpan()), (w, v) => w.Write((string)v), r => r.ReadString(),
            (ref r) => r.TryReadString(out string? v) ? v : null),
    };

    private const int ArrayLength = 37;

    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public static TheoryData<string> Formats => [.. s_formats.Keys];

    [Fact]
    [Trait("Category", FuzzTime.Category)]
    public void AnySequenceOfValues_HasTheBytesOfBinaryWriterAndIsReadBack()
        => FuzzTime.Check(
            Prop.ForAll(
                Gen.ListOf(Items()).ToArbitrary(),
                Gen.Zip(Gen.Elements(Enum.GetValues<Target>()), Gen.Choose(1, 50)).ToArbitrary(),
                (items, how) => Task.Run(() => CheckAsync([.. items], how.Item1, how.Item2)).WaitAsync(Eventually.Limit)
                    .GetAwaiter().GetResult()),
            cases: 200,
            endSize: 200);

    [Theory]
    [MemberData(nameof(Formats))]
    public void EveryFormat_AnyValue_HasTheBytesOfBinaryWriterAndIsReadBack(string format)
        => Prop.ForAll(Values(format).ToArbitrary(), Gen.Choose(1, 20).ToArbitrary(),
            (value, piece) => Check([new Item(format, value)], Written(format, value), piece))
            .Check(Config.QuickThrowOnFailure.WithMaxTest(100));

    [Theory]
    [MemberData(nameof(Formats))]
    public void TryRead_CutShort_IsFalseAndMovesNothing(string format)
    {
        object value = Values(format).Sample(100).Last();
        byte[] bytes = Written(format, value);
        for (int length = 0; length < Math.Min(bytes.Length, 300); length++)
        {
            foreach (int piece in (int[])[1, 3, 1000])
            {
                SequenceReader<byte> reader = new(Pieces.Of(bytes.AsMemory(0, length), piece));
                Assert.Null(s_formats[format].TryRead(ref reader));
                Assert.Equal(0, reader.Consumed);
                Assert.Equal(length, reader.Remaining);
            }
        }
    }

    [Theory]
    [MemberData(nameof(Formats))]
    public void TryRead_AnyBytes_DoesNotThrowAndAgreesWithBinaryReader(string format)
        => Prop.ForAll(
            Gen.Zip(Gen.ArrayOf(Gen.Frequency((3, Gen.Choose(0, 255)), (2, Gen.Constant(255)), (1, Gen.Choose(0, 3)))),
                Gen.Choose(1, 10)).ToArbitrary(),
            how => CheckHostile(format, [.. how.Item1.Select(b => (byte)b)], how.Item2))
            .Check(Config.QuickThrowOnFailure.WithMaxTest(300).WithEndSize(400));

    [Theory]
    [InlineData(new byte[] { 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 1, 2, 3, 4, 5 })]
    [InlineData(new byte[] { 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 1, 2, 3, 4, 5 })]
    [InlineData(new byte[] { 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2, 3, 4, 5 })]
    [InlineData(new byte[] { 0x80, 0x80, 0x80, 0x80, 0x10, 1, 2, 3, 4, 5 })]
    public void TryReadString_LengthThatIsNotThere_IsFalseAndAllocatesNothing(byte[] bytes)
    {
        for (int i = 0; i < 2; i++)
        {
            SequenceReader<byte> reader = new(new ReadOnlySequence<byte>(bytes));
            long before = GC.GetAllocatedBytesForCurrentThread();
            bool isRead = reader.TryReadString(out string? value);
            long allocated = GC.GetAllocatedBytesForCurrentThread() - before;
            Assert.False(isRead);
            Assert.Null(value);
            Assert.Equal(0, reader.Consumed);
            Assert.Equal(0, allocated);
        }
    }

    [Theory]
    [InlineData(0, 1), InlineData(30, 5), InlineData(41, 3), InlineData(4095, 2), InlineData(4096, 4000)]
    public void WriteString_HalfASurrogate_BecomesWhatBinaryWriterMakesOfIt(int before, int halves)
    {
        foreach (char half in (char[])['\uD83D', '\uDE00'])
        {
            string value = new string('x', before) + new string(half, halves) + "\U0001F600";
            using MemoryStream expected = new();
            using (BinaryWriter oracle = new(expected))
            {
                oracle.Write(value);
            }

            Assert.Equal(expected.ToArray(), Written("String", value));
        }
    }

    [Fact]
    public void AnyWrite_ToNull_IsArgumentNullException()
    {
        Assert.Throws<ArgumentNullException>(() => ((IBufferWriter<byte>)null!).WriteInt32LittleEndian(1));
        Assert.Throws<ArgumentNullException>(() => ((IBufferWriter<byte>)null!).WriteInt32LittleEndian([1]));
        Assert.Throws<ArgumentNullException>(() => ((IBufferWriter<byte>)null!).WriteInt32BigEndian([]));
        Assert.Throws<ArgumentNullException>(() => ((IBufferWriter<byte>)null!).WriteBoolean(true));
        Assert.Throws<ArgumentNullException>(() => ((IBufferWriter<byte>)null!).WriteGuid(Guid.Empty));
        Assert.Throws<ArgumentNullException>(() => ((IBufferWriter<byte>)null!).Write7BitEncodedInt(1));
        Assert.Throws<ArgumentNullException>(() => ((IBufferWriter<byte>)null!).WriteString("text"));
        Assert.Throws<ArgumentNullException>(() => new ArrayBufferWriter<byte>().WriteString(null!));
    }

    [Fact]
    public void WriteSpans_LargerThanAnyPiece_AreCopiedWhole()
    {
        int[] values = [.. Enumerable.Range(0, 3_000_000)];
        using PooledMemoryStream stream = new();
        stream.WriteByte(7);
        stream.WriteInt32LittleEndian(values);
        stream.WriteInt32BigEndian(values);
        SequenceReader<byte> reader = new(stream.Sequence);
        Assert.True(reader.TryReadByte(out byte first) && first == 7);
        int[] little = new int[values.Length];
        int[] big = new int[values.Length];
        Assert.True(reader.TryReadInt32LittleEndian(little.AsSpan()) && reader.TryReadInt32BigEndian(big.AsSpan()));
        Assert.True(reader.End);
        Assert.True(values.AsSpan().SequenceEqual(little) && values.AsSpan().SequenceEqual(big));
    }

    private static void CheckHostile(string format, byte[] bytes, int piece)
    {
        SequenceReader<byte> reader = new(Pieces.Of(bytes, piece));
        object? read = s_formats[format].TryRead(ref reader);
        using BinaryReader oracle = new(new MemoryStream(bytes));
        try
        {
            object expected = s_formats[format].ReadOracle(oracle);

            // What is not UTF-8 BinaryReader decodes in pieces, whose ends then show.
            Assert.Equal(oracle.BaseStream.Position, reader.Consumed);
            Assert.True(read is string || Same(expected, read!), $"{expected} {read}");
        }
        catch (Exception e) when (e is IOException or FormatException or ArgumentException)
        {
            Assert.Null(read);
            Assert.Equal(0, reader.Consumed);
        }
    }

    private async Task CheckAsync(Item[] items, Target target, int piece)
    {
        byte[] bytes;
        switch (target)
        {
            case Target.ArrayBufferWriter:
                ArrayBufferWriter<byte> array = new();
                Write(items, array);
                bytes = array.WrittenSpan.ToArray();
                break;
            case Target.PooledMemoryStream:
                using (PooledMemoryStream stream = new())
                {
                    Write(items, stream);
                    bytes = stream.ToArray();
                }

                break;
            case Target.OverwrittenPooledMemoryStream:
                using (PooledMemoryStream stream = new())
                {
                    stream.SetLength(300);
                    Write(items, stream);
                    Assert.True(stream.ToArray().AsSpan((int)stream.Position).IndexOfAnyExcept((byte)0) < 0);
                    bytes = stream.ToArray()[..(int)stream.Position];
                }

                break;
            case Target.Pipe:
                Pipe pipe = new(new PipeOptions(minimumSegmentSize: 16, pauseWriterThreshold: 0));
                Write(items, pipe.Writer);
                await pipe.Writer.CompleteAsync();
                ReadResult result = await pipe.Reader.ReadAtLeastAsync(int.MaxValue, _stop);
                bytes = result.Buffer.ToArray();
                break;
            default:
                using (TempFolder folder = new())
                {
                    FilePipeWriter file = FilePipeWriter.Create(folder.File("f"));
                    Write(items, file);
                    await file.CompleteAsync();
                    bytes = File.ReadAllBytes(folder.File("f"));
                }

                break;
        }

        Check(items, bytes, piece);
    }

    private static void Write(Item[] items, IBufferWriter<byte> writer)
        => Array.ForEach(items, item => s_formats[item.Format].Write(writer, item.Value));

    private static byte[] Written(string format, object value)
    {
        ArrayBufferWriter<byte> writer = new();
        s_formats[format].Write(writer, value);
        return writer.WrittenSpan.ToArray();
    }

    /// <summary>The bytes are BinaryWriter's; BinaryReader and our reader get the values from them.</summary>
    private static void Check(Item[] items, byte[] bytes, int piece)
    {
        using MemoryStream expected = new();
        using (BinaryWriter writer = new(expected, Encoding.UTF8, leaveOpen: true))
        {
            Array.ForEach(items, item => s_formats[item.Format].WriteOracle(writer, item.Value));
        }

        Assert.Equal(expected.ToArray(), bytes);
        using BinaryReader oracle = new(new MemoryStream(bytes));
        SequenceReader<byte> reader = new(Pieces.Of(bytes, piece));
        foreach (Item item in items)
        {
            Assert.True(Same(item.Value, s_formats[item.Format].ReadOracle(oracle)));
            Assert.True(Same(item.Value, s_formats[item.Format].TryRead(ref reader)!));
        }

        Assert.True(reader.End);
    }

    // Bit for bit: NaN is a value like any other, and 0 is not -0. A decimal 1.0 is not 1.00.
    private static bool Same(object left, object right) => (left, right) switch
    {
        (double a, double b) => BitConverter.DoubleToInt64Bits(a) == BitConverter.DoubleToInt64Bits(b),
        (float a, float b) => BitConverter.SingleToInt32Bits(a) == BitConverter.SingleToInt32Bits(b),
        (Half a, Half b) => BitConverter.HalfToInt16Bits(a) == BitConverter.HalfToInt16Bits(b),
        (decimal a, decimal b) => decimal.GetBits(a).SequenceEqual(decimal.GetBits(b)),
        (Array a, Array b) => a.Length == b.Length && a.Cast<object>().Zip(b.Cast<object>()).All(pair => Same(pair.First, pair.Second)),
        _ => Equals(left, right),
    };

    private static Gen<Item> Items()
        => Gen.Elements(s_formats.Keys.ToArray()).SelectMany(format => Values(format).Select(value => new Item(format, value)));

    private static Gen<object> Values(string format)
    {
        if (format.EndsWith("[]", StringComparison.Ordinal))
        {
            return Gen.ArrayOf(Values(format[..^2]), ArrayLength).Select(object (values) =>
            {
                Array typed = Array.CreateInstance(values[0].GetType(), ArrayLength);
                Array.Copy(values, typed, ArrayLength);
                return typed;
            });
        }

        // All bits, small numbers, and the ends.
        Gen<long> bits = Gen.OneOf(
            ArbMap.Default.GeneratorFor<long>(),
            Gen.Zip(Gen.Choose(int.MinValue, int.MaxValue), Gen.Choose(int.MinValue, int.MaxValue))
                .Select(t => ((long)t.Item1 << 32) | (uint)t.Item2),
            Gen.Elements(0L, 1, -1, long.MinValue, long.MaxValue, 0x7F, 0x80, 0x3FFF, 0x4000, int.MaxValue, uint.MaxValue));
        return format.Replace("LittleEndian", string.Empty, StringComparison.Ordinal)
            .Replace("BigEndian", string.Empty, StringComparison.Ordinal) switch
        {
            "Int16" => bits.Select(object (b) => (short)b),
            "UInt16" => bits.Select(object (b) => (ushort)b),
            "Int32" or "7BitEncodedInt" => bits.Select(object (b) => (int)b),
            "UInt32" => bits.Select(object (b) => (uint)b),
            "Int64" or "7BitEncodedInt64" => bits.Select(object (b) => b),
            "UInt64" => bits.Select(object (b) => (ulong)b),
            "Half" => bits.Select(object (b) => BitConverter.Int16BitsToHalf((short)b)),
            "Single" => bits.Select(object (b) => BitConverter.Int32BitsToSingle((int)b)),
            "Double" => bits.Select(object (b) => BitConverter.Int64BitsToDouble(b)),
            "Byte" => bits.Select(object (b) => (byte)b),
            "SByte" => bits.Select(object (b) => (sbyte)b),
            "Boolean" => bits.Select(object (b) => (b & 1) != 0),
            "Decimal" => Gen.Zip(bits, Gen.Zip(bits, Gen.Choose(0, 28))).Select(object (t) => new decimal(
                (int)t.Item1, (int)(t.Item1 >> 32), (int)t.Item2.Item1, (t.Item2.Item1 & (1L << 40)) != 0, (byte)t.Item2.Item2)),
            "Guid" => Gen.Zip(bits, bits)
                .Select(object (t) => new Guid([.. BitConverter.GetBytes(t.Item1), .. BitConverter.GetBytes(t.Item2)])),
            _ => Gen.Zip(Gen.Frequency((6, Gen.Choose(0, 60)), (1, Gen.Choose(61, 300)), (1, Gen.Choose(4000, 13_000))),
                Gen.Choose(0, int.MaxValue)).Select(object (t) => Text(t.Item1, t.Item2)),
        };
    }

    /// <summary>Characters of one to four bytes.</summary>
    private static string Text(int length, int seed)
    {
        Random random = new(seed);
        int kind = random.Next(4);
        StringBuilder text = new();
        for (int i = 0; i < length; i++)
        {
            text.Append(random.Next(kind + 1) switch { 0 => "a", 1 => "\u00E9", 2 => "\u20AC", _ => "\U0001F600" });
        }

        return text.ToString();
    }

    /// <summary>A type of numbers in one order of bytes: one of them, and an array.</summary>
    private static KeyValuePair<string, Format>[] Number<T>(string name, Action<IBufferWriter<byte>, T> write,
        Action<IBufferWriter<byte>, T[]> writeAll, TryReadOne<T> tryRead, TryReadAll<T> tryReadAll)
        where T : unmanaged
    {
        bool isBig = name.EndsWith("BigEndian", StringComparison.Ordinal);
        return
        [
            new(name, new((w, v) => write(w, (T)v), (w, v) => w.Write(BytesOf([(T)v], isBig)), r => Read(r, 1)[0],
                (ref r) => tryRead(ref r, out T v) ? v : null)),
            new(name + "[]", new((w, v) => writeAll(w, (T[])v), (w, v) => w.Write(BytesOf((T[])v, isBig)), r => Read(r, ArrayLength),
                (ref r) => new T[ArrayLength] is var v && tryReadAll(ref r, v) ? v : null)),
        ];

        T[] Read(BinaryReader reader, int count)
        {
            byte[] bytes = new byte[count * Unsafe.SizeOf<T>()];
            reader.BaseStream.ReadExactly(bytes);
            return MemoryMarshal.Cast<byte, T>(BytesOf(MemoryMarshal.Cast<byte, T>(bytes), isBig)).ToArray();
        }
    }

    /// <summary>The bytes of values on this machine, which is little-endian, or each value's in the opposite order.</summary>
    private static byte[] BytesOf<T>(ReadOnlySpan<T> values, bool isReversed)
        where T : unmanaged
    {
        byte[] bytes = MemoryMarshal.AsBytes(values).ToArray();
        for (int i = 0; i < bytes.Length && isReversed; i += Unsafe.SizeOf<T>())
        {
            bytes.AsSpan(i, Unsafe.SizeOf<T>()).Reverse();
        }

        return bytes;
    }

    [Fact]
    [Trait("Category", StressTime.Category)]
    public void TryReadInt16LittleEndian_MoreBytesThanASpanHas_ReadsThemAll()
    {
        Assert.SkipUnless(Rounds.AreMany, "Two GiB take long: PIPELINES_FILE_LONG=1.");
        byte[] block = new byte[64 * 1024 * 1024];
        Random.Shared.NextBytes(block);
        Pieces first = new(block, 0);
        Pieces last = first;
        while (last.RunningIndex <= 1L << 31)
        {
            last = last.Append();
        }

        short[] values = new short[(1 << 30) + 10];
        SequenceReader<byte> reader = new(new ReadOnlySequence<byte>(first, 0, last, last.Memory.Length));
        Assert.True(reader.TryReadInt16LittleEndian(values));
        Assert.Equal(2L * values.Length, reader.Consumed);
        Assert.Equal(BinaryPrimitives.ReadInt16LittleEndian(block), values[0]);
        Assert.Equal(BinaryPrimitives.ReadInt16LittleEndian(block.AsSpan(18)), values[^1]);
    }

    /// <summary>A sequence of pieces of one length.</summary>
    private sealed class Pieces : ReadOnlySequenceSegment<byte>
    {
        internal Pieces(ReadOnlyMemory<byte> memory, long runningIndex)
        {
            Memory = memory;
            RunningIndex = runningIndex;
        }

        /// <summary>The same bytes once more.</summary>
        internal Pieces Append()
        {
            Pieces next = new(Memory, RunningIndex + Memory.Length);
            Next = next;
            return next;
        }

        internal static ReadOnlySequence<byte> Of(ReadOnlyMemory<byte> bytes, int length)
        {
            Pieces first = new(bytes[..Math.Min(length, bytes.Length)], 0);
            Pieces last = first;
            for (int start = length; start < bytes.Length; start += length)
            {
                Pieces next = new(bytes.Slice(start, Math.Min(length, bytes.Length - start)), start);
                last.Next = next;
                last = next;
            }

            return new ReadOnlySequence<byte>(first, 0, last, last.Memory.Length);
        }
    }
}
