using Microsoft.Win32.SafeHandles;

namespace Pipelines.File.Follow;

/// <summary>Where the last lines of a file begin.</summary>
internal static class LastLines
{
    private const int BlockSize = 64 * 1024;

    /// <summary>The file offset of the first of that many lines before the end. What stands behind the last line end is the beginning of a line, and is always among them.</summary>
    internal static long Find(string path, long count)
    {
        using SafeFileHandle file = System.IO.File.OpenHandle(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete);
        byte[] block = new byte[BlockSize];
        long end = RandomAccess.GetLength(file);
        while (end > 0)
        {
            long start = Math.Max(0, end - BlockSize);
            int length = RandomAccess.Read(file, block.AsSpan(0, (int)(end - start)), start);
            for (int i = length - 1; i >= 0; i--)
            {
                if (block[i] == '\n' && count-- == 0)
                {
                    return start + i + 1;
                }
            }

            end = start;
        }

        return 0;
    }
}
