namespace Pipelines.File.Growing;

/// <summary>What inotify watches: a file or a folder.</summary>
internal interface IWatched
{
    /// <summary>
    /// It has changed, and its watch is used up. Called on the thread that reads from inotify; does not wait, and runs no code of the
    /// caller's.
    /// </summary>
    void OnEvent();
}
