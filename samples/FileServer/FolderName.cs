namespace FileServerSample;

/// <summary>A name of a folder, in the order in which names are shown: folders first.</summary>
/// <param name="IsFile">Whether it is no folder.</param>
/// <param name="Name">The file name.</param>
internal readonly record struct FolderName(bool IsFile, string Name) : IComparable<FolderName>
{
    public int CompareTo(FolderName other) => CompareTo(other.IsFile, other.Name);

    internal int CompareTo(bool isFile, ReadOnlySpan<char> name)
        => IsFile != isFile ? IsFile.CompareTo(isFile)
            : Name.AsSpan().CompareTo(name, StringComparison.OrdinalIgnoreCase) is not 0 and int order ? order
            : Name.AsSpan().SequenceCompareTo(name);
}
