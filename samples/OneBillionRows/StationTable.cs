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
/// The stations of one part of the file, in an open hash table by the bytes of their names. A row takes no branch that depends on its
/// content, so the processor works on several rows at once: that is what makes it fast, and not a smaller number of instructions.
/// </summary>
internal sealed class StationTable
{
    private const byte LineFeed = (byte)'\n';
    private const int MaxRow = 1 << 20;
    private const int MaxShown = 200;

    /// <summary>How many bytes the quick way looks at: a name with its semicolon, and a temperature.</summary>
    private const int Window = 32 + 1 + sizeof(ulong);

    /// <summary>What is added to the tenths of a negative temperature for its index in <see cref="s_texts"/>.</summary>
    private const int Negative = 1 << 10;

    private static readonly ulong[] s_texts = MakeTexts();

    private readonly ArrayBufferWriter<byte> _cutRow = new();
    private readonly Dictionary<string, Station> _rare = [];
    private Slot[] _slots = new Slot[1 << 15];
    private int _count;

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

    /// <summary>The text of each temperature with its line feed, in the last bytes of a word.</summary>
    private static ulong[] MakeTexts()
    {
        ulong[] texts = new ulong[2 * Negative];
        for (int tenths = 0; tenths < 1000; tenths++)
        {
            string text = string.Create(CultureInfo.InvariantCulture, $"{tenths / 10}.{tenths % 10}\n");
            texts[tenths] = Word(text);
            texts[tenths + Negative] = Word("-" + text);
        }

        return texts;

        static ulong Word(string text)
            => BinaryPrimitives.ReadUInt64LittleEndian(Encoding.ASCII.GetBytes(text.PadLeft(sizeof(ulong), '\0')));
    }

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
        AddRows(bytes[start..end], s_texts);
        _cutRow.Write(bytes[end..]);
        if (_cutRow.WrittenCount > MaxRow)
        {
            throw new FormatException($"A row is longer than {MaxRow} bytes.");
        }
    }

    /// <summary>
    /// Adds whole rows, at four places in turns: where a row ends is known late, and meanwhile the processor has three others. Compiled at
    /// once, because there is no time to find out that it is worth it.
    /// </summary>
    [MethodImpl(MethodImplOptions.AggressiveOptimization)]
    private void AddRows(ReadOnlySpan<byte> rows, ReadOnlySpan<ulong> texts)
    {
        int quarter = rows.Length / 4;
        int endA = quarter + rows[quarter..].IndexOf(LineFeed) + 1;
        int endB = (2 * quarter) + rows[(2 * quarter)..].IndexOf(LineFeed) + 1;
        int endC = (3 * quarter) + rows[(3 * quarter)..].IndexOf(LineFeed) + 1;
        (int a, int b, int c, int d) = (0, endA, endB, endC);
        while (a < endA && b < endB && c < endC && d <= rows.Length - Window)
        {
            a = Add(rows, a, texts);
            b = Add(rows, b, texts);
            c = Add(rows, c, texts);
            d = Add(rows, d, texts);
        }

        foreach ((int from, int end) in (ReadOnlySpan<(int From, int End)>)[(a, endA), (b, endB), (c, endC), (d, rows.Length)])
        {
            for (int next = from; next < end;)
            {
                next = next <= rows.Length - Window ? Add(rows, next, texts) : AddRare(rows, next);
            }
        }
    }

    /// <summary>Adds a row, and returns where the next one starts. There are at least as many bytes as it looks at (Window).</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private int Add(ReadOnlySpan<byte> rows, int start, ReadOnlySpan<ulong> texts)
    {
        ref byte row = ref Unsafe.Add(ref MemoryMarshal.GetReference(rows), start);
        Vector256<byte> bytes = Vector256.LoadUnsafe(ref row);
        int semicolon = BitOperations.TrailingZeroCount(Vector256.Equals(bytes, Vector256.Create((byte)';')).ExtractMostSignificantBits());
        long word = Unsafe.ReadUnaligned<long>(ref Unsafe.Add(ref row, semicolon + 1));

        // Bit 4 is set in a digit, and not in a minus or a point. The text is moved so that tens, ones and tenths are its second, third and
        // fifth byte; one multiplication adds them up. (An idea of Quan Anh Mai for this challenge.)
        long sign = (~word << 59) >> 63;
        int point = BitOperations.TrailingZeroCount(~word & 0x1010_1000);
        long text = word << (28 - point);
        long digits = ((word & ~(sign & 0xFF)) << (28 - point)) & 0x0F_000F_0F00;
        int tenths = (int)((digits * ((100 << 24) + (10 << 16) + 1)) >> 32) & (Negative - 1);

        // Whatever the bytes are: it is a row if they are the text of that temperature.
        if ((ulong)text << 16 != texts[tenths + ((int)sign & Negative)] || (uint)(semicolon - 1) >= 31)
        {
            return AddRare(rows, start);
        }

        // The name with its semicolon: so names of different lengths are different.
        Vector256<byte> name = bytes & Vector256.GreaterThan(Vector256.Create((sbyte)(semicolon + 1)), Vector256<sbyte>.Indices).AsByte();
        Find(name).Add((tenths ^ (int)sign) - (int)sign);
        return start + semicolon + (point >> 3) + 4;
    }

    /// <summary>Adds any row: one with a long name or a CR, one that is near the end of a segment, or one that is none.</summary>
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
        string name = Encoding.UTF8.GetString(row[..semicolon]);
        _rare.TryAdd(name, new Station());
        _rare[name].Add(isNegative ? -tenths : tenths);
        return next;
    }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private ref Slot Find(Vector256<byte> name)
    {
        Vector128<ulong> folded = (name.GetLower() ^ name.GetUpper()).AsUInt64();
        ulong hash = (folded.ToScalar() ^ BitOperations.RotateLeft(folded.GetElement(1), 23)) * 0x9E37_79B9_7F4A_7C15;
        Slot[] slots = _slots;
        ref Slot slot = ref slots[(int)(hash >> 40) & (slots.Length - 1)];
        return ref slot.Name == name ? ref slot : ref Probe(name, (int)(hash >> 40));
    }

    /// <summary>Finds a station beyond the first slot, or adds it.</summary>
    private ref Slot Probe(Vector256<byte> name, int hash)
    {
        if (_count > _slots.Length / 2)
        {
            // Those that were found so far are kept elsewhere, and begin anew in a larger table.
            AddSlotsTo(_rare);
            _slots = new Slot[2 * _slots.Length];
            _count = 0;
        }

        while (true)
        {
            ref Slot slot = ref _slots[hash++ & (_slots.Length - 1)];
            if (slot.Name == name)
            {
                return ref slot;
            }

            if (slot.Count == 0)
            {
                slot = new Slot(name);
                _count++;
                if (slot.Text.Contains('\n', StringComparison.Ordinal))
                {
                    throw new FormatException($"Not a row: '{slot.Text}'");
                }

                return ref slot;
            }
        }
    }

    private void AddTo(SortedDictionary<string, Station> all)
    {
        AddSlotsTo(all);
        foreach ((string name, Station station) in _rare)
        {
            all.TryAdd(name, new Station());
            all[name].Add(station);
        }
    }

    private void AddSlotsTo(IDictionary<string, Station> stations)
    {
        foreach (Slot slot in _slots)
        {
            if (slot.Count > 0)
            {
                stations.TryAdd(slot.Text, new Station());
                stations[slot.Text].Add(slot.Minimum, slot.Maximum, slot.Sum, slot.Count);
            }
        }
    }

    /// <summary>A station with a name of at most 31 bytes.</summary>
    private struct Slot(Vector256<byte> name)
    {
        /// <summary>The bytes of the name, a semicolon, and zeros.</summary>
        public readonly Vector256<byte> Name = name;
        public long Sum;
        public int Count;
        public int Minimum = int.MaxValue;
        public int Maximum = int.MinValue;

        public readonly string Text
        {
            get
            {
                Span<byte> bytes = stackalloc byte[Vector256<byte>.Count];
                Name.CopyTo(bytes);
                return Encoding.UTF8.GetString(bytes[..bytes.IndexOf((byte)';')]);
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
