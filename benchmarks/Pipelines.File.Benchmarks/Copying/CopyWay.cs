namespace FilePipelinesBenchmarks.Copying;

/// <summary>One way to copy a file to a new one.</summary>
/// <param name="Name">What it is called in tables.</param>
/// <param name="CopyAsync">Copies the first path to the second.</param>
internal sealed record CopyWay(string Name, Func<string, string, ValueTask> CopyAsync)
{
    /// <summary>Copies, and checks the length of the copy.</summary>
    internal async ValueTask<long> RunAsync(string source, string destination, long length)
    {
        await CopyAsync(source, destination);
        return new FileInfo(destination).Length == length ? length
            : throw new InvalidDataException($"{Name} copied something other than {length} bytes.");
    }
}
