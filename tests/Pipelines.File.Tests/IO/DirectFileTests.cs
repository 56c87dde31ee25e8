using System.Diagnostics;
using System.IO.Pipelines;
using FilePipelinesChild;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;
using Pipelines.File.IO;

namespace FilePipelinesTests;

/// <summary>
/// <see cref="FileCaching.Direct"/>: what it refuses, what it leaves in the page cache, and what comes of calls that fail.
/// <see cref="DirectFuzzTests"/> has the bytes.
/// </summary>
public sealed class DirectFileTests : IDisposable
{
    private const int Block = 4096;
    private const int Call = DirectFile.BytesPerCall;
    private const int MiB = 1024 * 1024;

    private static readonly FilePipeReaderOptions s_reading = new() { Caching = FileCaching.Direct };
    private static readonly FilePipeWriterOptions s_writing = new() { Caching = FileCaching.Direct };

    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public DirectFileTests() => Assert.SkipUnless(FileOpening.IsLinux, "Linux only.");

    public void Dispose() => _folder.Dispose();

    [Fact]
    public void Options_ThatContradictIt_Throw()
    {
        string path = File("f", 100);
        Assert.Throws<ArgumentException>(() => FilePipeReader.Create(path, new() { Caching = FileCaching.Direct, Follow = true }));
        Assert.Throws<ArgumentException>(() => FilePipeReader.Create(path, new() { ReadsInFlight = 1 }));
        Assert.Throws<ArgumentException>(() => FilePipeReader.Create(path, new() { Caching = FileCaching.DropBehind, ReadsInFlight = 1 }));
        Assert.Throws<ArgumentException>(() => FilePipeWriter.Create(path, new() { Caching = FileCaching.Direct, Mode = FileMode.Append }));
        Assert.Throws<ArgumentException>(() => FilePipeWriter.Create(path, new() { WritesInFlight = 1 }));
        Assert.Throws<ArgumentException>(() => FilePipeReader.OpenStandardInput(s_reading));
        Assert.Throws<ArgumentException>(() => FilePipeWriter.OpenStandardOutput(s_writing));
        Assert.Throws<ArgumentOutOfRangeException>(() => new FilePipeReaderOptions { ReadsInFlight = 17 });
        Assert.Throws<ArgumentOutOfRangeException>(() => new FilePipeReaderOptions { ReadsInFlight = -1 });
        Assert.Throws<ArgumentOutOfRangeException>(() => new FilePipeWriterOptions { WritesInFlight = 17 });
        Assert.Throws<ArgumentOutOfRangeException>(() => new FilePipeWriterOptions { WritesInFlight = -1 });
        Assert.Throws<PlatformNotSupportedException>(
            () => FilePipeReader.Create(path, new() { Caching = FileCaching.Direct, Backend = FilePipeBackend.Portable }));
        Assert.Equal(Pattern.Bytes(100), System.IO.File.ReadAllBytes(path));
    }

    [Fact]
    public void Create_HandleThatAppends_Throws()
    {
        using SafeFileHandle handle = new(Libc.Open(File("f", 100), Libc.O_WRONLY | Libc.O_APPEND | Libc.O_CLOEXEC), ownsHandle: true);
        Assert.Throws<ArgumentException>(() => FilePipeWriter.Create(handle, s_writing));
        Assert.False(handle.IsClosed);
    }

    [Fact]
    public async Task Create_FileWithoutDirectIo_ThrowsWhatNamesItAndClosesIt()
    {
        NotSupportedException e = Assert.Throws<NotSupportedException>(() => FilePipeReader.Create("/proc/version", s_reading));
        Assert.Contains("/proc/version", e.Message, StringComparison.Ordinal);
        Assert.Contains("O_DIRECT", e.Message, StringComparison.Ordinal);
        Assert.Equal(0, OpenHandles.Of("/proc/version"));
        string fifo = Fifo.Make(_folder);
        using FileStream both = new(fifo, FileMode.Open, FileAccess.ReadWrite);
        Assert.Throws<NotSupportedException>(() => FilePipeReader.Create(fifo, s_reading));
        await Assert.ThrowsAsync<NotSupportedException>(
            async () => await FilePipeWriter.OpenAsync(fifo, s_writing with { Mode = FileMode.Open }, _stop));
        Assert.Throws<NotSupportedException>(() => FilePipeWriter.Create("/dev/null", s_writing));
    }

    [Theory]
    [InlineData(FileMode.Create, false)]
    [InlineData(FileMode.CreateNew, false)]
    [InlineData(FileMode.Create, true)]
    public void Create_NewFileOfASystemWithoutDirectIo_LeavesNothing(FileMode mode, bool replaces)
    {
        using SafeFileHandle handle = System.IO.File.OpenHandle(_folder.File("f"), FileMode.Create, FileAccess.Write);
        DirectScript calls = new() { HasDirect = false };
        Assert.Throws<NotSupportedException>(() => calls.Write(handle, s_writing));
        Assert.False(handle.IsClosed);
        System.IO.File.Delete(_folder.File("f"));
        FilePipeWriterOptions options = s_writing with { Mode = mode, Replace = replaces };
        if (replaces)
        {
            Assert.Throws<NotSupportedException>(() => FilePipeWriter.Create(_folder.File("g"), options, calls));
        }
        else
        {
            // /proc has no direct I/O, and no new file either; so a file that is made new by its path.
            OpenedFile opened = calls.Open(_folder.File("g"), mode, FileAccess.Write);
            opened.IsNew = true;
            Assert.Throws<NotSupportedException>(() => FilePipeWriter.Create(opened, options, leaveOpen: false, isOpenedByPath: true));
            Assert.True(opened.Handle.IsClosed);
        }

        Assert.Empty(Directory.GetFiles(_folder.Path, "*", new EnumerationOptions { AttributesToSkip = 0 }));
    }

    [Fact]
    public async Task Create_KernelThatDoesNotTellBlocks_ReadsAndWritesAllTheSame()
    {
        DirectScript calls = new() { TellsBlocks = false };
        string path = _folder.File("f");
        await WriteAsync(calls.Write(path, s_writing), MiB + 123, 10_000);
        Assert.Equal(MiB + 123, await PatternFile.ReadToEndAsync(calls.Read(path, s_reading)));
        Assert.True(calls.DirectReads > 0 && calls.DirectWrites > 0);
    }

    [Fact]
    public async Task ReadAndWrite_ByPath_PassO_DIRECT()
    {
        string path = _folder.File("f");
        FilePipeWriter writer = Direct.Open(() => FilePipeWriter.Create(path, s_writing));
        Assert.True(IsDirect(writer.OpenedFile.Handle));
        await writer.WriteAsync(Pattern.Bytes(100), _stop);
        await writer.CompleteAsync();
        FilePipeReader reader = FilePipeReader.Create(path, s_reading);
        Assert.True(IsDirect(reader.OpenedFile.Handle));
        Assert.Equal(FilePipeBackend.ThreadPool, reader.Backend);
        Assert.Equal(100, reader.Length);
        Assert.Equal(100, await PatternFile.ReadToEndAsync(reader));
    }

    [Fact]
    public async Task ReadAndWrite_CallersHandle_KeepsItsFlagsAndIsLeftOpen()
    {
        string path = _folder.File("f");
        using SafeFileHandle handle = System.IO.File.OpenHandle(path, FileMode.Create, FileAccess.ReadWrite);
        int open = OpenHandles.Of(path);
        FilePipeWriter writer = Direct.Open(() => FilePipeWriter.Create(handle, new() { Caching = FileCaching.Direct, LeaveOpen = true }));
        await writer.WriteAsync(Pattern.Bytes(MiB + 100), _stop);
        Assert.False(IsDirect(handle));
        await writer.CompleteAsync();
        FilePipeReader reader = FilePipeReader.Create(handle, new() { Caching = FileCaching.Direct, LeaveOpen = true });
        Assert.Equal(MiB + 100, await PatternFile.ReadToEndAsync(reader));
        Assert.False(IsDirect(handle));
        Assert.False(handle.IsClosed);
        Assert.Equal(open, OpenHandles.Of(path));
    }

    [Theory]
    [InlineData(1)]
    [InlineData(8)]
    [InlineData(512)]
    public async Task Pool_MemoryThatIsNotAligned_ThrowsAndLeaksNothing(int misalignment)
    {
        string path = File("f", MiB);
        using AlignedPool pool = new() { Misalignment = misalignment };
        FilePipeReader reader = Direct.Open(() => FilePipeReader.Create(path, new() { Caching = FileCaching.Direct, Pool = pool }));
        await Assert.ThrowsAsync<ArgumentException>(async () => await reader.ReadAsync(_stop));
        await Assert.ThrowsAsync<ArgumentException>(async () => await reader.ReadAsync(_stop));
        await reader.CompleteAsync();
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Caching = FileCaching.Direct, Pool = pool, Mode = FileMode.Open });
        Assert.Throws<ArgumentException>(() => writer.GetMemory());
        await Assert.ThrowsAsync<ArgumentException>(async () => await writer.WriteAsync(new byte[10], _stop));
        await writer.CompleteAsync();
        Assert.Equal(0, pool.Rented);
        Assert.Equal(MiB, await PatternFile.ReadToEndAsync(FilePipeReader.Create(path)));
    }

    [Theory]
    [InlineData(0, 4096)]
    [InlineData(100, 65_536)]
    [InlineData(5000, 10_000)]
    public async Task Pool_AlignedMemory_ReadsAndWrites(int offset, int bufferSize)
    {
        const int Length = MiB + 123;
        string path = _folder.File("f");
        using AlignedPool pool = new();
        await WriteAsync(Direct.Open(() => FilePipeWriter.Create(
            path, new() { Caching = FileCaching.Direct, Pool = pool, MinimumBufferSize = bufferSize })), Length, 7000);
        FilePipeReader reader = FilePipeReader.Create(
            path, new() { Caching = FileCaching.Direct, Pool = pool, BufferSize = bufferSize, Offset = offset });
        Assert.Equal(Length, await PatternFile.ReadToEndAsync(reader, offset));
        Assert.Equal(0, pool.Rented);
    }

    /// <summary>
    /// Blocks go to and from the memory of the library's own pool as it is: a call each, and none more for what is not aligned.
    /// </summary>
    [Fact]
    public async Task ReadAndWrite_WholeBlocks_MakeDirectCallsOnly()
    {
        DirectScript calls = new();
        string path = _folder.File("f");
        await WriteAsync(calls.Write(path, s_writing), 8 * MiB, MiB);
        Assert.Equal(0, calls.BufferedWrites);
        Assert.InRange(calls.DirectWrites, 8 * MiB / Call, (8 * MiB / Call) + 8);
        Assert.Equal(8 * MiB, await PatternFile.ReadToEndAsync(calls.Read(path, s_reading)));
        Assert.InRange(calls.DirectReads, 8 * MiB / Call, (8 * MiB / Call) + 2);
    }

    [Theory]
    [InlineData(0, 0)]
    [InlineData(12_345, 0)]
    [InlineData(0, 1)]
    public async Task ReadAsync_ColdFile_NothingOfItIsInThePageCache(int offset, int readAhead)
    {
        string path = ColdFile(64 * MiB);
        FilePipeReader reader = FilePipeReader.Create(
            path, new() { Caching = FileCaching.Direct, Offset = offset, PauseReadAheadThreshold = readAhead });
        Assert.Equal(64 * MiB, await PatternFile.ReadToEndAsync(reader, offset));
        Assert.Equal(0, Cached(path, 64 * MiB));
    }

    [Theory]
    [InlineData(FlushGuarantee.WriteBehind, 10_000, 0)]
    [InlineData(FlushGuarantee.WriteBehind, 300_000, 64 * MiB)]
    [InlineData(FlushGuarantee.Durable, 8 * MiB, 0)]
    public async Task WriteAsync_LargeFile_NextToNothingOfItIsInThePageCache(FlushGuarantee guarantee, int flush, int preallocated)
    {
        _ = ColdFile(MiB);
        string path = _folder.File("written");
        await WriteAsync(FilePipeWriter.Create(
            path, new() { Caching = FileCaching.Direct, FlushGuarantee = guarantee, PreallocationSize = preallocated }), 64 * MiB, flush);
        using (SafeFileHandle handle = System.IO.File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite))
        {
            RandomAccess.FlushToDisk(handle);
        }

        // Less than 1 % on a machine that is not busy. A page that was still on its way to the device when it was its turn stays.
        Assert.InRange(Cached(path, 64 * MiB), 0, 64 * MiB / 10);
        Assert.Equal(64 * MiB, await PatternFile.ReadToEndAsync(FilePipeReader.Create(path)));
    }

    [Theory]
    [InlineData(0)]
    [InlineData(1)]
    [InlineData(Block - 1)]
    [InlineData(Block)]
    [InlineData(Call)]
    [InlineData((4 * Call) + 1)]
    public async Task ReadAsync_FileThatGrows_GoesOn(int length)
    {
        string path = File("f", length);
        FilePipeReader reader =
            Direct.Open(() => FilePipeReader.Create(path, new() { Caching = FileCaching.Direct, Share = FileShare.ReadWrite }));
        long index = 0;
        foreach (int grown in (int[])[0, 1, 100, Block, (2 * Call) + 5])
        {
            using (FileStream stream = new(path, FileMode.Append, FileAccess.Write, FileShare.ReadWrite))
            {
                stream.Write(Pattern.Bytes(grown, length));
            }

            length += grown;
            ReadResult result;
            do
            {
                result = await reader.ReadAsync(_stop);
                foreach (ReadOnlyMemory<byte> memory in result.Buffer)
                {
                    Assert.Equal(-1, Pattern.FirstDifference(memory.Span, index));
                    index += memory.Length;
                }

                reader.AdvanceTo(result.Buffer.End);
            }
            while (!result.IsCompleted || index < length);
            Assert.Equal(length, index);
        }

        await reader.CompleteAsync();
    }

    [Fact]
    public async Task ReadAsync_FileThatIsCut_EndsThere()
    {
        string path = File("f", 16 * MiB);
        FilePipeReader reader = Direct.Open(() => FilePipeReader.Create(
            path, new() { Caching = FileCaching.Direct, ReadsInFlight = 1, PauseReadAheadThreshold = 1, Share = FileShare.ReadWrite }));
        ReadResult result = await reader.ReadAsync(_stop);
        long index = result.Buffer.Length;
        using (SafeFileHandle handle = System.IO.File.OpenHandle(path, FileMode.Open, FileAccess.Write, FileShare.ReadWrite))
        {
            RandomAccess.SetLength(handle, (8 * MiB) + 77);
        }

        reader.AdvanceTo(result.Buffer.End);
        Assert.Equal((8 * MiB) + 77, await PatternFile.ReadToEndAsync(reader, index));
    }

    /// <summary>
    /// Four calls are under way, and the third fails: what the first two have read comes first, then the error, again and again, and
    /// nothing of the fourth.
    /// </summary>
    [Fact]
    public async Task ReadAsync_ErrorInTheMiddle_ComesBehindTheBytesInFrontOfIt()
    {
        string path = File("f", 4 * MiB);
        DirectScript calls = new() { OnDirect = (isWrite, offset) => offset == 2 * Call ? -Libc.EIO : null };
        FilePipeReader reader = calls.Read(path, s_reading with { ReadsInFlight = 4 });
        ReadResult result = await reader.ReadAtLeastAsync(2 * Call, _stop);
        Assert.Equal(2 * Call, result.Buffer.Length);
        Assert.False(result.IsCompleted);
        reader.AdvanceTo(result.Buffer.End);
        IOException e = await Assert.ThrowsAsync<IOException>(async () => await reader.ReadAsync(_stop));
        Assert.Contains(path, e.Message, StringComparison.Ordinal);
        Assert.Equal(Libc.EIO, e.HResult);
        await Assert.ThrowsAsync<IOException>(async () => await reader.ReadAsync(_stop));
        await reader.CompleteAsync();
    }

    [Theory]
    [InlineData(Block)]
    [InlineData(512)]
    public async Task ReadAsync_ShortAndInterruptedCalls_EveryByteComesOnce(int most)
    {
        string path = File("f", (3 * MiB) + 100);
        int call = 0;
        DirectScript calls = new()
        {
            OnDirect = (_, _) => (Interlocked.Increment(ref call) % 5) switch { 0 => -Libc.EINTR, 1 => most, 2 => 5 * Block, _ => null }
        };
        Assert.Equal((3 * MiB) + 100, await PatternFile.ReadToEndAsync(calls.Read(path, s_reading)));
    }

    [Fact]
    public async Task ReadAsync_SystemRefusesTheBlock_ThrowsWhatSaysSo()
    {
        string path = File("f", MiB);
        DirectScript calls = new() { OnDirect = (_, _) => -Libc.EINVAL };
        FilePipeReader reader = calls.Read(path, s_reading);
        IOException e = await Assert.ThrowsAsync<IOException>(async () => await reader.ReadAsync(_stop));
        Assert.Contains("O_DIRECT", e.Message, StringComparison.Ordinal);
        Assert.Contains(path, e.Message, StringComparison.Ordinal);
        await reader.CompleteAsync();
    }

    [Theory]
    [InlineData(Libc.EIO)]
    [InlineData(Libc.ENOSPC)]
    [InlineData(Libc.EINVAL)]
    public async Task WriteAsync_WriteThatFails_LeavesAPrefix(int errno)
    {
        string path = _folder.File("f");
        DirectScript calls = new() { OnDirect = (isWrite, offset) => isWrite && offset >= 3 * Call ? -errno : null };
        FilePipeWriter writer = calls.Write(path, s_writing with { WritesInFlight = 4 });
        Exception? thrown = await Record.ExceptionAsync(() => WriteAsync(writer, 8 * MiB, 100_001));
        Assert.Contains(path, Assert.IsType<IOException>(thrown).Message, StringComparison.Ordinal);
        await Assert.ThrowsAsync<IOException>(async () => await writer.FlushAsync(_stop));
        Assert.Equal(writer.Position, new FileInfo(path).Length);
        Assert.InRange(writer.Position, 1, 4 * Call);
        await Record.ExceptionAsync(async () => await writer.CompleteAsync());
        Assert.Equal(writer.Position, await PatternFile.ReadToEndAsync(FilePipeReader.Create(path)));
    }

    [Theory]
    [InlineData(0)]
    [InlineData(8 * MiB)]
    public async Task WriteAsync_ShortAndInterruptedWrites_IsTheFile(int preallocated)
    {
        string path = _folder.File("f");
        int call = 0;
        DirectScript calls = new()
        {
            OnDirect = (_, _) => (Interlocked.Increment(ref call) % 5) switch { 0 => -Libc.EINTR, 1 => 3 * Block, 2 => 512, _ => null }
        };
        using (FileStream stream = System.IO.File.Create(path))
        {
            stream.SetLength(preallocated);
        }

        SafeFileHandle handle = System.IO.File.OpenHandle(path, FileMode.Open, FileAccess.Write);
        await WriteAsync(calls.Write(handle, s_writing), 8 * MiB, MiB);
        Assert.Equal(8 * MiB, await PatternFile.ReadToEndAsync(FilePipeReader.Create(path)));
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task WriteAsync_CallsInFlight_OneWhereTheFileGrowsAndSeveralWithinItsLength(bool isReserved)
    {
        string path = _folder.File("f");
        using (FileStream stream = System.IO.File.Create(path))
        {
            stream.SetLength(isReserved ? 16 * MiB : 0);
        }

        using Barrier barrier = new(isReserved ? 3 : 1);
        int underWay = 0;
        int most = 0;
        DirectScript calls = new()
        {
            OnDirect = (isWrite, _) =>
            {
                int now = Interlocked.Increment(ref underWay);
                most = Math.Max(most, now);
                barrier.SignalAndWait(200, _stop);
                Interlocked.Decrement(ref underWay);
                return null;
            },
        };
        SafeFileHandle handle = System.IO.File.OpenHandle(path, FileMode.Open, FileAccess.Write);
        FilePipeWriter writer = calls.Write(
            handle, new() { Caching = FileCaching.Direct, WritesInFlight = 3, PauseWriterThreshold = 32 * MiB });
        await writer.WriteAsync(Pattern.Bytes(6 * Call), _stop);
        await writer.CompleteAsync();
        Assert.Equal(isReserved ? 3 : 1, most);
        Assert.Equal(-1, Pattern.FirstDifference(System.IO.File.ReadAllBytes(path).AsSpan(0, 6 * Call)));
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task CancelOrComplete_FourReadsInFlight_NeitherLosesABytesNorReleasesBeforeTheLastHasEnded(bool completes)
    {
        string path = File("f", 16 * MiB);
        using ManualResetEventSlim goesOn = new();
        using CountdownEvent begun = new(4);
        int calls = 0;
        DirectScript script = new()
        {
            OnDirect = (_, _) =>
            {
                if (Interlocked.Increment(ref calls) <= 4)
                {
                    begun.Signal();
                    goesOn.Wait(_stop);
                }

                return null;
            },
        };
        FilePipeReader reader = script.Read(path, s_reading with { ReadsInFlight = 4 });
        SafeFileHandle handle = reader.OpenedFile.Handle;
        ValueTask<ReadResult> read = reader.ReadAsync(_stop);
        Assert.True(begun.Wait(TimeSpan.FromSeconds(30), _stop));
        if (completes)
        {
            reader.Complete();
            await Assert.ThrowsAsync<InvalidOperationException>(async () => await read);
            Assert.False(handle.IsClosed);
            ValueTask released = reader.CompleteAsync();
            Assert.False(released.IsCompleted);
            goesOn.Set();
            await released;
            Assert.True(handle.IsClosed);
            return;
        }

        reader.CancelPendingRead();
        Assert.True((await read).IsCanceled);
        using CancellationTokenSource canceled = new();
        ValueTask<ReadResult> second = reader.ReadAsync(canceled.Token);
        await canceled.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(async () => await second);
        goesOn.Set();
        Assert.Equal(16 * MiB, await PatternFile.ReadToEndAsync(reader));
    }

    [Fact]
    public async Task Abort_WritesInFlight_ClosesWhenTheyHaveEnded()
    {
        using ManualResetEventSlim goesOn = new();
        using ManualResetEventSlim begun = new();
        DirectScript script = new()
        {
            OnDirect = (_, _) =>
            {
                begun.Set();
                goesOn.Wait(_stop);
                return null;
            },
        };
        FilePipeWriter writer = script.Write(_folder.File("f"), s_writing);
        SafeFileHandle handle = writer.OpenedFile.Handle;
        ValueTask<FlushResult> flush = writer.WriteAsync(Pattern.Bytes(2 * MiB), _stop);
        Assert.True(begun.Wait(TimeSpan.FromSeconds(30), _stop));
        writer.Abort();
        Assert.False(handle.IsClosed);
        goesOn.Set();
        await Record.ExceptionAsync(async () => await flush);
        await writer.DisposeAsync();
        Assert.True(handle.IsClosed);
    }

    [Theory]
    [InlineData("Written", 100_001)]
    [InlineData("WriteBehind", 1 << 20)]
    public async Task Write_KilledInTheMiddle_LeavesAPrefix(string guarantee, int chunk)
    {
        for (int kill = 0; kill < 4; kill++)
        {
            string path = _folder.File("killed");
            System.IO.File.Delete(path);
            using Process process = ChildProcess.Start(
                "exec " + ChildProcess.Command("direct", path, "100000000000", $"{chunk}", guarantee));
            await Eventually.TrueAsync(() => System.IO.File.Exists(path) && new FileInfo(path).Length > 0);
            await Task.Delay(Random.Shared.Next(200), _stop);
            process.Kill();
            await process.WaitForExitAsync(_stop);
            long length = new FileInfo(path).Length;
            Assert.Equal(length, await PatternFile.ReadToEndAsync(FilePipeReader.Create(path)));
        }
    }

    /// <summary>As root: a file system whose block is a quarter of ours, and one in memory.</summary>
    [Theory]
    [InlineData("truncate -s 96M '{0}.img' && mkfs.ext4 -q -b 1024 '{0}.img' && mount -o loop '{0}.img' '{0}'")]
    [InlineData("mount -t tmpfs none '{0}'")]
    public async Task ReadAndWrite_OtherFileSystems_IsTheFile(string mount)
    {
        ChildProcess.SkipUnlessLinux("mount", "mkfs.ext4");
        string folder = _folder.File("mounted");
        Directory.CreateDirectory(folder);
        (int exitCode, _, string error) = await ChildProcess.RunAsync(
            string.Format(System.Globalization.CultureInfo.InvariantCulture, mount, folder));
        Assert.SkipUnless(exitCode == 0, $"It cannot be mounted: {error}");
        try
        {
            string path = Path.Combine(folder, "f");
            System.IO.File.WriteAllBytes(path, Pattern.Bytes(10));
            Direct.Open(() => FilePipeReader.Create(path, s_reading)).Complete();
            foreach (int length in (int[])[0, 1, 1023, 1024, 5000, (3 * MiB) + 777])
            {
                await WriteAsync(FilePipeWriter.Create(path, s_writing), length, 99_999);
                Assert.Equal(length, await PatternFile.ReadToEndAsync(FilePipeReader.Create(path)));
                Assert.Equal(length, await PatternFile.ReadToEndAsync(FilePipeReader.Create(path, s_reading)));
            }
        }
        finally
        {
            await ChildProcess.RunAsync($"umount '{folder}'");
        }
    }

    private static bool IsDirect(SafeFileHandle handle) => (Libc.FCntl(handle, Libc.F_GETFL, 0) & Libc.O_DIRECT) != 0;

    private static long Cached(string path, long length)
    {
        using SafeFileHandle handle = System.IO.File.OpenHandle(path);
        return UnixCalls.Default.CountCached(handle, 0, length);
    }

    private string File(string name, int length) => _folder.File(name, Pattern.Bytes(length));

    /// <summary>A file that holds the pattern, and of which nothing is in the page cache.</summary>
    private string ColdFile(int length)
    {
        string path = File("cold", length);
        using (SafeFileHandle handle = System.IO.File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite))
        {
            RandomAccess.FlushToDisk(handle);
            UnixCalls.Default.DropCached(handle, 0, 0);
        }

        Direct.Open(() => FilePipeReader.Create(path, s_reading)).Complete();
        Assert.SkipUnless(Cached(path, length) == 0, "The system does not tell what is cached, or the file is in memory.");
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
}
