namespace FilePipelinesBenchmarks.Measuring;

/// <summary>Whose a way is.</summary>
internal enum Origin
{
    /// <summary>This library's.</summary>
    Own,

    /// <summary>What .NET has.</summary>
    Net,

    /// <summary>Another package's or program's.</summary>
    Other,

    /// <summary>What nothing that serves the same purpose can be faster than by much: the system call by itself, or nothing to read.</summary>
    Limit,
}
