namespace FilePipelines.Tests;

/// <summary>What a follower's search does for one log.</summary>
internal static class LogSearch
{
    /// <summary>A listing of the log's folder, as it is now.</summary>
    public static LogListing Listing(this LogNames names)
    {
        FolderNames folder = new(Path.GetDirectoryName(names.Path)!, TimeProvider.System);
        folder.Look(isSure: true);
        return LogListing.Take(names.Path, names.Rotated, _ => folder);
    }

    /// <summary>Takes notice of a listing.</summary>
    public static void Search(this LogNames names) => names.Update(names.Listing(), names.Listing, CancellationToken.None);
}
