namespace FilePipelinesBenchmarks.Durable;

/// <summary>A way to put records on the device one by one, used by several producers at once.</summary>
internal abstract class CommitWay(string name) : IDisposable
{
    /// <summary>Bytes of one record.</summary>
    internal const int RecordSize = 512;

    internal string Name { get; } = name;

    /// <summary>Makes its file, with room.</summary>
    internal abstract Task OpenAsync(string path, int producers);

    /// <summary>Returns when the record is on the device. Called by one producer at a time for each number.</summary>
    internal abstract ValueTask CommitAsync(int producer, byte[] record);

    public abstract void Dispose();
}
