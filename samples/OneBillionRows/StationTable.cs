using System.Buffers;
using System.IO.Pipelines;
using System.Runtime.CompilerServices;
using System.Runtime.Intrinsics;
using System.Text;
using Pipelines.File;

namespace OneBillionRows;

/// <summary>
/// The stations of one part of the file. A row that is quick takes no branch that depends on its content, so the processor works on several
/// rows at once (AddQuick). All other rows take the way that is easy to read (AddAny).
/// </summary>
internal sealed class StationTable(string path)
{
    private const byte LineFeed = (byte)'\n';
    private const int MaxRow = 1 << 20;
    private const int MaxShown = 200;
    private const int SlotBits = 16;

    /// <summary>How many bytes the quick way looks at: a name, its semicolon, and a temperature.</summary>
    private const int Window = 32 + 1 + sizeof(ulong);

    /// <summary>The bits of <see cref="Digits"/> times this, from bit 32 on, are different for all temperatures: found by trying.</summary>
    private const ulong TemperatureHash = (104UL << 32) + (64 << 24) + (10 << 16) + 1;
    private const ulong Digits = 0x0F_000F_0F0F;
    private const int TemperatureBits = 12;

    /// <summary>The tenths of a degree of each text that is a temperature.</summary>
    private static readonly Dictionary<string, int> s_temperatures = new(
        from tenths in Enumerable.Range(0, 1000)
        from sign in (int[])[1, -1]
        select KeyValuePair.Create($"{(sign < 0 ? "-" : "")}{tenths / 10}.{tenths % 10}", sign * tenths));

    /// <summary>
    /// By hash, the text of each temperature in the upper six bytes of a word: sign, tens, ones, point, tenths, line feed. The lower two
    /// are its tenths of a degree.
    /// </summary>
    private readonly ulong[] _words = MakeWords();

    private readonly Dictionary<string, Station> _stations = [];

    /// <summary>A hash table of stations whose names are short. If two have the same slot, the first one has it.</summary>
    private readonly Slot[] _slots = new Slot[1 << SlotBits];

    /// <summary>Reads the file in parts, each with a table of its own, and puts the tables together.</summary>
    public static async Task<SortedDictionary<string, Station>> ReadAsync(string path, int threads)
    {
        SortedDictionary<string, Station> all = new(StringComparer.Ordinal);
        await FilePipeReader.ForEachPartitionAsync(path, ReadPartAsync, threads);
        return all;

        async Task ReadPartAsync(FilePipeReader reader, CancellationToken stop)
        {
            StationTable table = new(path);
            await table.AddAsync(reader, stop);
            lock (all)
            {
                foreach ((string name, Station station) in table._stations)
                {
                    all.TryAdd(name, new Station());
                    all[name].Add(station);
                }
            }
        }
    }

    private static ulong[] MakeWords()
    {
        ulong[] words = new ulong[1 << TemperatureBits];
        foreach ((string text, int tenths) in s_temperatures)
        {
            ulong word = BitConverter.ToUInt64(Encoding.ASCII.GetBytes($"{text}\n".PadLeft(sizeof(ulong), '\0')));
            words[HashOf(word >> 16)] = word | (ushort)tenths;
        }

        return words;
    }

    /// <param name="text">Sign, tens, ones, point and tenths in the bytes from the lowest on.</param>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private static int HashOf(ulong text) => (int)((text & Digits) * TemperatureHash >> 32) & ((1 << TemperatureBits) - 1);

    /// <param name="name">The name with its semicolon, and zeros.</param>
    /// <param name="length">Its length without the semicolon, bytes.</param>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private static int HashOf(Vector256<byte> name, int length)
        => (int)((name.AsUInt64().ToScalar() + (uint)length) * 0x9E37_79B9_7F4A_7C15 >> (64 - SlotBits));

    private async Task AddAsync(FilePipeReader reader, CancellationToken cancellationToken)
    {
        ReadResult result;
        do
        {
            result = await reader.ReadAsync(cancellationToken);
            ReadOnlySequence<byte> rest = AddWholeRows(result.Buffer);
            if (result.IsCompleted && !rest.IsEmpty)
            {
                // The last row of the file lacks its line end.
                AddAny(rest.ToArray());
            }
            else if (rest.Length > MaxRow)
            {
                throw new FormatException($"'{path}': a row is longer than {MaxRow} bytes.");
            }

            reader.AdvanceTo(rest.Start, rest.End);
        }
        while (!result.IsCompleted);
    }

    /// <summary>Adds the rows whose ends are there, and returns what is behind them.</summary>
    private ReadOnlySequence<byte> AddWholeRows(ReadOnlySequence<byte> buffer)
    {
        SequenceReader<byte> reader = new(buffer);
        while (true)
        {
            int length = reader.UnreadSpan.LastIndexOf(LineFeed) + 1;
            AddRows(reader.UnreadSpan[..length]);
            reader.Advance(length);
            if (!reader.TryReadTo(out ReadOnlySequence<byte> row, LineFeed))
            {
                return reader.UnreadSequence;
            }

            // This row begins in one segment and ends in another.
            AddAny(row.ToArray());
        }
    }

    /// <summary>
    /// Adds whole rows, at three places in turns: where a row ends is known late, and meanwhile the processor has two others. The inner
    /// loop calls nothing, so its variables are in registers. Compiled at once, because there is no time to find out that it is worth it.
    /// </summary>
    [MethodImpl(MethodImplOptions.AggressiveOptimization)]
    private void AddRows(ReadOnlySpan<byte> rows)
    {
        int last = rows.Length - Window;
        int third = rows.Length / 3;
        int endA = third + rows[third..].IndexOf(LineFeed) + 1;
        int endB = (2 * third) + rows[(2 * third)..].IndexOf(LineFeed) + 1;
        (int a, int b, int c) = (0, endA, endB);
        while (a < endA || b < endB || c < rows.Length)
        {
            (int lengthA, int lengthB, int lengthC) = (1, 1, 1);
            while (a < endA && b < endB && c <= last && lengthA > 0 && lengthB > 0 && lengthC > 0)
            {
                a += lengthA = AddQuick(rows, a);
                b += lengthB = AddQuick(rows, b);
                c += lengthC = AddQuick(rows, c);
            }

            a += a < endA ? Add(rows, a) : 0;
            b += b < endB ? Add(rows, b) : 0;
            c += c < rows.Length ? Add(rows, c) : 0;
        }
    }

    /// <summary>Adds the row that begins there, and returns its length with its line feed.</summary>
    private int Add(ReadOnlySpan<byte> rows, int start)
    {
        int length = start <= rows.Length - Window ? AddQuick(rows, start) : 0;
        if (length == 0)
        {
            length = rows[start..].IndexOf(LineFeed) + 1;
            AddAny(rows.Slice(start, length - 1));
        }

        return length;
    }

    /// <summary>
    /// Adds a row if its station has a slot and its temperature is the text of one, and returns its length with its line feed; otherwise 0.
    /// There are at least as many bytes as it looks at (Window).
    /// </summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private int AddQuick(ReadOnlySpan<byte> rows, int start)
    {
        // The place of the semicolon is 32 if there is none.
        Vector256<byte> bytes = Vector256.Create(rows.Slice(start, Vector256<byte>.Count));
        int semicolon = (int)uint.TrailingZeroCount(Vector256.Equals(bytes, Vector256.Create((byte)';')).ExtractMostSignificantBits());
        Vector256<byte> name = bytes & Vector256.LessThanOrEqual(Vector256<byte>.Indices, Vector256.Create((byte)semicolon));
        ref Slot slot = ref _slots[HashOf(name, semicolon)];

        // Bit 4 is set in a digit, and not in a minus or a point: that of the point is bit 12, 20 or 28. The text is moved until it is 28.
        // (An idea of Quan Anh Mai for this challenge.)
        ulong word = BitConverter.ToUInt64(rows.Slice(start + semicolon + 1, sizeof(ulong)));
        int point = int.TrailingZeroCount(~(int)word & 0x1010_1000);
        ulong text = word << (point ^ 28);
        ulong tenths = (text << 16) ^ _words[HashOf(text)];

        // Whatever the bytes are: it is a temperature if that is its text.
        if (tenths > ushort.MaxValue || slot.Name != name || semicolon == Vector256<byte>.Count)
        {
            return 0;
        }

        slot.Station.Add((short)tenths);
        return semicolon + (point >> 3) + 4;
    }

    /// <summary>
    /// Adds any row: the first of its station, one with a long name or a CR, one near the end of a segment, or one that is none.
    /// </summary>
    private void AddAny(ReadOnlySpan<byte> row)
    {
        row = row is [.., (byte)'\r'] ? row[..^1] : row;
        int semicolon = row.LastIndexOf((byte)';');
        if (semicolon <= 0 || !s_temperatures.TryGetValue(Encoding.UTF8.GetString(row[(semicolon + 1)..]), out int tenths))
        {
            throw new FormatException($"'{path}': not a row: '{Encoding.UTF8.GetString(row[..Math.Min(row.Length, MaxShown)])}'");
        }

        string name = Encoding.UTF8.GetString(row[..semicolon]);
        if (!_stations.TryGetValue(name, out Station? station))
        {
            _stations.Add(name, station = new Station());
            AddSlot(row[..(semicolon + 1)], station);
        }

        station.Add(tenths);
    }

    private void AddSlot(ReadOnlySpan<byte> name, Station station)
    {
        Span<byte> bytes = new byte[Vector256<byte>.Count];
        if (name.TryCopyTo(bytes))
        {
            Vector256<byte> vector = Vector256.Create((ReadOnlySpan<byte>)bytes);
            ref Slot slot = ref _slots[HashOf(vector, name.Length - 1)];
            slot = slot.Station is null ? new Slot(vector, station) : slot;
        }
    }

    /// <summary>A station with a name of at most 31 bytes: its bytes, a semicolon, and zeros.</summary>
    private readonly record struct Slot(Vector256<byte> Name, Station Station);
}
