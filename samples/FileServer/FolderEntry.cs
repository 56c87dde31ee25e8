namespace FileServerSample;

/// <summary>One row of a folder's page.</summary>
/// <param name="Name">The file name.</param>
/// <param name="Length">Bytes; <see langword="null"/> of a folder.</param>
/// <param name="Modified">When it was written last.</param>
internal readonly record struct FolderEntry(string Name, long? Length, DateTime Modified);
