namespace FilePipelines.Tests;

/// <summary>A mistake that an implementation could make, to see that the crash simulation finds it.</summary>
public enum PlantedMistake
{
    None,
    NoFileSync,
    NoFolderSync,
    FolderSyncBeforeRename,
}
