using System.Globalization;
using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;

namespace FilePipelines.Devices.Tests;

/// <summary>A file as a disk: loop(4).</summary>
internal sealed class LoopDevice : IDisposable
{
    private const ulong GetFree = 0x4C82;
    private const ulong Configure = 0x4C0A;
    private const ulong Clear = 0x4C01;

    private LoopDevice(string path) => Path = path;

    internal string Path { get; }

    /// <summary>Whether it reads and writes the file past the page cache, which would keep a second copy.</summary>
    internal bool IsDirect => File.ReadAllText($"/sys/block/{System.IO.Path.GetFileName(Path)}/loop/dio").Trim() == "1";

    /// <summary>
    /// Limits the bytes of one request. FUSE divides a long one, and loop(4) takes a write for a whole one if only its first part
    /// succeeded.
    /// </summary>
    internal void LimitRequests(int kibibytes)
        => File.WriteAllText(
            $"/sys/block/{System.IO.Path.GetFileName(Path)}/queue/max_sectors_kb", kibibytes.ToString(CultureInfo.InvariantCulture));

    internal static unsafe LoopDevice Attach(SafeFileHandle file, bool isDirect)
    {
        using SafeFileHandle control = File.OpenHandle("/dev/loop-control", FileMode.Open, FileAccess.ReadWrite, FileShare.ReadWrite);
        while (true)
        {
            int number = Libc.Control(control, GetFree, 0);
            if (number < 0)
            {
                throw Libc.Error("LOOP_CTL_GET_FREE");
            }

            string path = $"/dev/loop{number}";
            using SafeFileHandle device = File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite, FileShare.ReadWrite);
            Configuration configuration = new()
            {
                Descriptor = (uint)file.DangerousGetHandle(),
                Flags = isDirect ? Configuration.DirectIo : 0,
            };
            if (Libc.Control(device, Configure, (nint)(&configuration)) == 0)
            {
                return new LoopDevice(path);
            }

            // Somebody else has taken it between the two calls.
            if (Marshal.GetLastPInvokeError() != Libc.Ebusy)
            {
                throw Libc.Error("LOOP_CONFIGURE");
            }
        }
    }

    public void Dispose()
    {
        using SafeFileHandle device = File.OpenHandle(Path, FileMode.Open, FileAccess.ReadWrite, FileShare.ReadWrite);
        if (Libc.Control(device, Clear, 0) < 0)
        {
            throw Libc.Error("LOOP_CLR_FD");
        }
    }

    /// <summary>struct loop_config of linux/loop.h.</summary>
    [StructLayout(LayoutKind.Explicit, Size = 304)]
    private struct Configuration
    {
        internal const uint DirectIo = 16;

        [FieldOffset(0)]
        internal uint Descriptor;

        [FieldOffset(60)]
        internal uint Flags;
    }
}
