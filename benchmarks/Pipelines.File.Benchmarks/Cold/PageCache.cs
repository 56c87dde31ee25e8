using FilePipelinesBenchmarks.Interop;
using Microsoft.Win32.SafeHandles;

namespace FilePipelinesBenchmarks.Cold;

/// <summary>Empties the page cache of one file, which needs no rights: what is clean goes (posix_fadvise(2)). Linux only.</summary>
internal static class PageCache
{
    private const int DontNeed = 4;

    internal static bool IsSupported => OperatingSystem.IsLinux();

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
