using System.Collections.Concurrent;
using System.Diagnostics;
using System.Diagnostics.Metrics;
using Pipelines.File.Threading;

namespace FilePipelines.Tests;

/// <summary>Calls that wait, and the process around them: its pool, its threads, its end.</summary>
[Collection("whole process")]
public sealed class WaitingProcessTests : FileTests
{
    [Fact]
    public async Task Calls_WhileThePoolIsBusy_GoOnAndCompleteWhenItIsFree()
    {
        ChildProcess.SkipUnlessLinux("dotnet");
        (int exitCode, string output, string error) = await ChildProcess.RunAsync(ChildProcess.Command("starve", _folder.Path));
        Assert.True(exitCode == 0, output + error);
        Assert.Equal("written on the device opened read done", string.Join(' ', output.Split('\n', StringSplitOptions.RemoveEmptyEntries)));
    }

    [Theory]
    [InlineData("own")]
    [InlineData("callers")]
    public async Task Complete_EveryPoolThreadWaitsForTheSameLock_EndsAllTheSame(string pool)
    {
        ChildProcess.SkipUnlessLinux("dotnet");
        (int exitCode, string output, string error) = await ChildProcess.RunAsync(
            "DOTNET_PROCESSOR_COUNT=2 " + ChildProcess.Command("underlock", _folder.Path, pool)).WaitAsync(Eventually.Limit, _stop);
        Assert.True(exitCode == 0, output + error);
    }

    [Fact]
    public async Task FlushAsync_ByTheLastThreadOfThePoolWhichGoesOn_IsWrittenAllTheSame()
    {
        ChildProcess.SkipUnlessLinux("dotnet");
        string command = "DOTNET_PROCESSOR_COUNT=2 " + ChildProcess.Command("poolcaller", _folder.Path);
        (int exitCode, string output, string error) = await ChildProcess.RunAsync(command).WaitAsync(Eventually.Limit, _stop);
        Assert.True(exitCode == 0, output + error);
    }

    /// <summary>With one thread for writes, which one writer keeps for its next bytes: another writer's go first.</summary>
    [Fact]
    public async Task FlushAsync_TheOnlyThreadStaysAwakeForAnotherWriter_IsWrittenAllTheSame()
    {
        ChildProcess.SkipUnlessLinux("dotnet", "timeout");
        string command = "PIPELINES_FILE_WAITING_THREADS=1 timeout 60 " + ChildProcess.Command("awake", _folder.Path);
        (int exitCode, string output, string error) = await ChildProcess.RunAsync(command).WaitAsync(Eventually.Limit, _stop);
        Assert.True(exitCode == 0, output + error);
    }

    /// <summary>Whoever holds the pool's threads may wait for this very call.</summary>
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public void Queue_ThreadCannotBeStartedWhileThePoolIsBusy_IsPerformedByTheIdleOne(bool isStarting)
    {
        using ManualResetEventSlim stall = new();
        using ManualResetEventSlim starts = new();
        using ManualResetEventSlim fails = new();
        TaskCompletionSource performed = new();
        TaskCompletionSource performedByIdle = new();
        int started = 0;
        WaitingThreads threads = new("test", limit: 16, (thread, parameter) =>
        {
            if (Interlocked.Increment(ref started) == 1)
            {
                thread.UnsafeStart(parameter);
                return;
            }

            starts.Set();
            fails.Wait(CancellationToken.None);
            throw new InsufficientMemoryException();
        });
        TaskCompletionSource busy = new();
        try
        {
            for (int i = 0; i < 500; i++)
            {
                ThreadPool.UnsafeQueueUserWorkItem(static busy => busy.Wait(), busy.Task, preferLocal: false);
            }

            threads.Queue(new QueuedCall(() => stall.Wait(CancellationToken.None)));
            Assert.True(SpinWait.SpinUntil(() => threads.UnderWayCount == 1, Eventually.Limit));
            Thread second = new(() => threads.Queue(new QueuedCall(performed.SetResult)));
            second.Start();
            starts.Wait(_stop);

            // The only thread performs both, and becomes idle.
            stall.Set();
            Assert.True(SpinWait.SpinUntil(() => performed.Task.IsCompleted && threads.UnderWayCount == 0, Eventually.Limit));
            if (!isStarting)
            {
                fails.Set();
                second.Join();
            }

            threads.Queue(new QueuedCall(performedByIdle.SetResult));
            fails.Set();
            second.Join();
            Assert.True(SpinWait.SpinUntil(() => performedByIdle.Task.IsCompleted, Eventually.Limit));
        }
        finally
        {
            busy.SetResult();
        }
    }

    /// <summary>The threads of the pool that are to take their places have not come, so they do not count against the limit.</summary>
    [Fact]
    public void Queue_AsManyThreadsAsTheLimitCouldNotBeStartedWhileThePoolIsBusy_StartsAnother()
    {
        const int Limit = 5;
        int started = 0;
        WaitingThreads threads = new("test", Limit, (thread, parameter) =>
        {
            if (Interlocked.Increment(ref started) <= Limit)
            {
                throw new InsufficientMemoryException();
            }

            thread.UnsafeStart(parameter);
        });
        int performed = 0;
        TaskCompletionSource busy = new();
        try
        {
            for (int i = 0; i < 500; i++)
            {
                ThreadPool.UnsafeQueueUserWorkItem(static busy => busy.Wait(), busy.Task, preferLocal: false);
            }

            for (int i = 0; i <= Limit; i++)
            {
                threads.Queue(new QueuedCall(() => Interlocked.Increment(ref performed)));
            }

            Assert.InRange(Volatile.Read(ref started), Limit + 1, 2 * Limit);
            Assert.True(SpinWait.SpinUntil(() => Volatile.Read(ref performed) == Limit + 1, Eventually.Limit));
        }
        finally
        {
            busy.SetResult();
        }
    }

    [Fact]
    public async Task Queue_ThreadCannotBeStarted_TheThreadOfThePoolIsFreeAfterTheCall()
    {
        int starts = 0;
        WaitingThreads threads = new("test", limit: 16, (_, _) =>
        {
            starts++;
            throw new InsufficientMemoryException();
        });
        for (int i = 1; i <= 2; i++)
        {
            TaskCompletionSource performed = new(TaskCreationOptions.RunContinuationsAsynchronously);
            threads.Queue(new QueuedCall(performed.SetResult));
            await performed.Task.WaitAsync(Eventually.Limit, _stop);
            await Eventually.TrueAsync(() => threads.UnderWayCount == 0);

            // An idle one would have been woken for the second call.
            Assert.Equal(i, starts);
        }
    }

    [Fact]
    public async Task ProcessExit_WithCallsUnderWay_DoesNotWaitForThem()
    {
        ChildProcess.SkipUnlessLinux("dotnet");
        string fifo = Fifo.Make(_folder);
        (int exitCode, string output, string error) = await ChildProcess.RunAsync(ChildProcess.Command("leave", fifo))
            .WaitAsync(Eventually.Limit, _stop);
        Assert.True(exitCode == 0 && output == "left\n", output + error);
    }

    [Fact]
    public async Task ThousandReads_OfADeviceThatStalls_TakeNoThousandThreads()
    {
        using Gate gate = new();
        ScriptedCalls calls = new()
        {
            OnReadNoWait = _ => -Libc.EAGAIN,
            OnRead = gate.Hold,
        };
        string path = _folder.File("f", Pattern.Bytes(100));
        using SafeFileHandle handle = File.OpenHandle(path);
        FilePipeReader[] readers =
        [
            .. Enumerable.Range(0, 1000).Select(_ => FilePipeReader.Create(
                new UnixFile(handle, path, FileProperties.Of(handle, path), calls), new() { BufferSize = 128 }, leaveOpen: true)),
        ];
        Task<ReadResult>[] reads = [.. readers.Select(reader => reader.ReadAsync(_stop).AsTask())];
        await Task.Delay(300, _stop);
        Assert.InRange(WaitingThreads.Reads.ThreadCount, 1, 64);
        Assert.All(reads, read => Assert.False(read.IsCompleted));

        // Another device, and another kind of call, are served meanwhile.
        FilePipeWriter writer = await FilePipeWriter.OpenAsync(
            _folder.File("other"), new() { FlushGuarantee = FlushGuarantee.Durable }, _stop).AsTask().WaitAsync(Eventually.Limit, _stop);
        await writer.WriteAllAsync(Pattern.Bytes(100)).WaitAsync(Eventually.Limit, _stop);
        gate.Open();
        foreach (Task<ReadResult> read in reads)
        {
            Assert.Equal(100, (await read.WaitAsync(Eventually.Limit, _stop)).Buffer.Length);
        }

        foreach (FilePipeReader reader in readers)
        {
            await reader.CompleteAsync();
        }
    }

    [Fact]
    public async Task CallersCode_NeverRunsOnAThreadOfTheLibrarys()
    {
        ConcurrentDictionary<string, string> seen = new();
        using MeterListener listener = new();
        listener.InstrumentPublished = (instrument, listener) =>
        {
            if (instrument.Meter.Name == "Pipelines.File")
            {
                listener.EnableMeasurementEvents(instrument);
            }
        };
        listener.SetMeasurementEventCallback<long>((instrument, _, _, _) => See(instrument.Name));
        listener.SetMeasurementEventCallback<double>((instrument, _, _, _) => See(instrument.Name));
        listener.Start();
        using HostilePool pool = new() { OnCall = _ => See("pool") };
        Context context = new(() => See("context"));
        Task work = Task.Factory.StartNew(WorkAsync, _stop, TaskCreationOptions.None, new Scheduler(() => See("scheduler"))).Unwrap();
        await work.WaitAsync(Eventually.Limit, _stop);
        foreach (MemoryPool<byte>? memory in (MemoryPool<byte>?[])[null, pool])
        {
            await InContextAsync(context, memory);
        }

        // But for the histogram, nobody is told before this asks.
        Assert.DoesNotContain(seen.Keys,
            name => name.StartsWith("pipelines.file.", StringComparison.Ordinal) && name != "pipelines.file.waiting.duration");
        await Eventually.TrueAsync(() => seen.ContainsKey("pipelines.file.waiting.duration"));
        listener.RecordObservableInstruments();
        Assert.Contains("pipelines.file.syncs", seen.Keys);
        Assert.Contains("pool", seen.Keys);
        Assert.Contains("context", seen.Keys);
        Assert.Contains("scheduler", seen.Keys);
        Assert.All(seen, pair => Assert.True(pair.Value.Length == 0, $"{pair.Key} on {pair.Value}"));

        void See(string what)
        {
            string thread = Thread.CurrentThread.Name ?? "";
            bool isOurs = thread.StartsWith(WaitingThreads.ThreadName, StringComparison.Ordinal)
                || thread.StartsWith(DescriptorPoller.ThreadName, StringComparison.Ordinal);
            seen.AddOrUpdate(what, isOurs ? thread : "", (_, before) => before.Length > 0 || !isOurs ? before : thread);
        }

        async Task WorkAsync()
        {
            await UseAsync(null);
            await UseAsync(pool);
        }

        async Task InContextAsync(Context context, MemoryPool<byte>? memory)
        {
            SynchronizationContext? before = SynchronizationContext.Current;
            SynchronizationContext.SetSynchronizationContext(context);
            Task use = UseAsync(memory);
            SynchronizationContext.SetSynchronizationContext(before);
            await use.WaitAsync(Eventually.Limit, _stop).ConfigureAwait(false);
        }
    }

    private async Task UseAsync(MemoryPool<byte>? pool)
    {
        string path = _folder.File(Guid.NewGuid().ToString("N"));
        FilePipeWriter writer = await FilePipeWriter.OpenAsync(
            path, new() { Pool = pool, MinimumBufferSize = 1000, PauseWriterThreshold = 4000 }, _stop);
        for (int i = 0; i < 50; i++)
        {
            await writer.WriteAsync(Pattern.Bytes(1000, i * 1000), _stop);
            await writer.FlushAsync(i % 10 == 0 ? FlushGuarantee.Durable : FlushGuarantee.WriteBehind, _stop);
        }

        await writer.CompleteAsync();
        FilePipeReader reader = OperatingSystem.IsWindows()
            ? await FilePipeReader.OpenAsync(path, new() { Pool = pool, BufferSize = 1000, PauseReadAheadThreshold = 4000 }, _stop)
            : new ScriptedCalls { OnReadNoWait = _ => -Libc.EAGAIN, OnRead = _ => 1000 }.Read(
                path, new() { Pool = pool, BufferSize = 1000 });
        while (await reader.ReadAsync(_stop) is { IsCompleted: false } result)
        {
            reader.AdvanceTo(result.Buffer.End);
        }

        await reader.CompleteAsync();
        if (!OperatingSystem.IsLinux())
        {
            return;
        }

        using Fifo fifo = Fifo.Create(_folder, Guid.NewGuid().ToString("N"));
        FilePipeReader fifoReader = await FilePipeReader.OpenAsync(fifo.Path, new() { Pool = pool }, _stop);
        ValueTask<ReadResult> read = fifoReader.ReadAsync(_stop);
        await Task.Delay(30, _stop);
        fifo.Write(Pattern.Bytes(10));
        Assert.Equal(10, (await read).Buffer.Length);
        await fifoReader.CompleteAsync();
    }

    private sealed class Context(Action seen) : SynchronizationContext
    {
        public override void Post(SendOrPostCallback d, object? state)
        {
            seen();
            ThreadPool.QueueUserWorkItem(_ =>
            {
                SetSynchronizationContext(this);
                d(state);
            });
        }
    }

    private sealed class Scheduler(Action seen) : TaskScheduler
    {
        protected override void QueueTask(Task task)
        {
            seen();
            ThreadPool.QueueUserWorkItem(_ => TryExecuteTask(task));
        }

        protected override bool TryExecuteTaskInline(Task task, bool taskWasPreviouslyQueued) => false;

        protected override IEnumerable<Task> GetScheduledTasks() => [];
    }
}
