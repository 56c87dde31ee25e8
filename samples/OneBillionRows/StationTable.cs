using System.Buffers.Binary;
using System.Numerics;
using System.Runtime.CompilerServices;
using System.Text;
using Pipelines.File;

namespace OneBillionRows;

/// <summary>
/// The stations of one part of the file, in an open hash table by the bytes of their names. A row takes no branch that depends on its
/// content, so the processor works on several rows at once: that is what makes it fast, and not a smaller number of instructions.
/// </summary>
internal sealed class StationTable
{
    private const int Word = sizeof(ulong);

    private Slot[] _slots = new Slot[1 << 15];
    private int _count;

    /// <summary>Reads the file in parts, each with a table of its own, and puts the tables together.</summary>
    public static async Task<SortedDictionary<string, Station>> ReadAsync(
        string path, int threads, Action<long> progress, CancellationToken cancellationToken)
    {
        SortedDictionary<string, Station> all = new(StringComparer.Ordinal);
        await FilePipeReader.ForEachPartitionAsync(
            path,
            async (reader, stop) =>
            {
                StationTable table = new();
                long position = reader.Position;
                await foreach (LineBatch batch in reader.ReadLineBatchesAsync(cancellationToken: stop))
                {
                    table.Add(batch);
                    progress(reader.Position - position);
                    position = reader.Position;
                }

                lock (all)
                {
                    table.AddTo(all);
                }
            },
            threads,
            cancellationToken: cancellationToken);
        return all;
    }

    private void Add(LineBatch batch)
    {
        Span<byte> padded = stackalloc byte[3 * Word];
        foreach (ReadOnlySpan<byte> line in batch)
        {
            if (line.Length >= Word)
            {
                Add(line, 0, line.Length);
            }
            else
            {
                // A rare row, with a name of three bytes at most: the same among zeros.
                padded.Clear();
                line.CopyTo(padded[Word..]);
                Add(padded, Word, Word + line.Length);
            }
        }
    }

    /// <summary>Adds a row. The eight bytes before its end and those after its start exist.</summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private void Add(ReadOnlySpan<byte> bytes, int start, int end)
    {
        // From the end: a digit, a point, a digit, and then a digit, a minus, both, or none of them.
        ulong text = BinaryPrimitives.ReadUInt64LittleEndian(bytes[(end - Word)..]);
        int tens = (int)(byte)(text >> 32) - '0';
        int hasTens = (uint)tens <= 9 ? 1 : 0;
        int isNegative = (byte)(text >> (32 - (8 * hasTens))) == '-' ? 1 : 0;
        int ones = (int)(byte)(text >> 40) - '0';
        int tenths = (int)(text >> 56) - '0';
        int length = end - start - 4 - hasTens - isNegative;
        if (length <= 0 || bytes[start + length] != ';' || (byte)(text >> 48) != '.' || (uint)ones > 9 || (uint)tenths > 9)
        {
            throw new FormatException($"Not a row: '{Encoding.UTF8.GetString(bytes[start..end])}'");
        }

        int temperature = ((tens & -hasTens) * 100) + (ones * 10) + tenths;
        temperature = (temperature ^ -isNegative) + isNegative;

        // The first and the last eight bytes of the name; the same if it is shorter. (Math.Min and Math.Max would be branches here.)
        int over = length - Word;
        int isShorter = over >> 31;
        ulong mask = ulong.MaxValue >> (-8 * (over & isShorter));
        ulong first = BinaryPrimitives.ReadUInt64LittleEndian(bytes[start..]) & mask;
        ulong last = BinaryPrimitives.ReadUInt64LittleEndian(bytes[(start + (over & ~isShorter))..]) & mask;
        Find(bytes.Slice(start, length), first, last).Add(temperature);
    }

    private ref Slot Find(ReadOnlySpan<byte> name, ulong first, ulong last)
    {
        while (true)
        {
            Slot[] slots = _slots;
            ulong hash = (first ^ BitOperations.RotateLeft(last, 23) ^ (ulong)name.Length) * 0x9E3779B97F4A7C15;
            for (int i = (int)(hash >> 40); ; i++)
            {
                ref Slot slot = ref slots[i & (slots.Length - 1)];
                if (slot.Is(name, first, last))
                {
                    return ref slot;
                }

                if (slot.Name is null)
                {
                    if (++_count > slots.Length / 2)
                    {
                        Grow();
                        break;
                    }

                    slot = new Slot(name.ToArray(), first, last);
                    return ref slot;
                }
            }
        }
    }

    private void Grow()
    {
        Slot[] old = _slots;
        _slots = new Slot[2 * old.Length];
        _count = 0;
        foreach (Slot slot in old)
        {
            if (slot.Name is { } name)
            {
                Find(name, slot.First, slot.Last) = slot;
            }
        }
    }

    private void AddTo(SortedDictionary<string, Station> all)
    {
        foreach (Slot slot in _slots)
        {
            if (slot.Name is { } bytes)
            {
                string name = Encoding.UTF8.GetString(bytes);
                if (!all.TryGetValue(name, out Station? station))
                {
                    all.Add(name, station = new Station());
                }

                station.Add(slot.Minimum, slot.Maximum, slot.Sum, slot.Count);
            }
        }
    }

    /// <summary>A station. Two names of up to sixteen bytes are equal if their first and last eight bytes and their lengths are.</summary>
    private struct Slot(byte[] name, ulong first, ulong last)
    {
        public readonly byte[]? Name = name;
        public readonly ulong First = first;
        public readonly ulong Last = last;
        public long Sum;
        public int Count;
        public short Minimum = short.MaxValue;
        public short Maximum = short.MinValue;
        private readonly int _length = name.Length;

        public readonly bool Is(ReadOnlySpan<byte> name, ulong first, ulong last)
            => First == first && Last == last && _length == name.Length && (name.Length <= 2 * Word || name.SequenceEqual(Name));

        public void Add(int tenths)
        {
            Sum += tenths;
            Count++;
            Minimum = (short)Math.Min(Minimum, tenths);
            Maximum = (short)Math.Max(Maximum, tenths);
        }
    }
}
