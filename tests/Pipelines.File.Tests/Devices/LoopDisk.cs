namespace FilePipelines.Tests;

/// <summary>
/// A file system of one test's own, on a loop device (loop(4)). It needs root, losetup and the maker of the file system; without them the
/// test is skipped.
/// </summary>
internal sealed class LoopDisk : IDisposable
{
    private readonly TempFolder _folder = new();
    private readonly List<Action> _undo = [];

    private LoopDisk(long bytes, long? roomBytes)
    {
        // A full tmpfs makes a thin device: the image is sparse, and a write to a hole fails.
        string imageFolder = Directory.CreateDirectory(_folder.File("image")).FullName;
        if (roomBytes is { } room)
        {
            SystemTool.Run("mount", "-t", "tmpfs", "-o", $"size={room}", "tmpfs", imageFolder);
            _undo.Add(() => SystemTool.Run("umount", "--lazy", imageFolder));
        }

        Image = Path.Combine(imageFolder, "image");
        using (FileStream image = File.Create(Image))
        {
            image.SetLength(bytes);
        }

        Device = SystemTool.Run("losetup", "--find", "--show", Image).Trim();
        _undo.Add(() => SystemTool.Run("losetup", "--detach", Device));
        Mounted = Directory.CreateDirectory(_folder.File("mounted")).FullName;
    }

    public string Image { get; }

    /// <summary>A file beside the image: of a thin device it takes the room.</summary>
    public string Ballast => Image + ".ballast";

    /// <summary>The device, such as /dev/loop3.</summary>
    public string Device { get; }

    /// <summary>The folder where the file system is.</summary>
    public string Mounted { get; }

    /// <summary>Makes a file system and mounts it.</summary>
    /// <param name="fileSystem">ext4, xfs or btrfs.</param>
    /// <param name="bytes">The size of the device.</param>
    /// <param name="makeOptions">Options of mkfs.</param>
    /// <param name="mountOptions">Options of mount(8).</param>
    /// <param name="roomBytes">A thin device: how many of its bytes can be stored.</param>
    public static LoopDisk Make(string fileSystem, long bytes, string[]? makeOptions = null, string mountOptions = "defaults",
        long? roomBytes = null)
    {
        SkipWithout("losetup", $"mkfs.{fileSystem}");
        LoopDisk disk = new(bytes, roomBytes);
        try
        {
            FileSystemMaker.Make(fileSystem, disk.Device, makeOptions ?? []);
            disk.Mount(mountOptions);
            return disk;
        }
        catch
        {
            disk.Dispose();
            throw;
        }
    }

    /// <summary>A file of the file system.</summary>
    public string PathOf(string name) => Path.Combine(Mounted, name);

    /// <summary>Mounts the file system anew, so that what the device has is read, and nothing of the page cache.</summary>
    public void Remount(string mountOptions = "defaults")
    {
        SystemTool.Run("umount", Mounted);
        SystemTool.Run("mount", "-o", mountOptions, Device, Mounted);
    }

    /// <summary>Has a file take all room but that many bytes, so that the rest is full soon.</summary>
    public void LeaveRoom(long bytes)
        => File.OpenHandle(PathOf("ballast"), FileMode.CreateNew, FileAccess.Write, FileShare.None, FileOptions.None,
            new DriveInfo(Mounted).AvailableFreeSpace - bytes).Dispose();

    /// <summary>Waits until the device has nothing to do: what the kernel has begun to write is written, or has failed.</summary>
    public void WaitUntilIdle()
    {
        string inFlight = $"/sys/block/{Path.GetFileName(Device)}/inflight";
        while (File.ReadAllText(inFlight).Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries).Any(count => count != "0"))
        {
            Thread.Sleep(1);
        }
    }

    /// <summary>Has ext4 meet an error (ext4(5): errors=): with remount-ro it is read-only from now on.</summary>
    public void TriggerError() => File.WriteAllText($"/sys/fs/ext4/{Path.GetFileName(Device)}/trigger_fs_error", "1");

    /// <summary>Freezes the file system (fsfreeze(8)): every write waits.</summary>
    public void Freeze() => SystemTool.Run("fsfreeze", "--freeze", Mounted);

    public void Thaw() => SystemTool.Run("fsfreeze", "--unfreeze", Mounted);

    public void Dispose()
    {
        List<Exception> errors = [];
        for (int i = _undo.Count - 1; i >= 0; i--)
        {
            try
            {
                _undo[i]();
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

        _folder.Dispose();
    }

    private static void SkipWithout(params string[] tools)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It needs loop devices.");
        Assert.SkipUnless(Environment.IsPrivilegedProcess && File.Exists("/dev/loop-control"), "It needs root and loop devices.");
        foreach (string tool in tools)
        {
            Assert.SkipUnless(SystemTool.Exists(tool), $"It needs {tool}.");
        }
    }

    private void Mount(string options)
    {
        SystemTool.Run("mount", "-o", options, Device, Mounted);
        _undo.Add(() => SystemTool.Run("umount", "--lazy", Mounted));
    }
}
