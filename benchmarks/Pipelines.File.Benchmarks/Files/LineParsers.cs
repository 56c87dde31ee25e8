using System.Buffers.Text;
using System.Text.Json;
using System.Text.Json.Serialization;

namespace FilePipelines.Benchmarks;

/// <summary>What a program does with each line of a text file. A struct, so that each way to get at the lines is compiled for it.</summary>
internal interface ILineParser
{
    /// <summary>A line without its end, in UTF-8.</summary>
    void Take(ReadOnlySpan<byte> line);

    /// <summary>The same line, as a program over StreamReader gets it.</summary>
    void Take(string line);

    /// <summary>What came of it. Both kinds of line give the same.</summary>
    long Finish();
}

/// <summary>Counts lines and their bytes, as <c>wc</c> does: the least that a parser can do. The text is ASCII.</summary>
internal struct LineParser : ILineParser
{
    private long _lines;
    private long _bytes;

    public void Take(ReadOnlySpan<byte> line)
    {
        _lines++;
        _bytes += line.Length;
    }

    public void Take(string line)
    {
        _lines++;
        _bytes += line.Length;
    }

    public readonly long Finish() => _bytes + _lines;
}

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

/// <summary>One JSON document a line, deserialised by System.Text.Json with generated code; the sum of what a field says.</summary>
internal struct NdjsonParser : ILineParser
{
    private long _sum;

    public void Take(ReadOnlySpan<byte> line) => _sum += JsonSerializer.Deserialize(line, LogEventContext.Default.LogEvent)!.Bytes;
    public void Take(string line) => _sum += JsonSerializer.Deserialize(line, LogEventContext.Default.LogEvent)!.Bytes;

    public readonly long Finish() => _sum;
}

/// <summary>A line of the NDJSON file.</summary>
internal sealed record LogEvent(long Id, string Method, string Path, int Status, long Bytes);

[JsonSerializable(typeof(LogEvent))]
[JsonSourceGenerationOptions(PropertyNamingPolicy = JsonKnownNamingPolicy.CamelCase)]
internal sealed partial class LogEventContext : JsonSerializerContext;
