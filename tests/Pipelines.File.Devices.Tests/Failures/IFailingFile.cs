namespace FilePipelines.Devices.Tests;

/// <summary>A file that is written and synced in random pieces, on a disk that begins to fail.</summary>
internal interface IFailingFile
{
    /// <summary>Which kind of file it is.</summary>
    string Name { get; }

    /// <summary>Writes until it is whole, or until a call fails.</summary>
    Task RunAsync(Random random);

    /// <summary>
    /// Compares what the recovered file system has with what was acknowledged. <see langword="null"/>: all of that is there.
    /// </summary>
    string? LossIn(string recovered, long promised);
}
