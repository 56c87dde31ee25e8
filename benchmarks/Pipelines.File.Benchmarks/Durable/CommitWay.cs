namespace FilePipelinesBenchmarks.Durable;

/// <summary>A way to put records on the device one by one, used by several producers at once.</summary>
internal abstract class CommitWay(string name, CommitFile file) : IDisposable
{
    /// <summary>Bytes of one record.</summary>
    internal const int RecordSize = 512;

    internal string Name { get; } = name;

    /// <summary>What the file is like that the records go to.</summary>
    internal CommitFile File { get; } = file;

    /// <summary>Makes its file.</summary>
    internal abstract Task OpenAsync(string path, int producers);

    /// <summary>Before each round, not measured: one that overwrites begins at the beginning again.</summary>
    internal virtual ValueTask BeginRoundAsync() => default;

    /// <summary>After each round: nothing of it goes on beside the other ways.</summary>
    internal virtual ValueTask EndRoundAsync() => default;

    /// <summary>Returns when the record is on the device. Called by one producer at a time for each number.</summary>
    internal abstract ValueTask CommitAsync(int producer, byte[] record);

    public abstract void Dispose();
}
