namespace FilePipelines.Tests;

/// <summary>Operations that wait in poll(2), and cancellations that come for another one.</summary>
public sealed class DescriptorPollerTests : FileTests
{
    [Fact]
    public async Task Cancel_OfARequestThatServesAnotherFileByNow_IsACancellationThatItsOwnerRunsAgain()
    {
        using Fifo mine = Fifo.Create(_folder, "mine");
        using Fifo other = Fifo.Create(_folder, "other");
        UnixFile backend = Open(mine.Path);
        UnixFile otherBackend = Open(other.Path);

        // Requests are pooled: this one was the other owner's when the other decided to cancel it. It does not go through the pool here,
        // which another test might take it from.
        FileRequest request = otherBackend.Rent();
        Task run = Run(backend, request);
        otherBackend.Cancel(request);
        await run.WaitAsync(Eventually.Limit, _stop);
        Assert.True(request.IsCanceled);
        request.Clear();
        byte[] buffer = new byte[10];
        run = Run(backend, request, buffer);
        Assert.False(run.IsCompleted);
        mine.Write(Pattern.Bytes(10));
        await run.WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(10, request.Transferred);
        Assert.Equal(Pattern.Bytes(10), buffer);
        request.Return();
        backend.Release(closeHandle: true);
        otherBackend.Release(closeHandle: true);
    }

    [Fact]
    public async Task Cancel_OfAnOperationOnItsWay_RefusesThatUseOnly()
    {
        using Fifo fifo = Fifo.Create(_folder);
        UnixFile backend = Open(fifo.Path);
        FileRequest operation = backend.Rent();
        operation.Begin(FileRequestKind.Read, 0);
        operation.Add(new byte[10], address: 0);
        operation.Pin();
        backend.Cancel(operation);
        Task run = RequestEnd.Of(backend, operation);
        await run.WaitAsync(Eventually.Limit, _stop);
        Assert.True(operation.IsCanceled);
        operation.Clear();

        // The next use is another one.
        run = Run(backend, operation);
        fifo.Write(Pattern.Bytes(10));
        await run.WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(10, operation.Transferred);
        operation.Return();
        backend.Release(closeHandle: true);
    }

    [Fact]
    public void StartAndCancel_FasterThanThePollThreadLooks_GoOn()
    {
        // Many waiters make each look of the poll thread slow, and two threads wake it all the while: 64 Ki wake-ups unread would fill its
        // pipe.
        using Fifo fifo = Fifo.Create(_folder);
        UnixFile backend = Open(fifo.Path);
        List<FileRequest> idle = [.. Enumerable.Range(0, 3000).Select(_ => Begin(backend).Request)];
        long cycles = 0;
        Thread[] threads = [.. Enumerable.Range(0, 2).Select(_ => new Thread(() =>
        {
            long end = Environment.TickCount64 + 3000;
            while (Environment.TickCount64 < end)
            {
                (FileRequest operation, Task run) = Begin(backend);
                backend.Cancel(operation);
                run.Wait(CancellationToken.None);
                operation.Return();
                Interlocked.Increment(ref cycles);
            }
        })
        { IsBackground = true })];
        Array.ForEach(threads, t => t.Start());
        Assert.All(threads, t => Assert.True(t.Join(Eventually.Limit), $"Stuck after {Interlocked.Read(ref cycles)} cycles."));
        foreach (FileRequest operation in idle)
        {
            backend.Cancel(operation);
            Assert.True(operation.IsCanceled);
            operation.Return();
        }

        backend.Release(closeHandle: true);
    }

    private static (FileRequest Request, Task Run) Begin(UnixFile backend)
    {
        FileRequest operation = backend.Rent();
        return (operation, Run(backend, operation));
    }

    private static Task Run(UnixFile backend, FileRequest request, byte[]? buffer = null)
    {
        request.Begin(FileRequestKind.Read, 0);
        request.Add(buffer ?? new byte[10], address: 0);
        request.Pin();
        return RequestEnd.Of(backend, request);
    }

    private static UnixFile Open(string path)
    {
        SafeFileHandle handle = File.OpenHandle(path);
        return new UnixFile(handle, path, FileProperties.Of(handle, path));
    }
}
