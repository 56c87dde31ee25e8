namespace FilePipelinesBenchmarks.Parsing;

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
