namespace FilePipelinesBenchmarks.Durable;

/// <summary>What the file is like that records go to: it decides what a sync has to write.</summary>
internal enum CommitFile
{
    /// <summary>It grows with each record, so a sync writes the file system's journal, too.</summary>
    Growing,

    /// <summary>It has its blocks already, and they are overwritten: a sync writes the data alone.</summary>
    Preallocated,
}
