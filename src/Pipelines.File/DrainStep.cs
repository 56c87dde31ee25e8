namespace Pipelines.File;

/// <summary>What the drain of a writer does at a time: <see cref="DrainSteps"/>.</summary>
internal enum DrainStep
{
    None,

    /// <summary>Writes what was flushed.</summary>
    Write,

    /// <summary>Gives back what was preallocated and not written.</summary>
    Trim,

    /// <summary>Puts what is written on the device.</summary>
    Sync,

    /// <summary>Puts the name of a new file on the device.</summary>
    SyncFolder,

    /// <summary>Gives a finished file its name.</summary>
    TakeName,
}
