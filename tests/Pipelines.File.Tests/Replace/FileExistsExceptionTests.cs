namespace FilePipelines.Tests;

/// <summary>The error that says that a file exists.</summary>
public sealed class FileExistsExceptionTests : FileTests
{
    [Fact]
    public void Says_ErrorOfThisSystem_TellsThatTheFileExists()
    {
        string path = _folder.File("f", [1]);
        string other = _folder.File("g", [2]);
        Assert.True(FileExistsException.Says(Assert.Throws<IOException>(() => File.Move(path, other, overwrite: false))));
        Assert.True(FileExistsException.Says(
            Assert.Throws<IOException>(() => File.OpenHandle(path, FileMode.CreateNew, FileAccess.Write))));
        Assert.False(FileExistsException.Says(Assert.Throws<FileNotFoundException>(() => File.Move(path + "x", other, overwrite: true))));
        Assert.False(FileExistsException.Says(new IOException("No space left on device", 28)));
    }

    [Fact]
    public void At_Path_NamesIt()
    {
        FileExistsException e = FileExistsException.At("f.bin");
        Assert.Equal(("f.bin", true), (e.FileName, e.Message.Contains("'f.bin'", StringComparison.Ordinal)));
        Assert.True(FileExistsException.Says(e));
    }
}
