using System.Buffers.Binary;
using System.Diagnostics.CodeAnalysis;
using System.Text;
using Pipelines.File;

namespace OneBillionRows;

/// <summary>The stations of one part of the file, by the bytes of their names: no string is made for a row.</summary>
internal sealed class StationTable
{
    private readonly Dictionary<byte[], Station> _stations;
    private readonly Dictionary<byte[], Station>.AlternateLookup<ReadOnlySpan<byte>> _bySpan;

    private StationTable()
    {
        _stations = new Dictionary<byte[], Station>(new NameComparer());
        _bySpan = _stations.GetAlternateLookup<ReadOnlySpan<byte>>();
    }

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
        foreach (ReadOnlySpan<byte> line in batch)
        {
            int separator = line.LastIndexOf((byte)';');
            if (separator < 0)
            {
                throw new FormatException($"A line without a semicolon: '{Encoding.UTF8.GetString(line)}'");
            }

            ReadOnlySpan<byte> name = line[..separator];
            if (!_bySpan.TryGetValue(name, out Station? station))
            {
                _bySpan[name] = station = new Station();
            }

            station.Add(ParseTenths(line[(separator + 1)..]));
        }
    }

    private void AddTo(SortedDictionary<string, Station> all)
    {
        foreach ((byte[] name, Station station) in _stations)
        {
            string text = Encoding.UTF8.GetString(name);
            if (all.TryGetValue(text, out Station? other))
            {
                other.Add(station);
            }
            else
            {
                all.Add(text, station);
            }
        }
    }

    /// <summary>One or two digits, a point and a digit, with or without a minus.</summary>
    private static int ParseTenths(ReadOnlySpan<byte> text)
    {
        int tenths = 0;
        foreach (byte one in text)
        {
            if (char.IsAsciiDigit((char)one))
            {
                tenths = (tenths * 10) + (one - '0');
            }
            else if (one is not ((byte)'.' or (byte)'-'))
            {
                throw new FormatException($"Not a temperature: '{Encoding.UTF8.GetString(text)}'");
            }
        }

        return text is [(byte)'-', ..] ? -tenths : tenths;
    }

    private sealed class NameComparer : IEqualityComparer<byte[]>, IAlternateEqualityComparer<ReadOnlySpan<byte>, byte[]>
    {
        public bool Equals(byte[]? x, byte[]? y) => x.AsSpan().SequenceEqual(y);

        public bool Equals(ReadOnlySpan<byte> alternate, byte[] other) => alternate.SequenceEqual(other);

        public int GetHashCode([DisallowNull] byte[] obj) => GetHashCode(obj.AsSpan());

        /// <summary>The first and the last bytes and the length tell names apart well enough.</summary>
        public int GetHashCode(ReadOnlySpan<byte> alternate)
        {
            uint hash = (uint)alternate.Length;
            if (alternate.Length >= sizeof(uint))
            {
                hash ^= BinaryPrimitives.ReadUInt32LittleEndian(alternate) * 0x9E3779B1;
                hash ^= BinaryPrimitives.ReadUInt32LittleEndian(alternate[^sizeof(uint)..]) * 0x85EBCA77;
            }
            else
            {
                foreach (byte one in alternate)
                {
                    hash = (hash * 31) + one;
                }
            }

            return (int)(hash ^ (hash >> 15));
        }

        public byte[] Create(ReadOnlySpan<byte> alternate) => alternate.ToArray();
    }
}
