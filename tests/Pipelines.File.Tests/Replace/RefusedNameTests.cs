namespace FilePipelines.Tests;

/// <summary>Replace where a file system or a sandbox refuses what it needs: the new content or the old one is always there.</summary>
[UnsupportedOSPlatform("windows")]
public sealed class RefusedNameTests : FileTests
{
    private static readonly byte[] s_new = [4, 5, 6, 7];

    /// <summary>SMB: the rename is refused while somebody has the old file open, which is deleted when it is closed.</summary>
    [Fact]
    public async Task Abort_WhileTheFileGetsItsName_IsTooLateAndDoesNothing()
    {
        string path = _folder.File("f", [1, 2, 3]);
        using Gate gate = new();
        RefusedCalls calls = new() { NamelessError = Libc.EOPNOTSUPP, OnRename = gate.Hold };
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true }, calls);
        await writer.WriteAsync(new byte[] { 4 }, _stop);
        Task completing = Task.Run(() => writer.CompleteAsync().AsTask(), _stop);
        gate.WaitForCall();
        writer.Abort();
        Assert.False(completing.IsCompleted);
        gate.Open();
        await completing.WaitAsync(Eventually.Limit, _stop);
        Assert.Equal([4], File.ReadAllBytes(path));
    }

    [Fact]
    public async Task CompleteAsync_RenameFailsAndTheOldFileIsGone_KeepsTheNewAndSaysWhere()
    {
        string path = _folder.File("f", [1]);
        RefusedCalls calls = new()
        {
            OnRename = _ =>
            {
                File.Delete(path);
                return -Libc.EIO;
            },
        };
        IOException error = await Assert.ThrowsAsync<IOException>(() => ReplaceAsync(path, calls));
        string kept = Assert.Single(Directory.GetFiles(_folder.Path, ".*", new EnumerationOptions { AttributesToSkip = 0 }));
        Assert.Contains(kept, error.Message, StringComparison.Ordinal);
        Assert.Contains(path, error.Message, StringComparison.Ordinal);
        Assert.Equal(Libc.EIO, error.HResult);
        Assert.Equal(s_new, File.ReadAllBytes(kept));
    }

    /// <summary>SMB: another writer's rename has marked the old file for deletion, so it is gone before this one's.</summary>
    [Fact]
    public async Task CompleteAsync_RenameFailsAndTheOldFileWentBefore_KeepsTheNewAndSaysWhere()
    {
        string path = _folder.File("f", [1]);
        RefusedCalls calls = new() { NamelessError = Libc.EOPNOTSUPP, OnRename = _ => -Libc.EIO };
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true }, calls);
        await writer.WriteAsync(s_new, _stop);
        File.Delete(path);
        IOException error = await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync());
        string kept = Assert.Single(Entries());
        Assert.Contains(kept, error.Message, StringComparison.Ordinal);
        Assert.Equal(s_new, File.ReadAllBytes(kept));
    }

    [Fact]
    public async Task CompleteAsync_FolderIsGone_SaysSoAndNotThatTheNewContentIsThere()
    {
        Directory.CreateDirectory(_folder.File("sub"));
        string path = _folder.File("sub/f", [1]);
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true }, new RefusedCalls { NamelessError = Libc.EOPNOTSUPP });
        await writer.WriteAsync(s_new, _stop);
        Directory.Delete(_folder.File("sub"), recursive: true);
        await Assert.ThrowsAsync<DirectoryNotFoundException>(async () => await writer.CompleteAsync());
    }

    /// <summary>Without O_TMPFILE the file has a temporary name in the folder all the time.</summary>
    [Theory]
    [InlineData(FileMode.Create, true), InlineData(FileMode.Create, false), InlineData(FileMode.CreateNew, false)]
    public async Task CompleteAsync_FolderWasRenamedOverATemporaryName_TheFileIsThereAndNothingElse(FileMode mode, bool exists)
    {
        Directory.CreateDirectory(_folder.File("sub"));
        string path = exists ? _folder.File("sub/f", [1]) : _folder.File("sub/f");
        FilePipeWriter writer = FilePipeWriter.Create(
            path, new() { Replace = true, Mode = mode }, new RefusedCalls { NamelessError = Libc.EOPNOTSUPP });
        await writer.WriteAsync(s_new, _stop);
        Directory.Move(_folder.File("sub"), _folder.File("moved"));
        await writer.CompleteAsync();
        Assert.Equal(s_new, File.ReadAllBytes(_folder.File("moved/f")));
        Assert.Single(Directory.GetFileSystemEntries(_folder.File("moved"), "*", new EnumerationOptions { AttributesToSkip = 0 }));
    }

    /// <summary>What is given up leaves nothing, wherever its folder is by now.</summary>
    [Fact]
    public async Task DisposeAsync_FolderWasRenamedOverATemporaryName_RemovesIt()
    {
        Directory.CreateDirectory(_folder.File("sub"));
        FilePipeWriter writer = FilePipeWriter.Create(
            _folder.File("sub/f"), new() { Replace = true }, new RefusedCalls { NamelessError = Libc.EOPNOTSUPP });
        await writer.WriteAsync(s_new, _stop);
        Directory.Move(_folder.File("sub"), _folder.File("moved"));
        await writer.DisposeAsync();
        Assert.Empty(Directory.GetFileSystemEntries(_folder.File("moved"), "*", new EnumerationOptions { AttributesToSkip = 0 }));
    }

    [Fact]
    public async Task CompleteAsync_CopyToAFileWithANameFails_ThrowsTheErrorWithThePath()
    {
        string path = _folder.File("f", [1]);
        IOException error = await Assert.ThrowsAsync<IOException>(
            () => ReplaceAsync(path, new() { LinkNamelessError = Libc.EPERM, NewFile = "/dev/full" }));
        Assert.Equal(Libc.ENOSPC, error.HResult);
        Assert.Contains(path, error.Message, StringComparison.Ordinal);
        Assert.Equal([1], File.ReadAllBytes(path));
        Assert.Equal([path], Entries());
    }

    [Theory]
    [InlineData(Libc.EIO), InlineData(Libc.EACCES)]
    public async Task CompleteAsync_RenameFailsForGood_ThrowsAndKeepsTheOldAndNothingElse(int errno)
    {
        string path = _folder.File("f", [1]);
        Exception? error = await Record.ExceptionAsync(() => ReplaceAsync(path, new() { OnRename = _ => -errno }));
        Assert.True(errno == Libc.EIO ? error is IOException { HResult: Libc.EIO } : error is UnauthorizedAccessException, $"{error}");
        Assert.Equal([1], File.ReadAllBytes(path));
        Assert.Equal([path], Entries());
    }

    /// <summary>Somebody reads the old file for a moment.</summary>
    [Theory]
    [InlineData(Libc.EACCES), InlineData(Libc.EBUSY)]
    public async Task CompleteAsync_RenameFailsForAMoment_IsMadeAgain(int errno)
    {
        string path = _folder.File("f", [1]);
        await ReplaceAsync(path, new() { OnRename = number => number < 4 ? -errno : null });
        Assert.Equal(s_new, File.ReadAllBytes(path));
        Assert.Equal([path], Entries());
    }

    /// <summary>vfat behind FUSE: no links, and no rename that replaces nothing.</summary>
    [Theory]
    [InlineData(Libc.EINVAL, Libc.EPERM)]
    [InlineData(Libc.ENOSYS, Libc.ENOSYS)]
    [InlineData(Libc.EPERM, Libc.EOPNOTSUPP)]
    [InlineData(Libc.EOPNOTSUPP, Libc.EMLINK)]
    public async Task CompleteAsync_NewNameWithoutLinks_IsThere(int rename, int link)
    {
        string path = _folder.File("f");
        RefusedCalls calls = new() { NamelessError = Libc.EOPNOTSUPP, RenameNoReplaceError = rename, LinkError = link };
        await ReplaceAsync(path, calls, FileMode.CreateNew);
        Assert.Equal(s_new, File.ReadAllBytes(path));
        Assert.Equal([path], Entries());

        // One that has come meanwhile stays.
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("g"), new() { Replace = true, Mode = FileMode.CreateNew }, calls);
        File.WriteAllBytes(_folder.File("g"), [1]);
        await Assert.ThrowsAsync<FileExistsException>(async () => await writer.CompleteAsync());
        Assert.Equal([1], File.ReadAllBytes(_folder.File("g")));
    }

    /// <summary>The file without a name can get none, so its content goes to one that has a name. Later ones have it at once.</summary>
    [Theory]
    [InlineData(true, FileMode.Create, FlushGuarantee.WriteBehind)]
    [InlineData(false, FileMode.Create, FlushGuarantee.Durable)]
    [InlineData(true, FileMode.Create, FlushGuarantee.Durable)]
    [InlineData(false, FileMode.CreateNew, FlushGuarantee.Durable)]
    public async Task CompleteAsync_LinkatIsRefused_CopiesToAFileWithAName(bool exists, FileMode mode, FlushGuarantee guarantee)
    {
        string path = _folder.File("f");
        const UnixFileMode Mode = UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.GroupRead;
        if (exists)
        {
            File.WriteAllBytes(path, [1]);
            File.SetUnixFileMode(path, Mode);
        }

        RefusedCalls calls = new() { LinkNamelessError = Libc.EPERM };
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true, Mode = mode, FlushGuarantee = guarantee }, calls);
        byte[] content = FilePipelines.Child.Pattern.Bytes(2_500_000);
        await writer.WriteAllAsync(content);
        Assert.Equal(content, File.ReadAllBytes(path));
        Assert.Equal([path], Entries());
        string plain = _folder.File("plain", [1]);
        Assert.Equal(exists ? Mode : File.GetUnixFileMode(plain), File.GetUnixFileMode(path));
        File.Delete(plain);
        if (mode == FileMode.Create)
        {
            await ReplaceAsync(path, calls);
            Assert.Equal(s_new, File.ReadAllBytes(path));
            Assert.Equal(1, calls.Nameless);
        }
    }

    /// <summary>SMB and vfat have one mode for all files.</summary>
    [Fact]
    public async Task CompleteAsync_ModeCannotBeChanged_HasFewerPermissionsAndNeverMore()
    {
        string path = _folder.File("f", [1]);
        File.SetUnixFileMode(path, (UnixFileMode)0b110_110_110);
        RefusedCalls calls = new() { ModeError = Libc.EPERM };
        await ReplaceAsync(path, calls);
        Assert.Equal(s_new, File.ReadAllBytes(path));
        Assert.Equal((UnixFileMode)0, File.GetUnixFileMode(path) & ~(UnixFileMode)0b110_110_110);

        // It has the permissions already, and another one comes that has fewer.
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true }, calls);
        File.SetUnixFileMode(path, UnixFileMode.UserRead);
        await Assert.ThrowsAsync<UnauthorizedAccessException>(async () => await writer.CompleteAsync());
        Assert.Equal(s_new, File.ReadAllBytes(path));
        Assert.Equal([path], Entries());
    }

    [Theory]
    [InlineData(Libc.EPERM), InlineData(Libc.EACCES), InlineData(Libc.ENOSYS)]
    public async Task Create_FaccessatIsRefused_OpeningTheFileTells(int errno)
    {
        string path = _folder.File("f", [1]);
        await ReplaceAsync(path, new() { AccessError = errno });
        Assert.Equal(s_new, File.ReadAllBytes(path));
        Assert.Throws<UnauthorizedAccessException>(() => FilePipeWriter.Create(
            path, new() { Replace = true }, new RefusedCalls { AccessError = errno, OpenError = Libc.EACCES }));
    }

    /// <summary>Somebody who can guess names plants them.</summary>
    [Fact]
    public async Task CompleteAsync_TemporaryNameIsTaken_TakesAnother()
    {
        string path = _folder.File("f", [1]);
        RefusedCalls calls = new() { BeforeLink = name => File.WriteAllBytes(name, []) };
        await ReplaceAsync(path, calls);
        Assert.Equal(s_new, File.ReadAllBytes(path));
        Assert.Equal(2, Entries().Length);
    }

    private string[] Entries() => Directory.GetFileSystemEntries(_folder.Path, "*", new EnumerationOptions { AttributesToSkip = 0 });

    private static async Task ReplaceAsync(string path, RefusedCalls calls, FileMode mode = FileMode.Create)
    {
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true, Mode = mode }, calls);
        await writer.WriteAllAsync(s_new);
    }

    /// <summary>Answers calls with an errno; 0 for the kernel's answer.</summary>
    private sealed class RefusedCalls : UnixCalls
    {
        private int _renames;

        public RefusedCalls() => ChildProcess.SkipUnlessLinux();

        public Func<int, long?>? OnRename { get; init; }

        public Action<string>? BeforeLink { get; set; }

        public int NamelessError { get; init; }

        public int LinkNamelessError { get; init; }

        public int LinkError { get; init; }

        public int RenameNoReplaceError { get; init; }

        public int ModeError { get; init; }

        public int AccessError { get; init; }

        public int OpenError { get; init; }

        /// <summary>What is opened in place of a new file.</summary>
        public string? NewFile { get; init; }

        public int Nameless { get; private set; }

        internal override long Rename(in UnixName from, in UnixName to) => OnRename?.Invoke(++_renames) ?? base.Rename(from, to);

        internal override long RenameNoReplace(in UnixName from, in UnixName to)
            => RenameNoReplaceError != 0 ? -RenameNoReplaceError : base.RenameNoReplace(from, to);

        internal override long MakeNameless(in UnixName name, int flags, uint mode)
        {
            Nameless++;
            return NamelessError != 0 ? -NamelessError : base.MakeNameless(name, flags, mode);
        }

        internal override long MakeNew(in UnixName name, int flags, uint mode)
            => NewFile is null ? base.MakeNew(name, flags, mode) : OpenToAppend(UnixName.Of(NewFile));

        internal override long LinkNameless(SafeFileHandle file, in UnixName name)
        {
            BeforeLink?.Invoke(name.Path);
            BeforeLink = null;
            return LinkNamelessError != 0 ? -LinkNamelessError : base.LinkNameless(file, name);
        }

        internal override long Link(in UnixName from, in UnixName to) => LinkError != 0 ? -LinkError : base.Link(from, to);

        internal override long ChangeMode(SafeFileHandle file, uint mode) => ModeError != 0 ? -ModeError : base.ChangeMode(file, mode);

        internal override long AskAccess(in UnixName name) => AccessError != 0 ? -AccessError : base.AskAccess(name);

        internal override long OpenToAppend(in UnixName name, int flags = Libc.O_CLOEXEC)
            => OpenError != 0 ? -OpenError : base.OpenToAppend(name, flags);
    }
}
