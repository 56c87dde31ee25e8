using System.Diagnostics;
using System.Runtime.InteropServices;

namespace FilePipelines.Devices.Tests;

/// <summary>A mounted disk. If the process is killed, a shell that reads from it ends the mount.</summary>
internal sealed class MountedFolder : IDisposable
{
    // Of this mount only; null if it is the caller's.
    private readonly Process? _guard;

    private MountedFolder(string path, Process? guard)
    {
        Path = path;
        _guard = guard;
    }

    internal string Path { get; }

    /// <summary>Makes the guard of a mount point, which runs the commands when this process is gone.</summary>
    internal static Process Guard(string commands)
    {
        ProcessStartInfo start = new("/bin/sh", ["-c", $"trap '' INT TERM; read done && exit; {commands}"])
        {
            RedirectStandardInput = true,
            RedirectStandardError = true,
            RedirectStandardOutput = true,
        };
        return Process.Start(start)!;
    }

    /// <summary>Makes the guard of every mount of that device there.</summary>
    internal static Process Guard(LoopDevice device, string path) => Guard($"umount -l '{path}'; losetup -d {device.Path}");

    internal static void Release(Process guard)
    {
        guard.StandardInput.WriteLine("done");
        guard.StandardInput.Close();
        guard.WaitForExit();
        guard.Dispose();
    }

    /// <param name="device">The disk.</param>
    /// <param name="kind">What is on it.</param>
    /// <param name="path">Where it goes.</param>
    /// <param name="guards">A guard of the caller's; <see langword="null"/>: the mount has its own.</param>
    internal static MountedFolder Mount(LoopDevice device, FileSystemKind kind, string path, Process? guards = null)
    {
        Process? guard = guards is null ? Guard(device, path) : null;
        try
        {
            if (Libc.Mount(device.Path, path, kind.Name, 0, kind.MountOptions) != 0)
            {
                throw new MountException($"mount {kind.Name}: {Marshal.GetPInvokeErrorMessage(Marshal.GetLastPInvokeError())}");
            }

            return new MountedFolder(path, guard);
        }
        catch
        {
            if (guard is not null)
            {
                Release(guard);
            }

            throw;
        }
    }

    /// <summary>Unmounts. What is busy is open still, perhaps for a moment.</summary>
    private static void Unmount(string path)
    {
        for (int attempt = 0; Libc.Unmount(path, 0) != 0; attempt++)
        {
            int error = Marshal.GetLastPInvokeError();
            if (error != Libc.Ebusy || attempt == 500)
            {
                string open = string.Join(", ", OpenBelow(path));
                _ = Libc.Unmount(path, Libc.Detach);
                throw new IOException($"umount {path}: {Marshal.GetPInvokeErrorMessage(error)}. Open: {open}");
            }

            Thread.Sleep(10);
        }
    }

    public void Dispose()
    {
        try
        {
            Unmount(Path);
        }
        finally
        {
            if (_guard is not null)
            {
                Release(_guard);
            }
        }
    }

    private static IEnumerable<string> OpenBelow(string path)
        => Directory.EnumerateFileSystemEntries("/proc/self/fd").Select(static entry => new FileInfo(entry).LinkTarget ?? "")
            .Where(target => target.StartsWith(path, StringComparison.Ordinal));
}
