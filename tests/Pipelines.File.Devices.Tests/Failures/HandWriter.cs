using Microsoft.Win32.SafeHandles;

namespace FileDevicesTests;

/// <summary>The same without the library: write(2) and fdatasync(2), and what they answer. It shows what is the kernel's.</summary>
internal sealed class HandWriter(string folder, string name, Acknowledge acknowledge)
{
    private const int Length = 4 << 20;
    private const int MaxRecord = 20_000;

    private static readonly byte[] s_content = Pattern.Bytes(Length);

    internal string Name => name;

    /// <summary>Writes and syncs until a call fails.</summary>
    internal void Run(Random random)
    {
        try
        {
            using SafeFileHandle file = File.OpenHandle(Path.Combine(folder, name), FileMode.Create, FileAccess.Write);
            for (int written = 0; written < Length;)
            {
                int length = Math.Min(random.Next(1, MaxRecord), Length - written);
                RandomAccess.Write(file, s_content.AsSpan(written, length), written);
                written += length;
                if (random.Next(3) == 0)
                {
                    if (Libc.SyncData(file) != 0)
                    {
                        return;
                    }

                    acknowledge(name, written);
                }
            }
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // It has failed, and writes nothing more.
        }
    }

    /// <summary>How many bytes that fdatasync(2) has answered 0 for are not there.</summary>
    internal long Lost(string recovered, long promised)
    {
        string path = Path.Combine(recovered, name);
        byte[] content = File.Exists(path) ? File.ReadAllBytes(path) : [];
        return promised - content.AsSpan(0, (int)Math.Min(content.Length, promised)).CommonPrefixLength(s_content);
    }
}
