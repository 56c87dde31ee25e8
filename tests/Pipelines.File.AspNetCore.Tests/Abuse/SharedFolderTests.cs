using System.Runtime.InteropServices;

namespace FilePipelines.AspNetCore.Tests.Abuse;

/// <summary>Folders that others may write to.</summary>
public sealed partial class SharedFolderTests : InARoot
{
    private const uint Nobody = 65534;

    [Theory]
    [InlineData(0x1C0, null)] // 0700
    [InlineData(0x1ED, null)] // 0755
    [InlineData(0x1FD, "group")] // 0775
    [InlineData(0x1FF, "Every user")] // 0777
    [InlineData(0x3FF, "Every user")] // 1777
    [InlineData(0x1EF, "Every user")] // 0757
    public void Folder_ThatOthersMayWriteTo_IsRefused_UnlessThatIsAllowed(int mode, string? stranger)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "It has no such modes.");
        string folder = Directory.CreateDirectory(Path.Combine(_root, "folder")).FullName;
        File.SetUnixFileMode(folder, (UnixFileMode)mode);
        foreach (Action<bool> make in Makers(folder))
        {
            make(true);
            if (stranger is null)
            {
                make(false);
            }
            else
            {
                string message = Assert.Throws<UnauthorizedAccessException>(() => make(false)).Message;
                Assert.Contains(stranger, message, StringComparison.Ordinal);
                Assert.Contains(folder, message, StringComparison.Ordinal);
            }
        }

        Assert.Equal((UnixFileMode)mode, File.GetUnixFileMode(folder));
    }

    [Fact]
    public void Folder_OfAnotherUser_IsRefused()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux() && Environment.IsPrivilegedProcess, "Only root gives folders away.");
        string folder = Directory.CreateDirectory(Path.Combine(_root, "folder"), UnixFileMode.UserRead | UnixFileMode.UserWrite
            | UnixFileMode.UserExecute).FullName;
        Assert.Equal(0, ChangeOwner(folder, Nobody, Nobody));
        foreach (Action<bool> make in Makers(folder))
        {
            make(true);
            Assert.Contains("65534", Assert.Throws<UnauthorizedAccessException>(() => make(false)).Message, StringComparison.Ordinal);
        }
    }

    [Fact]
    public void Link_OfAnotherUser_IsRefused()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux() && Environment.IsPrivilegedProcess, "Only root gives links away.");
        string target = Directory.CreateDirectory(Path.Combine(_root, "target"), UnixFileMode.UserRead | UnixFileMode.UserWrite
            | UnixFileMode.UserExecute).FullName;
        string folder = Path.Combine(_root, "folder");
        File.CreateSymbolicLink(folder, target);
        foreach (Action<bool> make in Makers(folder))
        {
            make(false);
        }

        // Who made it may have it lead elsewhere later.
        Assert.Equal(0, ChangeOwnerOfLink(folder, Nobody, Nobody));
        foreach (string path in new[] { folder, folder + "/" })
        {
            foreach (Action<bool> make in Makers(path))
            {
                make(true);
                Assert.Contains("65534", Assert.Throws<UnauthorizedAccessException>(() => make(false)).Message, StringComparison.Ordinal);
            }
        }
    }

    internal static Action<bool>[] Makers(string folder) =>
    [
        allow => new UploadStore(new ResumableUploadOptions { Folder = folder, AllowSharedFolder = allow }, TimeProvider.System).Dispose(),
        allow => new FileCache(
            new FileCacheOptions { Folder = folder, AllowSharedFolder = allow }, TimeProvider.System, new FileCacheMetrics(null)).Dispose(),
    ];

    [LibraryImport("libc", EntryPoint = "chown", StringMarshalling = StringMarshalling.Utf8)]
    private static partial int ChangeOwner(string path, uint user, uint group);

    [LibraryImport("libc", EntryPoint = "lchown", StringMarshalling = StringMarshalling.Utf8)]
    private static partial int ChangeOwnerOfLink(string path, uint user, uint group);
}
