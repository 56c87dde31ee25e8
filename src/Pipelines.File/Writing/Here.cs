namespace Pipelines.File.Writing;

/// <summary>Which calls of a writer the thread that wakes its loop makes itself.</summary>
internal enum Here
{
    /// <summary>None: a thread that may wait makes them.</summary>
    None,

    /// <summary>Its writes, which only copy memory.</summary>
    Writes,

    /// <summary>All that end by themselves: the thread's caller blocks until they are over.</summary>
    All,
}
