using Microsoft.Win32.SafeHandles;

namespace FilePipelines.Devices.Tests;

/// <summary>
/// The content of a disk, in memory (memfd_create(2)): it has no name, and is gone with the process. What was never written takes no room.
/// </summary>
internal sealed class DiskImage : IDisposable
{
    internal DiskImage(long length)
    {
        int descriptor = Libc.CreateMemory("disk", Libc.CloseOnExec);
        if (descriptor < 0)
        {
            throw Libc.Error("memfd_create");
        }

        Handle = new SafeFileHandle(descriptor, ownsHandle: true);
        Length = length;
        RandomAccess.SetLength(Handle, length);
    }

    internal SafeFileHandle Handle { get; }

    internal long Length { get; }

    /// <summary>A name that other processes open it by.</summary>
    internal string Path => $"/proc/{Environment.ProcessId}/fd/{(int)Handle.DangerousGetHandle()}";

    public void Dispose() => Handle.Dispose();

    internal void Clear()
    {
        RandomAccess.SetLength(Handle, 0);
        RandomAccess.SetLength(Handle, Length);
    }

    /// <summary>The parts that are not all zeros, for copies of the disk.</summary>
    internal SortedDictionary<long, byte[]> Parts(int length)
    {
        SortedDictionary<long, byte[]> parts = [];
        byte[] part = new byte[length];
        for (long offset = 0; offset < Length; offset += length)
        {
            int read = RandomAccess.Read(Handle, part, offset);
            if (part.AsSpan(0, read).ContainsAnyExcept((byte)0))
            {
                parts.Add(offset, part);
                part = new byte[length];
            }
        }

        return parts;
    }
}
