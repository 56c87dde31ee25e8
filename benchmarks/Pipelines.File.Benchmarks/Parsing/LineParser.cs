namespace FilePipelinesBenchmarks.Parsing;

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
