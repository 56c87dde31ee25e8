using System.Runtime.InteropServices;
using System.Runtime.Versioning;
using Microsoft.Win32.SafeHandles;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>A process that may open only a few files more (setrlimit(2)), until this is disposed of. Nothing else runs meanwhile.</summary>
[SupportedOSPlatform("linux")]
public sealed unsafe partial class FewDescriptors : IDisposable
{
    private const int NumberOfFiles = 7;

    private readonly List<SafeFileHandle> _taken = [];
    private readonly ulong _before;

    public FewDescriptors(int spare)
    {
        ulong* limits = stackalloc ulong[2];
        Assert.Equal(0, GetLimit(NumberOfFiles, limits));
        _before = limits[0];
        limits[0] = (ulong)(Directory.EnumerateFileSystemEntries("/proc/self/fd")
            .Max(path => int.Parse(Path.GetFileName(path), CultureInfo.InvariantCulture)) + 1 + spare);
        Assert.Equal(0, SetLimit(NumberOfFiles, limits));
    }

    /// <summary>Takes every descriptor that is left.</summary>
    public void TakeAll()
    {
        try
        {
            while (true)
            {
                _taken.Add(File.OpenHandle("/dev/null"));
            }
        }
        catch (IOException)
        {
        }
    }

    public void Dispose()
    {
        ulong* limits = stackalloc ulong[2];
        Assert.Equal(0, GetLimit(NumberOfFiles, limits));
        limits[0] = _before;
        Assert.Equal(0, SetLimit(NumberOfFiles, limits));
        _taken.ForEach(handle => handle.Dispose());
    }

    [LibraryImport("libc", EntryPoint = "getrlimit")]
    private static partial int GetLimit(int resource, ulong* limits);

    [LibraryImport("libc", EntryPoint = "setrlimit")]
    private static partial int SetLimit(int resource, ulong* limits);
}
