using Pipelines.File.Memory;

namespace FilePipelines.Tests;

/// <summary>How a writer ends, what it opens, and what it refuses.</summary>
public sealed class WriterCompletionTests : FileTests
{
    [Theory]
    [InlineData(FileOptions.None, FlushGuarantee.WriteBehind)]
    [InlineData(FileOptions.Asynchronous, FlushGuarantee.WriteBehind)]
    [InlineData(FileOptions.Asynchronous, FlushGuarantee.Durable)]
    public async Task Complete_PortableOnAHandle_WritesEverythingAndClosesIt(FileOptions options, FlushGuarantee guarantee)
    {
        await Task.Yield();
        string path = _folder.File("f");
        SafeFileHandle handle = File.OpenHandle(path, FileMode.Create, FileAccess.Write, options: options);
        FilePipeWriter writer = FilePipeWriter.Create(handle, new() { Backend = FilePipeBackend.Portable, FlushGuarantee = guarantee });
        writer.Put(300_000);
        writer.Complete();
        Assert.True(handle.IsClosed);
        Assert.Equal(300_000, new FileInfo(path).Length);
        Assert.Equal(-1, Pattern.FirstDifference(File.ReadAllBytes(path)));
    }

    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task Complete_WritesWhatWasNotFlushedAndClosesTheFile(bool isAsync)
    {
        string path = _folder.File("f");
        SafeFileHandle handle = File.OpenHandle(path, FileMode.Create, FileAccess.Write);
        FilePipeWriter writer = FilePipeWriter.Create(handle);
        await writer.WriteAsync(Pattern.Bytes(1000), _stop);
        writer.Put(500, 1000);
        await writer.EndAsync(isAsync);

        Assert.True(handle.IsClosed);
        Assert.Equal(Pattern.Bytes(1500), File.ReadAllBytes(path));
        Assert.Throws<InvalidOperationException>(() => writer.GetMemory());
        await Assert.ThrowsAsync<InvalidOperationException>(async () => await writer.WriteAsync(Pattern.Bytes(1), _stop));

        // Once more changes nothing.
        await writer.CompleteAsync();
        writer.Complete();
    }

    /// <summary>What a hop to another thread costs more than: a short write into the page cache, and nothing else.</summary>
    [Theory]
    [InlineData(1, FlushGuarantee.WriteBehind, FileOptions.None, true)]
    [InlineData(64 * 1024, FlushGuarantee.Written, FileOptions.None, true)]
    [InlineData((64 * 1024) + 1, FlushGuarantee.WriteBehind, FileOptions.None, false)]
    [InlineData(1, FlushGuarantee.Durable, FileOptions.None, false)]
    [InlineData(1, FlushGuarantee.WriteBehind, FileOptions.WriteThrough, false)]
    public async Task CompleteAsync_WritesOnTheCallersThreadOnlyWhatDoesNotWait(
        int length, FlushGuarantee guarantee, FileOptions fileOptions, bool isByCaller)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts the Linux system calls.");
        using ManualResetEventSlim called = new();
        int writer = 0;
        ScriptedCalls calls = new() { Inline = StoppedClock.AllInlineWrites(), OnWrite = _ => Note(out writer, called) };
        FilePipeWriter file = calls.Write(_folder.File("f"), new() { FlushGuarantee = guarantee, FileOptions = fileOptions });
        file.Put(length);
        int caller = Environment.CurrentManagedThreadId;
        ValueTask end = file.CompleteAsync();

        // The caller's thread is held here, so that what it does not do itself is another's.
        called.Wait(Eventually.Limit, _stop);
        using SafeFileHandle again = File.OpenHandle(_folder.File("f"), share: FileShare.ReadWrite);
        Assert.Equal(isByCaller && LocalFileSystems.TakeWrites(FileProperties.Of(again, null)), writer == caller);
        await end;
        Assert.Equal(Pattern.Bytes(length), File.ReadAllBytes(_folder.File("f")));
    }

    /// <summary>Closing a long file that was emptied at opening waits for the device to take it.</summary>
    [Fact]
    public async Task CompleteAsync_ShortRestOfALongFile_IsNotWrittenAndClosedByItsCaller()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts the Linux system calls.");
        using ManualResetEventSlim called = new();
        int writer = 0;
        ScriptedCalls calls = new() { Inline = StoppedClock.AllInlineWrites(), OnWrite = n => n == 1 ? null : Note(out writer, called) };
        FilePipeWriter file = calls.Write(_folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Written });
        await file.WriteAsync(Pattern.Bytes(64 * 1024), _stop);
        file.GetSpan(1)[0] = Pattern.At(64 * 1024);
        file.Advance(1);
        int caller = Environment.CurrentManagedThreadId;
        ValueTask end = file.CompleteAsync();

        // The caller's thread is held here, as above.
        called.Wait(Eventually.Limit, _stop);
        Assert.NotEqual(caller, writer);
        await end;
        Assert.Equal(Pattern.Bytes((64 * 1024) + 1), File.ReadAllBytes(_folder.File("f")));
    }

    /// <summary>A file that was emptied at opening frees no more than what was written, so nobody asks whether it was deleted.</summary>
    [Fact]
    public async Task CompleteAsync_OfAShortFileThatWasEmptied_ClosesItAtOnce()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts the Linux system calls.");
        ScriptedCalls calls = new() { Inline = StoppedClock.AllInlineWrites() };
        FilePipeWriter file = calls.Write(_folder.File("f"));
        Assert.SkipUnless(LocalFileSystems.TakeWrites(FileProperties.Of(file.Handle, null)), "Closing a file may wait here.");
        file.Put(1);
        File.Delete(_folder.File("f"));
        ValueTask end = file.CompleteAsync();
        Assert.True(end.IsCompleted);
        await end;
    }

    /// <summary>All bytes are in the file by then: nothing is left to be told, but somebody waits for the end.</summary>
    [Theory]
    [InlineData(true, FileCaching.Keep), InlineData(false, FileCaching.Keep), InlineData(false, FileCaching.DropBehind)]
    public async Task Complete_OfAHandleThatTheCallerHasClosed_Ends(bool isAsync, FileCaching caching)
    {
        SafeFileHandle handle = File.OpenHandle(_folder.File("f"), FileMode.Create, FileAccess.Write);
        FilePipeWriter writer = FilePipeWriter.Create(handle, new() { FlushGuarantee = FlushGuarantee.Written, Caching = caching });
        await writer.WriteAsync(Pattern.Bytes(1000), _stop);
        handle.Dispose();
        Task end = isAsync ? writer.CompleteAsync().AsTask() : Task.Run(() => writer.Complete(), _stop);
        await end.WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(Pattern.Bytes(1000), File.ReadAllBytes(_folder.File("f")));
    }

    [Fact]
    public async Task Complete_WithAnException_DropsOnlyWhatWasNotFlushed()
    {
        string path = _folder.File("f");
        FilePipeWriter writer = FilePipeWriter.Create(path);
        await writer.WriteAsync(Pattern.Bytes(1000), _stop);
        writer.Advance(writer.GetMemory(500).Length);
        Assert.True(writer.UnflushedBytes >= 500);
        await writer.CompleteAsync(new InvalidOperationException("the source broke"));
        Assert.Equal(0, writer.UnflushedBytes);
        Assert.Equal(Pattern.Bytes(1000), File.ReadAllBytes(path));
    }

    [Fact]
    public async Task Complete_LeaveOpen_LeavesTheHandleOpen()
    {
        using SafeFileHandle handle = File.OpenHandle(_folder.File("f"), FileMode.Create, FileAccess.ReadWrite);
        FilePipeWriter writer = FilePipeWriter.Create(handle, new() { LeaveOpen = true });
        await writer.WriteAllAsync(Pattern.Bytes(10));
        Assert.False(handle.IsClosed);
        Assert.Equal(10, RandomAccess.GetLength(handle));
    }

    [Fact]
    public async Task Create_NewFile_IsNotTruncated()
    {
        ChildProcess.SkipUnlessLinux("strace");
        string trace = _folder.File("trace");
        string path = _folder.File("f");

        // The runtime itself sets the length of memory files.
        const string truncated = @"ftruncate\(\d+, 0\)";
        string command = $"{ChildProcess.Strace} -o '{trace}' -e trace=ftruncate "
            + $"{ChildProcess.Command("write", path, "1000", "1000", "Written")}";
        (int status, string output, string error) = await ChildProcess.RunAsync(command);
        Assert.SkipWhen(error.Contains("PTRACE", StringComparison.Ordinal), "strace may not trace here.");
        Assert.True(status == 0, output + error);
        Assert.DoesNotMatch(truncated, await File.ReadAllTextAsync(trace, _stop));

        // The one that is there by now is.
        (status, output, error) = await ChildProcess.RunAsync(command);
        Assert.True(status == 0, output + error);
        Assert.Matches(truncated, await File.ReadAllTextAsync(trace, _stop));
    }

    [Theory]
    [InlineData(10), InlineData(100_000), InlineData(300_000)]
    public async Task Create_Preallocated_EndsAsLongAsWhatWasWritten(int written)
    {
        string path = _folder.File("f");
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { PreallocationSize = 200_000 });
        await writer.WriteAllAsync(Pattern.Bytes(written));
        Assert.Equal(Pattern.Bytes(written), File.ReadAllBytes(path));
    }

    [Theory]
    [InlineData(5_000_000, 0), InlineData(20_000_000, 0), InlineData(5_000_000, 1000), InlineData(0, 1000)]
    public async Task Create_PreallocatedWithAnOffset_KeepsNeitherLengthNorSpaceThatNothingWasWrittenTo(long offset, int written)
    {
        ChildProcess.SkipUnlessLinux("stat");
        string path = _folder.File("f");
        FilePipeWriter writer = FilePipeWriter.Create(
            path, new() { Mode = FileMode.CreateNew, PreallocationSize = 10_000_000, Offset = offset });
        await writer.WriteAllAsync(Pattern.Bytes(written));
        Assert.Equal(written == 0 ? 0 : offset + written, new FileInfo(path).Length);
        (_, string blocks, _) = await ChildProcess.RunAsync($"stat -c %b '{path}'");

        // Blocks of 512 bytes.
        Assert.InRange(long.Parse(blocks, System.Globalization.CultureInfo.InvariantCulture), 0,
            ((written == 0 ? 0 : offset + written) / 512) + 64);
    }

    [Fact]
    public void Create_BadInput_ThrowsTypedErrorsThatNameTheFile()
    {
        string missing = _folder.File(Path.Combine("no", "such", "folder"));
        Assert.Contains(
            missing, Assert.Throws<DirectoryNotFoundException>(() => FilePipeWriter.Create(missing)).Message, StringComparison.Ordinal);
        Assert.Contains(_folder.Path, Assert.Throws<UnauthorizedAccessException>(() => FilePipeWriter.Create(_folder.Path)).Message,
            StringComparison.Ordinal);
        string absent = _folder.File("absent");
        Assert.Equal(absent,
            Assert.Throws<FileNotFoundException>(() => FilePipeWriter.Create(absent, new() { Mode = FileMode.Open })).FileName);
        string present = _folder.File("present", [1]);
        Assert.Throws<FileExistsException>(() => FilePipeWriter.Create(present, new() { Mode = FileMode.CreateNew }));
        Assert.Throws<ArgumentException>(() => FilePipeWriter.Create(""));
        Assert.Throws<ArgumentNullException>(() => FilePipeWriter.Create((string)null!));
        Assert.Throws<ArgumentNullException>(() => FilePipeWriter.Create((SafeFileHandle)null!));
        Assert.Throws<ArgumentOutOfRangeException>(() => FilePipeWriter.Create(present, new() { MinimumBufferSize = 0 }));
        Assert.Throws<ArgumentOutOfRangeException>(
            () => FilePipeWriter.Create(present, new() { PauseWriterThreshold = 10, ResumeWriterThreshold = 11 }));
        Assert.Throws<ArgumentOutOfRangeException>(() => FilePipeWriter.Create(present, new() { Offset = -1 }));
        Assert.Throws<ArgumentOutOfRangeException>(() => FilePipeWriter.Create(present, new() { Backend = (FilePipeBackend)99 }));
        Assert.Equal([1], File.ReadAllBytes(present));
    }

    /// <summary>As with .NET's writers, for which nothing is left then: their flushes return.</summary>
    [Theory]
    [InlineData(FlushGuarantee.WriteBehind), InlineData(FlushGuarantee.Written), InlineData(FlushGuarantee.Durable)]
    public async Task StreamWriterDispose_AfterCompleteAsync_Returns(FlushGuarantee guarantee)
    {
        string path = _folder.File("f");
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { FlushGuarantee = guarantee });
        StreamWriter text = new(writer.AsStream());
        await text.WriteAsync("text".AsMemory(), _stop);
        await text.FlushAsync(_stop);
        await writer.CompleteAsync();
        await text.DisposeAsync();
        Assert.Equal("text", await File.ReadAllTextAsync(path, _stop));
        Assert.False((await writer.FlushAsync(_stop)).IsCanceled);
        await Assert.ThrowsAsync<TaskCanceledException>(async () => await writer.FlushAsync(new CancellationToken(true)));
    }

    [Fact]
    public async Task FlushAsync_AfterCompleteForWhatDoesNotHold_Throws()
    {
        FilePipeWriter written = FilePipeWriter.Create(_folder.File("written"));
        await written.WriteAllAsync(Pattern.Bytes(100));
        _ = await written.FlushAsync(FlushGuarantee.Written, _stop);
        await Assert.ThrowsAsync<InvalidOperationException>(async () => await written.FlushAsync(FlushGuarantee.Durable, _stop));

        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts the Linux system calls.");
        using Gate gate = new();
        ScriptedCalls calls = new() { OnWrite = gate.Hold };
        FilePipeWriter writing = calls.Write(_folder.File("writing"));
        writing.Put(100);
        Task completion = writing.CompleteAsync().AsTask();
        _ = await writing.FlushAsync(_stop);
        await Assert.ThrowsAsync<InvalidOperationException>(async () => await writing.FlushAsync(FlushGuarantee.Written, _stop));
        gate.Open();
        await completion;
        _ = await writing.FlushAsync(FlushGuarantee.Written, _stop);

        FilePipeWriter failed = new ScriptedCalls { OnWrite = _ => -Libc.EIO }.Write(_folder.File("failed"));
        failed.Put(100);
        await Assert.ThrowsAsync<IOException>(async () => await failed.CompleteAsync());
        await Assert.ThrowsAsync<IOException>(async () => await failed.FlushAsync(_stop));
    }

    [Fact]
    public async Task PipeWriterCreate_TheBclsFactory_MakesAFilePipeWriter()
    {
        PipeWriter writer = PipeWriter.Create(_folder.File("f"));
        Assert.IsType<FilePipeWriter>(writer);
        await writer.WriteAllAsync(Pattern.Bytes(10));
        Assert.Equal(Pattern.Bytes(10), File.ReadAllBytes(_folder.File("f")));
    }

    [Fact]
    public async Task CopyToAsync_FromAStream_WritesEverythingAndGivesAllMemoryBack()
    {
        CheckedPool pool = new();
        string path = _folder.File("f");
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Pool = pool });
        using MemoryStream source = new(Pattern.Bytes(300_000));
        await source.CopyToAsync(writer, _stop);
        Assert.Equal(300_000, writer.Position);
        await writer.CompleteAsync();
        Assert.Equal(0, pool.Rented);
        Assert.Equal(Pattern.Bytes(300_000), File.ReadAllBytes(path));
    }

    /// <summary>Advancing over nothing ends the use, too.</summary>
    [Theory]
    [InlineData(true, false), InlineData(false, false), InlineData(true, true), InlineData(false, true)]
    public async Task Complete_WithMemoryThatWasNotAdvancedOver_GivesItBackToTheCallersPool(bool isAsync, bool advancesOverNothing)
    {
        CheckedPool pool = new();
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("f"), new() { Pool = pool });
        _ = writer.GetMemory(100);
        if (advancesOverNothing)
        {
            writer.Advance(0);
        }

        await writer.EndAsync(isAsync);

        Assert.Equal((0, 0, 0), (pool.Rented, pool.Pins, pool.ReturnedPinned));
    }

    /// <summary>A pool that has no such large memory is helped out by the library's own, which serves all readers and writers.</summary>
    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task Complete_WhileTheCallerHasMoreMemoryThanItsPoolGives_ItIsNoOtherWriters(bool isAsync)
    {
        // A size that no other test uses.
        const int Size = 300_000;
        CheckedPool pool = new(maxBufferSize: 4096);
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("f"), new() { Pool = pool });
        Memory<byte> held = writer.GetMemory(Size);
        await writer.EndAsync(isAsync);

        FilePipeWriter other = FilePipeWriter.Create(_folder.File("other"));
        Pattern.Fill(other.GetSpan(Size)[..Size], 0);
        held.Span.Fill(0xEE);
        other.Advance(Size);
        await other.CompleteAsync();
        Assert.Equal(-1, Pattern.FirstDifference(File.ReadAllBytes(_folder.File("other"))));
    }

    [Fact]
    public void GetMemory_MoreThanAnArray_IsRefusedAndChangesNothing()
    {
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("f"));
        Assert.Throws<ArgumentOutOfRangeException>(() => writer.GetMemory(int.MaxValue));
        writer.Put(10);
        Assert.Throws<ArgumentOutOfRangeException>(() => writer.GetMemory(int.MaxValue));
        writer.Complete();
        Assert.Equal(Pattern.Bytes(10), File.ReadAllBytes(_folder.File("f")));
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Create_UnixCreateMode_IsThatOfANewFile(bool replaces)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Unix permissions.");
        const UnixFileMode OwnerOnly = UnixFileMode.UserRead | UnixFileMode.UserWrite;
        string path = _folder.File("f");
        await FilePipeWriter.Create(path, new() { UnixCreateMode = OwnerOnly, Replace = replaces }).CompleteAsync();
        Assert.True(OperatingSystem.IsWindows() || File.GetUnixFileMode(path) == OwnerOnly);
        Assert.Throws<ArgumentException>(() => FilePipeWriter.Create(path, new() { UnixCreateMode = OwnerOnly, Mode = FileMode.Open }));
        using SafeFileHandle handle = File.OpenHandle(path, access: FileAccess.ReadWrite);
        Assert.Throws<ArgumentException>(() => FilePipeWriter.Create(handle, new() { UnixCreateMode = OwnerOnly }));
    }

    /// <summary>The runtime gives permissions to a FileStream only, which is collected while its handle is written to.</summary>
    [Fact]
    public async Task Create_UnixCreateMode_TheFileStaysOpenOverACollection()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Unix permissions.");
        string path = _folder.File("f");
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { UnixCreateMode = UnixFileMode.UserRead | UnixFileMode.UserWrite });
        for (int i = 0; i < 3; i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }

        Assert.False(writer.Handle.IsClosed);
        await writer.WriteAllAsync(Pattern.Bytes(10));
        Assert.Equal(Pattern.Bytes(10), File.ReadAllBytes(path));
    }

    [Fact]
    public void OpenStandardOutput_Replace_IsRefused()
        => Assert.Equal(nameof(FilePipeWriterOptions.Replace),
            Assert.Throws<ArgumentException>(() => FilePipeWriter.OpenStandardOutput(new() { Replace = true })).ParamName);

    private static long? Note(out int thread, ManualResetEventSlim called)
    {
        thread = Environment.CurrentManagedThreadId;
        called.Set();
        return null;
    }

    /// <summary>NFS, SMB and FUSE report lost bytes when a file is closed; a file of ext4 or its like needs no call for that.</summary>
    [Theory]
    [InlineData(0xef53L, 0)]
    [InlineData(0x58465342L, 0)]
    [InlineData(0x9123683eL, 0)]
    [InlineData(0x01021994L, 0)]
    [InlineData(0xf2f52010L, 0)]
    [InlineData(0x6969L, 1)]
    [InlineData(0x65735546L, 1)]
    [InlineData(0x794c7630L, 1)]
    [InlineData(-1L, 1)]
    public async Task CompleteAsync_FileSystem_IsAskedForLostBytesWhereClosingTells(long fileSystem, int closes)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts system calls of Linux.");
        ScriptedCalls calls = new() { FileSystem = fileSystem };
        FilePipeWriter writer = calls.Write(_folder.File("f"));
        await writer.WriteAsync(new byte[] { 1, 2, 3 }, TestContext.Current.CancellationToken);
        await writer.CompleteAsync();
        Assert.Equal(closes, calls.Closes);
    }
}
