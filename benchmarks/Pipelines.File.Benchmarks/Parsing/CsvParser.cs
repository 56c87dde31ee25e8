using System.Buffers.Text;
using System.Globalization;

namespace FilePipelinesBenchmarks.Parsing;

/// <summary>Rows of <c>id,"name, quoted where it has a comma",quantity,price in cents</c>; the sum of quantity times price.</summary>
internal struct CsvParser : ILineParser
{
    private long _sum;

    public void Take(ReadOnlySpan<byte> line)
    {
        ReadOnlySpan<byte> rest = line[(line.IndexOf((byte)',') + 1)..];
        if (rest[0] == '"')
        {
            rest = rest[1..];
            rest = rest[(rest.IndexOf((byte)'"') + 1)..];
        }

        rest = rest[(rest.IndexOf((byte)',') + 1)..];
        if (!Utf8Parser.TryParse(rest, out int quantity, out int length)
            || !Utf8Parser.TryParse(rest[(length + 1)..], out int price, out _))
        {
            throw new FormatException("Not a row of the CSV file.");
        }

        _sum += (long)quantity * price;
    }

    public void Take(string line)
    {
        ReadOnlySpan<char> rest = line.AsSpan(line.IndexOf(',', StringComparison.Ordinal) + 1);
        if (rest[0] == '"')
        {
            rest = rest[1..];
            rest = rest[(rest.IndexOf('"') + 1)..];
        }

        rest = rest[(rest.IndexOf(',') + 1)..];
        int comma = rest.IndexOf(',');
        _sum += (long)int.Parse(rest[..comma], CultureInfo.InvariantCulture) * int.Parse(rest[(comma + 1)..], CultureInfo.InvariantCulture);
    }

    public readonly long Finish() => _sum;
}
