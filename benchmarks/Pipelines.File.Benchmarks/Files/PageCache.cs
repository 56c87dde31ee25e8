namespace FilePipelines.Benchmarks;

/// <summary>Empties the page cache of one file, which needs no rights: what is clean goes (posix_fadvise(2)). Linux only.</summary>
internal static class PageCache
{
    private const int DontNeed = 4;
    private const int PieceSize = 1024 * 1024;
    private const long TouchedLength = 512L * PieceSize;

    internal static bool IsSupported => OperatingSystem.IsLinux();

    /// <summary>
    /// Has memory that nothing in this machine has used yet been page cache once: a virtual machine that touches a page for the first time
    /// waits for its host, which costs more than reading the page from the disk. What is freed last is used first.
    /// </summary>
    internal static void TouchMemory(TemporaryFolder folder)
    {
        string path = folder.PathOf("touched.bin");
        byte[] piece = new byte[PieceSize];
        using (SafeFileHandle handle = File.OpenHandle(path, FileMode.CreateNew, FileAccess.Write))
        {
            for (long offset = 0; offset < TouchedLength; offset += PieceSize)
            {
                RandomAccess.Write(handle, piece, offset);
            }
        }

        File.Delete(path);
    }

    internal static void Evict(string path)
    {
        using SafeFileHandle handle = File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite);
        RandomAccess.FlushToDisk(handle);
        if (Libc.Advise((int)handle.DangerousGetHandle(), 0, 0, DontNeed) != 0)
        {
            throw new IOException("The system does not let go of a file's pages.");
        }
    }
}
