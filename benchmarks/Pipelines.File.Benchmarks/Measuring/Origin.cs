namespace FilePipelinesBenchmarks.Measuring;

/// <summary>Whose a way is.</summary>
internal enum Origin
{
    /// <summary>This library's.</summary>
    Own,

    /// <summary>What .NET has ready made: a stream, a reader, a copy.</summary>
    Net,

    /// <summary>
    /// What a good engineer writes by hand for this one purpose: a loop over RandomAccess or a stream, threads of one's own, a group
    /// commit.
    /// </summary>
    ByHand,

    /// <summary>Another package's or program's.</summary>
    Other,

    /// <summary>
    /// What nothing that serves the same purpose can be faster than by much: the system call by itself, or nothing to read.
    /// </summary>
    Limit,
}
