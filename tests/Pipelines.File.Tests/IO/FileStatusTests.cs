namespace FilePipelines.Tests;

public sealed class FileStatusTests : FileTests
{
    [Fact]
    public void OfName_FileFolderAndNothing_TellsThem()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux() || OperatingSystem.IsWindows(), "macOS tells less.");
        string path = _folder.File("f", new byte[7]);
        Assert.Equal(NameMeaning.File, FileStatus.OfName(path, out FileStatus status));
        Assert.Equal((7, true, false), (status.Length, status.IsRegular, status.IsFolder));
        Assert.NotEqual(default, status.Identity);
        Assert.Equal(File.GetLastWriteTimeUtc(path), status.LastWritten);
        Assert.Equal(NameMeaning.File, FileStatus.OfName(_folder.Path, out status));
        Assert.Equal((false, true), (status.IsRegular, status.IsFolder));
        Assert.Equal(NameMeaning.Nothing, FileStatus.OfName(path + "2", out status));
        Assert.Equal(default, status);
        Assert.Throws<ArgumentException>(() => FileStatus.OfName("", out _));
    }

    [Fact]
    public void TryGet_OpenFile_IsWhatItsNameTells()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Windows tells more of a name than of a handle.");
        string path = _folder.File("f", new byte[7]);
        using SafeFileHandle handle = File.OpenHandle(path);
        Assert.True(FileStatus.TryGet(handle, out FileStatus status));
        Assert.Equal(NameMeaning.File, FileStatus.OfName(path, out FileStatus named));
        Assert.Equal(named, status);
        Assert.NotEqual(0, status.Changed);
        File.SetUnixFileMode(path, UnixFileMode.UserRead);
        Assert.True(FileStatus.TryGet(handle, out FileStatus later));
        Assert.Equal(status.LastWritten, later.LastWritten);
    }

    [Fact]
    public void TryGet_IdentityOfAHandle_IsThatOfItsName()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux() || OperatingSystem.IsWindows(), "macOS tells no identities.");
        string path = _folder.File("f", new byte[7]);
        SafeFileHandle handle = File.OpenHandle(path, share: FileShare.ReadWrite | FileShare.Delete);
        Assert.True(FileIdentity.TryGet(path, out FileIdentity named));

        // Wine takes the volume of an open file from its old name.
        if (!OperatingSystem.IsWindows())
        {
            File.Move(path, path + "2");
        }

        Assert.True(FileIdentity.TryGet(handle, out FileIdentity identity));
        Assert.Equal(named, identity);
        handle.Dispose();
        Assert.Throws<ObjectDisposedException>(() => FileIdentity.TryGet(handle, out _));
        Assert.Throws<ArgumentNullException>(() => FileStatus.TryGet(null!, out _));
    }
}
