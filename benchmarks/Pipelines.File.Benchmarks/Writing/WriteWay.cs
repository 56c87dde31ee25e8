namespace FilePipelinesBenchmarks.Writing;

/// <summary>One way to write a file from making it to closing it.</summary>
internal abstract class WriteWay(string name)
{
    internal string Name { get; } = name;

    /// <summary>Makes the file, writes it piece by piece, closes it and checks its length.</summary>
    internal abstract ValueTask<long> WriteAsync(WriteCase point);
}
