namespace FilePipelines.AspNetCore.Tests;

/// <summary>
/// A folder of files of the sizes at which something changes, the same for every server that is compared; gone when the test is over.
/// </summary>
public sealed class FileTree : IDisposable
{
    public static readonly int Large = (Rounds.AreMany ? 100 : 16) * 1024 * 1024;

    public static readonly int[] Sizes = [0, 1, 4095, 4096, 65535, 65536, 65537, 1024 * 1024, (4 * 1024 * 1024) + 1];

    private static readonly DateTime s_written = new(2026, 1, 2, 3, 4, 5, DateTimeKind.Utc);

    public FileTree()
    {
        Root = Directory.CreateTempSubdirectory("file-sending-").FullName;
        foreach (int size in Sizes)
        {
            Add(size);
        }
    }

    public string Root { get; }

    public static string NameOf(int size) => $"{size}.txt";

    public static byte[] Content(int size)
    {
        byte[] content = new byte[size];
        new Random(size).NextBytes(content);
        return content;
    }

    /// <summary>The large file, for those tests only that take long.</summary>
    public void AddLarge()
    {
        if (!File.Exists(PathOf(NameOf(Large))))
        {
            Add(Large);
        }
    }

    public string PathOf(string name) => Path.Combine(Root, name);

    public string Add(string name, byte[] content)
    {
        File.WriteAllBytes(PathOf(name), content);
        return PathOf(name);
    }

    private void Add(int size)
    {
        Add(NameOf(size), Content(size));
        File.SetLastWriteTimeUtc(PathOf(NameOf(size)), s_written);
    }

    public void Dispose() => Directory.Delete(Root, recursive: true);
}
