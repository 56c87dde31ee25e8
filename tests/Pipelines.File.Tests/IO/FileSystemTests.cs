using Pipelines.File.Lines;

namespace FilePipelines.Tests;

/// <summary>What differs from one file system to another.</summary>
public sealed class FileSystemTests : FileTests
{
    private const string Mounts = """
        22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
        30 22 0:26 / /mnt/share\040with\040space rw,relatime - 9p share rw,trans=virtio
        31 22 0:27 / /tmp rw shared:2 master:3 - tmpfs tmpfs rw
        """;

    /// <summary>9p answers statfs(2) with the type of the host's file system.</summary>
    [Theory]
    [InlineData(26, true)]
    [InlineData(27, false)]
    [InlineData(28, false)]
    [InlineData((8L << 32) | 1, false)]
    public void IsPlan9_ByTheDevice_IsWhatTheMountSays(long device, bool expected)
        => Assert.Equal(expected, LocalFileSystems.IsPlan9(Mounts, (ulong)device));

    [Fact]
    public void KnownNumber_MoreThanItsMaximum_FindsTheLastOnesAndForgetsTheFirst()
    {
        const int Max = LocalFileSystems.KnownNumber.Max;
        LocalFileSystems.KnownNumber? last = null;
        Assert.Null(LocalFileSystems.KnownNumber.Find(last, 0));
        for (int i = 0; i <= Max; i++)
        {
            LocalFileSystems.KnownNumber.Add(ref last, (ulong)i, -i);
            Assert.Equal(-i, LocalFileSystems.KnownNumber.Find(last, (ulong)i)?.Value);
            Assert.Equal(i < Max ? 0 : null, LocalFileSystems.KnownNumber.Find(last, 0)?.Value);
        }
    }

    /// <summary>Another mount may have the number of one that is gone.</summary>
    [Fact]
    public async Task HaveMountsChanged_MadeAndRemoved_AreToldOnceEach()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux() && Environment.UserName == "root", "Only root mounts.");
        string mounted = Directory.CreateDirectory(_folder.File("mounted")).FullName;
        using SafeFileHandle table = LocalFileSystems.OpenMounts();
        SystemTool.Run("mount", "-t", "tmpfs", "none", mounted);
        try
        {
            Assert.True(LocalFileSystems.HaveMountsChanged(table));

            // Other tests mount, too.
            await Eventually.TrueAsync(() => !LocalFileSystems.HaveMountsChanged(table));
        }
        finally
        {
            SystemTool.Run("umount", mounted);
        }

        Assert.True(LocalFileSystems.HaveMountsChanged(table));
    }

    /// <summary>A moment with the lock is enough for a write to fail on SMB.</summary>
    [Theory]
    [InlineData(FileShare.Read, 0xff534d42, false)]
    [InlineData(FileShare.ReadWrite | FileShare.Delete, 0xfe534d42, false)]
    [InlineData(FileShare.None, 0xff534d42, true)]
    [InlineData(FileShare.Read, 0xef53, true)]
    [InlineData(FileShare.Read, 0, true)]
    public void TakesLock_ByTheFileSystem_LeavesThatOfSmb(FileShare share, long fileSystem, bool expected)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux system calls.");
        Assert.Equal(expected, ReadOpening.TakesLock(share, fileSystem));
    }

    /// <summary>The runtime asks its switch where the variable says neither yes nor no.</summary>
    [Theory]
    [InlineData("1", false, true)]
    [InlineData("True", false, true)]
    [InlineData("0", true, false)]
    [InlineData("false", true, false)]
    [InlineData("", true, true)]
    [InlineData("", false, false)]
    [InlineData("off", true, true)]
    [InlineData("off", false, false)]
    public async Task Create_OfAFileThatSomebodyHasAlone_AsksTheRuntimesSwitchLast(string variable, bool isOff, bool isRead)
    {
        ChildProcess.SkipUnlessLinux("dotnet");
        Assert.SkipWhen(ChildProcess.IsSelfContained, "A runtime that comes with its program takes no other configuration.");
        const string Name = "Pipelines.File.Child.runtimeconfig.json";
        const string Properties = "\"configProperties\": {";
        string given = await File.ReadAllTextAsync(Path.Combine(AppContext.BaseDirectory, Name), TestContext.Current.CancellationToken);
        Assert.Contains(Properties, given, StringComparison.Ordinal);
        string configuration = _folder.File(Name, System.Text.Encoding.UTF8.GetBytes(given.Replace(
            Properties, $"{Properties} \"System.IO.DisableFileLocking\": {(isOff ? "true" : "false")},", StringComparison.Ordinal)));
        string path = _folder.File("f", []);
        using SafeFileHandle alone = File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite, FileShare.None);
        (int status, string output, string error) = await ChildProcess.RunAsync(
            $"DOTNET_SYSTEM_IO_DISABLEFILELOCKING='{variable}' "
            + ChildProcess.Command("read", path, "512").Replace(
                "dotnet ", $"dotnet exec --runtimeconfig '{configuration}' ", StringComparison.Ordinal));
        Assert.True(isRead == (status == 0), output + error);
    }

    /// <summary>A sandbox that refuses all of them: the file was opened by the library, so the runtime does not know its name.</summary>
    [Theory]
    [InlineData("EPERM", "UnauthorizedAccessException")]
    [InlineData("ENOSYS", "IOException")]
    public async Task Create_OfAFileThatNoCallDescribes_ThrowsAndNamesTheFile(string errno, string type)
    {
        ChildProcess.SkipUnlessLinux("strace");
        string path = _folder.File("f", [1, 2, 3]);
        (int status, string output, string error) = await ChildProcess.RunAsync($"{ChildProcess.Strace} -o /dev/null -P '{path}' "
            + $"-e trace=statx,newfstatat,fstat -e inject=statx,newfstatat,fstat:error={errno} "
            + ChildProcess.Command("read", path, "4096"));
        Assert.SkipWhen(error.Contains("PTRACE", StringComparison.Ordinal), "strace may not trace here.");
        Assert.True(status == 3, output + error);
        Assert.Contains($"failed {type}", output, StringComparison.Ordinal);
        Assert.Contains(path, output, StringComparison.Ordinal);
    }

    /// <summary>The runtime knows no path of a handle that it did not open.</summary>
    [Fact]
    public void FindEnd_InAFileThatCannotBeRead_ThrowsAndNamesTheFile()
    {
        // Nothing is mapped at address 0: EIO.
        const string Memory = "/proc/self/mem";
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux has such a file.");
        OpenedFile file = FileOpening.Open(new FileToOpen(Memory, FileMode.Open, FileAccess.Read, FileShare.ReadWrite));
        try
        {
            IOException error = Assert.Throws<IOException>(() => LineSearch.FindEnd(file, 0, 100, (byte)'\n'));
            Assert.Contains(Memory, error.Message, StringComparison.Ordinal);
        }
        finally
        {
            file.Release(closeHandle: true);
        }
    }

    /// <summary>On SMB such a lock makes the journal's writer fail for good.</summary>
    [Fact]
    public async Task ReadBatchesAsync_OfAJournal_TakesNoLockOfASegment()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "On Windows nobody opens a file alone that somebody reads.");
        string folder = _folder.File("journal");
        await using (Journal journal = await Journal.OpenAsync(folder, cancellationToken: TestContext.Current.CancellationToken))
        {
            await journal.AppendAsync("record"u8.ToArray(), TestContext.Current.CancellationToken);
        }

        bool isRead = false;
        await foreach (JournalBatch batch in JournalReader.Open(folder).ReadBatchesAsync(
            cancellationToken: TestContext.Current.CancellationToken))
        {
            string segment = Directory.GetFiles(folder, "*.journal")[0];
            using SafeFileHandle alone = File.OpenHandle(segment, FileMode.Open, FileAccess.ReadWrite, FileShare.None);
            isRead = true;
        }

        Assert.True(isRead);
    }

    [Theory]
    [InlineData(FileShare.ReadWrite, FileOptions.None)]
    [InlineData(FileShare.ReadWrite | FileShare.Inheritable, FileOptions.WriteThrough)]
    public void ReopenToAppend_FileOfAnyName_AppendsAndClosesTheFirst(FileShare share, FileOptions options)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux system calls.");
        string path = _folder.File("f", [1, 2, 3]);
        SafeFileHandle first = File.OpenHandle(path, FileMode.Open, FileAccess.Write, share, options);
        File.Move(path, path + "2");
        using (SafeFileHandle handle = FileOpening.ReopenToAppend(first, path))
        {
            Assert.True(first.IsClosed);
            Assert.Equal(
                ((share & FileShare.Inheritable) != 0 ? 0 : Libc.FD_CLOEXEC, options == FileOptions.WriteThrough),
                (LibcCalls.FCntl(handle, Libc.F_GETFD, 0), LibcCalls.IsSynchronous(handle)));
            RandomAccess.Write(handle, [4], fileOffset: 0);
        }

        Assert.Equal([1, 2, 3, 4], File.ReadAllBytes(path + "2"));
    }

    /// <summary>Nothing can be left to sync there.</summary>
    [Fact]
    public void Flush_OnAReadOnlyImage_Succeeds()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux() && Environment.UserName == "root", "Only root mounts images.");
        Assert.SkipUnless(SystemTool.Exists("mksquashfs"), "squashfs-tools is not installed.");
        Directory.CreateDirectory(_folder.File("content"));
        File.WriteAllText(_folder.File("content/f"), "bytes");
        SystemTool.Run("mksquashfs", _folder.File("content"), _folder.File("image"), "-quiet", "-no-progress");
        string mounted = Directory.CreateDirectory(_folder.File("mounted")).FullName;
        try
        {
            SystemTool.Run("mount", "-o", "loop,ro", _folder.File("image"), mounted);
        }
        catch (IOException e)
        {
            Assert.Skip($"This kernel mounts no squashfs: {e.Message}");
        }

        try
        {
            using SafeFileHandle handle = File.OpenHandle(Path.Combine(mounted, "f"));
            FileSync.Flush(handle);
            FileSync.FlushFolder(mounted);
        }
        finally
        {
            SystemTool.Run("umount", mounted);
        }
    }
}
