namespace Pipelines.File;

/// <summary>What a path means now (<see cref="FileStatus.OfName"/>).</summary>
public enum NameMeaning
{
    /// <summary>A file, a folder or a device.</summary>
    File,

    /// <summary>Nothing, or on Windows a file whose delete is pending.</summary>
    Nothing,

    /// <summary>Unknown: the permission is lacking, or a server does not respond.</summary>
    Unknown,
}
