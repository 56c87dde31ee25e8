namespace FilePipelines.Tests;

/// <summary>Files that appear whole, or not at all.</summary>
public sealed class ReplaceTests : FileTests
{
    private static readonly byte[] s_old = [1, 2, 3];

    private static readonly Dictionary<string, Func<FilePipeWriter, ValueTask>> s_endings = new()
    {
        ["Abort"] = writer =>
        {
            writer.Abort();
            return writer.CompleteAsync();
        },
        ["DisposeAsync"] = writer => writer.DisposeAsync(),
        ["CompleteAsync(exception)"] = writer => writer.CompleteAsync(new IOException()),
        ["Dispose"] = writer => new ValueTask(Task.Run(writer.Dispose)),
        ["Complete(exception)"] = writer => new ValueTask(Task.Run(() => writer.Complete(new IOException()))),
    };

    public static TheoryData<string> Endings => [.. s_endings.Keys];

    public static MatrixTheoryData<FileMode, FlushGuarantee, FilePipeBackend, int> EveryWay { get; } = new(
        [FileMode.Create, FileMode.CreateNew], Enum.GetValues<FlushGuarantee>(), [FilePipeBackend.Auto, FilePipeBackend.Portable],
        [0, 3_000_001]);

    public static TheoryData<string, string, long?> TwoCallsAndAnAnswer()
    {
        string[] calls = ["Abort", "Dispose", "DisposeAsync", "CompleteAsync", "CancelPendingFlush"];
        long?[] answers = [null, 1000, -Libc.EIO];
        return [.. from first in calls from second in calls from answer in answers select (first, second, answer)];
    }

    [Theory]
    [InlineData(FlushGuarantee.WriteBehind), InlineData(FlushGuarantee.Durable)]
    [UnsupportedOSPlatform("windows")]
    public async Task CompleteAsync_PermissionsHaveChangedMeanwhile_TheNewFileHasTheLatest(FlushGuarantee guarantee)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Unix permissions.");
        const UnixFileMode Latest = UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.GroupRead;
        string path = _folder.File("f", s_old);
        await using FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true, FlushGuarantee = guarantee });
        await writer.WriteAsync(Pattern.Bytes(1000), _stop);
        File.SetUnixFileMode(path, Latest);
        await writer.CompleteAsync();
        Assert.Equal(Latest, File.GetUnixFileMode(path));

        // One that came meanwhile, too.
        string other = _folder.File("g");
        await using FilePipeWriter second = FilePipeWriter.Create(other, new() { Replace = true, FlushGuarantee = guarantee });
        _folder.File("g", s_old);
        File.SetUnixFileMode(other, Latest);
        await second.CompleteAsync();
        Assert.Equal(Latest, File.GetUnixFileMode(other));
    }

    [Theory]
    [InlineData(FilePipeBackend.Auto), InlineData(FilePipeBackend.Portable)]
    public async Task Handle_OfAnUnfinishedFile_ReadsBackWhatWasWritten(FilePipeBackend backend)
    {
        string path = _folder.File("f");
        FilePipeWriterOptions options = new() { Replace = true, Backend = backend };
        if (!OperatingSystem.IsWindows())
        {
            options = new() { Replace = true, Backend = backend, UnixCreateMode = UnixFileMode.UserWrite };
        }

        await using FilePipeWriter writer = FilePipeWriter.Create(path, options);
        await writer.WriteAsync(Pattern.Bytes(100_000), _stop);
        await writer.FlushAsync(FlushGuarantee.Written, _stop);
        FilePipeReader reader = FilePipeReader.Create(writer.Handle, new() { LeaveOpen = true });
        using MemoryStream content = new();
        await reader.CopyToAsync(content, _stop);
        await reader.CompleteAsync();
        Assert.Equal(Pattern.Bytes(100_000), content.ToArray());
        await writer.WriteAllAsync(Pattern.Bytes(1000));
        Assert.Equal(101_000, new FileInfo(path).Length);
        Assert.True(writer.Handle.IsClosed);
    }

    [Theory]
    [MemberData(nameof(EveryWay))]
    public async Task CompleteAsync_EveryWay_TheFileIsThereWholeAndNothingElse(
        FileMode mode, FlushGuarantee guarantee, FilePipeBackend backend, int length)
    {
        string path = _folder.File("f");
        if (mode == FileMode.Create)
        {
            _folder.File("f", s_old);
        }

        FilePipeWriter writer = FilePipeWriter.Create(
            path, new() { Replace = true, Mode = mode, FlushGuarantee = guarantee, Backend = backend, PreallocationSize = 4_000_000 });
        await writer.WriteAsync(Pattern.Bytes(length), _stop);
        Assert.Equal(mode == FileMode.Create ? s_old : null, File.Exists(path) ? await File.ReadAllBytesAsync(path, _stop) : null);
        await writer.CompleteAsync();
        Assert.True(Pattern.Bytes(length).AsSpan().SequenceEqual(File.ReadAllBytes(path)));
        AssertNames("f");
        if (mode == FileMode.Create)
        {
            writer = FilePipeWriter.Create(path, new() { Replace = true, FlushGuarantee = guarantee, Backend = backend });
            writer.Put(10);
            writer.Complete();
            Assert.Equal(Pattern.Bytes(10), File.ReadAllBytes(path));
            AssertNames("f");
        }
    }

    [Theory]
    [MemberData(nameof(Endings))]
    public async Task GivenUp_LeavesTheOldFileAndNothingElse(string how)
    {
        foreach (bool isThere in new[] { true, false })
        {
            string path = _folder.File(isThere ? "old" : "new");
            if (isThere)
            {
                File.WriteAllBytes(path, s_old);
            }

            FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true });
            await writer.WriteAsync(Pattern.Bytes(1_000_000), _stop);
            await s_endings[how](writer);

            // Once more changes nothing.
            writer.Dispose();
            Assert.Equal(isThere, File.Exists(path));
        }

        Assert.Equal(s_old, File.ReadAllBytes(_folder.File("old")));
        AssertNames("old");
    }

    [Fact]
    public async Task CompleteAsync_DurableAndGivenUp_SyncsNothing()
    {
        // Nobody is ever to see the file: no call is made for it that waits for the device.
        string path = _folder.File("f", s_old);
        RecordedCalls calls = new();
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true, FlushGuarantee = FlushGuarantee.Durable }, calls);
        writer.Put(10);
        await writer.CompleteAsync(new IOException("the source broke"));
        Assert.Equal("Make", calls.Order);
        Assert.Equal(s_old, File.ReadAllBytes(path));
    }

    [Fact]
    public async Task CompleteAsync_NewButThereByNow_ThrowsFileExistsAndKeepsTheOther()
    {
        string path = _folder.File("f");
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true, Mode = FileMode.CreateNew });
        await writer.WriteAsync(Pattern.Bytes(10), _stop);
        File.WriteAllBytes(path, s_old);
        FileExistsException e = await Assert.ThrowsAsync<FileExistsException>(async () => await writer.CompleteAsync());
        Assert.Equal(path, e.FileName);
        Assert.Equal(s_old, File.ReadAllBytes(path));
        AssertNames("f");
    }

    [Fact]
    public async Task CompleteAsync_TwoNewOnesAtOnce_OneWins()
    {
        for (int round = 0; round < 50; round++)
        {
            string path = _folder.File($"f{round}");
            FilePipeWriter[] writers = [.. Enumerable.Range(0, 2)
                .Select(_ => FilePipeWriter.Create(path, new() { Replace = true, Mode = FileMode.CreateNew }))];
            for (int i = 0; i < 2; i++)
            {
                await writers[i].WriteAsync(new byte[] { (byte)i }, _stop);
            }

            bool[] wins = await Task.WhenAll(writers.Select(writer => Task.Run(
                async () =>
                {
                    try
                    {
                        await writer.CompleteAsync();
                        return true;
                    }
                    catch (FileExistsException)
                    {
                        return false;
                    }
                },
                _stop)));
            Assert.Single(wins, won => won);
            Assert.Equal([(byte)wins.IndexOf(true)], File.ReadAllBytes(path));
        }
    }

    /// <summary>The sync of permissions that were changed meanwhile, and that of the folder.</summary>
    [Fact]
    public async Task CompleteAsync_SyncsAreInterrupted_AreMadeAgain()
    {
        ChildProcess.SkipUnlessLinux();
        string path = _folder.File("f", s_old);
        InterruptedCalls calls = new();
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true, FlushGuarantee = FlushGuarantee.Durable }, calls);
        await writer.WriteAsync(new byte[10], _stop);
        File.SetUnixFileMode(path, UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.OtherRead);
        await writer.CompleteAsync();
        Assert.Equal(4, calls.Syncs);
        Assert.Equal(10, new FileInfo(path).Length);
    }

    [Fact]
    public async Task CompleteAsync_WhileOthersReadTheOld_TheyReadItToItsEnd()
    {
        string path = _folder.File("f", Pattern.Bytes(200_000));
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Wine renames over no open file; the POSIX semantics of Windows 10 do.");
        FilePipeReader reader = FilePipeReader.Create(path, new() { BufferSize = 4096 });
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true });
        await writer.WriteAllAsync(new byte[10]);
        Assert.Equal(10, new FileInfo(path).Length);
        using MemoryStream content = new();
        await reader.CopyToAsync(content, _stop);
        await reader.CompleteAsync();
        Assert.Equal(-1, Pattern.FirstDifference(content.ToArray()));
        Assert.Equal(200_000, content.Length);
    }

    [Theory]
    [InlineData(FlushGuarantee.WriteBehind), InlineData(FlushGuarantee.Durable)]
    public void Create_FolderOrNoFolderOrLongName_SaysSo(FlushGuarantee guarantee)
    {
        FilePipeWriterOptions options = new() { Replace = true, FlushGuarantee = guarantee };
        Directory.CreateDirectory(_folder.File("folder"));
        Assert.Throws<UnauthorizedAccessException>(() => FilePipeWriter.Create(_folder.File("folder"), options));
        Assert.Throws<UnauthorizedAccessException>(
            () => FilePipeWriter.Create(_folder.File("folder") + Path.DirectorySeparatorChar, options));
        Assert.Throws<DirectoryNotFoundException>(() => FilePipeWriter.Create(_folder.File("none/f"), options));
        Assert.Throws<ArgumentException>(() => FilePipeWriter.Create("", options));
        Assert.SkipWhen(OperatingSystem.IsWindows(), "The rest is Unix.");
        Assert.Throws<PathTooLongException>(() => FilePipeWriter.Create(_folder.File(new string('x', 256)), options));
        Assert.Throws<DirectoryNotFoundException>(() => FilePipeWriter.Create(_folder.File("f", s_old) + "/g", options));
    }

    [Fact]
    public async Task CompleteAsync_LongestName_IsThere()
    {
        string name = new('x', OperatingSystem.IsWindows() ? 120 : 255);
        foreach (byte content in (byte[])[1, 2])
        {
            FilePipeWriter writer = FilePipeWriter.Create(_folder.File(name), new() { Replace = true });
            await writer.WriteAllAsync(new[] { content });
            Assert.Equal([content], File.ReadAllBytes(_folder.File(name)));
        }

        AssertNames(name);
    }

    [Fact]
    public void Create_OptionsThatContradict_Throw()
    {
        foreach (FileMode mode in (FileMode[])[FileMode.Open, FileMode.OpenOrCreate, FileMode.Append, FileMode.Truncate])
        {
            Assert.Throws<ArgumentException>(() => FilePipeWriter.Create(_folder.File("f"), new() { Replace = true, Mode = mode }));
        }

        Assert.Throws<ArgumentException>(() => FilePipeWriter.Create(_folder.File("f"), new() { Replace = true, Offset = 1 }));
        Assert.Throws<ArgumentException>(
            () => FilePipeWriter.Create(_folder.File("f"), new() { Replace = true, FileOptions = FileOptions.DeleteOnClose }));
        Assert.Throws<ArgumentException>("ReplacesLinks", () => FilePipeWriter.Create(_folder.File("f"), new() { ReplacesLinks = true }));
        using SafeFileHandle handle = File.OpenHandle(_folder.File("f"), FileMode.Create, FileAccess.Write);
        Assert.Throws<ArgumentException>(() => FilePipeWriter.Create(handle, new() { Replace = true }));
    }

    [Fact]
    public async Task CompleteAsync_RelativeLinkInALinkedFolder_TheFileThatTheSystemMeansIsReplaced()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Needs symbolic links.");
        Directory.CreateDirectory(_folder.File("real/inner"));
        File.WriteAllBytes(_folder.File("real/target"), s_old);
        File.CreateSymbolicLink(_folder.File("real/inner/link"), "../target");
        Directory.CreateSymbolicLink(_folder.File("folder"), "real/inner");
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("folder/link"), new() { Replace = true });
        await writer.WriteAllAsync(Pattern.Bytes(10));
        Assert.False(File.Exists(_folder.File("target")), "Another file than the one that the link means.");
        Assert.Equal(Pattern.Bytes(10), File.ReadAllBytes(_folder.File("real/target")));
    }

    /// <summary>A link that leads nowhere yet makes the file where opening it would.</summary>
    [Theory]
    [InlineData("folder/../made", "")]
    [InlineData("folder/second", "../made")]
    [InlineData("folder/second", "./.././made")]
    public async Task CompleteAsync_LinkToNothingByALinkedFolder_TheFileThatTheSystemMeansIsMade(string first, string second)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Needs symbolic links.");
        Directory.CreateDirectory(_folder.File("real/inner"));
        Directory.CreateSymbolicLink(_folder.File("folder"), "real/inner");
        File.CreateSymbolicLink(_folder.File("first"), first);
        if (second.Length > 0)
        {
            File.CreateSymbolicLink(_folder.File("real/inner/second"), second);
        }

        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("first"), new() { Replace = true });
        await writer.WriteAllAsync(Pattern.Bytes(10));
        Assert.False(File.Exists(_folder.File("made")), "Another file than the one that the link means.");
        Assert.Equal(Pattern.Bytes(10), File.ReadAllBytes(_folder.File("real/made")));
        Assert.Equal(Pattern.Bytes(10), File.ReadAllBytes(_folder.File("first")));
    }

    [Theory]
    [InlineData("first"), InlineData("missing/made"), InlineData("made/"), InlineData("missing/..")]
    public void Create_LinkThatCannotLeadAnywhere_ThrowsAndMakesNothing(string target)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Needs symbolic links.");
        File.CreateSymbolicLink(_folder.File("first"), target);
        Exception? thrown = Record.Exception(() => FilePipeWriter.Create(_folder.File("first"), new() { Replace = true }));
        Assert.True(thrown is IOException or UnauthorizedAccessException, $"{thrown}");
        Assert.Equal([_folder.File("first")], Directory.GetFileSystemEntries(_folder.Path));
    }

    [Fact]
    public async Task CompleteAsync_FileWithAnAccessList_TheGroupGetsNoMoreThanItHad()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Needs access lists.");
        string path = _folder.File("f", s_old);

        // acl(5): the owner and user 12345 may read and write, the group nothing; the mode shows the mask of the list in the group's place.
        byte[] list =
        [
            2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 6, 0, 57, 48, 0, 0, 4, 0, 0, 0, 255, 255, 255, 255, 16, 0, 6, 0, 255, 255,
            255, 255, 32, 0, 0, 0, 255, 255, 255, 255,
        ];
        Assert.SkipUnless(SetAccessList(path, list), "The file system has no access lists.");
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true });
        await writer.WriteAllAsync(Pattern.Bytes(10));
        Assert.Equal(list, AccessListOf(path));

        static unsafe bool SetAccessList(string path, byte[] list)
        {
            using SafeFileHandle handle = File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite);
            fixed (byte* first = list)
            {
                return LibcCalls.FSetXAttr(handle, Libc.AccessList, first, list.Length, 0) == 0;
            }
        }

        static unsafe byte[] AccessListOf(string path)
        {
            byte[] list = new byte[100];
            fixed (byte* first = list)
            {
                return list[..(int)Math.Max(0, LibcCalls.GetXAttr(UnixName.Of(path).Bytes, Libc.AccessList, first, list.Length))];
            }
        }
    }

    [Theory]
    [InlineData("EIO", "606")]
    [InlineData("ENOMEM", "606")]
    [InlineData("ENODATA", "666")]
    [InlineData("EOPNOTSUPP", "666")]
    public async Task Child_AccessListCannotBeRead_TheGroupGetsNothingUnlessThereIsNone(string error, string mode)
    {
        ChildProcess.SkipUnlessLinux("strace");
        string path = _folder.File("f", s_old);
        (int status, string output, string told) = await ChildProcess.RunAsync($"chmod 666 {path}; "
            + $"{ChildProcess.Strace} -o /dev/null -e trace=getxattr -e inject=getxattr:error={error} "
            + $"{ChildProcess.Command("replace", path, "10", "10", "Written")}; "
            + $"S=$?; stat -c %a {path}; exit $S");
        Assert.SkipWhen(told.Contains("PTRACE", StringComparison.Ordinal), "strace may not trace here.");
        Assert.True(status == 0, output + told);
        Assert.EndsWith($"{mode}\n", output, StringComparison.Ordinal);
    }

    /// <summary>Between the look at the file and the question whether it may be written to.</summary>
    [Fact]
    public async Task Child_TheOldFileIsRemovedWhileItIsLookedAt_TheNewOneIsMade()
    {
        ChildProcess.SkipUnlessLinux("strace");
        string path = _folder.File("f", s_old);
        (int status, string output, string told) = await ChildProcess.RunAsync(
            $"{ChildProcess.Strace} -o /dev/null -e trace=faccessat2 -e inject=faccessat2:error=ENOENT "
                + $"{ChildProcess.Command("replace", path, "10", "10", "Written")}");
        Assert.SkipWhen(told.Contains("PTRACE", StringComparison.Ordinal), "strace may not trace here.");
        Assert.True(status == 0, output + told);
        Assert.Equal(10, new FileInfo(path).Length);
    }

    [Fact]
    public async Task CompleteAsync_SymbolicLink_ItsTargetIsReplaced()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Needs symbolic links.");
        Directory.CreateDirectory(_folder.File("other"));
        string target = _folder.File("other/target");
        File.WriteAllBytes(target, s_old);
        File.CreateSymbolicLink(_folder.File("second"), "other/target");
        File.CreateSymbolicLink(_folder.File("first"), _folder.File("second"));
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("first"), new() { Replace = true });
        await writer.WriteAllAsync(Pattern.Bytes(10));
        Assert.Equal(Pattern.Bytes(10), File.ReadAllBytes(target));
        Assert.Equal("other/target", new FileInfo(_folder.File("second")).LinkTarget);
        Assert.Equal(_folder.File("second"), new FileInfo(_folder.File("first")).LinkTarget);
        AssertNames("first", "second");

        // One that leads nowhere yet; and a new file may not have the name of a link.
        File.Delete(target);
        writer = FilePipeWriter.Create(_folder.File("first"), new() { Replace = true });
        await writer.CompleteAsync();
        Assert.Equal(0, new FileInfo(target).Length);
        Assert.Throws<FileExistsException>(
            () => FilePipeWriter.Create(_folder.File("first"), new() { Replace = true, Mode = FileMode.CreateNew }));
    }

    [Theory]
    [InlineData(UnixFileMode.UserRead | UnixFileMode.UserWrite)]
    [InlineData(UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.UserExecute | UnixFileMode.GroupRead | UnixFileMode.GroupWrite
        | UnixFileMode.OtherWrite)]
    [UnsupportedOSPlatform("windows")]
    public async Task CompleteAsync_PermissionsOfTheReplaced_AreKeptFromTheStart(UnixFileMode mode)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Unix.");
        string path = _folder.File("f", s_old);
        File.SetUnixFileMode(path, mode);
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true });
        Assert.Equal(mode, File.GetUnixFileMode(writer.OpenedFile.Handle));
        await writer.CompleteAsync();
        Assert.Equal(mode, File.GetUnixFileMode(path));

        // A new one has those of any new file.
        File.WriteAllBytes(_folder.File("ordinary"), []);
        await FilePipeWriter.Create(_folder.File("new"), new() { Replace = true }).CompleteAsync();
        Assert.Equal(File.GetUnixFileMode(_folder.File("ordinary")), File.GetUnixFileMode(_folder.File("new")));
    }

    [Fact]
    public async Task Create_NotARegularFile_SaysSo()
    {
        ChildProcess.SkipUnlessLinux("mkfifo");
        await ChildProcess.RunAsync($"mkfifo '{_folder.File("fifo")}'");
        FileExistsException e = Assert.Throws<FileExistsException>(
            () => FilePipeWriter.Create(_folder.File("fifo"), new() { Replace = true }));
        Assert.Equal(_folder.File("fifo"), e.FileName);
        Assert.Contains("not a regular file", e.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Child_WithoutPermission_SaysSoAndLeavesNothing()
    {
        ChildProcess.SkipUnlessLinux("setpriv", "chmod");
        string[] cases =
        ["mkdir ro && chmod 555 ro && TARGET=ro/f", "mkdir rw && chmod 777 rw && echo old > rw/f && chmod 444 rw/f && TARGET=rw/f"];

        // Others may not be able to enter the folder of the tests.
        string child = _folder.File("child");
        Directory.CreateDirectory(child);
        foreach (string file in Directory.EnumerateFiles(AppContext.BaseDirectory))
        {
            if (Path.GetExtension(file) is ".dll" or ".json" or ".so" or "")
            {
                File.Copy(file, Path.Combine(child, Path.GetFileName(file)));
            }
        }

        foreach (string prepared in cases)
        {
            string command = ChildProcess.Program(child) + " replace \"$TARGET\" 100000 1000 WriteBehind";
            string asNobody = Environment.UserName == "root" ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : "";
            (int status, string output, string error) = await ChildProcess.RunAsync(
                $"chmod 755 '{_folder.Path}' && chmod -R a+rX '{child}' && cd '{_folder.Path}' && {prepared} && HOME=/tmp "
                + $"DOTNET_EnableDiagnostics=0 {asNobody}{command}; S=$?; ls -A \"$(dirname $TARGET)\"; exit $S");
            Assert.SkipWhen(error.Contains("setpriv", StringComparison.Ordinal) || error.Contains("not exist", StringComparison.Ordinal),
                "The program cannot be reached as nobody here.");
            Assert.True(status == 3, output + error);
            Assert.Contains("UnauthorizedAccessException", output, StringComparison.Ordinal);
            Assert.DoesNotContain(".pipelines-file-", output, StringComparison.Ordinal);
        }
    }

    [Theory]
    [InlineData(false, FileMode.Create, 0, 0, "Make Sync Link SyncFolder")]
    [InlineData(false, FileMode.CreateNew, 0, 0, "Make Sync Link SyncFolder")]
    [InlineData(true, FileMode.Create, 0, 0, "Make Sync Link Rename SyncFolder")]
    [InlineData(true, FileMode.Create, 95, 0, "Make Sync Rename SyncFolder")]
    [InlineData(false, FileMode.CreateNew, 95, 0, "Make Sync Rename SyncFolder")]
    [InlineData(false, FileMode.CreateNew, 95, 22, "Make Sync LinkName Unlink SyncFolder")]
    public async Task CompleteAsync_Durable_SyncsTheFileThenNamesItThenSyncsTheFolder(
        bool isThere, FileMode mode, int namelessError, int renameError, string order)
    {
        string path = _folder.File("f");
        if (isThere)
        {
            File.WriteAllBytes(path, s_old);
        }

        if (namelessError == 0 && IsOnBtrfs())
        {
            order = order.Replace("SyncFolder", "Sync SyncFolder", StringComparison.Ordinal);
        }

        foreach (int length in (int[])[0, 100_000])
        {
            RecordedCalls calls = new() { NamelessError = namelessError, RenameNoReplaceError = renameError };
            FilePipeWriter writer = FilePipeWriter.Create(
                path, new() { Replace = true, Mode = mode, FlushGuarantee = FlushGuarantee.Durable, PreallocationSize = 200_000 }, calls);
            writer.Put(length);
            await writer.CompleteAsync();
            Assert.Equal(order, calls.Order);
            Assert.Equal(Pattern.Bytes(length), await File.ReadAllBytesAsync(path, _stop));
            AssertNames("f");
            if (!isThere)
            {
                File.Delete(path);
            }
        }
    }

    /// <summary>With link(2) the file has its name. The other one stays, as it does after a kill.</summary>
    [Fact]
    public async Task CompleteAsync_WithoutRenameNoReplaceAndUnlinkFails_TheFileHasItsName()
    {
        string path = _folder.File("f");
        RecordedCalls calls = new() { NamelessError = Libc.EOPNOTSUPP, RenameNoReplaceError = Libc.EINVAL, UnlinkError = Libc.EACCES };
        FilePipeWriter writer = FilePipeWriter.Create(
            path, new() { Replace = true, Mode = FileMode.CreateNew, FlushGuarantee = FlushGuarantee.Durable }, calls);
        await writer.WriteAllAsync(Pattern.Bytes(10));
        Assert.Equal("Make Sync LinkName SyncFolder", calls.Order);
        Assert.Equal(Pattern.Bytes(10), File.ReadAllBytes(path));
    }

    [Fact]
    public async Task CompleteAsync_NameComesMeanwhile_IsReplaced()
    {
        string path = _folder.File("f");
        RecordedCalls calls = new() { BeforeName = () => File.WriteAllBytes(path, s_old) };
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true }, calls);
        await writer.WriteAllAsync(Pattern.Bytes(10));
        Assert.Equal(Pattern.Bytes(10), File.ReadAllBytes(path));
        AssertNames("f");
    }

    [Fact]
    public async Task CompleteAsync_FolderCameInItsPlace_ThrowsAndLeavesNothing()
    {
        string path = _folder.File("f");
        FilePipeWriter writer = FilePipeWriter.Create(
            path, new() { Replace = true }, new RecordedCalls { BeforeName = () => Directory.CreateDirectory(path) });
        await writer.WriteAsync(Pattern.Bytes(10), _stop);
        await Assert.ThrowsAsync<UnauthorizedAccessException>(async () => await writer.CompleteAsync());
        await Assert.ThrowsAsync<UnauthorizedAccessException>(async () => await writer.CompleteAsync());
        AssertNames("f");
    }

    [Theory]
    [InlineData("file", true)]
    [InlineData("folder", false)]
    [InlineData("file system behind the folder", false)]
    public async Task CompleteAsync_SyncFails_ThrowsAndTheFileIsTheOldOrTheNew(string what, bool isOld)
    {
        string path = _folder.File("f", s_old);
        RecordedCalls calls = what switch
        {
            "file" => new() { SyncError = _ => Libc.EIO },
            "folder" => new() { SyncFolderError = Libc.EIO },
            _ => new() { FailureAfterSyncFolder = Libc.EROFS },
        };
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true, FlushGuarantee = FlushGuarantee.Durable }, calls);
        await writer.WriteAsync(Pattern.Bytes(10), _stop);
        IOException e = await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync());
        Assert.Contains(what == "folder" ? "folder" : path, e.Message, StringComparison.Ordinal);
        Assert.Equal(isOld ? s_old : Pattern.Bytes(10), File.ReadAllBytes(path));
        AssertNames("f");
    }

    [Fact]
    public async Task FlushAsync_DurableReplace_IsSyncedOnceInTheEnd()
    {
        RecordedCalls calls = new();
        FilePipeWriter writer = FilePipeWriter.Create(
            _folder.File("f"), new() { Replace = true, FlushGuarantee = FlushGuarantee.Durable }, calls);
        for (int i = 0; i < 10; i++)
        {
            await writer.WriteAsync(Pattern.Bytes(10), _stop);
            await writer.FlushAsync(_stop);
        }

        Assert.Equal(0, calls.Syncs);
        await writer.CompleteAsync();
        Assert.Equal(IsOnBtrfs() ? 2 : 1, calls.Syncs);
    }

    [Fact]
    public async Task Abort_WhileTheFileTakesItsName_IsTooLate()
    {
        string path = _folder.File("f", s_old);
        FilePipeWriter? writer = null;
        writer = FilePipeWriter.Create(path, new() { Replace = true }, new RecordedCalls { BeforeName = () => writer!.Abort() });
        await writer.WriteAllAsync(Pattern.Bytes(10));
        Assert.Equal(Pattern.Bytes(10), File.ReadAllBytes(path));
    }

    /// <summary>As a reader of the writer's handle does that was not told to leave it open.</summary>
    [Theory]
    [InlineData(FileMode.Create), InlineData(FileMode.CreateNew)]
    public async Task CompleteAsync_TheCallerHasClosedTheHandle_ThrowsAndNamesNoOtherFile(FileMode mode)
    {
        ChildProcess.SkipUnlessLinux();
        FilePipeWriter writer = FilePipeWriter.Create(
            _folder.File("f"), new() { Replace = true, Mode = mode, FlushGuarantee = FlushGuarantee.Written });
        Assert.SkipUnless(Directory.GetFiles(_folder.Path).Length == 0, "The file system makes no files without a name.");
        await writer.WriteAsync(Pattern.Bytes(1000), _stop);
        writer.Handle.Dispose();

        // One of these gets the number of the descriptor, and is not finished either.
        FilePipeWriter[] others = [.. Enumerable.Range(0, 50)
            .Select(number => FilePipeWriter.Create(_folder.File($"other{number}"), new() { Replace = true }))];
        await Assert.ThrowsAsync<ObjectDisposedException>(async () => await writer.CompleteAsync());
        Array.ForEach(others, static other => other.Abort());
        Assert.Empty(Directory.GetFiles(_folder.Path));
    }

    [Theory]
    [MemberData(nameof(TwoCallsAndAnAnswer))]
    public async Task CompleteAsync_LastWriteStalls_WhateverComesMeanwhileTheFileIsTheOldOrTheNew(string first, string second, long? answer)
    {
        string path = _folder.File("f", s_old);
        using Gate gate = new();
        ScriptedCalls calls = new()
        {
            OnWrite = call =>
            {
                if (call > 1)
                {
                    return null;
                }

                gate.Wait();
                return answer;
            },
        };
        FilePipeWriter writer = FilePipeWriter.Create(
            path, new() { Replace = true, FlushGuarantee = FlushGuarantee.Durable, PreallocationSize = 100_000 }, calls);
        Pattern.Bytes(5000).CopyTo(writer.GetMemory(5000));
        writer.Advance(5000);
        List<Task> completions = [writer.CompleteAsync().AsTask()];
        gate.WaitForCall();
        foreach (string call in new[] { first, second })
        {
            switch (call)
            {
                case "Abort":
                    writer.Abort();
                    break;
                case "Dispose":
                    writer.Dispose();
                    break;
                case "DisposeAsync":
                    completions.Add(writer.DisposeAsync().AsTask());
                    break;
                case "CompleteAsync":
                    completions.Add(writer.CompleteAsync().AsTask());
                    break;
                case "CancelPendingFlush":
                    writer.CancelPendingFlush();
                    break;
            }
        }

        gate.Open();
        bool isAborted = first == "Abort" || second == "Abort";
        Exception? error = null;
        foreach (Task completion in completions)
        {
            error ??= await Record.ExceptionAsync(() => completion.WaitAsync(Eventually.Limit, _stop));
        }

        Assert.Equal(isAborted ? typeof(OperationCanceledException) : answer < 0 ? typeof(IOException) : null, error?.GetType());
        Assert.Equal(isAborted || answer < 0 ? s_old : Pattern.Bytes(5000), await File.ReadAllBytesAsync(path, _stop));
        AssertNames("f");
    }

    /// <summary>The folder has these files and no others, and none of them is open.</summary>
    private void AssertNames(params string[] names)
    {
        Assert.Equal(
            names.Order(StringComparer.Ordinal),
            Directory.EnumerateFileSystemEntries(_folder.Path, "*", new EnumerationOptions { AttributesToSkip = 0 })
                .Select(path => Path.GetFileName(path)).Where(name => name != "other").Order(StringComparer.Ordinal));
        Assert.Equal(0, OperatingSystem.IsLinux() ? OpenHandles.Below(_folder.Path) : 0);
    }

    /// <summary>There a file that had no name is synced again when it has one.</summary>
    private bool IsOnBtrfs()
    {
        using SafeFileHandle file = File.OpenHandle(
            _folder.File("probe"), FileMode.CreateNew, FileAccess.Write, FileShare.None, FileOptions.DeleteOnClose);
        return LocalFileSystems.IsBtrfs(FileProperties.Of(file, null));
    }

    /// <summary>A signal comes within every second fsync(2).</summary>
    private sealed class InterruptedCalls : UnixCalls
    {
        public int Syncs { get; private set; }

        internal override long SyncFolder(SafeFileHandle folder) => ++Syncs % 2 == 1 ? -Libc.EINTR : base.SyncFolder(folder);
    }
}
