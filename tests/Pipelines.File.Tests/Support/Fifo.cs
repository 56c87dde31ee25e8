using System.ComponentModel;
using System.Runtime.InteropServices;

namespace FilePipelines.Tests;

/// <summary>
/// A FIFO with a write end that is open already, so that opening its read end does not wait; reading it ends when this is disposed.
/// </summary>
internal sealed partial class Fifo : IDisposable
{
    private readonly FileStream _writeEnd;

    private Fifo(string path)
    {
        Path = path;
        _writeEnd = new FileStream(OpenBothWays(path), FileAccess.Write, bufferSize: 0);
    }

    public string Path { get; }

    /// <summary>Opens a FIFO, or another file, for both: with nobody at the other end yet, open(2) for one of them would wait.</summary>
    public static SafeFileHandle OpenBothWays(string path)
        => File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite, FileShare.ReadWrite);

    /// <summary>Skips the test where a FIFO cannot be opened so.</summary>
    public static Fifo Create(TempFolder folder, string name = "fifo") => new(Make(folder, name));

    /// <summary>
    /// One that nobody has open yet. Skips the test where there is none, or none that can be opened for both reading and writing.
    /// </summary>
    public static string Make(TempFolder folder, string name = "fifo")
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux only: it opens a FIFO for both reading and writing (fifo(7)).");
        string path = folder.File(name);
        MakeAt(path);
        return path;
    }

    public static void MakeAt(string path)
    {
        if (MakeFifo(path, 0b110_000_000) != 0)
        {
            int errno = Marshal.GetLastPInvokeError();
            Assert.SkipWhen(errno == Libc.EPERM, "The file system has no FIFOs (mknod(2)).");
            throw new Win32Exception(errno);
        }
    }

    /// <summary>Whether everything that was written has been read.</summary>
    public bool IsEmpty => !UnixCalls.Default.IsReady(_writeEnd.SafeFileHandle, Libc.POLLIN);

    public void Write(ReadOnlySpan<byte> bytes) => _writeEnd.Write(bytes);

    public void Dispose() => _writeEnd.Dispose();

    [LibraryImport("libc", EntryPoint = "mkfifo", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    private static partial int MakeFifo(string path, uint mode);
}
