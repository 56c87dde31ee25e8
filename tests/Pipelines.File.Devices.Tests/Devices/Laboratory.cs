using System.Diagnostics;

namespace FilePipelines.Devices.Tests;

/// <summary>
/// A file system on a disk of our own: the disk is served by this process (<see cref="NbdServer"/>), nbdfuse(1) makes a file of it, and
/// loop(4) a block device. Whatever happens, everything is unmounted, detached and ended in <see cref="Dispose"/>.
/// </summary>
internal sealed class Laboratory : IDisposable
{
    // KiB; FUSE's own limit is 128.
    private const int LongestRequest = 64;

    private static readonly string[] s_programs = ["nbdfuse", "fusermount3", "losetup", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"];

    private readonly TempFolder _folder = new();
    private readonly Stack<Action> _undo = new();
    private MountedFolder? _mounted;

    private Laboratory(FileSystemKind kind, DiskImage image)
    {
        Kind = kind;
        Disk = new RecordingDisk(image);
    }

    internal FileSystemKind Kind { get; }

    internal RecordingDisk Disk { get; }

    /// <summary>What the disk had before it was mounted.</summary>
    internal SortedDictionary<long, byte[]> Before { get; private set; } = [];

    /// <summary>Where the file system is mounted.</summary>
    internal string Folder => _folder.File("mounted");

    /// <summary>Skips the test where there is no laboratory.</summary>
    internal static void SkipUnlessPossible()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux only: nbdfuse and loop devices.");
        Assert.SkipUnless(Libc.EffectiveUser() == 0, "Only root mounts file systems.");
        foreach (string program in s_programs)
        {
            bool isThere = $"{Environment.GetEnvironmentVariable("PATH")}:/usr/sbin:/sbin".Split(':')
                .Any(folder => File.Exists(Path.Combine(folder, program)));
            Assert.SkipUnless(isThere, $"{program} is not installed (libnbd-bin, fuse3, e2fsprogs, xfsprogs, btrfs-progs).");
        }

        Assert.SkipUnless(File.Exists("/dev/fuse") && File.Exists("/dev/loop-control"), "There is no /dev/fuse or no /dev/loop-control.");
        string[] known = File.ReadAllLines("/proc/filesystems");
        foreach (string name in (string[])["ext4", "xfs", "btrfs", "fuse"])
        {
            Assert.SkipUnless(known.Any(line => line.EndsWith("\t" + name, StringComparison.Ordinal)), $"This kernel has no {name}.");
        }
    }

    internal static Laboratory Open(FileSystemKind kind)
    {
        DiskImage image = new(kind.Length);
        Laboratory laboratory = new(kind, image);
        laboratory._undo.Push(image.Dispose);
        laboratory._undo.Push(laboratory._folder.Dispose);
        try
        {
            laboratory.Connect();
            return laboratory;
        }
        catch
        {
            laboratory.Dispose();
            throw;
        }
    }

    /// <summary>Unmounts, if that has not happened yet. It fails where the library has left a file open.</summary>
    internal void Unmount()
    {
        MountedFolder? mounted = _mounted;
        _mounted = null;
        mounted?.Dispose();
    }

    /// <summary>Unmounts, detaches and ends everything.</summary>
    public void Dispose()
    {
        List<Exception> errors = [];
        while (_undo.TryPop(out Action? undo))
        {
            try
            {
                undo();
            }
            catch (Exception e)
            {
                errors.Add(e);
            }
        }

        if (errors.Count > 0)
        {
            throw new AggregateException(errors);
        }
    }

    private void Connect()
    {
        Kind.Make(Disk.Image);
        Before = Disk.Image.Parts(PowerCut.PartLength);
        NbdServer server = new(Disk, _folder.File("socket"));
        _undo.Push(server.Dispose);
        string outside = Directory.CreateDirectory(_folder.File("fuse")).FullName;
        string file = Path.Combine(outside, "disk");
        Process guard = MountedFolder.Guard($"sleep 1; fusermount3 -u -z '{outside}'");
        _undo.Push(() => MountedFolder.Release(guard));
        Process client = Process.Start(
            new ProcessStartInfo("nbdfuse", [file, "--unix", _folder.File("socket")]) { RedirectStandardError = true })!;
        _undo.Push(() => Disconnect(client, outside));
        for (int wait = 0; !File.Exists(file); wait++)
        {
            if (client.HasExited || wait > 1000)
            {
                throw new IOException($"nbdfuse: {(client.HasExited ? client.StandardError.ReadToEnd() : "it does not answer")}");
            }

            Thread.Sleep(10);
        }

        using Microsoft.Win32.SafeHandles.SafeFileHandle handle
            = File.OpenHandle(file, FileMode.Open, FileAccess.ReadWrite, FileShare.ReadWrite);
        LoopDevice device = LoopDevice.Attach(handle, isDirect: true);
        _undo.Push(device.Dispose);
        device.LimitRequests(LongestRequest);
        Directory.CreateDirectory(Folder);
        _mounted = MountedFolder.Mount(device, Kind, Folder);
        _undo.Push(Unmount);
    }

    private static void Disconnect(Process client, string folder)
    {
        using (client)
        {
            using Process unmount = Process.Start(
                new ProcessStartInfo("fusermount3", ["-u", "-z", folder]) { RedirectStandardError = true })!;
            unmount.WaitForExit();
            if (!client.WaitForExit(TimeSpan.FromSeconds(20)))
            {
                client.Kill();
                client.WaitForExit();
                throw new IOException("nbdfuse did not end.");
            }
        }
    }
}
