namespace FilePipelines.Tests;

/// <summary>On Windows: how a file that was written beside its name gets it, and which calls put bytes and names on the device.</summary>
[SupportedOSPlatform("windows")]
public sealed class WindowsNameTests : FileTests
{
    public WindowsNameTests() => Assert.SkipUnless(OperatingSystem.IsWindows(), "It scripts the calls of Windows; .ci/wine runs it.");

    [Theory]
    [InlineData(Kernel32.ERROR_INVALID_PARAMETER), InlineData(Kernel32.ERROR_NOT_SUPPORTED), InlineData(Kernel32.ERROR_INVALID_FUNCTION)]
    public async Task Replace_RenameByHandleIsNotKnown_MovesByName(int error)
    {
        ScriptedWindowsCalls calls = new() { RenameError = _ => error };
        await ReplaceAsync(calls);
        Assert.Equal(["Rename", "Move"], calls.Calls);
    }

    [Fact]
    public async Task Replace_RenameByHandleIsKnown_MovesNothing()
    {
        string path = _folder.File("f", [1]);
        ScriptedWindowsCalls calls = new() { RenameError = _ => 0 };
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true }, calls);
        await writer.CompleteAsync();
        Assert.Equal(["Rename"], calls.Calls);
    }

    [Theory]
    [InlineData(Kernel32.ERROR_ACCESS_DENIED, true)]
    [InlineData(Kernel32.ERROR_SHARING_VIOLATION, true)]
    [InlineData(Kernel32.ERROR_USER_MAPPED_FILE, true)]
    [InlineData(Kernel32.ERROR_SHARING_VIOLATION, false)]
    public async Task Replace_SomebodyHasTheFileForAMoment_TriesAgain(int error, bool renames)
    {
        ScriptedWindowsCalls calls = new()
        {
            RenameError = call => renames && call < 3 ? error : Kernel32.ERROR_INVALID_PARAMETER,
            MoveError = call => !renames && call < 3 ? error : null,
        };
        await ReplaceAsync(calls);
        Assert.Equal(renames ? ["Rename", "Rename", "Rename", "Move"] : ["Rename", "Move", "Move", "Move"], calls.Calls);
    }

    [Fact]
    public async Task Replace_SomebodyKeepsTheFile_ThrowsInTheEndAndLeavesTheOldOne()
    {
        string path = _folder.File("f", [1]);
        ScriptedWindowsCalls calls = new() { RenameError = _ => Kernel32.ERROR_SHARING_VIOLATION };
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true }, calls);
        await writer.WriteAsync(Pattern.Bytes(10), _stop);
        IOException e = await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync());
        Assert.Equal(unchecked((int)0x80070000) | Kernel32.ERROR_SHARING_VIOLATION, e.HResult);
        Assert.Equal([1], File.ReadAllBytes(path));
        Assert.Equal([path], Directory.GetFiles(_folder.Path));
        Assert.DoesNotContain("Move", calls.Calls);
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Replace_Durable_SyncsTheBytesThenTheNameThenTheFolder(bool refusesFolders)
    {
        ScriptedWindowsCalls calls = new() { RenameError = _ => Kernel32.ERROR_INVALID_PARAMETER, RefusesFolders = refusesFolders };
        await ReplaceAsync(calls, FlushGuarantee.Durable);
        Assert.Equal(["SyncData", "Rename", "Move", "Sync", "SyncFolder"], calls.Calls);
    }

    [Fact]
    public async Task Durable_ExistingFile_SyncsItsBytesOnly()
    {
        string path = _folder.File("f", [1, 2, 3]);
        ScriptedWindowsCalls calls = new();
        FilePipeWriter writer = calls.Write(path, new() { Mode = FileMode.Open, FlushGuarantee = FlushGuarantee.Durable });
        await writer.WriteAsync(Pattern.Bytes(10), _stop);
        await writer.WriteAllAsync(Pattern.Bytes(10, 10));
        calls.CloseSecond();
        Assert.Equal(["SyncData", "SyncData"], calls.Calls);
        Assert.Equal(Pattern.Bytes(20), File.ReadAllBytes(path));
    }

    [Fact]
    public async Task Durable_NewFile_SyncsItsNameWithTheFirstBytes()
    {
        string path = _folder.File("f");
        ScriptedWindowsCalls calls = new();
        FilePipeWriter writer = calls.Write(path, new() { FlushGuarantee = FlushGuarantee.Durable }, isNew: true);
        await writer.WriteAsync(Pattern.Bytes(10), _stop);
        await writer.WriteAllAsync(Pattern.Bytes(10, 10));
        calls.CloseSecond();
        Assert.Equal(["Sync", "SyncData"], calls.Calls);
    }

    [Fact]
    public async Task Durable_DataOnlySyncFails_SyncsAllFromThereOnAndCountsIt()
    {
        using Counters counters = new();
        string path = _folder.File("f", [1, 2, 3]);
        ScriptedWindowsCalls calls = new() { SyncDataStatus = sync => sync == 1 ? 0 : unchecked((int)0xC000000D) };
        FilePipeWriter writer = calls.Write(path, new() { Mode = FileMode.Open, FlushGuarantee = FlushGuarantee.Durable });
        for (int i = 0; i < 4; i++)
        {
            await writer.WriteAsync(Pattern.Bytes(10, i * 10), _stop);
        }

        await writer.CompleteAsync();
        calls.CloseSecond();
        Assert.Equal(["SyncData", "SyncData", "Sync", "Sync", "Sync"], calls.Calls);
        Assert.Single(counters.Fallbacks, fallback => fallback.Contains("FlushBuffersFileEx", StringComparison.Ordinal));
    }

    [Fact]
    public async Task Durable_RealCalls_Succeeds()
    {
        string path = _folder.File("f", [1, 2, 3]);
        foreach (FileMode mode in (FileMode[])[FileMode.Open, FileMode.Create, FileMode.Append])
        {
            FilePipeWriter writer = FilePipeWriter.Create(path, new() { Mode = mode, FlushGuarantee = FlushGuarantee.Durable });
            await writer.WriteAllAsync(Pattern.Bytes(10));
        }

        Assert.Equal([.. Pattern.Bytes(10), .. Pattern.Bytes(10)], File.ReadAllBytes(path));
    }

    private async Task ReplaceAsync(ScriptedWindowsCalls calls, FlushGuarantee guarantee = FlushGuarantee.WriteBehind)
    {
        string path = _folder.File("f", [1]);
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true, FlushGuarantee = guarantee }, calls);
        await writer.WriteAllAsync(Pattern.Bytes(10));
        Assert.Equal(Pattern.Bytes(10), File.ReadAllBytes(path));
        Assert.Equal([path], Directory.GetFiles(_folder.Path));
    }
}
