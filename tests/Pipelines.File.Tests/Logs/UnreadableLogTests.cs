namespace FilePipelines.Tests;

/// <summary>Logs and folders that may not be read, or not yet: the others go on, and they come when they may be read.</summary>
public sealed class UnreadableLogTests : FileTests
{
    private const UnixFileMode Everybody = UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.UserExecute
        | UnixFileMode.GroupRead | UnixFileMode.GroupExecute | UnixFileMode.OtherRead | UnixFileMode.OtherExecute;

    private static readonly TimeSpan s_second = TimeSpan.FromSeconds(1);
    private static readonly TimeSpan s_minute = TimeSpan.FromMinutes(1);

    [Fact]
    public async Task OnUnreadable_LogStaysSo_IsCalledAtOnceAndNowAndThen()
    {
        ChildProcess.SkipUnlessLinux("mkfifo");
        Assert.True((await ChildProcess.RunAsync($"mkfifo '{_folder.File("fifo.log")}'")).ExitCode == 0);
        ManualClock clock = new();
        List<TimeSpan> calls = [];
        TaskCompletionSource thrice = new(TaskCreationOptions.RunContinuationsAsynchronously);
        QuickOptions options = FollowedLog.Quick with
        {
            FollowInterval = s_minute,
            TimeProvider = clock,
            OnUnreadable = (_, _) =>
            {
                calls.Add(clock.Elapsed);
                if (calls.Count == 3)
                {
                    thrice.SetResult();
                }
            },
        };
        await using FollowedLog lines = new(_folder.File("*.log"), options);
        Task<bool> step = lines.StepAsync();
        await clock.AdvanceUntilAsync(thrice.Task, s_minute);
        Assert.Equal(TimeSpan.Zero, calls[0]);
        Assert.True(calls[1] >= 20 * s_minute, $"{calls[1]}");
        Assert.True(calls[2] >= 40 * s_minute, $"{calls[2]}");
        Assert.False(step.IsCompleted);
    }

    /// <summary>
    /// The follower starts with a checkpoint in a file that was rotated, and the first two listings of its folder fail, as they do for a
    /// moment while no descriptor is free. It tries again: the folder is not one without rotated files.
    /// </summary>
    [Fact]
    public async Task Start_FolderCannotBeListedAtFirst_SkipsNoRotatedFile()
    {
        ChildProcess.SkipUnlessLinux("strace");
        string folder = Directory.CreateDirectory(_folder.File("logs")).FullName;
        string path = Path.Combine(folder, "app.log");
        string output = _folder.File("shipped");
        await File.WriteAllTextAsync(path, "a1\na2\na3\n", _stop);
        await foreach (FollowedLine line in new LogFollower(path).ReadLinesAsync(_stop))
        {
            await File.WriteAllTextAsync(output, $"{line.Checkpoint} {line}\n", _stop);
            break;
        }

        File.Move(path, path + ".1");
        await File.WriteAllTextAsync(path, "b1\n", _stop);
        using Process child = ChildProcess.Start($"exec {ChildProcess.Strace} -o /dev/null -P '{folder}' -e trace=openat "
            + $"-e inject=openat:error=EMFILE:when=1..2 {ChildProcess.Command("ship", path, output)}");
        Task<string> error = child.StandardError.ReadToEndAsync(_stop);
        try
        {
            await Eventually.TrueAsync(() => child.HasExited || File.ReadAllText(output).EndsWith(" b1\n", StringComparison.Ordinal));
            Assert.SkipWhen(child.HasExited && (await error).Contains("PTRACE", StringComparison.Ordinal), "strace may not trace here.");
            string[] shipped = [.. File.ReadLines(output).Select(static line => line.Split(' ')[1])];
            Assert.Equal(["a1", "a2", "a3", "b1"], shipped);
        }
        finally
        {
            child.Kill(entireProcessTree: true);
            await child.WaitForExitAsync(_stop);
        }
    }

    /// <summary>The timer of the folder lists it when the names of before were looked at, so files may be missing.</summary>
    [Fact]
    public void Listing_FolderIsListedRightAfterIt_SaysThatItCouldNotBe()
    {
        ChildProcess.SkipUnlessLinux();
        string folder = MakeUnlistable("logs");
        string log = Path.Combine(folder, "app.log");
        File.WriteAllText(_folder.File("hidden/app.log.1"), "1\n");
        FolderNames names = new(folder, TimeProvider.System);
        names.Look(isSure: true);
        LogListing listing = LogListing.Take(log, [new RotatedName("{name}.#", log)], _ => names);
        MakeListable(folder);
        names.Look(isSure: true);
        Assert.Null(names.Failure);
        Assert.Empty(listing.Rotated);
        Assert.NotNull(listing.Failure);
    }

    [Fact]
    public async Task Pattern_FolderCannotBeListedAtFirst_SaysSoAndTheLogsAreNotNew()
    {
        ChildProcess.SkipUnlessLinux();
        string folder = MakeUnlistable("logs");
        File.WriteAllText(_folder.File("hidden/a.log"), "1\n2\n");
        ManualClock clock = new();
        TaskCompletionSource<string> told = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using FollowedLog lines = new(Path.Combine(folder, "*.log"), FollowedLog.Quick with
        {
            LastLines = 1,
            TimeProvider = clock,
            OnUnreadable = (path, _) => told.TrySetResult(path),
        });
        Task<bool> step = lines.StepAsync();
        await clock.AdvanceUntilAsync(told.Task, s_second);
        Assert.Equal(Path.Combine(folder, "*.log"), await told.Task);
        MakeListable(folder);
        await clock.AdvanceUntilAsync(step, s_second);
        await lines.ExpectAsync("2");
    }

    /// <summary>Its logs are read on, but one that comes would never be found, and nobody would know.</summary>
    [Fact]
    public async Task Pattern_FolderCannotBeListedAnyMore_SaysSoEachTimeAfterAWhile()
    {
        ChildProcess.SkipUnlessLinux();
        string folder = MakeUnlistable("logs");
        File.WriteAllText(_folder.File("hidden/a.log"), "1\n");
        MakeListable(folder);
        ManualClock clock = new();
        string pattern = Path.Combine(folder, "*.log");
        TaskCompletionSource<TimeSpan> told = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using FollowedLog lines = new(pattern, FollowedLog.Quick with
        {
            TimeProvider = clock,
            OnUnreadable = (path, _) =>
            {
                if (path == pattern)
                {
                    told.TrySetResult(clock.Elapsed);
                }
            },
        });
        await lines.ExpectAsync("1");
        for (int i = 0; i < 2; i++)
        {
            Task<bool> step = lines.StepAsync();
            TimeSpan begun = clock.Elapsed;
            MakeUnlistableAgain(folder);
            await clock.AdvanceUntilAsync(told.Task, s_second);
            TimeSpan after = await told.Task - begun;
            Assert.True(after >= 5 * s_second, $"{i}: {after}");
            MakeListable(folder);
            told = new(TaskCreationOptions.RunContinuationsAsynchronously);
            File.WriteAllText(_folder.File($"hidden/b{i}.log"), "2\n");
            await clock.AdvanceUntilAsync(step, s_second);
            await lines.ExpectAsync("2");

            // Long after the last failure.
            clock.Advance(s_minute);
        }
    }

    /// <summary>The caller goes on keeping checkpoints of other logs in the same dictionary, as those of a CheckpointFile are.</summary>
    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Pattern_FolderCannotBeListedAtFirst_BeginsAtTheCheckpointsOfTheStart(bool isWrapped)
    {
        ChildProcess.SkipUnlessLinux();
        string folder = MakeUnlistable("logs");
        string hidden = _folder.File("hidden/a.log");
        File.WriteAllText(hidden, "1\n2\n");
        string other = _folder.File("other", "other\n"u8.ToArray());
        Dictionary<string, FileCheckpoint> checkpoints = [];
        await foreach (FollowedLine line in new LogFollower(hidden).ReadLinesAsync(_stop))
        {
            checkpoints[Path.Combine(folder, "a.log")] = line.Checkpoint;
            break;
        }

        ManualClock clock = new();
        await using IAsyncEnumerator<FollowedLine> lines = new LogFollower([other, Path.Combine(folder, "*.log")],
            FollowedLog.Quick with { Checkpoints = isWrapped ? checkpoints.AsReadOnly() : checkpoints, TimeProvider = clock })
            .ReadLinesAsync(_stop).GetAsyncEnumerator(_stop);
        Assert.True(await lines.MoveNextAsync());
        Assert.Equal("other", lines.Current.ToString());
        checkpoints.Clear();
        MakeListable(folder);
        Task<bool> step = lines.MoveNextAsync().AsTask();
        await clock.AdvanceUntilAsync(step, s_second);
        Assert.True(await step);
        Assert.Equal("2", lines.Current.ToString());
    }

    /// <summary>The log is copied and truncated while nobody can see the copy.</summary>
    [Fact]
    public async Task Cut_FolderOfTheCopyCannotBeListed_ItIsReadWhenItCan()
    {
        ChildProcess.SkipUnlessLinux();
        const int Count = 5000;
        string old = Directory.CreateDirectory(_folder.File("old")).FullName;
        using GrowingFile file = new(_folder.File("log"), string.Concat(Enumerable.Range(1, Count).Select(static i => $"{i,100}\n")));
        ManualClock clock = new();
        TaskCompletionSource told = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using FollowedLog lines = new(file.Path, FollowedLog.Quick with
        {
            RotatedNames = ["old/{name}.#"],
            TimeProvider = clock,
            OnUnreadable = (_, _) => told.TrySetResult(),
        });
        await lines.ExpectAsync($"{1,100}");
        Directory.Delete(old);
        MakeUnlistable("old");
        File.Copy(file.Path, _folder.File("hidden/log.1"));
        file.Cut(0);
        file.Append("new\n");
        for (int i = 2; i <= Count; i++)
        {
            // Those that the follower had already come without it.
            await clock.AdvanceUntilAsync(Task.WhenAny(lines.StepAsync(), told.Task), s_second);
            if (told.Task.IsCompleted && !File.Exists(Path.Combine(old, "log.1")))
            {
                MakeListable(old);
            }

            await clock.AdvanceUntilAsync(lines.StepAsync(), s_second);
            await lines.ExpectAsync($"{i,100}");
        }

        Assert.True(told.Task.IsCompleted);
    }

    /// <summary>Nothing can be in it, as in one that is missing.</summary>
    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Start_FolderIsAFileOrALinkToItself_WaitsForTheFolder(bool isLink)
    {
        Assert.SkipWhen(isLink && OperatingSystem.IsWindows(), "Links take a privilege there.");
        string folder = _folder.File("logs");
        if (isLink)
        {
            File.CreateSymbolicLink(folder, folder);
        }
        else
        {
            File.WriteAllText(folder, "");
        }

        string other = _folder.File("other");
        string log = Path.Combine(folder, "log");
        ManualClock clock = new();
        await using IAsyncEnumerator<FollowedLine> lines = new LogFollower([log, other], FollowedLog.Quick with { TimeProvider = clock })
            .ReadLinesAsync(_stop).GetAsyncEnumerator(_stop);
        Task<bool> step = lines.MoveNextAsync().AsTask();

        // A search that finds this has looked for the other log, too, longer than it tries what fails.
        clock.Advance(s_minute);
        File.WriteAllText(other, "other\n");
        await clock.AdvanceUntilAsync(step, s_minute);
        Assert.True(await step);
        Assert.Equal("other", lines.Current.ToString());
        step = lines.MoveNextAsync().AsTask();

        // Moved: on Windows, what is removed keeps its name while the follower looks at it.
        File.Move(folder, _folder.File("no folder"));
        Directory.CreateDirectory(folder);
        File.WriteAllText(log, "1\n");
        await clock.AdvanceUntilAsync(step, s_minute);
        Assert.True(await step);
        Assert.Equal("1", lines.Current.ToString());
    }

    [Fact]
    public async Task Child_WithoutPermission_ReadsTheOthersAndTheseWhenItMay()
    {
        ChildProcess.SkipUnlessLinux("setpriv");
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux only.");

        // Others may not be able to enter the folder of the tests.
        string child = Directory.CreateDirectory(_folder.File("child")).FullName;
        foreach (string file in Directory.EnumerateFiles(AppContext.BaseDirectory).Where(
            static file => Path.GetExtension(file) is ".dll" or ".json"))
        {
            File.Copy(file, Path.Combine(child, Path.GetFileName(file)));
        }

        string closed = Directory.CreateDirectory(_folder.File("above/closed")).FullName;
        string open = Directory.CreateDirectory(_folder.File("open")).FullName;
        string above = Path.GetDirectoryName(closed)!;
        await File.WriteAllTextAsync(Path.Combine(closed, "a.log"), "1\n", _stop);
        await File.WriteAllTextAsync(Path.Combine(open, "b.log"), "1\n", _stop);
        File.SetUnixFileMode(Path.Combine(open, "b.log"), UnixFileMode.None);
        string asNobody = Environment.UserName == "root" ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : "";
        using Process process = ChildProcess.Start(
            $"chmod 755 '{_folder.Path}' && chmod -R a+rX '{child}' && HOME=/tmp DOTNET_EnableDiagnostics=0 exec {asNobody}dotnet "
            + $"'{child}/Pipelines.File.Child.dll' printlogs '{closed}/*.log' '{open}/*.log'");
        try
        {
            string? first = await process.StandardOutput.ReadLineAsync(_stop);
            Assert.SkipWhen(first is null, "The program cannot be reached as nobody here.");
            Assert.Equal("b.log UnauthorizedAccessException", first);
            await ExpectAsync(process, "a.log 1");
            File.SetUnixFileMode(Path.Combine(open, "b.log"), Everybody);
            await ExpectAsync(process, "b.log 1");

            // Its search looks at the closed folder first, so it has done that when it finds the new log.
            File.SetUnixFileMode(above, UnixFileMode.None);
            await File.WriteAllTextAsync(Path.Combine(open, "c.log"), "1\n", _stop);
            await ExpectAsync(process, "c.log 1");
            await File.AppendAllTextAsync(Path.Combine(open, "c.log"), "2\n", _stop);
            await ExpectAsync(process, "c.log 2");
            File.SetUnixFileMode(above, Everybody);
            await File.AppendAllTextAsync(Path.Combine(closed, "a.log"), "2\n", _stop);
            await ExpectAsync(process, "a.log 2");
            await File.WriteAllTextAsync(Path.Combine(closed, "d.log"), "1\n", _stop);
            await ExpectAsync(process, "d.log 1");
        }
        finally
        {
            File.SetUnixFileMode(above, Everybody);
            process.Kill();
            await process.WaitForExitAsync(_stop);
        }
    }

    /// <summary>As sandboxes do that are older than the call: identities have no time of creation then.</summary>
    [Theory]
    [InlineData("EPERM"), InlineData("ENOSYS")]
    public async Task Child_StatxIsRefused_FollowsOverRotations(string error)
    {
        ChildProcess.SkipUnlessLinux("strace");
        string path = _folder.File("a.log", "1\n"u8.ToArray());
        using Process child = ChildProcess.Start(
            $"exec {ChildProcess.Strace} -o /dev/null -e trace=statx -e inject=statx:error={error} "
                + $"{ChildProcess.Command("printlogs", path)}");
        try
        {
            string? first = await GrowingFile.Bounded(child.StandardOutput.ReadLineAsync(_stop).AsTask());
            Assert.SkipWhen(first is null, "strace may not trace here.");
            Assert.Equal("a.log 1", first);
            for (int i = 2; i < 8; i += 2)
            {
                await File.AppendAllTextAsync(path, $"{i}\n", _stop);
                await File.WriteAllTextAsync(_folder.File("new"), $"{i + 1}\n", _stop);
                File.Move(path, path + ".1", overwrite: true);
                File.Move(_folder.File("new"), path);
                await ExpectAsync(child, $"a.log {i}");
                await ExpectAsync(child, $"a.log {i + 1}");
            }
        }
        finally
        {
            child.Kill(entireProcessTree: true);
            await child.WaitForExitAsync(_stop);
        }
    }

    /// <summary>As a file that the library has opened, the handle does not know its path.</summary>
    [Fact]
    public void Read_BytesThatCannotBeRead_AreNotTakenForOthersAndTheFileIsNamed()
    {
        string path = _folder.File("log", "1\n"u8.ToArray());
        using Microsoft.Win32.SafeHandles.SafeFileHandle file = File.OpenHandle(path, FileMode.Open, FileAccess.Write);
        using Microsoft.Win32.SafeHandles.SafeFileHandle nameless = new(file.DangerousGetHandle(), ownsHandle: false);
        Exception error = Assert.ThrowsAny<Exception>(() => LogContent.Read(nameless, path, 0, new byte[2]));
        Assert.Contains(path, error.Message, StringComparison.Ordinal);
    }

    /// <summary>A folder that cannot be listed, though it may be there: the name that its link leads to is too long.</summary>
    private string MakeUnlistable(string name)
    {
        Directory.CreateDirectory(_folder.File("hidden"));
        File.CreateSymbolicLink(_folder.File(name), new string('x', 300));
        return _folder.File(name);
    }

    /// <summary>The opposite of <see cref="MakeListable"/>.</summary>
    private void MakeUnlistableAgain(string folder)
    {
        File.CreateSymbolicLink(_folder.File("link"), new string('x', 300));
        Assert.Equal(0, UnixCalls.Default.Rename(UnixName.Of(_folder.File("link")), UnixName.Of(folder)));
    }

    /// <summary>It can be listed, and holds what is in the hidden folder. It is missing at no moment.</summary>
    private void MakeListable(string folder)
    {
        File.CreateSymbolicLink(_folder.File("link"), _folder.File("hidden"));
        Assert.Equal(0, UnixCalls.Default.Rename(UnixName.Of(_folder.File("link")), UnixName.Of(folder)));
    }

    private async Task ExpectAsync(Process process, string line)
    {
        string? next;
        do
        {
            next = await GrowingFile.Bounded(process.StandardOutput.ReadLineAsync(_stop).AsTask());
        }
        while (next?.EndsWith("Exception", StringComparison.Ordinal) == true);
        Assert.Equal(line, next);
    }
}
