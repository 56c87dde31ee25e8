using System.Globalization;
using System.Runtime.InteropServices;
using Pipelines.File.Threading;

namespace FilePipelines.Tests;

/// <summary>Waits for descriptors.</summary>
public sealed partial class DescriptorWaitTests : FileTests
{
    [Fact]
    public async Task TryAdd_NumberThatMeansAnotherFileSinceAnEarlierWait_IsToldOfItsOwnFile()
    {
        using Fifo earlier = Fifo.Create(_folder, "earlier");
        using Fifo later = Fifo.Create(_folder, "later");
        DescriptorPoller poller = new();
        using SafeFileHandle owner = File.OpenHandle(earlier.Path);
        using SafeFileHandle other = File.OpenHandle(later.Path);
        using SafeFileHandle borrowed = new(owner.DangerousGetHandle(), ownsHandle: false);
        Waiter first = new();
        Assert.True(poller.TryAdd(first.Request, borrowed, Libc.POLLIN));

        // The owner's close(2) and somebody's open(2) that gets the same number.
        Assert.True(Duplicate((int)other.DangerousGetHandle(), (int)owner.DangerousGetHandle()) >= 0);
        using SafeFileHandle reused = new(owner.DangerousGetHandle(), ownsHandle: false);
        Waiter second = new();
        Assert.True(poller.TryAdd(second.Request, reused, Libc.POLLIN));
        later.Write([1]);
        await second.Ready.Task.WaitAsync(Eventually.Limit, _stop);
        _ = poller.TryCancel(first.Request);
    }

    [Fact]
    public async Task TryAdd_MoreWaitsThanFilesMayBeOpen_WakesWhoIsReady()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux tells how many files a process may have open.");
        string limit = File.ReadLines("/proc/self/limits").Single(line => line.StartsWith("Max open files", StringComparison.Ordinal))
            .Split(' ', StringSplitOptions.RemoveEmptyEntries)[3];
        Assert.SkipUnless(
            int.TryParse(limit, CultureInfo.InvariantCulture, out int most) && most <= 30_000, "So many waits would take too long.");
        using Fifo fifo = Fifo.Create(_folder);
        using Fifo idle = Fifo.Create(_folder, "idle");
        using SafeFileHandle handle = File.OpenHandle(fifo.Path);
        using SafeFileHandle idleHandle = File.OpenHandle(idle.Path);
        DescriptorPoller poller = new();
        Waiter[] waiters = [.. Enumerable.Range(0, most + 1).Select(_ => new Waiter())];
        Assert.All(waiters, waiter => Assert.True(poller.TryAdd(waiter.Request, idleHandle, Libc.POLLIN)));
        Waiter last = new();
        Assert.True(poller.TryAdd(last.Request, handle, Libc.POLLIN));
        fifo.Write([1]);
        await last.Ready.Task.WaitAsync(Eventually.Limit, _stop);
        idle.Write([1]);
        await Task.WhenAll(waiters.Select(waiter => waiter.Ready.Task)).WaitAsync(Eventually.Limit, _stop);
        Assert.All(waiters, waiter => Assert.Equal(1, waiter.Times));
    }

    [Fact]
    public void TryAdd_DescriptorClosedUnderAnEarlierWait_Throws()
    {
        // The lowest free number is given away first, so that nobody else gets this one.
        const int Number = 1000;
        using Fifo fifo = Fifo.Create(_folder);
        using SafeFileHandle handle = File.OpenHandle(fifo.Path);
        using SafeFileHandle borrowed = new(Number, ownsHandle: false);
        Assert.Equal(Number, Duplicate((int)handle.DangerousGetHandle(), Number));
        DescriptorPoller poller = new();
        Waiter first = new();
        Waiter second = new();
        Assert.True(poller.TryAdd(first.Request, borrowed, Libc.POLLIN));
        Assert.Equal(0, LibcCalls.Close(Number));
        Assert.Throws<IOException>(() => poller.TryAdd(second.Request, borrowed, Libc.POLLIN));
        Assert.True(poller.TryCancel(first.Request));
        Assert.False(poller.TryCancel(second.Request));
    }

    /// <summary>As where a program lends its standard input's number to another file for a while.</summary>
    [Fact]
    public async Task TryAdd_FileThatHasItsNumberAgain_Waits()
    {
        const int Number = 1001;
        using Fifo fifo = Fifo.Create(_folder);
        using SafeFileHandle handle = File.OpenHandle(fifo.Path);
        using SafeFileHandle borrowed = new(Number, ownsHandle: false);
        DescriptorPoller poller = new();
        Assert.Equal(Number, Duplicate((int)handle.DangerousGetHandle(), Number));
        Waiter first = new();
        Assert.True(poller.TryAdd(first.Request, borrowed, Libc.POLLIN));
        Assert.Equal(0, LibcCalls.Close(Number));
        Assert.True(poller.TryCancel(first.Request));
        Assert.Equal(Number, Duplicate((int)handle.DangerousGetHandle(), Number));
        Waiter second = new();
        Assert.True(poller.TryAdd(second.Request, borrowed, Libc.POLLIN));
        fifo.Write([1]);
        await second.Ready.Task.WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(0, first.Times);
        Assert.Equal(0, LibcCalls.Close(Number));
    }

    [Fact]
    public async Task TryCancel_AgainstReadiness_EndsEachWaitOnce()
    {
        using Fifo fifo = Fifo.Create(_folder);
        using SafeFileHandle handle = File.OpenHandle(fifo.Path);
        DescriptorPoller poller = new();
        for (int round = 0; round < 300; round++)
        {
            Waiter[] waiters = [.. Enumerable.Range(0, 8).Select(_ => new Waiter())];
            Task<int> canceled = Task.Run(() =>
            {
                foreach (Waiter waiter in waiters)
                {
                    Assert.True(poller.TryAdd(waiter.Request, handle, Libc.POLLIN));
                }

                return waiters.Where((_, i) => i % 2 == 0).Count(waiter => poller.TryCancel(waiter.Request) && waiter.End());
            });
            Thread.SpinWait(round * 10);
            fifo.Write([1]);
            _ = await canceled;
            await Task.WhenAll(waiters.Select(waiter => waiter.Ready.Task)).WaitAsync(Eventually.Limit, _stop);
            Assert.All(waiters, waiter => Assert.Equal(1, waiter.Times));
            byte[] drained = new byte[1];
            using FileStream reader = new(
                new SafeFileHandle(handle.DangerousGetHandle(), ownsHandle: false), FileAccess.Read, bufferSize: 0);
            Assert.Equal(1, reader.Read(drained));
        }
    }

    [LibraryImport("libc", EntryPoint = "dup2", SetLastError = true)]
    private static partial int Duplicate(int descriptor, int number);

    private sealed class Waiter : OpenedFile
    {
        private int _times;

        internal Waiter()
            : base(new SafeFileHandle(-1, ownsHandle: false), "waiter", default)
            => Request.BeginRun(this, new RequestEnd());

        internal FileRequest Request { get; } = new();

        internal TaskCompletionSource Ready { get; } = new(TaskCreationOptions.RunContinuationsAsynchronously);

        internal int Times => Volatile.Read(ref _times);

        internal override FilePipeBackend Kind => FilePipeBackend.Auto;

        internal override int MaxBuffersPerOperation => 1;

        private protected override bool TryPerformCore(FileRequest request, bool mayWait) => false;

        internal override void Cancel(FileRequest request)
        {
        }

        internal override void OnReady(FileRequest request) => End();

        internal bool End()
        {
            Interlocked.Increment(ref _times);
            Ready.TrySetResult();
            return true;
        }
    }
}
