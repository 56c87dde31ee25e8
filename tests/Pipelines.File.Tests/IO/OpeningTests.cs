using System.IO.Pipes;

namespace FilePipelines.Tests;

/// <summary>
/// What opening finds out: whether the file is new, whether it may be read or written, and that nothing it waits for holds up others.
/// </summary>
public sealed class OpeningTests : FileTests
{
    [Fact]
    public void Create_HandleOfTheOtherEndOfAPipe_IsRefusedAtOnce()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux tells what a handle is open for.");
        using AnonymousPipeServerStream readEnd = new(PipeDirection.In);
        using SafeFileHandle reading = new(readEnd.SafePipeHandle.DangerousGetHandle(), ownsHandle: false);
        using SafeFileHandle writing = new(readEnd.ClientSafePipeHandle.DangerousGetHandle(), ownsHandle: false);
        Assert.Contains("not open for writing", Assert.Throws<UnauthorizedAccessException>(() => FilePipeWriter.Create(reading)).Message,
            StringComparison.Ordinal);
        Assert.Contains("not open for reading", Assert.Throws<UnauthorizedAccessException>(() => FilePipeReader.Create(writing)).Message,
            StringComparison.Ordinal);
        Assert.False(reading.IsClosed || writing.IsClosed);
    }

    [Theory]
    [InlineData("in", "<&-", nameof(IOException))]
    [InlineData("out", ">&-", nameof(IOException))]
    [InlineData("in", "<&- >&- 2>&-", nameof(IOException))]
    [InlineData("out", "<&- >&- 2>&-", nameof(IOException))]
    [InlineData("in", "</dev/null", "opened")]
    [InlineData("out", ">/dev/null", "opened")]
    [InlineData("in", "0>/dev/null", nameof(UnauthorizedAccessException))]
    [InlineData("out", "1</dev/null", nameof(UnauthorizedAccessException))]
    public async Task OpenStandard_WhatTheShellHasMadeOfIt_OpensOrThrowsAtOnce(string which, string redirection, string outcome)
    {
        ChildProcess.SkipUnlessLinux("dotnet");
        Assert.SkipWhen(Environment.Version.Major >= 11 && redirection.StartsWith("<&-", StringComparison.Ordinal),
            "The runtime of .NET 11 does not start without standard input.");
        string path = _folder.File("outcome");
        _ = await ChildProcess.RunAsync($"{ChildProcess.Command("standard", which, path)} {redirection}")
            .WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(outcome, await File.ReadAllTextAsync(path, _stop));
    }

    [Theory]
    [InlineData(FileOptions.WriteThrough, 0, FileShare.ReadWrite, FilePipeBackend.Auto)]
    [InlineData(FileOptions.None, 4096, FileShare.ReadWrite, FilePipeBackend.Auto)]
    [InlineData(FileOptions.None, 0, FileShare.ReadWrite | FileShare.Inheritable, FilePipeBackend.Auto)]
    [InlineData(FileOptions.None, 0, FileShare.ReadWrite, FilePipeBackend.Portable)]
    public async Task OpenAsync_OfAFifoNobodyElseOpens_HoldsNoThread(
        FileOptions options, long preallocation, FileShare share, FilePipeBackend backend)
    {
        string read = Fifo.Make(_folder, "read");
        string written = Fifo.Make(_folder, "written");
        int before = WaitingThreads.Opens.UnderWayCount;
        using CancellationTokenSource cancel = new();
        FilePipeWriterOptions writes = new() { FileOptions = options, PreallocationSize = preallocation, Share = share, Backend = backend };
        FilePipeReaderOptions reads = new() { FileOptions = options, Share = share, Backend = backend };
        Task[] openings =
        [
            .. Enumerable.Range(0, 50).Select(i => i % 2 == 0
                ? FilePipeReader.OpenAsync(read, reads, cancel.Token).AsTask()
                : (Task)FilePipeWriter.OpenAsync(written, writes, cancel.Token).AsTask()),
        ];
        await Task.Delay(100, _stop);
        await cancel.CancelAsync();
        foreach (Task opening in openings)
        {
            await Assert.ThrowsAnyAsync<OperationCanceledException>(() => opening.WaitAsync(Eventually.Limit, _stop));
        }

        await Eventually.TrueAsync(() => WaitingThreads.Opens.UnderWayCount <= before + 4);
        await using FilePipeWriter other = await FilePipeWriter.OpenAsync(_folder.File("other"), null, _stop).AsTask()
            .WaitAsync(Eventually.Limit, _stop);
    }

    [Theory]
    [InlineData(FileOptions.WriteThrough, FilePipeBackend.Auto), InlineData(FileOptions.None, FilePipeBackend.Portable)]
    public async Task OpenAsync_OfBothSidesOfAFifo_PassesBytesWhateverTheOptions(FileOptions options, FilePipeBackend backend)
    {
        string path = Fifo.Make(_folder);
        Task<FilePipeReader> opening = FilePipeReader.OpenAsync(path, new() { Backend = backend, FileOptions = options }, _stop).AsTask();
        FilePipeWriter writer = await FilePipeWriter.OpenAsync(path,
            new() { Backend = backend, FileOptions = options, PreallocationSize = 10 }, _stop).AsTask().WaitAsync(Eventually.Limit, _stop);
        FilePipeReader reader = await opening.WaitAsync(Eventually.Limit, _stop);
        Task<ReadResult> read = reader.ReadAtLeastAsync(100, _stop).AsTask();
        await Task.Delay(30, _stop);
        await writer.WriteAsync(Pattern.Bytes(100), _stop);
        Assert.Equal(100, (await read.WaitAsync(Eventually.Limit, _stop)).Buffer.Length);
        await writer.CompleteAsync();
        await reader.CompleteAsync();
    }

    [Theory]
    [InlineData(FileMode.Create), InlineData(FileMode.OpenOrCreate), InlineData(FileMode.Append), InlineData(FileMode.CreateNew)]
    public void Open_ModeThatMakesFiles_TellsWhetherTheFileIsNew(FileMode mode)
    {
        Assert.True(IsNew("new"));
        if (mode == FileMode.CreateNew)
        {
            return;
        }

        _ = _folder.File("old", [1]);
        Assert.False(IsNew("old"));
        if (!OperatingSystem.IsWindows())
        {
            File.CreateSymbolicLink(_folder.File("to old"), _folder.File("old"));
            Assert.False(IsNew("to old"));
            File.CreateSymbolicLink(_folder.File("dangling"), _folder.File("made through a link"));
            Assert.True(IsNew("dangling"));
            Assert.True(File.Exists(_folder.File("made through a link")));
        }

        bool IsNew(string name)
        {
            OpenedFile opened = FileOpening.Open(new FileToOpen(_folder.File(name), mode, FileAccess.Write, FileShare.ReadWrite));
            opened.Release(closeHandle: true);
            return opened.IsNew;
        }
    }

    [Theory]
    [InlineData(FileMode.Open, FileAccess.Read)]
    [InlineData(FileMode.Open, FileAccess.Write)]
    [InlineData(FileMode.OpenOrCreate, FileAccess.Write)]
    [InlineData(FileMode.Create, FileAccess.Write)]
    [InlineData(FileMode.CreateNew, FileAccess.Write)]
    [InlineData(FileMode.Truncate, FileAccess.Write)]
    [InlineData(FileMode.Append, FileAccess.Write)]
    [InlineData(FileMode.Create, FileAccess.Read)]
    [InlineData((FileMode)7, FileAccess.Write)]
    public void Open_AnyModeOfAnything_EndsAsTheRuntimesOpeningDoes(FileMode mode, FileAccess access)
    {
        Assert.SkipUnless(
            OperatingSystem.IsLinux(), "Elsewhere the runtime opens the file, or OverlappedOpening, which has tests of its own.");
        string[] situations =
        [
            "missing", "file", "read-only", "folder", "link", "dangling", "missing folder/f", "file/f", "file/", "missing/", "locked",
            "shared", new('n', 300),
        ];
        (FileShare Share, FileOptions Options, long PreallocationSize)[] ways =
        [
            (FileShare.None, FileOptions.None, 0),
            (FileShare.Read, FileOptions.None, 0),
            (FileShare.ReadWrite | FileShare.Delete | FileShare.Inheritable, FileOptions.None, 0),
            (FileShare.ReadWrite, FileOptions.SequentialScan, 0),
            (FileShare.ReadWrite, FileOptions.RandomAccess, 0),
            (FileShare.Read, FileOptions.WriteThrough | FileOptions.Asynchronous, 0),
            (FileShare.None, FileOptions.DeleteOnClose, 0),
            (FileShare.Read, FileOptions.None, 10_000),
        ];
        int number = 0;
        foreach ((string situation, (FileShare share, FileOptions option, long preallocation))
            in situations.SelectMany(situation => ways.Select(way => (situation, way))))
        {
            // A process that another test starts has all handles, and so their locks, from its fork to its exec: what differs is looked at
            // again.
            string actual;
            string expected;
            int attempts = 0;
            do
            {
                actual = Outcome(situation, $"a{number}", path =>
                {
                    OpenedFile opened = FileOpening.Open(
                        new FileToOpen(path, mode, access, share, option) { PreallocationSize = preallocation });
                    return (opened.Handle, () => opened.Release(closeHandle: true));
                });
                expected = Outcome(situation, $"b{number++}", path =>
                {
                    SafeFileHandle handle = File.OpenHandle(path, mode, access, share, option, preallocation);
                    return (handle, handle.Dispose);
                });
            }
            while (expected != actual && ++attempts < 5);

            Assert.True(expected == actual, $"{situation}, {share}, {option}, {preallocation}: {actual} instead of {expected}");
        }
    }

    /// <summary>
    /// What comes of opening in a situation: what it throws, or how the file is open, and what is there when it was closed.
    /// </summary>
    private string Outcome(string situation, string folder, Func<string, (SafeFileHandle Handle, Action Close)> open)
    {
        string root = Directory.CreateDirectory(_folder.File(folder)).FullName;
        string path = Path.Combine(root, situation);
        File.WriteAllText(Path.Combine(root, "file"), "12345");
        Directory.CreateDirectory(Path.Combine(root, "folder"));
        if (situation is "locked" or "shared" or "read-only")
        {
            File.WriteAllText(path, "locked");
        }

        if (situation == "read-only")
        {
            File.SetAttributes(path, FileAttributes.ReadOnly);
        }

        File.CreateSymbolicLink(Path.Combine(root, "link"), Path.Combine(root, "file"));
        File.CreateSymbolicLink(Path.Combine(root, "dangling"), Path.Combine(root, "made"));
        using SafeFileHandle? other = situation is "locked" or "shared"
            ? File.OpenHandle(path, share: situation == "locked" ? FileShare.None : FileShare.ReadWrite) : null;
        List<string> outcome = [];
        try
        {
            (SafeFileHandle handle, Action close) = open(path);
            using (handle)
            {
                outcome.Add(DescribeFlags(handle));
                outcome.Add(IsFree(FileShare.None) + " " + IsFree(FileShare.ReadWrite));
                close();
            }
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException or ArgumentException)
        {
            outcome.Add($"{(e is FileExistsException ? nameof(IOException) : e.GetType().Name)} "
                + $"{(e is FileExistsException ? e.InnerException! : e).Message}");
        }

        outcome.Add(IsFree(FileShare.None));
        outcome.AddRange(Directory.GetFiles(root).Order(StringComparer.Ordinal)
            .Select(file => new FileInfo(file).LinkTarget is not null || (other is not null && file == path) ? file
                : $"{file} {new FileInfo(file).UnixFileMode} {ContentOf(file)}"));
        return string.Join('\n', outcome).Replace(root, "ROOT", StringComparison.Ordinal);

        // Without a lock, which another test's process may have for a moment, as above.
        static string ContentOf(string file)
        {
            using FileStream stream = new(file, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete);
            using StreamReader reader = new(stream);
            return reader.ReadToEnd();
        }

        string IsFree(FileShare share)
        {
            try
            {
                File.OpenHandle(path, share: share).Dispose();
                return "free";
            }
            catch (Exception e) when (e is IOException or UnauthorizedAccessException)
            {
                return e.GetType().Name;
            }
        }
    }

    /// <summary>
    /// The flags of open(2), as the system tells them (proc_pid_fdinfo(5)), but for O_APPEND, which the runtime does without.
    /// </summary>
    private static string DescribeFlags(SafeFileHandle handle)
    {
        const int Append = 0x400;
        return string.Concat(File.ReadLines($"/proc/self/fdinfo/{handle.DangerousGetHandle()}")
            .Where(line => line.StartsWith("flags:", StringComparison.Ordinal))
            .Select(line => Convert.ToInt32(line[6..].Trim(), 8) & ~Append));
    }

    [Fact]
    public async Task Create_NewFileThatExists_SaysSo()
    {
        string path = _folder.File("f", [1, 2, 3]);
        foreach (bool replace in (bool[])[false, true])
        {
            FilePipeWriterOptions options = new() { Mode = FileMode.CreateNew, Replace = replace };
            FileExistsException error = Assert.Throws<FileExistsException>(() => FilePipeWriter.Create(path, options));
            Assert.Equal(path, error.FileName);
            await Assert.ThrowsAsync<FileExistsException>(() => FilePipeWriter.OpenAsync(path, options, _stop).AsTask());
        }

        Assert.Equal([1, 2, 3], await File.ReadAllBytesAsync(path, _stop));
    }

    [Fact]
    public void Opening_InAProcessOf32Bits_IsRefused()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Its calls take 64-bit offsets in every process.");
        Assert.Throws<PlatformNotSupportedException>(() => FileOpening.ThrowIfNotSupported(FilePipeBackend.Auto, is64Bit: false));
        Assert.Throws<PlatformNotSupportedException>(() => FileOpening.ThrowIfNotSupported(FilePipeBackend.Portable, is64Bit: false));
        FileOpening.ThrowIfNotSupported(FilePipeBackend.Auto, is64Bit: true);
    }

    [Fact]
    public async Task ReadAsync_OfAFifoWhileNoDescriptorIsLeft_GoesOnWhenThereAreSome()
    {
        ChildProcess.SkipUnlessLinux("dotnet");
        (int exitCode, string output, string error) = await ChildProcess.RunAsync(
            $"ulimit -n 200; DOTNET_TieredCompilation=0 {ChildProcess.Command("exhausted", Fifo.Make(_folder))}")
            .WaitAsync(Eventually.Limit, _stop);
        Assert.True(exitCode == 0 && output == "first told\n", output + error);
    }

    [Fact]
    public async Task OpenAsync_OfAFifoWhileNoDescriptorIsLeft_ThrowsAndHoldsNoThread()
    {
        const int EMFILE = 24;
        ChildProcess.SkipUnlessLinux("dotnet", "strace");
        string path = Fifo.Make(_folder);
        (int exitCode, string output, string error) = await ChildProcess.RunAsync(
            $"{ChildProcess.Strace} -o /dev/null -P '{path}' -e trace=openat -e inject=openat:error=EMFILE "
                + $"{ChildProcess.Command("scarce", path)}")
            .WaitAsync(Eventually.Limit, _stop);
        Assert.True(exitCode == 0 && output == $"Faulted {EMFILE}\n", output + error);
    }

    /// <summary>epoll's descriptor is made for the first file that may wait.</summary>
    [Fact]
    public async Task Create_OfAFifoWhileNoDescriptorIsLeftToWaitWith_ThrowsAndNamesTheFile()
    {
        ChildProcess.SkipUnlessLinux("strace");
        using Fifo fifo = Fifo.Create(_folder);
        (int status, string output, string error) = await ChildProcess.RunAsync(
            $"{ChildProcess.Strace} -o /dev/null -e trace=epoll_create1 "
            + $"-e inject=epoll_create1:error=EMFILE {ChildProcess.Command("read", fifo.Path, "4096")}");
        Assert.SkipWhen(error.Contains("PTRACE", StringComparison.Ordinal), "strace may not trace here.");
        Assert.True(status == 3, output + error);
        Assert.Contains("failed IOException", output, StringComparison.Ordinal);
        Assert.Contains(fifo.Path, output, StringComparison.Ordinal);
    }

    [Fact]
    public async Task OpenAsync_CanceledWhileItIsQueued_OpensNothing()
    {
        // More than there are threads.
        const int Blocked = 100;
        using ManualResetEventSlim goOn = new();
        using CancellationTokenSource source = new();
        int opened = 0;
        Task<string>[] blocked =
        [
            .. Enumerable.Range(0, Blocked).Select(_ => AsyncOpening.OpenAsync(
                fifo: null, _ => goOn.Wait(Eventually.Limit) ? "open" : throw new TimeoutException(), static _ => { }, _stop).AsTask()),
        ];
        Task<string> queued = AsyncOpening.OpenAsync(
            fifo: null, _ => $"{++opened}", static _ => { }, source.Token).AsTask();
        await source.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => queued);
        goOn.Set();
        Assert.All(await Task.WhenAll(blocked), static result => Assert.Equal("open", result));
        Assert.Equal("last", await AsyncOpening.OpenAsync(fifo: null, static _ => "last", static _ => { }, _stop));
        Assert.Equal(0, opened);
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task OpenAsync_CanceledAndEndsLater_ClosesWhatIsOpenAndLeavesNoErrorUnobserved(bool fails)
    {
        const string Message = "This error is nobody's any more.";
        using ManualResetEventSlim goOn = new();
        using CancellationTokenSource source = new();
        TaskCompletionSource begun = new(TaskCreationOptions.RunContinuationsAsynchronously);
        TaskCompletionSource<string> closed = new(TaskCreationOptions.RunContinuationsAsynchronously);
        int unobserved = 0;
        EventHandler<UnobservedTaskExceptionEventArgs> onUnobserved =
            (_, e) => unobserved += e.Exception.InnerException?.Message == Message ? 1 : 0;
        Func<OpenedFile?, string> open = _ =>
        {
            begun.SetResult();
            return goOn.Wait(Eventually.Limit) && !fails ? "open" : throw new IOException(Message);
        };
        TaskScheduler.UnobservedTaskException += onUnobserved;
        try
        {
            await CancelAsync();
            goOn.Set();
            if (!fails)
            {
                Assert.Equal("open", await closed.Task.WaitAsync(Eventually.Limit, _stop));
            }

            for (int i = 0; i < 10; i++)
            {
                await Task.Delay(20, _stop);
                GC.Collect();
                GC.WaitForPendingFinalizers();
            }

            Assert.Equal((0, !fails), (unobserved, closed.Task.IsCompleted));
        }
        finally
        {
            TaskScheduler.UnobservedTaskException -= onUnobserved;
        }

        // By itself, so that nothing here keeps what is collected.
        async Task CancelAsync()
        {
            Task<string> opening = AsyncOpening.OpenAsync(fifo: null, open, closed.SetResult, source.Token).AsTask();
            await begun.Task.WaitAsync(Eventually.Limit, _stop);
            await source.CancelAsync();
            await Assert.ThrowsAnyAsync<OperationCanceledException>(() => opening);
        }
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task CompleteAsync_PortableReadOfAFifoUnderWay_ReturnsItsMemoryWhenItIsOver(bool isCanceled)
    {
        using Fifo fifo = Fifo.Create(_folder);
        CheckedPool pool = new();
        FilePipeReader reader = FilePipeReader.Create(
            fifo.Path, new() { Backend = FilePipeBackend.Portable, Pool = pool, BufferSize = 100 });
        Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
        await Task.Delay(50, _stop);
        if (isCanceled)
        {
            reader.CancelPendingRead();
            Assert.True((await read).IsCanceled);
            fifo.Write(Pattern.Bytes(150));
            ReadResult later = await reader.ReadAtLeastAsync(150, _stop);
            Assert.Equal(Pattern.Bytes(150), later.Buffer.ToArray());
            reader.AdvanceTo(later.Buffer.End);
            read = reader.ReadAsync(_stop).AsTask();
            await Task.Delay(50, _stop);
        }

        await reader.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
        await Assert.ThrowsAsync<InvalidOperationException>(() => read);
        Assert.Equal(1, pool.Rented);
        fifo.Write(Pattern.Bytes(100));
        await Eventually.TrueAsync(() => pool.Rented == 0);
        pool.AssertReturned();
    }
}
