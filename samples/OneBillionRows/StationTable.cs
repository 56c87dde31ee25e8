using System.Buffers;
using System.Buffers.Binary;
using System.Globalization;
using System.IO.Pipelines;
using System.Numerics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Runtime.Intrinsics;
using System.Text;
using Pipelines.File;

namespace OneBillionRows;

/// <summary>
/// The stations of one part of the file, in a hash table by the bytes of their names. A row that is quick takes no branch that depends on
/// its content, so the processor works on several rows at once. All other rows take the way that is easy to read (AddRare).
/// </summary>
internal sealed class StationTable
{
    private const byte LineFeed = (byte)'\n';
    private const int MaxRow = 1 << 20;
    private const int MaxShown = 200;
    private const int SlotBits = 15;

    /// <summary>A station whose slot another one has is looked for in so many slots; the quick way looks at the first.</summary>
    private const int MaxSteps = 8;

    /// <summary>How many bytes the quick way looks at: a name with its semicolon, and a temperature.</summary>
    private const int Window = 32 + 1 + sizeof(ulong);

    /// <summary>The bits of <see cref="Digits"/> times this, from bit 32 on, are different for all temperatures: found by trying.</summary>
    private const ulong TemperatureHash = (104UL << 32) + (64 << 24) + (10 << 16) + 1;
    private const ulong Digits = 0x0F_000F_0F0F;
    private const int TemperatureBits = 12;

    private static readonly ulong[] s_temperatures = MakeTemperatures();

    private readonly ArrayBufferWriter<byte> _cutRow = new();
    private readonly Slot[] _slots = new Slot[1 << SlotBits];

    /// <summary>The stations that have no slot: their names are long, or others have it.</summary>
    private readonly Dictionary<string, Station> _rare = [];

    /// <summary>As many bytes of ones as a vector has and one more, and then so many zeros.</summary>
    private static ReadOnlySpan<byte> Ones =>
    [
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];

    /// <summary>Reads the file in parts, each with a table of its own, and puts the tables together.</summary>
    public static async Task<SortedDictionary<string, Station>> ReadAsync(
        string path, int threads, Action<long> progress, CancellationToken cancellationToken)
    {
        SortedDictionary<string, Station> all = new(StringComparer.Ordinal);
        Task reading = FilePipeReader.ForEachPartitionAsync(
            path,
            async (reader, stop) =>
            {
                StationTable table = new();
                for (bool isEnd = false; !isEnd;)
                {
                    ReadResult result = await reader.ReadAsync(stop);
                    foreach (ReadOnlyMemory<byte> segment in result.Buffer)
                    {
                        table.AddSegment(segment.Span);
                    }

                    progress(result.Buffer.Length);
                    isEnd = result.IsCompleted;
                    reader.AdvanceTo(result.Buffer.End);
                }

                if (table._cutRow.WrittenCount > 0)
                {
                    // The last row of the file lacks its line end.
                    table.AddSegment("\n"u8);
                }

                lock (all)
                {
                    table.AddTo(all);
                }
            },
            threads,
            cancellationToken: cancellationToken);
        try
        {
            await reading;
            return all;
        }
        catch (FormatException e)
        {
            throw new FormatException($"'{path}': {e.Message}", e);
        }
    }

    /// <summary>
    /// By hash, the text of each temperature in the upper six bytes of a word: sign, tens, ones, point, tenths, line feed. The lower two
    /// are its tenths of a degree.
    /// </summary>
    private static ulong[] MakeTemperatures()
    {
        ulong[] temperatures = new ulong[1 << TemperatureBits];
        for (int tenths = 0; tenths < 1000; tenths++)
        {
            string text = string.Create(CultureInfo.InvariantCulture, $"{tenths / 10}.{tenths % 10}\n");
            Set(text, tenths);
            Set("-" + text, -tenths);
        }

        return temperatures;

        void Set(string text, int tenths)
        {
            ulong word = BinaryPrimitives.ReadUInt64LittleEndian(Encoding.ASCII.GetBytes(text.PadLeft(sizeof(ulong), '\0')));
            temperatures[HashOf(word >> 16)] = word | (ushort)tenths;
        }
    }

    /// <param name="text">Sign, tens, ones, point and tenths in the bytes from the lowest on.</param>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private static uint HashOf(ulong text) => (uint)((text & Digits) * TemperatureHash >> 32) & ((1 << TemperatureBits) - 1);

    /// <param name="name">The name with its semicolon, and zeros.</param>
    /// <param name="length">Its length without the semicolon, bytes.</param>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private static uint HashOf(Vector256<byte> name, uint length)
        => (uint)((name.AsUInt64().ToScalar() + length) * 0x9E37_79B9_7F4A_7C15 >> (64 - SlotBits));

    /// <summary>Adds the rows of a segment. The last one may go on in the next segment.</summary>
    private void AddSegment(ReadOnlySpan<byte> bytes)
    {
        int start = 0;
        if (_cutRow.WrittenCount > 0 && bytes.IndexOf(LineFeed) is int index and >= 0)
        {
            start = index + 1;
            _cutRow.Write(bytes[..start]);
            AddRare(_cutRow.WrittenSpan, 0);
            _cutRow.ResetWrittenCount();
        }

        int end = Math.Max(start, bytes.LastIndexOf(LineFeed) + 1);
        AddRows(bytes[start..end], ref MemoryMarshal.GetArrayDataReference(s_temperatures));
        _cutRow.Write(bytes[end..]);
        if (_cutRow.WrittenCount > MaxRow)
        {
            throw new FormatException($"A row is longer than {MaxRow} bytes.");
        }
    }

    /// <summary>
    /// Adds whole rows, at four places in turns: where a row ends is known late, and meanwhile the processor has three others. The inner
    /// loop calls nothing, so its variables are in registers. Compiled at once, because there is no time to find out that it is worth it.
    /// </summary>
    [MethodImpl(MethodImplOptions.AggressiveOptimization)]
    private void AddRows(ReadOnlySpan<byte> rows, ref ulong temperatures)
    {
        ref byte first = ref MemoryMarshal.GetReference(rows);
        ref Slot slots = ref MemoryMarshal.GetArrayDataReference(_slots);
        int quarter = rows.Length / 4;
        int endA = quarter + rows[quarter..].IndexOf(LineFeed) + 1;
        int endB = (2 * quarter) + rows[(2 * quarter)..].IndexOf(LineFeed) + 1;
        int endC = (3 * quarter) + rows[(3 * quarter)..].IndexOf(LineFeed) + 1;
        int last = rows.Length - Window;
        (int a, int b, int c, int d) = (0, endA, endB, endC);
        while (a < endA && b < endB && c < endC && d <= last)
        {
            int lengthA;
            int lengthB;
            int lengthC;
            int lengthD;
            do
            {
                a += lengthA = Add(ref Unsafe.Add(ref first, (uint)a), ref slots, ref temperatures);
                b += lengthB = Add(ref Unsafe.Add(ref first, (uint)b), ref slots, ref temperatures);
                c += lengthC = Add(ref Unsafe.Add(ref first, (uint)c), ref slots, ref temperatures);
                d += lengthD = Add(ref Unsafe.Add(ref first, (uint)d), ref slots, ref temperatures);
            }
            while (a < endA && b < endB && c < endC && d <= last && ((lengthA - 1) | (lengthB - 1) | (lengthC - 1) | (lengthD - 1)) >= 0);
            a = lengthA > 0 ? a : AddRare(rows, a);
            b = lengthB > 0 ? b : AddRare(rows, b);
            c = lengthC > 0 ? c : AddRare(rows, c);
            d = lengthD > 0 ? d : AddRare(rows, d);
        }

        foreach ((int from, int end) in (ReadOnlySpan<(int From, int End)>)[(a, endA), (b, endB), (c, endC), (d, rows.Length)])
        {
            for (int next = from; next < end;)
            {
                int length = next <= last ? Add(ref Unsafe.Add(ref first, (uint)next), ref slots, ref temperatures) : 0;
                next = length > 0 ? next + length : AddRare(rows, next);
            }
        }
    }

    /// <summary>
    /// Adds a row if its station is in its first slot and its temperature has the usual form, and returns its length; otherwise 0. There
    /// are at least as many bytes as it looks at (Window).
    /// </summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private static int Add(ref byte row, ref Slot slots, ref ulong temperatures)
    {
        // 32 if there is none: then it is no name of a slot, because all of those have one.
        Vector256<byte> bytes = Vector256.LoadUnsafe(ref row);
        uint semicolon = (uint)BitOperations.TrailingZeroCount(
            Vector256.Equals(bytes, Vector256.Create((byte)';')).ExtractMostSignificantBits());
        Vector256<byte> name = bytes & Vector256.LoadUnsafe(ref Unsafe.Add(ref MemoryMarshal.GetReference(Ones), 32 - semicolon));
        ref Slot slot = ref Unsafe.Add(ref slots, HashOf(name, semicolon));

        // Bit 4 is set in a digit, and not in a minus or a point: that of the point is bit 12, 20 or 28. The text is moved until it is 28.
        // (An idea of Quan Anh Mai for this challenge.)
        ulong word = Unsafe.ReadUnaligned<ulong>(ref Unsafe.Add(ref row, semicolon + 1));
        uint point = (uint)BitOperations.TrailingZeroCount(~(uint)word & 0x1010_1000);
        ulong text = word << (int)(point ^ 28);
        ulong tenths = (text << 16) ^ Unsafe.Add(ref temperatures, HashOf(text));

        // Whatever the bytes are: it is a temperature if that is its text.
        if (tenths > ushort.MaxValue || slot.Name != name)
        {
            return 0;
        }

        slot.Add((short)tenths);
        return (int)(semicolon + (point >> 3) + 4);
    }

    /// <summary>
    /// Adds any row: the first of its station, one with a long name or a CR, one near the end of a segment, or one that is none.
    /// </summary>
    private int AddRare(ReadOnlySpan<byte> rows, int start)
    {
        ReadOnlySpan<byte> row = rows.Slice(start, rows[start..].IndexOf(LineFeed));
        int next = start + row.Length + 1;
        row = row is [.., (byte)'\r'] ? row[..^1] : row;
        int semicolon = row.LastIndexOf((byte)';');
        ReadOnlySpan<byte> text = row[(semicolon + 1)..];
        bool isNegative = text is [(byte)'-', ..];
        text = isNegative ? text[1..] : text;
        if (semicolon <= 0 || text.Length is < 3 or > 4 || text[^2] != '.'
            || text[..^2].ContainsAnyExceptInRange((byte)'0', (byte)'9') || !char.IsAsciiDigit((char)text[^1]))
        {
            throw new FormatException($"Not a row: '{Encoding.UTF8.GetString(row[..Math.Min(row.Length, MaxShown)])}'");
        }

        int tenths = ((text.Length == 4 ? text[^4] - '0' : 0) * 100) + ((text[^3] - '0') * 10) + text[^1] - '0';
        tenths = isNegative ? -tenths : tenths;
        if (semicolon < Vector256<byte>.Count)
        {
            Span<byte> bytes = stackalloc byte[Vector256<byte>.Count];
            bytes.Clear();
            row[..(semicolon + 1)].CopyTo(bytes);
            Vector256<byte> vector = Vector256.Create((ReadOnlySpan<byte>)bytes);
            uint hash = HashOf(vector, (uint)semicolon);
            for (uint i = 0; i < MaxSteps; i++)
            {
                ref Slot slot = ref _slots[(hash + i) % (1 << SlotBits)];
                slot = slot.Count == 0 ? new Slot(vector) : slot;
                if (slot.Name == vector)
                {
                    slot.Add(tenths);
                    return next;
                }
            }
        }

        string name = Encoding.UTF8.GetString(row[..semicolon]);
        _rare.TryAdd(name, new Station());
        _rare[name].Add(tenths);
        return next;
    }

    private void AddTo(SortedDictionary<string, Station> all)
    {
        foreach (Slot slot in _slots.Where(slot => slot.Count > 0))
        {
            all.TryAdd(slot.Text, new Station());
            all[slot.Text].Add(slot.Minimum, slot.Maximum, slot.Sum, slot.Count);
        }

        foreach ((string name, Station station) in _rare)
        {
            all.TryAdd(name, new Station());
            all[name].Add(station);
        }
    }

    /// <summary>A station with a name of at most 31 bytes.</summary>
    private struct Slot(Vector256<byte> name)
    {
        /// <summary>The bytes of the name, a semicolon, and zeros.</summary>
        public readonly Vector256<byte> Name = name;
        public long Sum;
        public long Count;
        public int Minimum = int.MaxValue;
        public int Maximum = int.MinValue;

        public readonly string Text
        {
            get
            {
                Span<byte> bytes = stackalloc byte[Vector256<byte>.Count];
                Name.CopyTo(bytes);
                return Encoding.UTF8.GetString(bytes[..bytes.LastIndexOf((byte)';')]);
            }
        }

        /// <summary>Adds a temperature. It is seldom the least or the greatest, so these branches cost nothing.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public void Add(int tenths)
        {
            Sum += tenths;
            Count++;
            if (tenths < Minimum)
            {
                Minimum = tenths;
            }

            if (tenths > Maximum)
            {
                Maximum = tenths;
            }
        }
    }
}
