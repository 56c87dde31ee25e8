namespace Pipelines.File.Writing;

/// <summary>Which calls of a <see cref="WriteLoop"/> the thread that wakes it makes itself, of those that end by themselves.</summary>
internal enum CallsHere
{
    None,

    /// <summary>Writes into the page cache.</summary>
    Writes,

    /// <summary>All: its caller blocks until they are over.</summary>
    All,
}
