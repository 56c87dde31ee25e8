namespace FilePipelines.Tests;

/// <summary>Which file Replace replaces, and which folder it syncs: what the kernel means by the path, whatever its text is.</summary>
public sealed class NameTests : IDisposable
{
    private readonly TempFolder _folder = new();

    public void Dispose() => Shell("rm -rf \"$1\"");

    [Theory]
    [InlineData(FlushGuarantee.WriteBehind), InlineData(FlushGuarantee.Durable)]
    public async Task CompleteAsync_LinkToANameThatIsNotUtf8_ReplacesThatFile(FlushGuarantee guarantee)
    {
        ChildProcess.SkipUnlessLinux();
        Shell("cd \"$1\"; printf old > \"$(printf 'caf\\351.conf')\"; ln -s \"$(printf 'caf\\351.conf')\" link; ln -s link second");
        await Replace(_folder.File("second"), guarantee);
        Assert.Equal("new", File.ReadAllText(_folder.File("link")));
        Assert.Equal("3", Shell("ls -A \"$1\" | wc -l"));
        Assert.Equal("new", Shell("cd \"$1\"; cat \"$(printf 'caf\\351.conf')\""));
    }

    [Theory]
    [InlineData(FlushGuarantee.WriteBehind), InlineData(FlushGuarantee.Durable)]
    public async Task CompleteAsync_LinkToNothingWithANameThatIsNotUtf8_MakesThatFile(FlushGuarantee guarantee)
    {
        ChildProcess.SkipUnlessLinux();
        Shell("cd \"$1\"; mkdir \"$(printf 'd\\351')\"; ln -s \"$(printf 'd\\351/f\\351')\" link");
        await Replace(_folder.File("link"), guarantee);
        Assert.Equal("new", Shell("cd \"$1\"; cat \"$(printf 'd\\351/f\\351')\""));
    }

    [Theory]
    [InlineData(FlushGuarantee.WriteBehind), InlineData(FlushGuarantee.Durable)]
    public async Task CompleteAsync_FolderWhoseNameIsNotUtf8_HasTheFile(FlushGuarantee guarantee)
    {
        ChildProcess.SkipUnlessLinux();
        Shell("cd \"$1\"; mkdir \"$(printf 'd\\351')\"; ln -s \"$(printf 'd\\351')\" folder; ln -s target folder/link");
        await Replace(_folder.File("folder/f"), guarantee);
        await Replace(_folder.File("folder/f"), guarantee);
        await Replace(_folder.File("folder/link"), guarantee);
        Assert.Equal("new", Shell("cd \"$1\"; cat \"$(printf 'd\\351/f')\""));
        Assert.Equal("new", Shell("cd \"$1\"; cat \"$(printf 'd\\351/target')\""));
        Assert.Equal("3", Shell("ls -A \"$1/folder/\" | wc -l"));
    }

    [Fact]
    public async Task FlushAsync_DurableNewFileInAFolderWhoseNameIsNotUtf8_IsSynced()
    {
        ChildProcess.SkipUnlessLinux();
        Shell("cd \"$1\"; mkdir \"$(printf 'd\\351')\"; ln -s \"$(printf 'd\\351')\" folder");
        await using FilePipeWriter writer = FilePipeWriter.Create(
            _folder.File("folder/f"), new() { FlushGuarantee = FlushGuarantee.Durable });
        await writer.WriteAsync("new"u8.ToArray(), TestContext.Current.CancellationToken);
        Assert.Equal("new", Shell("cd \"$1\"; cat \"$(printf 'd\\351/f')\""));
    }

    /// <summary>The file gets its name in the folder that is synced, and not in the one that has the folder's name by now.</summary>
    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task CompleteAsync_DurableAndTheFolderWasSwapped_NamesAndSyncsOneFolder(bool exists)
    {
        Directory.CreateDirectory(_folder.File("sub"));
        if (exists)
        {
            File.WriteAllText(_folder.File("sub/f"), "old");
        }

        RecordedCalls calls = new();
        FilePipeWriter writer = FilePipeWriter.Create(
            _folder.File("sub/f"), new() { Replace = true, FlushGuarantee = FlushGuarantee.Durable }, calls);
        Directory.Move(_folder.File("sub"), _folder.File("sub.old"));
        Directory.CreateDirectory(_folder.File("sub"));
        await writer.WriteAsync("new"u8.ToArray(), TestContext.Current.CancellationToken);
        await writer.CompleteAsync();
        Assert.Empty(Directory.GetFileSystemEntries(_folder.File("sub")));
        Assert.Equal(["f"], Directory.GetFileSystemEntries(_folder.File("sub.old")).Select(Path.GetFileName));
        Assert.Equal("new", File.ReadAllText(_folder.File("sub.old/f")));
        Assert.Equal(1, calls.FoldersOpened);
    }

    /// <summary>The temporary name is longer than the name, so the path with it may be too long for the system.</summary>
    [Theory]
    [InlineData(FlushGuarantee.WriteBehind), InlineData(FlushGuarantee.Durable)]
    public async Task CompleteAsync_PathNearlyTooLong_IsThere(FlushGuarantee guarantee)
    {
        ChildProcess.SkipUnlessLinux();
        const int Longest = 4095;
        string path = _folder.Path;
        while (path.Length < Longest - 250)
        {
            path = Path.Combine(path, new string('d', Math.Min(200, Longest - 200 - path.Length)));
        }

        Directory.CreateDirectory(path);
        path = Path.Combine(path, new string('f', Longest - path.Length - 1));
        Assert.Equal(Longest, path.Length);
        await Replace(path, guarantee);
        await Replace(path, guarantee);
        Assert.Equal("new", File.ReadAllText(path));
        Assert.Single(Directory.GetFileSystemEntries(Path.GetDirectoryName(path)!));
    }

    /// <summary>The text of such a link is the path that the file had, and may be that of another file by now.</summary>
    [Fact]
    public void Create_LinkOfProcWhoseFileWasReplaced_ThrowsAndTouchesNoOtherFile()
    {
        ChildProcess.SkipUnlessLinux();
        string path = _folder.File("f", [1]);
        using FileStream open = new(path, FileMode.Open);
        File.Move(path, _folder.File("moved"));
        File.Delete(_folder.File("moved"));
        File.WriteAllText(path, "another");
        Assert.Throws<IOException>(() => FilePipeWriter.Create(
            $"/proc/self/fd/{open.SafeFileHandle.DangerousGetHandle()}", new() { Replace = true }));
        Assert.Equal("another", File.ReadAllText(path));
    }

    private static async Task Replace(string path, FlushGuarantee guarantee)
    {
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true, FlushGuarantee = guarantee });
        await writer.WriteAsync("new"u8.ToArray(), TestContext.Current.CancellationToken);
        await writer.CompleteAsync();
    }

    /// <summary>Runs a line of a shell, whose $1 is the folder: .NET has no name that is not UTF-8.</summary>
    private string Shell(string line)
    {
        if (OperatingSystem.IsWindows())
        {
            _folder.Dispose();
            return "";
        }

        using Process process = Process.Start(
            new ProcessStartInfo("/bin/sh", ["-c", line, "sh", _folder.Path]) { RedirectStandardOutput = true })!;
        string output = process.StandardOutput.ReadToEnd();
        process.WaitForExit();
        return output.Trim();
    }
}
