namespace FilePipelinesBenchmarks.Parsing;

/// <summary>Splits each line at blanks into fields, which are numbers, and adds them up.</summary>
internal struct FieldParser : ILineParser
{
    private long _sum;

    public void Take(ReadOnlySpan<byte> line)
    {
        while (true)
        {
            int blank = line.IndexOf((byte)' ');
            long number = 0;
            foreach (byte digit in blank < 0 ? line : line[..blank])
            {
                number = (number * 10) + (digit - '0');
            }

            _sum += number;
            if (blank < 0)
            {
                return;
            }

            line = line[(blank + 1)..];
        }
    }

    public void Take(string line)
    {
        ReadOnlySpan<char> rest = line;
        while (true)
        {
            int blank = rest.IndexOf(' ');
            long number = 0;
            foreach (char digit in blank < 0 ? rest : rest[..blank])
            {
                number = (number * 10) + (digit - '0');
            }

            _sum += number;
            if (blank < 0)
            {
                return;
            }

            rest = rest[(blank + 1)..];
        }
    }

    public readonly long Finish() => _sum;
}
