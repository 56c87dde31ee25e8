using Pipelines.File.Threading;
using Pipelines.File.Writing;

namespace FilePipelines.Tests;

/// <summary>What is synced, when, and what a sync that fails means.</summary>
[Collection("whole process")]
public sealed class DurableTests : FileTests
{
    public DurableTests() => Assert.SkipWhen(OperatingSystem.IsWindows(), "It scripts the Unix system calls.");

    /// <summary>A writer on a file that it has just made, with calls that are written down.</summary>
    internal static FilePipeWriter Write(RecordedCalls calls, string path, FilePipeWriterOptions options, bool isPortable = false)
    {
        SafeFileHandle handle = File.OpenHandle(path, FileMode.CreateNew, FileAccess.Write, FileShare.ReadWrite);
        calls.KnowNew(handle, path);
        FileProperties properties = FileProperties.Of(handle, path);
        OpenedFile backend = isPortable ? new PortableFile(handle, path, properties, calls) : new UnixFile(handle, path, properties, calls);
        backend.IsNew = true;
        return FilePipeWriter.Create(backend, options, leaveOpen: false, isOpenedByPath: true);
    }

    /// <summary>The sync before the folder's does not cover what comes meanwhile.</summary>
    [Theory]
    [InlineData(0, 0)]
    [InlineData(5, 0)]
    [InlineData(0, 5)]
    public async Task FlushAsync_WhileTheFolderIsSynced_WaitsForASyncOfItsOwn(int folderError, int secondSyncError)
    {
        FilePipeWriter? writer = null;
        Task<FlushResult>? second = null;
        bool isTooEarly = false;
        RecordedCalls calls = new()
        {
            SyncFolderError = folderError,
            SyncError = call =>
            {
                isTooEarly |= call == 2 && second!.IsCompleted;
                return call == 2 ? secondSyncError : 0;
            },
        };
        using ManualResetEventSlim hasReturned = new();
        calls.BeforeSyncFolder = () =>
        {
            hasReturned.Wait(Eventually.Limit, _stop);
            second = writer!.WriteAsync(Pattern.Bytes(10, 10), _stop).AsTask();
        };
        writer = Write(calls, _folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Durable });
        Task<FlushResult> first = writer.WriteAsync(Pattern.Bytes(10), _stop).AsTask();
        hasReturned.Set();
        if (folderError != 0)
        {
            IOException e = await Assert.ThrowsAsync<IOException>(() => first);
            Assert.Same(e, await Assert.ThrowsAsync<IOException>(() => second!));
            Assert.Equal(1, calls.Syncs);
        }
        else
        {
            await first;
            Assert.Equal(secondSyncError != 0, await Record.ExceptionAsync(() => second!) is IOException);
            Assert.Equal(2, calls.Syncs);
        }

        Assert.False(isTooEarly);
        Assert.Equal(folderError + secondSyncError != 0,
            await Record.ExceptionAsync(async () => await writer.CompleteAsync()) is IOException);
    }

    [Fact]
    public async Task CompleteAsync_DurableAndEmpty_SyncsFileAndFolder()
    {
        RecordedCalls calls = new();
        await Write(calls, _folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Durable }).CompleteAsync();
        Assert.Equal("Make Sync SyncFolder", calls.Order);
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Durable_OneWaitingThreadWritesAndSyncs(bool completes)
    {
        List<Thread> threads = [];
        using Gate gate = new();
        ScriptedCalls calls = new() { OnWrite = Called, OnSync = Called };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Durable });
        writer.Put(100);

        // The calls are made when the writer waits for them: a call that is faster may be followed by one of another thread.
        Task wait = completes ? writer.CompleteAsync().AsTask() : writer.FlushAsync(_stop).AsTask();
        gate.Open();
        await wait;
        Assert.Equal(2, threads.Count);
        Assert.StartsWith(WaitingThreads.ThreadName, Assert.Single(threads.Distinct()).Name, StringComparison.Ordinal);
        await writer.CompleteAsync();

        long? Called(int call)
        {
            gate.Wait();
            threads.Add(Thread.CurrentThread);
            return null;
        }
    }

    [Fact]
    public async Task FlushAsync_SyncHasFailedOnce_EveryLaterFlushFailsWithoutAnotherSync()
    {
        // After a failed writeback the pages are clean: the next fdatasync would succeed, and the bytes are not on the device.
        RecordedCalls calls = new() { SyncError = call => call == 2 ? 5 : 0 };
        FilePipeWriter writer = Write(calls, _folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Durable });
        await writer.WriteAsync(Pattern.Bytes(10), _stop);
        IOException e = await Assert.ThrowsAsync<IOException>(async () => await writer.WriteAsync(Pattern.Bytes(10, 10), _stop));
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(async () => await writer.FlushAsync(_stop)));
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(async () => await writer.FlushAsync(FlushGuarantee.WriteBehind, _stop)));
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(async () => await writer.WriteAsync(Pattern.Bytes(10, 20), _stop)));
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync()));
        Assert.Equal(2, calls.Syncs);
        Assert.Equal(20, new FileInfo(_folder.File("f")).Length);
    }

    [Fact]
    public async Task FlushAsync_GuaranteeOfOneFlush_HoldsForEverythingSoFarAndForThatFlushOnly()
    {
        RecordedCalls calls = new();
        FilePipeWriter writer = Write(calls, _folder.File("f"), new());
        for (int i = 0; i < 10; i++)
        {
            await writer.WriteAsync(Pattern.Bytes(10, i * 10), _stop);
        }

        Assert.Equal(0, calls.Syncs);
        await writer.FlushAsync(FlushGuarantee.Written, _stop);
        Assert.Equal(100, new FileInfo(_folder.File("f")).Length);
        Assert.Equal(0, calls.Syncs);
        await writer.FlushAsync(FlushGuarantee.Durable, _stop);
        Assert.Equal(1, calls.Syncs);

        // Nothing has come since: nothing to sync.
        await writer.FlushAsync(FlushGuarantee.Durable, _stop);
        await writer.WriteAllAsync(Pattern.Bytes(10, 100));
        Assert.Equal(1, calls.Syncs);
    }

    [Fact]
    public async Task FlushAsync_LessThanTheOption_GetsTheOption()
    {
        RecordedCalls calls = new();
        FilePipeWriter writer = Write(calls, _folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Durable });
        writer.Put(10);
        await writer.FlushAsync(FlushGuarantee.WriteBehind, _stop);
        Assert.Equal(1, calls.Syncs);
        await Assert.ThrowsAsync<ArgumentOutOfRangeException>(async () => await writer.FlushAsync((FlushGuarantee)3, _stop));
        await writer.CompleteAsync();
    }

    [Theory]
    [InlineData(false, false, FilePipeBackend.Auto)]
    [InlineData(true, false, FilePipeBackend.Auto)]
    [InlineData(true, false, FilePipeBackend.Auto, 0)]
    [InlineData(false, true, FilePipeBackend.Auto)]
    [InlineData(true, true, FilePipeBackend.Auto)]
    [InlineData(true, false, FilePipeBackend.Portable)]
    public async Task CompleteAsync_CloseTellsOfLostBytes_ThrowsAndWithReplaceKeepsTheOldFile(
        bool replaces, bool hasNoDescriptor, FilePipeBackend backend, int length = 10)
    {
        string path = replaces ? _folder.File("f", "old"u8.ToArray()) : _folder.File("f");
        RecordedCalls calls = hasNoDescriptor ? new() { HasNoDescriptor = true, SyncError = _ => Libc.EDQUOT }
            : new() { CloseError = Libc.EDQUOT };
        FilePipeWriter writer = replaces ? FilePipeWriter.Create(path, new() { Replace = true, Backend = backend }, calls)
            : Write(calls, path, new());
        await writer.WriteAsync(Pattern.Bytes(length), _stop);
        IOException e = await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync());
        Assert.Equal(Libc.EDQUOT, e.HResult);
        Assert.Contains(path, e.Message, StringComparison.Ordinal);
        Assert.True(writer.OpenedFile.Handle.IsClosed);
        Assert.True(!replaces || File.ReadAllText(path) == "old");
    }

    [Fact]
    public async Task CompleteAsync_SyncInPlaceOfTheCloseIsInterrupted_IsMadeAgain()
    {
        string path = _folder.File("f");
        RecordedCalls calls = new() { HasNoDescriptor = true, SyncError = call => call == 1 ? Libc.EINTR : 0 };
        FilePipeWriter writer = Write(calls, path, new());
        await writer.WriteAllAsync(Pattern.Bytes(10));
        Assert.Equal(2, calls.Syncs);
    }

    /// <summary>Also where no file can be without a name: then a temporary one is removed.</summary>
    [Theory]
    [InlineData(Libc.EDQUOT, false)]
    [InlineData(Libc.EDQUOT, true)]
    [InlineData(Libc.EIO, false)]
    [InlineData(Libc.EIO, true)]
    [InlineData(Libc.EROFS, false)]
    [InlineData(Libc.EROFS, true)]
    [InlineData(Libc.EOPNOTSUPP, false)]
    [InlineData(Libc.EOPNOTSUPP, true)]
    public async Task Create_PreallocationFails_ThrowsUnlessTheFileSystemCannotPreallocate(
        int errno, bool isNameless)
    {
        FilePipeWriterOptions options = new() { Replace = true, PreallocationSize = 10_000 };
        RecordedCalls calls = new() { AllocateError = errno, NamelessError = isNameless ? 0 : Libc.EOPNOTSUPP };
        Exception? error = await Record.ExceptionAsync(async () =>
        {
            // A thread of the library may still remove the name when Abort returns.
            FilePipeWriter writer = FilePipeWriter.Create(_folder.File("f"), options, calls);
            writer.Abort();
            await writer.CompleteAsync();
        });
        Assert.Equal(errno == Libc.EOPNOTSUPP ? 0 : errno, (error as IOException)?.HResult ?? 0);
        Assert.Empty(Directory.EnumerateFileSystemEntries(_folder.Path));
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task CompleteAsync_DurableNewFile_SyncsItsFolderOnce(bool isPortable)
    {
        RecordedCalls calls = new();
        FilePipeWriter writer = Write(calls, _folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Durable }, isPortable);
        await writer.WriteAsync(Pattern.Bytes(10), _stop);
        await writer.WriteAllAsync(Pattern.Bytes(10));
        Assert.Equal(1, calls.FoldersOpened);
        Assert.Equal("Make Sync SyncFolder Sync", calls.Order);
    }

    [Theory]
    [InlineData(10 * 1024 * 1024, 0)]
    [InlineData(10 * 1024 * 1024, 4096)]
    [InlineData(100_000, 4096)]
    public async Task WriteAsync_DurableAndLarge_IsOneSync(int length, int segmentSize)
    {
        RecordedCalls calls = new();
        FilePipeWriter writer = Write(calls, _folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Durable });
        if (segmentSize == 0)
        {
            await writer.WriteAsync(Pattern.Bytes(length), _stop);
        }
        else
        {
            using PooledMemoryStream content = new();
            for (int index = 0; index < length; index += segmentSize)
            {
                content.Write(Pattern.Bytes(Math.Min(segmentSize, length - index), index));
            }

            content.Position = 0;
            await content.CopyToAsync(writer, _stop);
            Assert.Equal(length, content.Position);
        }

        Assert.Equal(1, calls.Syncs);
        await writer.CompleteAsync();
        Assert.Equal(1, calls.Syncs);
        Assert.True(Pattern.Bytes(length).AsSpan().SequenceEqual(File.ReadAllBytes(_folder.File("f"))));
    }

    [Fact]
    public async Task CompleteAsync_DurableAndPreallocated_TheLengthIsSynced()
    {
        RecordedCalls calls = new();
        string path = _folder.File("f");
        FilePipeWriter writer = Write(calls, path, new() { FlushGuarantee = FlushGuarantee.Durable, PreallocationSize = 100_000 });
        await writer.WriteAsync(Pattern.Bytes(10), _stop);
        Assert.Equal(1, calls.Syncs);
        await writer.CompleteAsync();

        // Room is reserved behind the end, so the length was right from the beginning.
        Assert.Equal(1, calls.Syncs);
        Assert.Equal(10, new FileInfo(path).Length);
    }

    [Theory]
    [InlineData(FlushGuarantee.Written)]
    [InlineData(FlushGuarantee.Durable)]
    public async Task CompleteAsync_Preallocated_WhatOthersAppendBehindTheEndStays(FlushGuarantee guarantee)
        => Assert.Equal(Pattern.Bytes(15),
            await CompletePreallocatedAsync(guarantee, static other => RandomAccess.Write(other, Pattern.Bytes(5, 10), 10)));

    // As logrotate's copytruncate cuts it.
    [Theory]
    [InlineData(FlushGuarantee.Written)]
    [InlineData(FlushGuarantee.Durable)]
    public async Task CompleteAsync_PreallocatedAndCutByOthers_DoesNotMakeItLongerAgain(FlushGuarantee guarantee)
        => Assert.Equal(Pattern.Bytes(4), await CompletePreallocatedAsync(guarantee, static other => RandomAccess.SetLength(other, 4)));

    // The content of a preallocated file of 10 bytes that others change before it is completed.
    private async Task<byte[]> CompletePreallocatedAsync(FlushGuarantee guarantee, Action<SafeFileHandle> change)
    {
        string path = _folder.File("f");
        FilePipeWriterOptions options = new() { FlushGuarantee = guarantee, PreallocationSize = 10_000_000, Share = FileShare.ReadWrite };
        FilePipeWriter writer = FilePipeWriter.Create(path, options);
        await writer.WriteAsync(Pattern.Bytes(10), _stop);
        using (SafeFileHandle other = File.OpenHandle(path, FileMode.Open, FileAccess.Write, FileShare.ReadWrite))
        {
            change(other);
        }

        await writer.CompleteAsync();
        return await File.ReadAllBytesAsync(path, _stop);
    }

    /// <summary>Freeing gigabytes takes time, which no caller of CompleteAsync or Abort is to spend.</summary>
    [Theory]
    [InlineData(0, true)]
    [InlineData(100_000, true)]
    [InlineData(200_000, false)]
    public void MayWaitToClose_WhileRoomIsReserved(long written, bool expected)
    {
        WriterFile file = WriterFile.Open(_folder.File("f"), new() { PreallocationSize = 200_000 });
        Assert.SkipUnless(file.WritesToMemory, "The temporary folder is on a file server, or another file system that is not known.");
        Assert.Equal(expected, file.MayWaitToClose(written));
        file.Close(written, takesName: false);
    }

    /// <summary>The file is deleted when it is closed, which frees its pages and blocks: for gigabytes that takes time, too.</summary>
    [Theory]
    [InlineData(FileOptions.None, false)]
    [InlineData(FileOptions.DeleteOnClose, true)]
    public void MayWaitToClose_WhileTheFileIsToBeDeleted(FileOptions options, bool expected)
    {
        WriterFile file = WriterFile.Open(_folder.File("f"), new() { FileOptions = options });
        Assert.SkipUnless(file.WritesToMemory, "The temporary folder is on a file server, or another file system that is not known.");
        Assert.Equal(expected, file.MayWaitToClose(1 << 30));
        Assert.Equal(expected, file.MayWaitToClose(0));
        file.Close(written: 0, takesName: false);
    }

    /// <summary>A short file that was made or emptied has little to free, whether it was deleted or not.</summary>
    [Theory]
    [InlineData(FileMode.Create, 64 * 1024, false)]
    [InlineData(FileMode.Create, (64 * 1024) + 1, true)]
    [InlineData(FileMode.CreateNew, 64 * 1024, false)]
    [InlineData(FileMode.CreateNew, (64 * 1024) + 1, true)]
    [InlineData(FileMode.OpenOrCreate, 0, true)]
    public void MayWaitToClose_OfADeletedFile_UnlessItIsShort(FileMode mode, long written, bool expected)
    {
        string path = mode == FileMode.CreateNew ? _folder.File("f") : _folder.File("f", [1]);
        WriterFile file = WriterFile.Open(path, new() { Mode = mode });
        Assert.SkipUnless(file.WritesToMemory, "The temporary folder is on a file server, or another file system that is not known.");
        File.Delete(path);
        Assert.Equal(expected, file.MayWaitToClose(written));
        file.Close(written: 0, takesName: false);
    }

    /// <summary>The last pages begin to be written to the device at the end, also if the handle stays open.</summary>
    [Theory]
    [InlineData(FileCaching.Keep, false)]
    [InlineData(FileCaching.DropBehind, true)]
    public void MayWaitToClose_HandleThatStaysOpen_OnlyToDropPages(FileCaching caching, bool expected)
    {
        using SafeFileHandle handle = File.OpenHandle(_folder.File("f"), FileMode.Create, FileAccess.Write);
        WriterFile file = WriterFile.Attach(handle, new() { LeaveOpen = true, Caching = caching });
        Assert.SkipUnless(LocalFileSystems.TakeWrites(FileProperties.Of(handle, null)),
            "The temporary folder is on another file system than those that are known.");
        Assert.Equal(expected, file.MayWaitToClose(1 << 30));
        file.Close(written: 0, takesName: false);
    }

    /// <summary>A server is asked to close a file that it has opened, whatever was written.</summary>
    [Fact]
    public void MayWaitToClose_OnAFileSystemThatIsNotLocal_AlsoIfNothingWasWritten()
    {
        ChildProcess.SkipUnlessLinux();
        WriterFile file = WriterFile.Open("/proc/self/coredump_filter", new() { Mode = FileMode.Open });
        Assert.False(file.WritesToMemory);
        Assert.True(file.MayWaitToClose(0));
        file.Close(written: 0, takesName: false);
    }

    /// <summary>
    /// On FUSE a signal may come before the file system has answered (close(2)): then the descriptor is gone, and the answer was not given.
    /// </summary>
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task CompleteAsync_CloseIsInterrupted_AnotherOneTells(bool hasLostBytes)
    {
        ChildProcess.SkipUnlessLinux();
        string path = _folder.File("f", [1]);
        ScriptedCalls calls = new() { OnCloseCopy = call => call == 1 ? -Libc.EINTR : hasLostBytes ? -Libc.EDQUOT : null };
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true }, calls);
        await writer.WriteAsync(Pattern.Bytes(10), _stop);
        Exception? error = await Record.ExceptionAsync(async () => await writer.CompleteAsync());
        Assert.Equal(hasLostBytes ? Libc.EDQUOT : 0, error?.HResult ?? 0);
        Assert.Equal(hasLostBytes ? [1] : Pattern.Bytes(10), File.ReadAllBytes(path));
    }
}
