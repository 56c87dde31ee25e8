namespace FilePipelines.Tests;

/// <summary><see cref="FileCaching.DropBehind"/>: which calls are made for it, and what is in the page cache afterwards.</summary>
public sealed class CachingTests : FileTests
{
    private const int Step = (int)PagesBehind.Step;
    private const int MiB = 1024 * 1024;

    private static readonly FilePipeReaderOptions s_reading = new() { Caching = FileCaching.DropBehind };
    private static readonly FilePipeWriterOptions s_writing = new() { Caching = FileCaching.DropBehind };

    [Fact]
    public void Caching_ValueThatIsNone_Throws()
    {
        string path = _folder.File("f", [1]);
        Assert.Throws<ArgumentOutOfRangeException>(() => FilePipeReader.Create(path, new() { Caching = (FileCaching)99 }));
        Assert.Throws<ArgumentOutOfRangeException>(() => FilePipeWriter.Create(path, new() { Caching = (FileCaching)99 }));
        Assert.Equal(FileCaching.Keep, new FilePipeReaderOptions().Caching);
        Assert.Equal(FileCaching.Keep, new FilePipeWriterOptions().Caching);
    }

    [Fact]
    public async Task ReadAsync_NothingWasCached_DropsEachStepBehindThePosition()
    {
        SkipUnlessLinux();
        ScriptedCalls calls = new() { OnCountCached = _ => 0 };
        string path = File("f", (2 * Step) + 12_345);
        Assert.Equal((2 * Step) + 12_345, await PatternFile.ReadToEndAsync(calls.Read(path, s_reading)));
        Assert.Equal([("drop", 0), ("drop", Step), ("drop", 2 * Step)], calls.CacheCalls);
    }

    [Fact]
    public async Task ReadAsync_Keep_AsksAndDropsNothing()
    {
        SkipUnlessLinux();
        ScriptedCalls calls = new() { OnCountCached = _ => throw new InvalidOperationException("Asked.") };
        Assert.Equal(Step + 1, await PatternFile.ReadToEndAsync(calls.Read(File("f", Step + 1))));
        Assert.Empty(calls.CacheCalls);
    }

    [Theory]
    [InlineData(1), InlineData(MiB), InlineData(Step)]
    public async Task ReadAsync_PagesOfAStepWereCached_LeavesThatStep(int cached)
    {
        SkipUnlessLinux();
        ScriptedCalls calls = new() { OnCountCached = offset => offset == Step ? cached : 0 };
        Assert.Equal(3 * Step, await PatternFile.ReadToEndAsync(calls.Read(File("f", 3 * Step), s_reading)));
        Assert.Equal([("drop", 0), ("drop", 2 * Step)], calls.CacheCalls);
    }

    [Theory]
    [InlineData(Libc.EPERM), InlineData(Libc.ENOSYS)]
    public async Task ReadAsync_SystemDoesNotTellWhatIsCached_DropsAll(int errno)
    {
        SkipUnlessLinux();
        ScriptedCalls calls = new() { OnCountCached = _ => -errno };
        Assert.Equal(Step + 1, await PatternFile.ReadToEndAsync(calls.Read(File("f", Step + 1), s_reading)));
        Assert.Equal([("drop", 0), ("drop", Step)], calls.CacheCalls);
    }

    /// <summary>Opening examines a file of any length with about a thousand calls.</summary>
    [Theory]
    [InlineData(1L << 33, 1 << 23)]
    [InlineData(1L << 40, 1 << 30)]
    [InlineData((1L << 40) + 1, (1 << 30) + Step)]
    [InlineData(1L << 62, 1L << 52)]
    [InlineData(long.MaxValue, 1L << 53)]
    public void Open_HugeFile_IsExaminedInLargeParts(long length, long part)
    {
        SkipUnlessLinux();
        List<long> looks = [];
        ScriptedCalls calls = new()
        {
            OnCountCached = offset =>
            {
                looks.Add(offset);
                return 0;
            },
        };
        using SafeFileHandle handle = System.IO.File.OpenHandle(File("f", 1));
        _ = new PagesBehind(calls, handle, length, isWriter: false);
        Assert.InRange(looks.Count, 1000, 1024);
        Assert.Equal(part, looks[1]);
        Assert.InRange(looks[^1], length - part, length - 1);
    }

    [Fact]
    public async Task WriteAsync_EachStep_IsDroppedWhenItIsOnTheDevice()
    {
        SkipUnlessLinux();
        ScriptedCalls calls = new();
        string path = _folder.File("f");
        await WriteAsync(calls.Write(path, s_writing), (3 * Step) + 1, MiB);
        Assert.Equal(
            [("write", 0), ("wait", 0), ("drop", 0), ("write", Step), ("wait", Step), ("drop", Step), ("write", 2 * Step),
                ("drop", 2 * Step), ("drop", 3 * Step)],
            calls.CacheCalls);
        await AssertPatternAsync(path, (3 * Step) + 1);
    }

    /// <summary>The answer has moved the error cursor of the open file: no later sync would be told.</summary>
    [Theory]
    [InlineData(Libc.EIO, false), InlineData(Libc.EIO, true), InlineData(Libc.ENOSPC, true), InlineData(Libc.EROFS, true)]
    public async Task WriteAsync_WriteBackHasFailed_FailsTheWriter(int errno, bool waits)
    {
        SkipUnlessLinux();
        string path = _folder.File("f");
        ScriptedCalls calls = new() { OnWriteCached = waited => waited == waits ? -errno : null };
        FilePipeWriter writer = calls.Write(path, new() { Caching = FileCaching.DropBehind, FlushGuarantee = FlushGuarantee.Written });
        IOException e = await Assert.ThrowsAsync<IOException>(async () =>
        {
            for (int offset = 0; offset < 3 * Step; offset += MiB)
            {
                await writer.WriteAsync(Pattern.Bytes(MiB, offset), _stop);
            }
        });
        Assert.Equal(errno, e.HResult);
        Assert.Contains(path, e.Message, StringComparison.Ordinal);
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(async () => await writer.FlushAsync(FlushGuarantee.Durable, _stop)));
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync()));
    }

    /// <summary>A signal comes in one call, and the error in the next one: making the first one again must not drop the second's.</summary>
    [Fact]
    public async Task WriteAsync_WriteBackIsInterruptedAndThenFails_FailsTheWriter()
    {
        SkipUnlessLinux();
        int waits = 0;
        int begins = 0;
        ScriptedCalls calls = new()
        {
            OnWriteCached = waited => waited ? ++waits == 1 ? -Libc.EINTR : null : ++begins == 2 ? -Libc.EIO : null,
        };
        FilePipeWriter writer = calls.Write(_folder.File("f"), s_writing);
        IOException e = await Assert.ThrowsAsync<IOException>(() => WriteAsync(writer, 3 * Step, MiB));
        Assert.Equal(Libc.EIO, e.HResult);
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync()));
    }

    [Theory]
    [InlineData(Libc.ENOSYS), InlineData(Libc.EPERM), InlineData(Libc.EINVAL)]
    public async Task WriteAsync_SystemDoesNotKnowWriteBack_GoesOn(int errno)
    {
        SkipUnlessLinux();
        string path = _folder.File("f");
        ScriptedCalls calls = new() { OnWriteCached = _ => -errno };
        await WriteAsync(calls.Write(path, s_writing), 3 * Step, MiB);
        await AssertPatternAsync(path, 3 * Step);
    }

    [Fact]
    public async Task WriteAsync_PagesOfAStepWereCached_AreNotDropped()
    {
        SkipUnlessLinux();
        string path = File("f", 2 * Step);
        using SafeFileHandle handle = System.IO.File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite);
        ScriptedCalls calls = new() { OnCountCached = offset => offset == 0 ? MiB : 0 };
        await WriteAsync(calls.Write(handle, s_writing), 2 * Step, MiB);
        Assert.DoesNotContain(("drop", 0L), calls.CacheCalls);
        Assert.Contains(("drop", (long)Step), calls.CacheCalls);
        await AssertPatternAsync(path, 2 * Step);
    }

    [Theory]
    [InlineData(0, 0)]
    [InlineData(12_345, 0)]
    [InlineData(0, 4 * MiB)]
    public async Task ReadAsync_ColdFile_PageCacheDoesNotGrow(int offset, int readAhead)
    {
        string path = ColdFile(64 * MiB);
        FilePipeReader reader = FilePipeReader.Create(
            path, new() { Caching = FileCaching.DropBehind, Offset = offset, PauseReadAheadThreshold = readAhead });
        Assert.Equal(64 * MiB, await PatternFile.ReadToEndAsync(reader, offset));
        Assert.InRange(Cached(path, 0, 64 * MiB), 0, 2 * MiB);
    }

    [Fact]
    public async Task CopyToAsync_ColdFile_PageCacheGrowsByNeither()
    {
        string path = ColdFile(64 * MiB);
        string copy = _folder.File("copy");
        await using (FilePipeReader reader = FilePipeReader.Create(path, s_reading))
        await using (FilePipeWriter writer = FilePipeWriter.Create(
            copy, new() { Caching = FileCaching.DropBehind, Replace = true, FlushGuarantee = FlushGuarantee.Durable }))
        {
            await reader.CopyToAsync(writer, _stop);
            await writer.CompleteAsync();
        }

        Assert.InRange(Cached(path, 0, 64 * MiB), 0, 2 * MiB);
        Assert.InRange(Cached(copy, 0, 64 * MiB), 0, 2 * MiB);
        await AssertPatternAsync(copy, 64 * MiB);
    }

    [Fact]
    public async Task ReadAsync_PagesThatAnotherReaderHasCached_Stay()
    {
        string path = ColdFile(64 * MiB);
        using (SafeFileHandle other = System.IO.File.OpenHandle(path, options: FileOptions.RandomAccess))
        {
            // A whole step, a part of one, and single pages.
            byte[] bytes = new byte[Step];
            Assert.Equal(Step, RandomAccess.Read(other, bytes, Step));
            Assert.Equal(MiB, RandomAccess.Read(other, bytes.AsSpan(0, MiB), (3 * Step) + MiB));
            for (int i = 0; i < 10; i++)
            {
                Assert.Equal(100, RandomAccess.Read(other, bytes.AsSpan(0, 100), (5 * Step) + (i * 100_000)));
            }
        }

        long before = Cached(path, 0, 64 * MiB);
        Assert.SkipWhen(before == 0, "The file system does not tell what it has cached (overlayfs: the pages are those of another file).");
        Assert.InRange(before, Step + MiB, 32 * MiB);
        Assert.Equal(64 * MiB, await PatternFile.ReadToEndAsync(FilePipeReader.Create(path, s_reading)));

        // The kernel may take pages of its own accord at any time, but hardly most of them.
        Assert.InRange(Cached(path, Step, Step), Step / 2, Step);
        Assert.InRange(Cached(path, (3 * Step) + MiB, MiB), MiB / 2, MiB);
        Assert.InRange(Enumerable.Range(0, 10).Count(i => Cached(path, (5 * Step) + (i * 100_000), 100) > 0), 5, 10);
        Assert.InRange(Cached(path, 0, 64 * MiB), before / 2, before + (2 * Step));
    }

    [Theory]
    [InlineData(FlushGuarantee.WriteBehind, MiB)]
    [InlineData(FlushGuarantee.Durable, 8 * MiB)]
    [InlineData(FlushGuarantee.Written, 10_000)]
    public async Task WriteAsync_LargeFile_PageCacheDoesNotGrow(FlushGuarantee guarantee, int flush)
    {
        // Only to skip where nothing can be told.
        _ = ColdFile(MiB);
        string path = _folder.File("written");
        await WriteAsync(
            FilePipeWriter.Create(path, new() { Caching = FileCaching.DropBehind, FlushGuarantee = guarantee }), 64 * MiB, flush);

        // Without a sync of the writer's, the last two steps stay, because they may be on their way to the device.
        using (SafeFileHandle handle = System.IO.File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite))
        {
            RandomAccess.FlushToDisk(handle);
        }

        Assert.InRange(Cached(path, 0, 64 * MiB), 0, guarantee == FlushGuarantee.Durable ? Step : 2 * Step);
        await AssertPatternAsync(path, 64 * MiB);
    }

    [Fact]
    public async Task ReadAsync_FollowedAndAppendedTo_EveryByteComes()
    {
        string path = File("f", 100_000);
        await using FilePipeReader reader = FilePipeReader.Create(
            path, new() { Caching = FileCaching.DropBehind, Follow = true, FollowInterval = TimeSpan.FromMilliseconds(20) });
        await using FilePipeWriter writer = FilePipeWriter.Create(
            path, new() { Caching = FileCaching.DropBehind, Mode = FileMode.Append, Share = FileShare.ReadWrite | FileShare.Delete });
        Task<long> reading = PatternFile.ReadToEndAsync(reader);
        for (int index = 100_000; index < 300_000; index += 1000)
        {
            await writer.WriteAsync(Pattern.Bytes(1000, index), _stop);
        }

        await writer.CompleteAsync();
        GrowingFile.Delete(path);
        Assert.Equal(300_000, await GrowingFile.Bounded(reading));
    }

    [Fact]
    public async Task ReadAsync_HandleThatIsLeftOpenOrClosedByItsOwner_IsHarmless()
    {
        string path = File("f", 100_000);
        using SafeFileHandle handle = System.IO.File.OpenHandle(path);
        Assert.Equal(100_000,
            await PatternFile.ReadToEndAsync(FilePipeReader.Create(handle, new() { Caching = FileCaching.DropBehind, LeaveOpen = true })));
        Assert.False(handle.IsClosed);
        FilePipeReader reader = FilePipeReader.Create(handle, s_reading);
        ReadResult result = await reader.ReadAsync(_stop);
        reader.AdvanceTo(result.Buffer.End);
        handle.Dispose();
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task ReadAsync_FifoAndMadeUpFile_AreReadAsEver()
    {
        SkipUnlessLinux();
        FilePipeReader reader = FilePipeReader.Create("/proc/self/status", s_reading);
        ReadResult result = await reader.ReadAtLeastAsync(int.MaxValue / 2, _stop);
        Assert.InRange(result.Buffer.Length, 100, 100_000);
        await reader.CompleteAsync();
    }

    private static void SkipUnlessLinux()
        => Assert.SkipUnless(OperatingSystem.IsLinux(), "The page cache is left to the system elsewhere.");

    private static long Cached(string path, long offset, long length)
    {
        using SafeFileHandle handle = System.IO.File.OpenHandle(path, share: FileShare.ReadWrite);
        return UnixCalls.Default.CountCached(handle, offset, length);
    }

    private string File(string name, int length) => _folder.File(name, Pattern.Bytes(length));

    /// <summary>A file that holds the pattern, and of which nothing is in the page cache.</summary>
    private string ColdFile(int length)
    {
        SkipUnlessLinux();
        string path = File("cold", length);
        using (SafeFileHandle handle = System.IO.File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite))
        {
            RandomAccess.FlushToDisk(handle);
            UnixCalls.Default.DropCached(handle, 0, 0);
        }

        Assert.SkipUnless(Cached(path, 0, length) == 0, "The system does not tell what is cached, or the file is in memory.");
        return path;
    }

    private async Task WriteAsync(FilePipeWriter writer, int length, int flush)
    {
        for (int index = 0; index < length; index += flush)
        {
            await writer.WriteAsync(Pattern.Bytes(Math.Min(flush, length - index), index), _stop);
        }

        await writer.CompleteAsync();
    }

    private static async Task AssertPatternAsync(string path, long length)
        => Assert.Equal(length, await PatternFile.ReadToEndAsync(FilePipeReader.Create(path)));
}
