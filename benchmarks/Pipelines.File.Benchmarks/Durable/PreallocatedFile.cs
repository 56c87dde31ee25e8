using Microsoft.Win32.SafeHandles;

namespace FilePipelinesBenchmarks.Durable;

/// <summary>A file whose blocks are there and on the device, to be overwritten.</summary>
internal static class PreallocatedFile
{
    /// <summary>More than any way writes in one round.</summary>
    internal const long Length = 192L * 1024 * 1024;

    private const int Piece = 1024 * 1024;

    internal static void Make(string path)
    {
        using SafeFileHandle handle = File.OpenHandle(path, FileMode.CreateNew, FileAccess.Write);
        byte[] zeros = new byte[Piece];
        for (long offset = 0; offset < Length; offset += zeros.Length)
        {
            RandomAccess.Write(handle, zeros, offset);
        }

        RandomAccess.FlushToDisk(handle);
    }
}
