using System.Buffers;
using System.IO.Pipelines;
using FilePipelinesChild;
using Pipelines.File;

namespace FilePipelinesTests;

/// <summary>A write of the caller's own memory, which the system has until the call completes, and what others do meanwhile.</summary>
public sealed class WriterBorrowedTests : IDisposable
{
    private const int Length = 300_000;

    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public WriterBorrowedTests() => Assert.SkipWhen(OperatingSystem.IsWindows(), "It scripts the Unix system calls.");

    public void Dispose() => _folder.Dispose();

    [Fact]
    public async Task CancelPendingFlush_WhileTheLastCallIsUnderWay_CancelsAndTheBytesAreWrittenOnce()
    {
        using ManualResetEventSlim gate = new();
        ScriptedCalls calls = new() { OnWrite = _ => Wait(gate) };
        FilePipeWriter writer = calls.Write(_folder.File("f"));
        Task<FlushResult> write = writer.WriteAsync(Pattern.Bytes(Length), _stop).AsTask();
        await Eventually.TrueAsync(() => calls.Writes == 1);
        writer.CancelPendingFlush();
        writer.CancelPendingFlush();
        gate.Set();
        Assert.True((await write.WaitAsync(Eventually.Limit, _stop)).IsCanceled);
        Assert.Equal(Length, writer.Position);
        Assert.Equal(0, writer.UnflushedBytes);

        // Once, not also the next one.
        Assert.False((await writer.WriteAsync(Pattern.Bytes(10, Length), _stop)).IsCanceled);
        await writer.CompleteAsync();
        Assert.True(Pattern.Bytes(Length + 10).AsSpan().SequenceEqual(File.ReadAllBytes(_folder.File("f"))));
    }

    [Fact]
    public async Task Abort_WhileTheLastCallIsUnderWay_IsACancellation()
    {
        using ManualResetEventSlim gate = new();
        ScriptedCalls calls = new() { OnWrite = _ => Wait(gate) };
        FilePipeWriter writer = calls.Write(_folder.File("f"));
        Task<FlushResult> write = writer.WriteAsync(Pattern.Bytes(Length), _stop).AsTask();
        await Eventually.TrueAsync(() => calls.Writes == 1);
        writer.Abort();
        gate.Set();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => write.WaitAsync(Eventually.Limit, _stop));
        await writer.CompleteAsync();
    }

    /// <summary>A sync has no memory of the caller's, so nobody waits for it, however long it takes.</summary>
    [Theory]
    [InlineData("token")]
    [InlineData("CancelPendingFlush")]
    [InlineData("Abort")]
    public async Task WriteAsync_CanceledWhileASyncIsUnderWay_EndsAtOnceAndKeepsNothing(string how)
    {
        using ManualResetEventSlim gate = new();
        using CancellationTokenSource token = new();
        ScriptedCalls calls = new() { OnSync = _ => Wait(gate) };
        FilePipeWriter writer = calls.Write(_folder.File("f"));
        writer.GetSpan(10)[..10].Clear();
        writer.Advance(10);
        Task<FlushResult> flush = writer.FlushAsync(FlushGuarantee.Durable, _stop).AsTask();
        await Eventually.TrueAsync(() => calls.Syncs == 1);
        Task<FlushResult> write = writer.WriteAsync(Pattern.Bytes(Length), token.Token).AsTask();
        Assert.False(write.IsCompleted);
        if (how == "CancelPendingFlush")
        {
            writer.CancelPendingFlush();
            Assert.True((await write.WaitAsync(Eventually.Limit, _stop)).IsCanceled);
        }
        else
        {
            await (how == "Abort" ? Task.Run(writer.Abort, _stop) : token.CancelAsync());
            await Assert.ThrowsAnyAsync<OperationCanceledException>(() => write.WaitAsync(Eventually.Limit, _stop));
        }

        Assert.Equal(1, calls.Syncs);
        gate.Set();
        _ = await Record.ExceptionAsync(() => flush.WaitAsync(Eventually.Limit, _stop));
        Assert.Equal(10, writer.Position);
        await writer.CompleteAsync();
        Assert.Equal(new byte[10], File.ReadAllBytes(_folder.File("f")));
    }

    [Fact]
    public async Task CopyToAsync_AnotherStreamFollowsWhileTheFlushIsPending_EachPositionIsItsOwn()
    {
        using ManualResetEventSlim gate = new();
        ScriptedCalls calls = new() { OnSync = _ => Wait(gate) };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Durable });
        using PooledMemoryStream first = new();
        using PooledMemoryStream second = new();
        await first.WriteAsync(Pattern.Bytes(1000), _stop);
        await second.WriteAsync(Pattern.Bytes(500, 1000), _stop);
        first.Position = second.Position = 0;
        Task one = first.CopyToAsync(writer, _stop);
        await Eventually.TrueAsync(() => calls.Syncs == 1);
        Task two = second.CopyToAsync(writer, _stop);
        gate.Set();
        await Task.WhenAll(one, two).WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(1000, first.Position);
        Assert.Equal(500, second.Position);
        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(1500), File.ReadAllBytes(_folder.File("f")));
    }

    [Fact]
    public async Task CopyToAsync_StreamIsDisposedOfMeanwhile_WritesItsBytesAndNobodyElses()
    {
        using ManualResetEventSlim gate = new();
        ScriptedCalls calls = new() { OnWrite = _ => Wait(gate) };
        FilePipeWriter writer = calls.Write(_folder.File("f"));
        PooledMemoryStream stream = new();
        await stream.WriteAsync(Pattern.Bytes(Length), _stop);
        stream.Position = 0;
        Task copy = stream.CopyToAsync(writer, _stop);
        await Eventually.TrueAsync(() => calls.Writes == 1);
        stream.Dispose();
        using (PooledMemoryStream other = new())
        {
            // Whoever gets the memory next.
            await other.WriteAsync(new byte[2 * Length], _stop);
        }

        gate.Set();
        await copy.WaitAsync(Eventually.Limit, _stop);
        await writer.CompleteAsync();
        Assert.True(Pattern.Bytes(Length).AsSpan().SequenceEqual(File.ReadAllBytes(_folder.File("f"))));
    }

    [Theory]
    [InlineData(false, FlushGuarantee.WriteBehind)]
    [InlineData(true, FlushGuarantee.WriteBehind)]
    [InlineData(false, FlushGuarantee.Durable)]
    [InlineData(true, FlushGuarantee.Durable)]
    public async Task Complete_WhileTheCallIsUnderWay_WritesAllOfItOnceAndTheCallEndsWell(bool isAsync, FlushGuarantee guarantee)
    {
        using ManualResetEventSlim gate = new();
        ScriptedCalls calls = new() { OnWrite = call => Wait(gate) ?? (call % 2 == 1 ? 70_000 : null) };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { FlushGuarantee = guarantee });
        byte[] data = Pattern.Bytes(Length);
        Task<FlushResult> write = writer.WriteAsync(data, _stop).AsTask();
        await Eventually.TrueAsync(() => calls.Writes == 1);
        Task end = isAsync ? writer.CompleteAsync().AsTask() : Task.Run(() => writer.Complete(), _stop);
        gate.Set();
        FlushResult result = await write.WaitAsync(Eventually.Limit, _stop);
        Assert.False(result.IsCanceled || result.IsCompleted);
        Assert.Equal(guarantee == FlushGuarantee.Durable, calls.Syncs > 0);
        Array.Clear(data);
        await end.WaitAsync(Eventually.Limit, _stop);
        await Assert.ThrowsAsync<InvalidOperationException>(async () => await writer.WriteAsync(data, _stop));
        Assert.True(Pattern.Bytes(Length).AsSpan().SequenceEqual(File.ReadAllBytes(_folder.File("f"))));
        Assert.Equal(Length, writer.Position);
    }

    [Theory]
    [InlineData(1)]
    [InlineData(2)]
    [InlineData(4)]
    public async Task WriteAsync_FailsAtCall_HoldsAPrefixAndThePinIsReleased(int failing)
    {
        ScriptedCalls calls = new() { OnWrite = call => call >= failing ? -28 : 70_000 };
        FilePipeWriter writer = calls.Write(_folder.File("f"));
        using PinnedMemory memory = new(Length);
        Exception? thrown = await Record.ExceptionAsync(async () => await writer.WriteAsync(memory.Memory, _stop));
        Assert.IsType<IOException>(thrown);
        Assert.Equal(0, memory.Pins);
        Assert.Equal((failing - 1) * 70_000, writer.Position);
        await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync());
        Assert.True(memory.Bytes.AsSpan(0, (failing - 1) * 70_000).SequenceEqual(File.ReadAllBytes(_folder.File("f"))));
    }

    [Fact]
    public async Task WriteAsync_MemoryCannotBePinned_ThrowsAndTheWriterGoesOn()
    {
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("f"));
        using PinnedMemory memory = new(Length) { Throws = true };
        await Assert.ThrowsAsync<InvalidOperationException>(async () => await writer.WriteAsync(memory.Memory, _stop));
        memory.Throws = false;
        await writer.WriteAsync(memory.Memory, _stop);
        Assert.Equal(0, memory.Pins);
        await writer.CompleteAsync();
        Assert.True(memory.Bytes.AsSpan().SequenceEqual(File.ReadAllBytes(_folder.File("f"))));
    }

    [Theory]
    [InlineData(FileMode.Append, 300)]
    [InlineData(FileMode.Create, 300)]
    public async Task WriteAsync_BetweenSmallOnes_KeepsTheOrder(FileMode mode, int small)
    {
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("f"), new() { Mode = mode, MinimumBufferSize = 100 });
        int index = 0;
        for (int i = 0; i < 20; i++)
        {
            int length = i % 2 == 0 ? small : Length;
            if (i % 3 == 0)
            {
                // Taken, and not flushed.
                Pattern.Fill(writer.GetSpan(77)[..77], index);
                writer.Advance(77);
                index += 77;
            }

            if (i % 4 == 0)
            {
                writer.GetMemory(50);
            }

            await writer.WriteAsync(Pattern.Bytes(length, index), _stop);
            index += length;
            Assert.Equal(mode == FileMode.Append && length == small ? writer.Position : index, writer.Position);
        }

        await writer.CompleteAsync();
        Assert.True(Pattern.Bytes(index).AsSpan().SequenceEqual(File.ReadAllBytes(_folder.File("f"))));
    }

    private static long? Wait(ManualResetEventSlim gate)
    {
        gate.Wait(Eventually.Limit);
        return null;
    }

    private sealed unsafe class PinnedMemory : MemoryManager<byte>
    {
        private readonly System.Runtime.InteropServices.GCHandle _handle;

        internal PinnedMemory(int length)
        {
            Bytes = Pattern.Bytes(length);
            _handle = System.Runtime.InteropServices.GCHandle.Alloc(Bytes, System.Runtime.InteropServices.GCHandleType.Pinned);
        }

        internal byte[] Bytes { get; }

        internal int Pins { get; private set; }

        internal bool Throws { get; set; }

        public override Span<byte> GetSpan() => Bytes;

        public override MemoryHandle Pin(int elementIndex = 0)
        {
            if (Throws)
            {
                throw new InvalidOperationException("It is not to be pinned.");
            }

            Pins++;
            return new((byte*)_handle.AddrOfPinnedObject() + elementIndex, default, this);
        }

        public override void Unpin() => Pins--;

        protected override void Dispose(bool disposing) => _handle.Free();
    }
}
