using Pipelines.File.Writing;

namespace FilePipelines.Tests;

/// <summary>Which writes the caller's thread makes, which a work item of its pool, and which a thread that may wait.</summary>
public sealed class FastWritesTests : FileTests
{
    private const int Millisecond = 1000;
    private const ulong Volume = 77;

    private readonly StoppedClock _clock = new();
    private readonly FastWrites _writes;

    public FastWritesTests() => _writes = new FastWrites(_clock);

    [Fact]
    public void AreExpected_UntilTenMillisecondsAfterAFastWriteToThatFileSystem()
    {
        Assert.False(_writes.AreExpected(Volume));
        Write(Millisecond);
        Assert.True(_writes.AreExpected(Volume));
        Assert.False(_writes.AreExpected(Volume + 1));
        _clock.Now += (10 * Millisecond) - 1;
        Assert.True(_writes.AreExpected(Volume));
        _clock.Now++;
        Assert.False(_writes.AreExpected(Volume));
    }

    [Theory]
    [InlineData(64 * 1024, Millisecond, true)]
    [InlineData(64 * 1024, Millisecond + 1, false)]
    [InlineData(512 * 1024, 3 * Millisecond, true)]
    [InlineData(512 * 1024, (3 * Millisecond) + 1, false)]
    public void AreExpected_AfterAWrite_IfThatWasFastForItsLength(int bytes, int microseconds, bool isFast)
    {
        Write(1);
        Write(microseconds, bytes);
        Assert.Equal(isFast, _writes.AreExpected(Volume));
    }

    /// <summary>A write that stalls has not ended, so nobody has measured it yet.</summary>
    [Fact]
    public void AreExpected_WhileAWriteTakesLong_AreNot()
    {
        Write(1);
        long first = _writes.Begin(Volume);
        _clock.Now += Millisecond;
        long second = _writes.Begin(Volume);
        Assert.True(_writes.AreExpected(Volume));
        _clock.Now++;
        _writes.End(Volume, second, 1);
        Assert.False(_writes.AreExpected(Volume));
        _writes.End(Volume, first, 1);
        Assert.False(_writes.AreExpected(Volume));
        Write(1);
        Assert.True(_writes.AreExpected(Volume));
    }

    [Theory]
    [InlineData(1, FlushGuarantee.Written, true)]
    [InlineData(256 * 1024, FlushGuarantee.Written, true)]
    [InlineData((256 * 1024) + 1, FlushGuarantee.Written, false)]
    [InlineData(1, FlushGuarantee.WriteBehind, false)]
    [InlineData(1, FlushGuarantee.Durable, false)]
    public async Task FlushAsync_WritesOnTheCallersThreadOnlyWhatIsShortAndAwaited(int length, FlushGuarantee guarantee, bool isByCaller)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts the Linux system calls.");
        using ManualResetEventSlim called = new();
        Thread? thread = null;
        ScriptedCalls calls = new()
        {
            Inline = StoppedClock.AllInlineWrites(),
            OnWrite = _ =>
            {
                thread = Thread.CurrentThread;
                called.Set();
                return null;
            },
        };
        string path = _folder.File("f");
        FilePipeWriter writer = calls.Write(path, new() { FlushGuarantee = guarantee });
        using SafeFileHandle again = File.OpenHandle(path, share: FileShare.ReadWrite);
        for (int i = 0; i < 3; i++)
        {
            called.Reset();
            if (i != 1)
            {
                writer.Put(length, (long)i * length);
            }

            Thread caller = Thread.CurrentThread;
            ValueTask<System.IO.Pipelines.FlushResult> flush =
                i == 1 ? writer.WriteAsync(Pattern.Bytes(length, length), _stop) : writer.FlushAsync(_stop);

            // The caller's thread is held here, so what it does not do itself is another's.
            called.Wait(Eventually.Limit, _stop);
            Assert.Equal(isByCaller && LocalFileSystems.TakeWrites(FileProperties.Of(again, null)), thread == caller);
            Assert.True(flush.IsCompleted || thread != caller);
            await flush;
        }

        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(3 * length), File.ReadAllBytes(path));
    }

    [Theory]
    [InlineData(1), InlineData(2)]
    public async Task FlushAsync_WritesOnTheCallersThreadAndFails_ThrowsAndSoDoesEveryLaterOne(int failing)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts the Linux system calls.");
        ScriptedCalls calls = new()
        {
            Inline = StoppedClock.AllInlineWrites(),
            OnWrite = call => call == failing ? -Libc.EIO : call < failing ? 3 : null,
        };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Written });
        IOException e = await Assert.ThrowsAsync<IOException>(async () => await writer.WriteAsync(Pattern.Bytes(10), _stop));
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(async () => await writer.WriteAsync(Pattern.Bytes(10), _stop)));
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync()));
        Assert.Equal(3 * (failing - 1), new FileInfo(_folder.File("f")).Length);
    }

    [Fact]
    public async Task FlushAsync_AbortedWhileItsThreadWrites_IsOverAndCanceled()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts the Linux system calls.");
        FilePipeWriter? writer = null;
        ScriptedCalls calls = new()
        {
            Inline = StoppedClock.AllInlineWrites(),
            OnWrite = call =>
            {
                writer!.Abort();
                return 3;
            },
        };
        writer = calls.Write(_folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Written });
        await Assert.ThrowsAsync<OperationCanceledException>(async () => await writer.WriteAsync(Pattern.Bytes(10), _stop));
        await writer.DisposeAsync();
        Assert.Equal(3, new FileInfo(_folder.File("f")).Length);
    }

    /// <summary>Where its thread may write, and nothing else is to be written, the bytes are not copied: the pool is not asked.</summary>
    [Theory]
    [InlineData(256 * 1024, false, false)]
    [InlineData((256 * 1024) + 1, false, true)]
    [InlineData(100, true, true)]
    public async Task WriteAsync_OfTheCallersThread_NeedsNoMemory(int length, bool isUnflushed, bool isCopied)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts the Linux system calls.");
        using CheckedPool pool = new();
        ScriptedCalls calls = new() { Inline = StoppedClock.AllInlineWrites() };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Written, Pool = pool });
        int start = isUnflushed ? 1 : 0;
        if (isUnflushed)
        {
            writer.Put(1, 0);
        }

        await writer.WriteAsync(Pattern.Bytes(start + length).AsMemory(start), _stop);
        bool isTaken = LocalFileSystems.TakeWrites(FileProperties.Of(writer.Handle, null));
        Assert.Equal(isCopied || !isTaken, pool.Rented > 0);
        Assert.Equal((start + length, 0), (writer.Position, writer.UnflushedBytes));
        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(start + length), File.ReadAllBytes(_folder.File("f")));
    }

    /// <summary>The loop has one call under way at a time, also if nobody waits for it any more.</summary>
    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task WriteAsync_WhileASyncIsUnderWay_IsWrittenAfterIt(bool isSyncCanceled)
    {
        using ManualResetEventSlim begun = new();
        using ManualResetEventSlim goesOn = new();
        ScriptedCalls calls = new()
        {
            Inline = StoppedClock.AllInlineWrites(),
            OnSync = _ =>
            {
                begun.Set();
                goesOn.Wait(Eventually.Limit);
                return null;
            },
        };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Written });
        await writer.WriteAsync(Pattern.Bytes(10), _stop);
        using CancellationTokenSource cancel = new();
        Task sync = writer.FlushAsync(FlushGuarantee.Durable, cancel.Token).AsTask();
        begun.Wait(Eventually.Limit, _stop);
        if (isSyncCanceled)
        {
            await cancel.CancelAsync();
            await Assert.ThrowsAnyAsync<OperationCanceledException>(() => sync);
        }

        ValueTask<System.IO.Pipelines.FlushResult> write = writer.WriteAsync(Pattern.Bytes(10, 10), _stop);
        Assert.Equal(1, calls.Writes);
        goesOn.Set();
        await write;
        await (isSyncCanceled ? Task.CompletedTask : sync);
        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(20), File.ReadAllBytes(_folder.File("f")));
    }

    /// <summary>A call that was canceled before is answered so, and its bytes are written all the same.</summary>
    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task WriteAsync_CanceledBefore_IsCanceledAndWritten(bool byToken)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts the Linux system calls.");
        ScriptedCalls calls = new() { Inline = StoppedClock.AllInlineWrites() };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Written });
        if (byToken)
        {
            await Assert.ThrowsAnyAsync<OperationCanceledException>(
                async () => await writer.WriteAsync(Pattern.Bytes(10), new CancellationToken(canceled: true)));
        }
        else
        {
            writer.CancelPendingFlush();
            Assert.True((await writer.WriteAsync(Pattern.Bytes(10), _stop)).IsCanceled);
        }

        Assert.False((await writer.WriteAsync(Pattern.Bytes(10, 10), _stop)).IsCanceled);
        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(20), File.ReadAllBytes(_folder.File("f")));
    }

    /// <summary>Bytes that were not copied move what comes after them, in memory that was there before.</summary>
    [Theory]
    [InlineData(int.MaxValue)]
    [InlineData(3)]
    public async Task WriteAsync_BesideBytesThatAreCopied_KeepsTheirOrder(int most)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts the Linux system calls.");
        ScriptedCalls calls = new() { Inline = StoppedClock.AllInlineWrites(), OnWrite = _ => most };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Written, Offset = 5 });
        byte[] bytes = Pattern.Bytes(10_000);
        for (int i = 0; i < 1000; i++)
        {
            await writer.WriteAsync(bytes.AsMemory(i * 10, 7), _stop);
            writer.Put(3, (i * 10) + 7);
            if (i % 3 > 0)
            {
                await writer.FlushAsync(_stop);
            }
        }

        await writer.CompleteAsync();
        Assert.Equal([0, 0, 0, 0, 0, .. bytes], File.ReadAllBytes(_folder.File("f")));
    }

    /// <summary>Such a write may wait for the device, or for a server: on a thread of the application it would hold that.</summary>
    [Theory]
    [InlineData("O_SYNC"), InlineData("DropBehind"), InlineData("not local")]
    public async Task FlushAsync_WriteThatMayWait_IsMadeByAThreadOfTheLibrary(string what)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts the Linux system calls.");
        List<Thread> threads = [];
        ScriptedCalls calls = new() { Inline = StoppedClock.AllInlineWrites(), OnWrite = _ => Note(threads) ?? -Libc.EIO };
        using SafeFileHandle handle = what == "not local"
            ? File.OpenHandle("/proc/self/coredump_filter", FileMode.Open, FileAccess.Write, FileShare.ReadWrite)
            : File.OpenHandle(_folder.File("f"), FileMode.Create, FileAccess.Write, FileShare.ReadWrite,
                what == "O_SYNC" ? FileOptions.WriteThrough : FileOptions.None);
        FilePipeWriter writer = calls.Write(handle,
            new() { FlushGuarantee = FlushGuarantee.Written, Caching = what == "DropBehind" ? FileCaching.DropBehind : FileCaching.Keep });
        for (int i = 0; i < 2; i++)
        {
            await Assert.ThrowsAsync<IOException>(async () => await writer.WriteAsync(Pattern.Bytes(10), _stop));
        }

        await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync());
        Assert.StartsWith(WaitingThreads.ThreadName, Assert.Single(threads).Name, StringComparison.Ordinal);
    }

    /// <summary>
    /// A loop that has no step left goes to sleep after it has said so: who comes between must not take its own bytes for written.
    /// </summary>
    [Fact]
    [Trait("Category", StressTime.Category)]
    public async Task FlushAsync_WhileTheLoopGoesToSleep_IsNotTakenForAborted()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts the Linux system calls.");
        ScriptedCalls calls = new() { Inline = StoppedClock.AllInlineWrites() };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { Offset = 0 });
        long length = 0;
        for (Stopwatch time = Stopwatch.StartNew(); time.Elapsed.TotalSeconds < StressTime.Seconds; length += 2)
        {
            Advance(writer, length);
            await writer.FlushAsync(_stop);
            Thread.SpinWait((int)(length / 2 % 200));
            Advance(writer, length + 1);
            await writer.FlushAsync(FlushGuarantee.Written, _stop);
        }

        await writer.CompleteAsync();
        Assert.Equal(length, new FileInfo(_folder.File("f")).Length);
    }

    private static long? Note(List<Thread> threads)
    {
        threads.Add(Thread.CurrentThread);
        return null;
    }

    private static void Advance(FilePipeWriter writer, long position) => writer.Put(1, position);

    private void Write(int microseconds, int bytes = 1)
    {
        long begun = _writes.Begin(Volume);
        _clock.Now += microseconds;
        _writes.End(Volume, begun, bytes);
    }
}
