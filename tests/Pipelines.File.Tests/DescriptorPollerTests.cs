using FilePipelinesChild;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Backends;

namespace FilePipelinesTests;

/// <summary>Operations that wait in poll(2), and cancellations that come for another one.</summary>
public sealed class DescriptorPollerTests : IDisposable
{
    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public void Dispose() => _folder.Dispose();

    [Fact]
    public async Task Cancel_OfAnOperationThatServesAnotherFileByNow_LeavesItAlone()
    {
        using Fifo mine = Fifo.Create(_folder, "mine");
        using Fifo other = Fifo.Create(_folder, "other");
        ThreadPoolBackend backend = Open(mine.Path);
        ThreadPoolBackend otherBackend = Open(other.Path);
        Recorder owner = new();
        Recorder otherOwner = new();

        // Operations are pooled: this one was the other owner's when the other asked for the cancellation.
        FileOperation operation = otherBackend.Rent(otherOwner);
        operation.Begin(FileOperationKind.Read, 0);
        Cancellation late = new(operation);
        operation.Return();
        FileOperation mineNow = backend.Rent(owner);
        Assert.Same(operation, mineNow);
        operation.Begin(FileOperationKind.Read, 0);
        byte[] buffer = new byte[10];
        operation.Add(buffer, address: 0);
        operation.Pin();
        backend.Start(operation);
        late.Request(otherBackend);
        Assert.False(owner.Completed.Task.IsCompleted);
        mine.Write(Pattern.Bytes(10));
        FileOperation completed = await owner.Completed.Task.WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(10, completed.Transferred);
        Assert.Equal(Pattern.Bytes(10), buffer);
        completed.Return();
        backend.Release(closeHandle: true);
        otherBackend.Release(closeHandle: true);
    }

    [Fact]
    public async Task Cancel_OfAWaitingOperation_ReportsItAsCanceled()
    {
        using Fifo fifo = Fifo.Create(_folder);
        ThreadPoolBackend backend = Open(fifo.Path);
        Recorder owner = new();
        FileOperation operation = Begin(backend, owner);
        backend.Cancel(operation, operation.Generation);
        FileOperation completed = await owner.Completed.Task.WaitAsync(Eventually.Limit, _stop);
        Assert.True(completed.IsCanceled);
        completed.Return();
        backend.Release(closeHandle: true);
    }

    [Fact]
    public async Task Cancel_OfAnOperationOnItsWay_RefusesThatUseOnly()
    {
        using Fifo fifo = Fifo.Create(_folder);
        ThreadPoolBackend backend = Open(fifo.Path);
        Recorder owner = new();
        FileOperation operation = backend.Rent(owner);
        operation.Begin(FileOperationKind.Read, 0);
        operation.Add(new byte[10], address: 0);
        operation.Pin();
        backend.Cancel(operation, operation.Generation);
        backend.Start(operation);
        Assert.True(operation.IsCanceled);
        operation.Clear();

        // The next use is another one.
        owner.Completed = new(TaskCreationOptions.RunContinuationsAsynchronously);
        operation.Begin(FileOperationKind.Read, 0);
        operation.Add(new byte[10], address: 0);
        operation.Pin();
        backend.Start(operation);
        fifo.Write(Pattern.Bytes(10));
        FileOperation completed = await owner.Completed.Task.WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(10, completed.Transferred);
        completed.Return();
        backend.Release(closeHandle: true);
    }

    [Fact]
    public void StartAndCancel_FasterThanThePollThreadLooks_GoOn()
    {
        // Many waiters make each look of the poll thread slow, and two threads wake it all the while: 64 Ki wake-ups unread would fill its pipe.
        using Fifo fifo = Fifo.Create(_folder);
        ThreadPoolBackend backend = Open(fifo.Path);
        Recorder idleOwner = new();
        List<FileOperation> idle = [.. Enumerable.Range(0, 3000).Select(_ => Begin(backend, idleOwner))];
        long cycles = 0;
        Thread[] threads = [.. Enumerable.Range(0, 2).Select(_ => new Thread(() =>
        {
            long end = Environment.TickCount64 + 3000;
            while (Environment.TickCount64 < end)
            {
                Recorder owner = new();
                FileOperation operation = Begin(backend, owner);
                backend.Cancel(operation, operation.Generation);
                owner.Completed.Task.Wait(CancellationToken.None);
                operation.Return();
                Interlocked.Increment(ref cycles);
            }
        })
        { IsBackground = true })];
        Array.ForEach(threads, t => t.Start());
        Assert.All(threads, t => Assert.True(t.Join(Eventually.Limit), $"Stuck after {Interlocked.Read(ref cycles)} cycles."));
        foreach (FileOperation operation in idle)
        {
            backend.Cancel(operation, operation.Generation);
            Assert.True(operation.IsCanceled);
            operation.Return();
        }

        backend.Release(closeHandle: true);
    }

    private static FileOperation Begin(ThreadPoolBackend backend, Recorder owner)
    {
        FileOperation operation = backend.Rent(owner);
        operation.Begin(FileOperationKind.Read, 0);
        operation.Add(new byte[1], address: 0);
        operation.Pin();
        backend.Start(operation);
        return operation;
    }

    private static ThreadPoolBackend Open(string path)
    {
        SafeFileHandle handle = File.OpenHandle(path);
        return new ThreadPoolBackend(handle, path, FileProperties.Of(handle, path));
    }

    private sealed class Recorder : IFileOperationOwner
    {
        public TaskCompletionSource<FileOperation> Completed { get; set; } = new(TaskCreationOptions.RunContinuationsAsynchronously);

        public bool OnCompleted(FileOperation operation)
        {
            Completed.TrySetResult(operation);
            return false;
        }
    }
}
