using System.Diagnostics.CodeAnalysis;

namespace FilePipelines.Tests;

/// <summary>What is counted over the whole process, its memory and its threads, and so needs it for itself.</summary>
[CollectionDefinition("whole process", DisableParallelization = true)]
[Collection("whole process")]
public sealed class WholeProcessTests : FileTests
{
    /// <summary>
    /// How often allocation is measured; the least counts, since the rest of the process, and what is missing from a pool just then, come
    /// on top.
    /// </summary>
    private const int Rounds = 6;

    [Fact]
    public async Task ReadAsync_AfterWarmUp_AllocatesNothing()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Only Linux reads on the caller's thread.");
        string path = _folder.File("f", Pattern.Bytes(8_000_000));
        long allocated = -1;
        foreach (int attempt in Warm.Rounds(1, () => allocated == 0))
        {
            ScriptedCalls calls = new();
            FilePipeReader reader = calls.Read(path, new() { BufferSize = 1000 });
            long before = 0;
            for (int reads = 0; reads < 25; reads++)
            {
                if (reads == 10)
                {
                    before = GC.GetAllocatedBytesForCurrentThread();
                }

                ReadResult result = await reader.ReadAsync(_stop);
                reader.AdvanceTo(result.Buffer.End);
                Assert.False(result.IsCompleted);
            }

            // Where the system has dropped a page meanwhile, a read was handed over and the reader made what it waits with: another
            // attempt.
            allocated = GC.GetAllocatedBytesForCurrentThread() - before;
            await reader.CompleteAsync();
        }

        Assert.Equal(0, allocated);
    }

    [Fact]
    public async Task ReadAsync_HandedOver_AllocatesNothingAfterWarmUp()
    {
        ScriptedCalls calls = new() { OnReadNoWait = _ => -Pipelines.File.IO.Libc.EAGAIN, OnRead = _ => 1000 };
        string path = _folder.File("f");
        using (FileStream longer = File.Create(path))
        {
            longer.SetLength(1_000_000_000);
        }

        FilePipeReader reader = calls.Read(path, new() { BufferSize = 1000 });
        using ManualResetEventSlim ready = new();
        Action onReady = ready.Set;
        long allocated = Warm.Least(enough: 300 * 24, () =>
        {
            long before = GC.GetTotalAllocatedBytes(precise: true);
            for (int i = 0; i < 300; i++)
            {
                ready.Reset();
                ReadWithoutAStateMachine(reader, ready, onReady);
            }

            return GC.GetTotalAllocatedBytes(precise: true) - before;
        });

        // Nothing of ours: what little there is comes from the rest of the process, the test runner above all.
        Assert.InRange(allocated, 0, 300 * 24);
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task CopyToAsync_HandedOver_AllocatesNothingPerRead()
    {
        string path = _folder.File("f", Pattern.Bytes(2_000_000));
        long allocated = long.MaxValue;
        foreach (int round in Warm.Rounds(Rounds, () => allocated <= 2000 * 24))
        {
            ScriptedCalls calls = new() { OnReadNoWait = _ => -Pipelines.File.IO.Libc.EAGAIN, OnRead = _ => 1000 };
            FilePipeReader reader = calls.Read(path);
            FilePipeWriter writer = FilePipeWriter.Create(_folder.File("destination"), new() { FlushGuarantee = FlushGuarantee.Written });
            long before = GC.GetTotalAllocatedBytes(precise: true);
            await reader.CopyToAsync(writer, _stop);
            allocated = Math.Min(allocated, GC.GetTotalAllocatedBytes(precise: true) - before);
            Assert.True(calls.Reads >= 2000);
            await reader.CompleteAsync();
            await writer.CompleteAsync();
        }

        // The boxes of the async methods are pooled by core, and one may be missing there.
        Assert.InRange(allocated, 0, 2000 * 24);
    }

    [Theory]
    [InlineData(4096), InlineData(65_536)]
    public async Task ReadAsync_32MiBOverlapped_AllocatesNothingAfterWarmUp(int bufferSize)
    {
        Assert.SkipUnless(OperatingSystem.IsWindows(), "Only Windows has overlapped I/O.");
        const int Length = 32 * 1024 * 1024;
        string path = _folder.File("f", new byte[Length + 2_000_000]);
        long allocated = long.MaxValue;
        foreach (int round in Warm.Rounds(Rounds, () => allocated <= 1000))
        {
            FilePipeReader reader = FilePipeReader.Create(path, new() { BufferSize = bufferSize });
            using ManualResetEventSlim ready = new();
            Action onReady = ready.Set;
            long before = 0;
            long end = long.MaxValue;
            while (reader.Position < end)
            {
                if (before == 0 && reader.Position > 1_000_000)
                {
                    before = GC.GetTotalAllocatedBytes(precise: true);
                    end = reader.Position + Length;
                }

                ready.Reset();
                ReadWithoutAStateMachine(reader, ready, onReady);
            }

            allocated = Math.Min(allocated, GC.GetTotalAllocatedBytes(precise: true) - before);
            await reader.CompleteAsync();
        }

        TestContext.Current.SendDiagnosticMessage("{0} bytes for 32 MiB", allocated);
        Assert.InRange(allocated, 0, 1000);
    }

    [Fact]
    public async Task PortableBackend_AfterWarmUp_AllocatesNothingPerFlushOrRead()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "There RandomAccess itself allocates for some of its operations.");
        string path = _folder.File("f");
        long allocated = long.MaxValue;
        foreach (int round in Warm.Rounds(Rounds, () => allocated <= 1000 * 48))
        {
            SafeFileHandle target = File.OpenHandle(path, FileMode.Create, FileAccess.Write);
            FilePipeWriter writer = FilePipeWriter.Create(new PortableFile(target, path, FileProperties.Of(target, path)),
                new() { FlushGuarantee = FlushGuarantee.Written }, leaveOpen: false, isOpenedByPath: true);
            SafeFileHandle source = File.OpenHandle(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite);
            FilePipeReader reader = FilePipeReader.Create(
                new PortableFile(source, path, FileProperties.Of(source, path)), new(), leaveOpen: false);
            byte[] data = Pattern.Bytes(10);
            long before = GC.GetTotalAllocatedBytes(precise: true);
            for (int i = 0; i < 1000; i++)
            {
                await writer.WriteAsync(data, _stop);
                ReadResult result = await reader.ReadAsync(_stop);
                Assert.True(result.Buffer.Length == 10);
                reader.AdvanceTo(result.Buffer.End);
            }

            allocated = Math.Min(allocated, GC.GetTotalAllocatedBytes(precise: true) - before);
            await writer.CompleteAsync();
            await reader.CompleteAsync();
        }

        Assert.InRange(allocated, 0, 1000 * 48);
    }

    [Fact]
    public async Task Meter_CountsWritesBytesPausesAndSyncs()
    {
        using Counters counters = new();
        using Gate gate = new();
        ScriptedCalls calls = new() { OnWrite = gate.Hold };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { PauseWriterThreshold = 400, ResumeWriterThreshold = 1 });
        Task<FlushResult> last = Task.FromResult<FlushResult>(default);
        for (int i = 0; i < 4; i++)
        {
            // The first one is stuck in its write; the others gather behind it.
            Assert.True(last.IsCompleted);
            last = writer.WriteAsync(Pattern.Bytes(100, i * 100), _stop).AsTask();
        }

        gate.Open();
        await last;

        await writer.FlushAsync(FlushGuarantee.Durable, _stop);
        await writer.CompleteAsync();
        FilePipeWriter durable = FilePipeWriter.Create(_folder.File("durable"), new() { FlushGuarantee = FlushGuarantee.Durable });
        await durable.WriteAllAsync(Pattern.Bytes(100));
        Assert.Equal(3, counters["writes"]);
        Assert.Equal(500, counters["bytes_written"]);
        Assert.Equal(1, counters["flushes.paused"]);
        Assert.Equal(2, counters["syncs"]);
    }

    [Fact]
    public async Task Meter_WriterThatIsAborted_CountsWhatItHadWritten()
    {
        using Counters counters = new();
        string path = _folder.File("f");
        FilePipeWriter writer = FilePipeWriter.Create(path);
        await writer.WriteAsync(Pattern.Bytes(100), _stop);
        await Eventually.TrueAsync(() => new FileInfo(path).Length == 100);
        writer.Abort();
        await Eventually.TrueAsync(() => counters["bytes_written"] == 100);
    }

    [Fact]
    public async Task Meter_WriterThatIsNotCompleted_ItsFlushesCount()
    {
        using Counters counters = new();
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("f"));
        await writer.WriteAsync(Pattern.Bytes(100), _stop);

        // None of these waits: each finds what was written before it.
        await Eventually.TrueAsync(async () =>
        {
            await writer.FlushAsync(_stop);
            return counters["bytes_written"] == 100;
        });
        Assert.Equal(1, counters["writes"]);
        await writer.CompleteAsync();
        Assert.Equal(1, counters["writes"]);
    }

    [Fact]
    public async Task Meter_CountsEveryByteReadOnceWhoeverWaitsForIt()
    {
        string path = _folder.File("f", Pattern.Bytes(2000));
        using Counters counters = new();

        // Somebody waits for each read.
        FilePipeReader waited = new ScriptedCalls { OnReadNoWait = _ => -Libc.EAGAIN, OnRead = _ => 1000 }.Read(path);
        for (int reads = 1; reads <= 2; reads++)
        {
            ReadResult result = await waited.ReadAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop);
            Assert.Equal(reads * 1000, counters["bytes_read"]);
            waited.AdvanceTo(result.Buffer.End);
        }

        await waited.CompleteAsync();
        Assert.Equal(2000, counters["bytes_read"]);

        // The second thousand is read ahead: the next read counts it, or Complete.
        foreach (bool readsOn in new[] { true, false })
        {
            long before = counters["bytes_read"];
            FilePipeReader ahead = new ScriptedCalls { OnReadNoWait = _ => 1000 }.Read(path, new() { PauseReadAheadThreshold = 100_000 });
            ReadResult first = await ahead.ReadAsync(_stop);
            ahead.AdvanceTo(first.Buffer.Start, first.Buffer.End);
            ReadResult second = default;
            await Eventually.TrueAsync(() => second.Buffer.Length == 2000 || ahead.TryRead(out second));
            ahead.AdvanceTo(second.Buffer.End);
            if (readsOn)
            {
                Assert.True((await ahead.ReadAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop)).IsCompleted);
                Assert.Equal(before + 2000, counters["bytes_read"]);
                await ahead.CompleteAsync();
            }
            else
            {
                ahead.Complete();
            }

            await Eventually.TrueAsync(() => counters["bytes_read"] == before + 2000);
        }

        // Nobody waits any more when the read ends, and perhaps nobody for the release.
        foreach (bool waitsForRelease in new[] { true, false })
        {
            long before = counters["bytes_read"];
            using Gate gate = new();
            FilePipeReader left = new ScriptedCalls { OnReadNoWait = _ => -Libc.EAGAIN, OnRead = gate.Hold }.Read(path);
            Task<ReadResult> read = left.ReadAsync(_stop).AsTask();
            left.Complete();
            await Assert.ThrowsAsync<InvalidOperationException>(() => read.WaitAsync(Eventually.Limit, _stop));
            Task completed = waitsForRelease ? left.CompleteAsync().AsTask() : Task.CompletedTask;
            gate.Open();
            await completed.WaitAsync(Eventually.Limit, _stop);
            Assert.True(!waitsForRelease || counters["bytes_read"] == before + 2000);
            await Eventually.TrueAsync(() => counters["bytes_read"] == before + 2000);
        }
    }

    [Theory]
    [InlineData(1), InlineData(1000)]
    public async Task Writer_OfSmallSegments_CostsNoMoreMemoryThanItsBytes(int minimumBufferSize)
    {
        byte[] data = Pattern.Bytes(500_000);
        long allocated = long.MaxValue;
        foreach (int round in Warm.Rounds(Rounds, () => allocated <= 100_000))
        {
            long before = GC.GetTotalAllocatedBytes(precise: true);
            FilePipeWriter writer = FilePipeWriter.Create(_folder.File("f"), new() { MinimumBufferSize = minimumBufferSize });
            await writer.WriteAllAsync(data);
            allocated = Math.Min(allocated, GC.GetTotalAllocatedBytes(precise: true) - before);
        }

        Assert.InRange(allocated, 0, 100_000);
        Assert.Equal(data, File.ReadAllBytes(_folder.File("f")));
    }

    [Fact]
    public async Task FlushAsync_AfterWarmUp_AllocatesNothing()
    {
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("f"), new() { PauseWriterThreshold = 65_536, MinimumBufferSize = 4096 });
        byte[] data = Pattern.Bytes(3000);
        for (int i = 0; i < 2000; i++)
        {
            await writer.WriteAsync(data, _stop);
        }

        long allocated = long.MaxValue;
        bool hasPaused = false;
        foreach (int round in Warm.Rounds(Rounds, () => allocated <= 0))
        {
            long inRound = 0;
            for (int i = 0; i < 300; i++)
            {
                // What the call makes, the wait of a paused one included; not what this test's own waiting makes.
                long before = GC.GetAllocatedBytesForCurrentThread();
                ValueTask<FlushResult> flush = writer.WriteAsync(data, _stop);
                inRound += GC.GetAllocatedBytesForCurrentThread() - before;
                hasPaused |= !flush.IsCompleted;
                await flush;
            }

            allocated = Math.Min(allocated, inRound);
        }

        Assert.Equal(0, allocated);
        Assert.True(hasPaused);
        await writer.CompleteAsync();
    }

    [Fact]
    public async Task Fifo_Idle_LeavesNothingForProcessesThatAreStartedMeanwhile()
    {
        using Fifo fifo = Fifo.Create(_folder);
        FilePipeReader reader = FilePipeReader.Create(fifo.Path);
        Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();

        (string Descriptor, string Target)[] ours = [];
        await Eventually.TrueAsync(() =>
        {
            ours =
            [
                .. Directory.GetFiles("/proc/self/fd").Select(fd => (Path.GetFileName(fd), new FileInfo(fd).LinkTarget ?? ""))
                    .Where(p => p.Item2 == "anon_inode:[eventpoll]"),
            ];
            return ours.Length > 0;
        });

        // The flags of a descriptor as open(2) has them (proc_pid_fdinfo(5)).
        Assert.All(ours, one => Assert.Matches(@"flags:\s*0*2\d{6}", File.ReadAllText(Path.Combine("/proc/self/fdinfo", one.Descriptor))));
        reader.Complete();
        await Assert.ThrowsAsync<InvalidOperationException>(() => read);
    }

    [SuppressMessage("Reliability", "CA2012:Use ValueTasks correctly",
        Justification = "An await would count the memory of its own state machine.")]
    private static void ReadWithoutAStateMachine(FilePipeReader reader, ManualResetEventSlim ready, Action onReady)
    {
        System.Runtime.CompilerServices.ValueTaskAwaiter<ReadResult> awaiter = reader.ReadAsync(CancellationToken.None).GetAwaiter();
        if (!awaiter.IsCompleted)
        {
            awaiter.UnsafeOnCompleted(onReady);
            ready.Wait();
        }

        ReadResult result = awaiter.GetResult();
        reader.AdvanceTo(result.Buffer.End);
    }
}
