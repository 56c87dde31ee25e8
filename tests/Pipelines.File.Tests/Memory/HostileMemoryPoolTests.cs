using static FilePipelines.Tests.CheckedPool;
using static FilePipelines.Tests.HostilePool;

namespace FilePipelines.Tests;

/// <summary>
/// Memory pools that throw, in every part and at every moment: what they throw is the error of the call that asked, nothing is lost or
/// leaked, and the process lives.
/// </summary>
public sealed class HostileMemoryPoolTests : FileTests
{
    private const int Length = 60_000;

    public HostileMemoryPoolTests() => Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts system calls of Linux.");

    /// <summary>How the reads go.</summary>
    public enum Way
    {
        Inline,
        HandedOver,
        ReadAhead,
        AtLeast,
    }

    public static TheoryData<Way, string, int, int> ReaderMoments
    {
        get
        {
            TheoryData<Way, string, int, int> moments = [];
            foreach (Way way in Enum.GetValues<Way>())
            {
                foreach (Part part in Enum.GetValues<Part>()[1..])
                {
                    foreach ((int from, int to) in new[] { (1, 1), (2, 2), (5, 5), (9, 12), (1, int.MaxValue), (4, int.MaxValue) })
                    {
                        moments.Add(way, part.ToString(), from, to);
                    }
                }
            }

            return moments;
        }
    }

    public static TheoryData<FlushGuarantee, bool, string, int, int> WriterMoments
    {
        get
        {
            TheoryData<FlushGuarantee, bool, string, int, int> moments = [];
            foreach (FlushGuarantee guarantee in new[] { FlushGuarantee.WriteBehind, FlushGuarantee.Written })
            {
                foreach (Part part in Enum.GetValues<Part>()[1..])
                {
                    foreach ((int from, int to) in new[] { (1, 1), (2, 2), (5, 7), (1, int.MaxValue), (4, int.MaxValue) })
                    {
                        moments.Add(guarantee, true, part.ToString(), from, to);
                        moments.Add(guarantee, false, part.ToString(), from, to);
                    }
                }
            }

            return moments;
        }
    }

    [Theory]
    [MemberData(nameof(ReaderMoments))]
    public async Task Reader_PoolThrows_KeepsTheBytesInOrderAndReleasesEverything(Way way, string part, int from, int to)
    {
        HostilePool pool = new() { Throws = Enum.Parse<Part>(part), FromCall = from, ToCall = to };
        ScriptedCalls calls = new() { OnReadNoWait = _ => way == Way.Inline ? 5000 : -Libc.EAGAIN, OnRead = _ => 5000 };
        FilePipeReader reader = calls.Read(
            _folder.File("f", Pattern.Bytes(Length)),
            new() { BufferSize = 2000, Pool = pool, PauseReadAheadThreshold = way == Way.ReadAhead ? 20_000 : 0 });
        SafeFileHandle handle = reader.OpenedFile.Handle;
        long index = 0;
        int errors = 0;
        bool isCompleted = false;
        while (!isCompleted && errors < 30)
        {
            try
            {
                ReadResult result = await (way == Way.AtLeast ? reader.ReadAtLeastAsync(12_000, _stop) : reader.ReadAsync(_stop));
                foreach (ReadOnlyMemory<byte> memory in result.Buffer)
                {
                    Assert.Equal(-1, Pattern.FirstDifference(memory.Span, index));
                    index += memory.Length;
                }

                isCompleted = result.IsCompleted;
                reader.AdvanceTo(result.Buffer.End);
            }
            catch (HostilePoolException)
            {
                errors++;
            }
        }

        Assert.True(errors <= pool.Thrown, "One error of the pool is thrown once.");
        Assert.True(errors == 1 || (from, to) != (1, 1) || part is nameof(Part.Unpin) or nameof(Part.Dispose), "The first is told.");
        if (part is nameof(Part.Unpin) or nameof(Part.Dispose) || to < int.MaxValue)
        {
            Assert.Equal(Length, index);
        }

        // What the pool throws now is told, too, and changes nothing.
        Exception? last = await Record.ExceptionAsync(async () => await reader.CompleteAsync());
        Assert.True(last is null or HostilePoolException, $"{last}");
        AssertReleased(handle, pool);
    }

    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task Reader_PoolIsDisposedWhileAReadWaits_ReleasesEverything(bool isCompletedFirst)
    {
        using Fifo fifo = Fifo.Create(_folder);
        bool isDisposed = false;
        HostilePool pool = new()
        {
            OnCall = _ =>
            {
                ObjectDisposedException.ThrowIf(Volatile.Read(ref isDisposed), typeof(HostilePool));
            },
        };
        FilePipeReader reader = FilePipeReader.Create(fifo.Path, new() { Pool = pool });
        Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
        Volatile.Write(ref isDisposed, true);
        if (!isCompletedFirst)
        {
            // The read ends, and its memory is there; the next one has none.
            fifo.Write(Pattern.Bytes(10));
            ReadResult result = await read.WaitAsync(Eventually.Limit, _stop);
            Assert.Equal(Pattern.Bytes(10), result.Buffer.ToArray());
        }

        _ = await Record.ExceptionAsync(async () => await reader.CompleteAsync());
        if (isCompletedFirst)
        {
            await Assert.ThrowsAsync<InvalidOperationException>(() => read.WaitAsync(Eventually.Limit, _stop));
        }

        Assert.True(reader.OpenedFile.Handle.IsClosed);
        await Eventually.TrueAsync(() => OpenHandles.Of(fifo.Path) == 1);
    }

    [Theory]
    [MemberData(nameof(WriterMoments))]
    public async Task Writer_PoolThrows_LeavesAnUnbrokenPrefixAndReleasesEverything(
        FlushGuarantee guarantee, bool isAsync, string part, int from, int to)
    {
        HostilePool pool = new() { Throws = Enum.Parse<Part>(part), FromCall = from, ToCall = to };
        ScriptedCalls calls = new() { OnWrite = call => call % 3 == 0 ? 1500 : null };
        string path = _folder.File("f");
        FilePipeWriter writer = calls.Write(
            path, new() { MinimumBufferSize = 2000, Pool = pool, FlushGuarantee = guarantee, PauseWriterThreshold = 10_000 });
        SafeFileHandle handle = writer.OpenedFile.Handle;
        int written = 0;
        int errors = 0;
        bool hasFailed = false;
        while (written < Length && !hasFailed && errors < 30)
        {
            try
            {
                int length = Math.Min(1700, writer.GetMemory(1000).Length);
                Pattern.Fill(writer.GetSpan(length)[..length], written);
                writer.Advance(length);
                written += length;
            }
            catch (HostilePoolException)
            {
                errors++;
                continue;
            }

            try
            {
                await writer.FlushAsync(_stop);
            }
            catch (HostilePoolException)
            {
                hasFailed = true;
            }
        }

        Exception? last = isAsync
            ? await Record.ExceptionAsync(async () => await writer.CompleteAsync())
            : Record.Exception(() => writer.Complete());
        Assert.True(last is null or HostilePoolException, $"{last}");
        Assert.True(!hasFailed || last is not null, "A failed writer says so in the end.");
        AssertReleased(handle, pool);
        byte[] content = File.ReadAllBytes(path);
        Assert.Equal(-1, Pattern.FirstDifference(content));
        Assert.True(content.Length == written || last is not null, $"{content.Length} of {written} bytes, and no error");
    }

    /// <summary>The memory was pinned, so whoever makes the call needs nothing more of the pool, whose code must not run there.</summary>
    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Complete_PortableAndThePoolThrowsInGetSpan_WritesEverything(bool isAsync)
    {
        HostilePool pool = new();
        string path = _folder.File("f");
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Pool = pool, Backend = FilePipeBackend.Portable });
        Pattern.Fill(writer.GetMemory(1000).Span[..1000], 0);
        writer.Advance(1000);
        pool.RefusesSpans = true;
        if (isAsync)
        {
            await writer.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
        }
        else
        {
            writer.Complete();
        }

        AssertReleased(writer.OpenedFile.Handle, pool);
        Assert.Equal(Pattern.Bytes(1000), File.ReadAllBytes(path));
    }

    [Theory]
    [InlineData(Way.Inline), InlineData(Way.HandedOver), InlineData(Way.ReadAhead), InlineData(Way.AtLeast)]
    public async Task Reader_PoolWaitsForAnotherThreadThatUsesTheReader_DoesNotDeadlock(Way way)
    {
        FilePipeReader? reader = null;
        int stuck = 0;
        HostilePool pool = new() { OnCall = part => Elsewhere(() => _ = reader!.Position, ref stuck) };
        ScriptedCalls calls = new() { OnReadNoWait = _ => way == Way.Inline ? 5000 : -Libc.EAGAIN, OnRead = _ => 5000 };
        reader = calls.Read(_folder.File("f", Pattern.Bytes(30_000)),
            new() { BufferSize = 2000, Pool = pool, PauseReadAheadThreshold = way == Way.ReadAhead ? 10_000 : 0 });
        if (way == Way.AtLeast)
        {
            ReadResult result = await reader.ReadAtLeastAsync(12_000, _stop);
            reader.AdvanceTo(result.Buffer.GetPosition(7000), result.Buffer.End);
            Assert.Equal(30_000, await PatternFile.ReadToEndAsync(reader, 7000));
        }
        else
        {
            Assert.Equal(30_000, await PatternFile.ReadToEndAsync(reader));
        }

        Assert.Equal(0, stuck);
        AssertReleased(reader.OpenedFile.Handle, pool);
    }

    [Theory]
    [InlineData(FlushGuarantee.WriteBehind), InlineData(FlushGuarantee.Written)]
    public async Task Writer_PoolWaitsForAnotherThreadThatUsesTheWriter_DoesNotDeadlock(FlushGuarantee guarantee)
    {
        FilePipeWriter? writer = null;
        int stuck = 0;
        HostilePool pool = new() { OnCall = part => Elsewhere(() => _ = writer!.Position, ref stuck) };
        writer = new ScriptedCalls().Write(_folder.File("f"), new() { MinimumBufferSize = 2000, Pool = pool, FlushGuarantee = guarantee });
        for (int index = 0; index < 30_000; index += 3000)
        {
            await writer.WriteAsync(Pattern.Bytes(3000, index), _stop);
        }

        await writer.CompleteAsync();
        Assert.Equal(0, stuck);
        AssertReleased(writer.OpenedFile.Handle, pool);
        Assert.Equal(Pattern.Bytes(30_000), File.ReadAllBytes(_folder.File("f")));
    }

    [Theory]
    [InlineData("MaxBufferSize"), InlineData("Rent"), InlineData("Memory"), InlineData("Pin"), InlineData("Unpin"), InlineData("Dispose")]
    public async Task Reader_PoolHasAnotherThreadCompleteTheReader_EndsAndReleasesEverything(string part)
    {
        foreach (Way way in Enum.GetValues<Way>())
        {
            foreach (int at in new[] { 1, 2, 5 })
            {
                FilePipeReader? reader = null;
                int stuck = 0;
                int seen = 0;
                HostilePool pool = new()
                {
                    OnCall = called =>
                    {
                        if (called.ToString() == part && Interlocked.Increment(ref seen) == at)
                        {
                            Elsewhere(() => reader!.Complete(), ref stuck);
                        }
                    },
                };
                ScriptedCalls calls = new() { OnReadNoWait = _ => way == Way.Inline ? 5000 : -Libc.EAGAIN, OnRead = _ => 5000 };
                reader = calls.Read(_folder.File("f", Pattern.Bytes(30_000)),
                    new() { BufferSize = 2000, Pool = pool, PauseReadAheadThreshold = way == Way.ReadAhead ? 10_000 : 0 });
                try
                {
                    ReadResult result;
                    do
                    {
                        result = await (way == Way.AtLeast ? reader.ReadAtLeastAsync(12_000, _stop) : reader.ReadAsync(_stop));
                        reader.AdvanceTo(result.Buffer.End);
                    }
                    while (!result.IsCompleted);
                }
                catch (InvalidOperationException)
                {
                }

                await reader.CompleteAsync();
                Assert.Equal(0, stuck);
                AssertReleased(reader.OpenedFile.Handle, pool);
            }
        }
    }

    [Fact]
    public async Task CopyToAsync_DestinationsPoolThrows_ThrowsThatAndLosesNothing()
    {
        foreach (Part part in new[] { Part.Rent, Part.Memory, Part.Pin })
        {
            HostilePool pool = new() { Throws = part, FromCall = 3, ToCall = 3 };
            ScriptedCalls calls = new() { OnReadNoWait = call => call % 2 == 0 ? -Libc.EAGAIN : 5000, OnRead = _ => 5000 };
            FilePipeReader reader = calls.Read(_folder.File("f", Pattern.Bytes(Length)));
            FilePipeWriter writer = FilePipeWriter.Create(
                _folder.File("g"), new() { MinimumBufferSize = 4096, Pool = pool, FlushGuarantee = FlushGuarantee.Written });
            Exception? thrown = await Record.ExceptionAsync(() => reader.CopyToAsync(writer, _stop));
            Assert.IsType<HostilePoolException>(thrown);
            await reader.CompleteAsync();
            _ = await Record.ExceptionAsync(async () => await writer.CompleteAsync());
            AssertReleased(writer.OpenedFile.Handle, pool);
            Assert.True(reader.OpenedFile.Handle.IsClosed);
            Assert.Equal(-1, Pattern.FirstDifference(File.ReadAllBytes(_folder.File("g"))));
        }
    }

    [Fact]
    public async Task GetMemory_PoolCompletesTheWriterMeanwhile_ThrowsAsAfterComplete()
    {
        FilePipeWriter? writer = null;
        HostilePool pool = new() { OnCall = part => _ = part == Part.Dispose ? writer!.CompleteAsync().AsTask() : null };
        writer = FilePipeWriter.Create(
            _folder.File("f"), new() { Pool = pool, MinimumBufferSize = 512, FlushGuarantee = FlushGuarantee.Written });
        int room = writer.GetMemory().Length;
        writer.Advance(room);
        await writer.FlushAsync(_stop);

        // The segment that is written goes back now.
        InvalidOperationException thrown = Assert.Throws<InvalidOperationException>(() => writer.GetMemory(100));
        Assert.Equal(Assert.Throws<InvalidOperationException>(() => writer.GetMemory(100)).Message, thrown.Message);
        await writer.CompleteAsync();
        AssertReleased(writer.OpenedFile.Handle, pool);
        Assert.Equal(room, new FileInfo(_folder.File("f")).Length);
    }

    private static void AssertReleased(SafeFileHandle handle, HostilePool pool)
    {
        Assert.True(handle.IsClosed);
        Assert.Equal(0, pool.Rented);
        Assert.Equal(0, pool.Pins);
        Assert.Equal(0, pool.ReturnedTwice);
        Assert.Equal(0, pool.ReturnedPinned);
    }

    /// <summary>Has another thread do it, and waits. Where that thread waits for a lock of ours, it never ends.</summary>
    private static void Elsewhere(Action action, ref int stuck)
    {
        Thread thread = new(() => action()) { IsBackground = true };
        thread.Start();
        if (!thread.Join(Eventually.Limit))
        {
            Interlocked.Increment(ref stuck);
        }
    }

    /// <summary>Where a flush has to be one write, and a write takes one segment, the flush is copied.</summary>
    [Fact]
    public async Task FlushAsync_AppendsWithAPoolOfOneSmallSize_WritesEverything()
    {
        const int Size = 4096;
        string path = _folder.File("f");
        FilePipeWriter writer = FilePipeWriter.Create(
            path, new() { Mode = FileMode.Append, Backend = FilePipeBackend.Portable, Pool = new OneSizePool(Size) });
        for (int i = 0; i < 3; i++)
        {
            Pattern.Fill(writer.GetSpan()[..Size], i * Size);
            writer.Advance(Size);
        }

        await writer.FlushAsync(_stop);
        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(3 * Size), File.ReadAllBytes(path));
    }

    private sealed class OneSizePool(int size) : MemoryPool<byte>
    {
        public override int MaxBufferSize => int.MaxValue;

        public override IMemoryOwner<byte> Rent(int minBufferSize = -1) => new Owner(new byte[size]);

        protected override void Dispose(bool disposing)
        {
        }

        private sealed class Owner(byte[] array) : IMemoryOwner<byte>
        {
            public Memory<byte> Memory => array;

            public void Dispose()
            {
            }
        }
    }
}
