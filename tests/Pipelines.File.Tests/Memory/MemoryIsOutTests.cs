using System.Buffers;
using System.IO.Pipelines;
using FilePipelinesChild;
using Pipelines.File;
using Pipelines.File.Diagnostics;
using Pipelines.File.IO;
using Pipelines.File.Threading;

namespace FilePipelinesTests;

/// <summary>An allocation that fails leaves everything usable: the first one, the second one, and so on, until none fails.</summary>
public sealed class MemoryIsOutTests : IDisposable
{
    private const int MoreThanThereAre = 20;

    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public void Dispose() => _folder.Dispose();

    /// <summary>A thread or a write that was counted before it was made would hold up every later call.</summary>
    [Theory]
    [InlineData(false, 1)]
    [InlineData(true, 1)]
    [InlineData(false, 3)]
    [InlineData(true, 3)]
    public async Task WaitingThreads_AllocationsFail_PerformEveryCallOnce(bool isWrite, int count)
    {
        for (int number = 1; number < MoreThanThereAre; number++)
        {
            WaitingThreads threads = new(limit: 5);
            Call first = new(isWrite ? WaitKind.Write : WaitKind.Sync);
            Call second = new(isWrite ? WaitKind.Write : WaitKind.Sync);
            Probe.FailAllocation(number, count);
            threads.Queue(first);
            Probe.FailAllocation(0);
            threads.Queue(second);
            await first.Performed.WaitAsync(Eventually.Limit, _stop);
            await second.Performed.WaitAsync(Eventually.Limit, _stop);
            await Eventually.TrueAsync(() => threads.UnderWayCount == 0);
            Assert.Equal(0, threads.QueuedCount);
        }
    }

    [Theory]
    [InlineData(FlushGuarantee.WriteBehind)]
    [InlineData(FlushGuarantee.Written)]
    [InlineData(FlushGuarantee.Durable)]
    public async Task FilePipeWriter_AllocationFails_CompletesWithEveryByteOrThrows(FlushGuarantee guarantee)
    {
        for (int number = 1; number < MoreThanThereAre; number++)
        {
            string path = _folder.File(number.ToString(System.Globalization.CultureInfo.InvariantCulture));
            FilePipeWriter writer = FilePipeWriter.Create(path, new() { FlushGuarantee = guarantee });
            Pattern.Fill(writer.GetSpan(1000)[..1000], 0);
            writer.Advance(1000);
            Task? flush = null;
            Probe.FailAllocation(number);
            Exception? error = Record.Exception(() => { flush = writer.FlushAsync(_stop).AsTask(); });
            Probe.FailAllocation(0);
            error ??= await Record.ExceptionAsync(() => flush!.WaitAsync(Eventually.Limit, _stop));
            Exception? end = await Record.ExceptionAsync(() => writer.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop));
            Assert.True(error is null or OutOfMemoryException, error?.ToString());
            Assert.True(end is null or OutOfMemoryException, end?.ToString());
            Assert.Equal(end is null, File.ReadAllBytes(path).AsSpan().SequenceEqual(Pattern.Bytes(1000)));
            Assert.Equal(0, OpenHandles.Of(path));
        }
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task CompleteAsync_AllocationOfTheLastFlushFails_ThrowsAndTheFileIsClosed(bool blocks)
    {
        ChildProcess.SkipUnlessLinux();
        string path = _folder.File("f", [1]);
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Mode = FileMode.Append });
        writer.GetSpan(10)[..10].Clear();
        writer.Advance(10);
        Task? completion = null;
        Probe.FailAllocation(1);
        Exception? error = Record.Exception(() =>
        {
            if (blocks)
            {
                writer.Complete();
            }
            else
            {
                completion = writer.CompleteAsync().AsTask();
            }
        });
        Probe.FailAllocation(0);
        error ??= await Record.ExceptionAsync(() => completion!.WaitAsync(Eventually.Limit, _stop));
        Assert.IsAssignableFrom<OutOfMemoryException>(error);
        await writer.DisposeAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(0, OpenHandles.Of(path));
        Assert.Equal([1], File.ReadAllBytes(path));
    }

    /// <summary>A stage that says that a loop has the read, where there is no loop, would never end.</summary>
    [Fact]
    public async Task ReadAsync_AllocationFails_TheReaderIsUsableAndEnds()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts system calls of Linux.");
        string path = _folder.File("f", Pattern.Bytes(1000));
        for (int number = 1; number < MoreThanThereAre; number++)
        {
            ScriptedCalls calls = new() { OnReadNoWait = _ => -Libc.EAGAIN };
            FilePipeReader reader = calls.Read(path);
            Task<ReadResult>? read = null;
            Probe.FailAllocation(number);
            Exception? error = Record.Exception(() => { read = reader.ReadAsync(_stop).AsTask(); });
            Probe.FailAllocation(0);
            error ??= await Record.ExceptionAsync(() => read!.WaitAsync(Eventually.Limit, _stop));
            Assert.True(error is null or OutOfMemoryException, error?.ToString());
            if (error is not null)
            {
                ReadResult again = await reader.ReadAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop);
                Assert.Equal(Pattern.Bytes(1000), again.Buffer.ToArray());
            }

            await reader.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
            Assert.Equal(0, OpenHandles.Of(path));
        }
    }

    [Fact]
    public async Task ReadAsync_AllocationFailsAndNobodyReadsAgain_TheReaderEnds()
    {
        for (int number = 1; number < MoreThanThereAre; number++)
        {
            using Fifo fifo = Fifo.Create(_folder, string.Create(System.Globalization.CultureInfo.InvariantCulture, $"fifo {number}"));
            FilePipeReader reader = FilePipeReader.Create(fifo.Path);
            Probe.FailAllocation(number);
            _ = Record.Exception(() => { _ = reader.ReadAsync(_stop).AsTask(); });
            Probe.FailAllocation(0);
            await reader.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
        }
    }

    [Fact]
    public async Task ReadAsync_AllocationOfTheReadAheadFails_TheNextReadsReadOnAndTheReaderEnds()
    {
        const int Length = 1_000_000;
        string path = _folder.File("f", Pattern.Bytes(Length));
        for (int number = 1; number < 4; number++)
        {
            FilePipeReader reader = FilePipeReader.Create(path, new() { PauseReadAheadThreshold = Length });
            Probe.FailAllocation(number);
            Task<ReadResult>? first = null;
            Exception? error = Record.Exception(() => { first = reader.ReadAsync(_stop).AsTask(); });
            Probe.FailAllocation(0);

            // The first read may wait on Windows, and then allocates, too.
            error ??= await Record.ExceptionAsync(() => first!.WaitAsync(Eventually.Limit, _stop));
            Assert.True(error is null || (OperatingSystem.IsWindows() && error is OutOfMemoryException), error?.ToString());
            ReadResult read = await (error is null ? first! : reader.ReadAsync(_stop).AsTask()).WaitAsync(Eventually.Limit, _stop);
            while (read.Buffer.Length < Length)
            {
                reader.AdvanceTo(read.Buffer.Start, read.Buffer.End);
                read = await reader.ReadAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop);
            }

            Assert.Equal(Pattern.Bytes(Length), read.Buffer.ToArray());
            await reader.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
            Assert.Equal(0, OpenHandles.Of(path));
        }
    }

    /// <summary>A write that has thrown does not have its caller's memory any more.</summary>
    [Fact]
    public async Task WriteAsync_AllocationOfALargeWriteFails_WritesNothingOfMemoryThatItHasGivenBack()
    {
        const int Large = 1024 * 1024;
        for (int number = 1; number < MoreThanThereAre; number++)
        {
            string path = _folder.File(number.ToString(System.Globalization.CultureInfo.InvariantCulture));
            FilePipeWriter writer = FilePipeWriter.Create(path, new() { FlushGuarantee = FlushGuarantee.Written });
            byte[] bytes = Pattern.Bytes(Large);
            Task? write = null;
            Probe.FailAllocation(number);
            Exception? error = Record.Exception(() => { write = writer.WriteAsync(bytes, _stop).AsTask(); });
            Probe.FailAllocation(0);
            error ??= await Record.ExceptionAsync(() => write!.WaitAsync(Eventually.Limit, _stop));
            Assert.True(error is null or OutOfMemoryException, error?.ToString());
            bytes.AsSpan().Fill(0xDD);
            _ = await Record.ExceptionAsync(() => writer.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop));
            byte[] written = File.ReadAllBytes(path);
            Assert.True(error is not null || written.Length == Large);
            Assert.True(Pattern.Bytes(written.Length).AsSpan().SequenceEqual(written), $"{number}: {error}");
            Assert.Equal(0, OpenHandles.Of(path));
        }
    }

    /// <summary>The same, where the file takes nothing until the call has returned.</summary>
    [Fact]
    public async Task WriteAsync_AllocationOfALargeWriteFailsBeforeTheWrite_WritesNothingOfMemoryThatItHasGivenBack()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts system calls of Linux.");
        const int Large = 1024 * 1024;
        for (int number = 1; number < MoreThanThereAre; number++)
        {
            string path = _folder.File(number.ToString(System.Globalization.CultureInfo.InvariantCulture));
            using ManualResetEventSlim begins = new();
            ScriptedCalls calls = new()
            {
                OnWrite = _ =>
                {
                    begins.Wait(Eventually.Limit, _stop);
                    return null;
                },
            };
            FilePipeWriter writer = calls.Write(path);
            byte[] bytes = Pattern.Bytes(Large);
            Task? write = null;
            Probe.FailAllocation(number);
            Exception? error = Record.Exception(() => { write = writer.WriteAsync(bytes, _stop).AsTask(); });
            Probe.FailAllocation(0);
            if (write is null || write.IsFaulted)
            {
                bytes.AsSpan().Fill(0xDD);
            }

            begins.Set();
            error ??= await Record.ExceptionAsync(() => write!.WaitAsync(Eventually.Limit, _stop));
            Assert.True(error is null or OutOfMemoryException, error?.ToString());
            _ = await Record.ExceptionAsync(() => writer.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop));
            byte[] written = File.ReadAllBytes(path);
            Assert.True(Pattern.Bytes(written.Length).AsSpan().SequenceEqual(written), $"{number}: {error}");
        }
    }

    [Fact]
    public async Task PoolItem_AllocationsFail_IsQueuedOnceAllTheSame()
    {
        Item item = new();
        Probe.FailAllocation(1, count: 2);
        PoolItem.Queue(item, preferLocal: false);
        Probe.FailAllocation(0);
        await item.Run.WaitAsync(Eventually.Limit, _stop);
    }

    private sealed class Item : IThreadPoolWorkItem
    {
        private readonly TaskCompletionSource _run = new();

        public Task Run => _run.Task;

        void IThreadPoolWorkItem.Execute() => _run.SetResult();
    }

    private sealed class Call(WaitKind kind) : IWaitingCall
    {
        private readonly TaskCompletionSource _performed = new();
        private int _count;

        public Task Performed => _performed.Task;

        public WaitKind WaitKind => kind;

        public long QueuedAt { get; set; }

        public IWaitingCall? Next { get; set; }

        public void Perform()
        {
            Assert.Equal(1, Interlocked.Increment(ref _count));
            _performed.SetResult();
        }
    }
}
