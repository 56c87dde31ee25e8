using Pipelines.File.Memory;
using Pipelines.File.Reading;

namespace FilePipelines.Tests;

/// <summary>
/// What is released, and when: CompleteAsync is over when file and memory are, and a reader keeps what its next read needs.
/// </summary>
public sealed class ReleaseTests : FileTests
{
    /// <summary>The pool has the memory again, but the buffer shows nobody else's.</summary>
    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task End_CallerHoldsABufferOfItsPool_NoLaterReaderFillsIt(bool isBufferingPipe)
    {
        byte[] content = Pattern.Bytes(100_000);
        string other = _folder.File("other", [.. Enumerable.Repeat((byte)7, 100_000)]);
        ReadOnlySequence<byte> held;
        if (isBufferingPipe)
        {
            FileBufferingPipe pipe = new(new() { Folder = _folder.Path, Pool = new CheckedPool(), MemoryThreshold = 200_000 });
            await pipe.Writer.WriteAsync(content, _stop);
            held = (await pipe.Reader.ReadAsync(_stop)).Buffer;
            await pipe.DisposeAsync();
        }
        else
        {
            FilePipeReader reader = FilePipeReader.Create(_folder.File("f", content), new() { Pool = new CheckedPool() });
            held = (await reader.ReadAsync(_stop)).Buffer;
            reader.Complete();
        }

        for (int i = 0; i < 10; i++)
        {
            await using FilePipeReader later = FilePipeReader.Create(
                other, new() { Pool = new CheckedPool(), BufferSize = isBufferingPipe ? 1000 : 4096 });
            await later.ReadAtLeastAsync(100_000, _stop);
            Assert.False(Shows(held, 7));
        }
    }

    private static bool Shows(in ReadOnlySequence<byte> held, byte value)
    {
        try
        {
            return held.FirstSpan.Length > 2 && held.FirstSpan[..3].IndexOfAnyExcept(value) < 0;
        }
        catch (Exception e) when (e is ArgumentOutOfRangeException or InvalidOperationException)
        {
            // As the reader of .NET: the buffer is gone.
            return false;
        }
    }

    [Theory]
    [InlineData(0), InlineData(500_000)]
    public async Task ReaderCompleteAsync_ThreeHundredTimes_TheFileIsClosedAndTheMemoryBack(long readAhead)
    {
        byte[] content = Pattern.Bytes(300_000);
        CheckedPool pool = new();
        for (int round = 0; round < 300; round++)
        {
            string path = _folder.File("f", content);
            FilePipeReader reader = FilePipeReader.Create(
                path, new() { BufferSize = 4096, Pool = pool, PauseReadAheadThreshold = readAhead });
            ReadResult result = await reader.ReadAsync(_stop);
            reader.AdvanceTo(result.Buffer.End);
            await reader.CompleteAsync();
            Assert.Equal(0, pool.Rented);
            AssertClosed(path);
            File.Delete(path);
        }
    }

    [Fact]
    public async Task ReaderCompleteAsync_DuringAReadThatIsStuck_CompletesWhenTheSystemIsDone()
    {
        using Gate gate = new();
        ScriptedCalls calls = new() { OnReadNoWait = _ => -Libc.EAGAIN, OnRead = gate.Hold };
        CheckedPool pool = new();
        FilePipeReader reader = calls.Read(_folder.File("f", Pattern.Bytes(1000)), new() { Pool = pool });
        Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
        gate.WaitForCall();
        Task[] completing = [reader.CompleteAsync().AsTask(), reader.CompleteAsync().AsTask(), reader.DisposeAsync().AsTask()];
        await Assert.ThrowsAsync<InvalidOperationException>(() => read.WaitAsync(Eventually.Limit, _stop));
        Assert.DoesNotContain(completing, task => task.IsCompleted);
        Assert.True(pool.Rented > 0 && !reader.OpenedFile.Handle.IsClosed);
        gate.Open();
        await Task.WhenAll(completing).WaitAsync(Eventually.Limit, _stop);
        Assert.True(reader.OpenedFile.Handle.IsClosed);
        Assert.Equal(0, pool.Rented);
    }

    [Fact]
    public async Task ReaderCompleteAsync_DuringAReadOfAnIdleFifo_GivesItUp()
    {
        using Fifo fifo = Fifo.Create(_folder);
        CheckedPool pool = new();
        FilePipeReader reader = FilePipeReader.Create(fifo.Path, new() { Pool = pool });
        Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
        await reader.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
        Assert.True(reader.OpenedFile.Handle.IsClosed);
        Assert.Equal(0, pool.Rented);
        await Assert.ThrowsAsync<InvalidOperationException>(() => read.WaitAsync(Eventually.Limit, _stop));
    }

    [Theory]
    [InlineData(ReadBuffer.BytesPerRead), InlineData(1024 * 1024)]
    public async Task AdvanceTo_OverATokenOf64MiB_KeepsNoMoreMemoryThanOneReadNeeds(int bufferSize)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Wine does not make sparse files.");
        const int Token = 64 * 1024 * 1024;
        string path = Sparse(Token + 1_000_000);
        CheckedPool pool = new();
        FilePipeReader reader = FilePipeReader.Create(path, new() { BufferSize = bufferSize, Pool = pool });
        ReadResult result = await reader.ReadAtLeastAsync(Token, _stop);
        Assert.True(pool.Rented >= Token / bufferSize);
        long left = result.Buffer.Length - Token;
        reader.AdvanceTo(result.Buffer.GetPosition(Token), result.Buffer.End);

        // What is buffered, the segment that it begins in, and one read's worth.
        Assert.InRange(pool.Rented, 0, (left / bufferSize) + 3);
        while (!(result = await reader.ReadAsync(_stop)).IsCompleted)
        {
            reader.AdvanceTo(result.Buffer.End);
        }

        reader.AdvanceTo(result.Buffer.End);
        Assert.InRange(pool.Rented, 0, 1);
        await reader.CompleteAsync();
        Assert.Equal(0, pool.Rented);
    }

    [Fact]
    public async Task AdvanceTo_OverATokenOf64MiB_GivesTheOwnPoolsSegmentsBack()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Wine does not make sparse files.");
        const int Token = 64 * 1024 * 1024;
        const int Size = ReadBuffer.BytesPerRead;
        FilePipeReader reader = FilePipeReader.Create(Sparse(Token), new() { BufferSize = Size });
        ReadResult result = await reader.ReadAtLeastAsync(Token, _stop);
        List<FileSegment> segments = [];
        for (FileSegment? segment = (FileSegment?)result.Buffer.Start.GetObject(); segment is not null; segment = segment.NextSegment)
        {
            segments.Add(segment);
        }

        Assert.True(segments.Count >= Token / Size);
        object chain = segments[0].Chain!;
        Assert.All(segments, segment => Assert.Same(chain, segment.Chain));
        reader.AdvanceTo(result.Buffer.End);

        // A segment that belongs to a reader says so, and one that went back to the pool belongs to nobody, or to somebody else by now.
        Assert.InRange(segments.Count(segment => segment.Chain == chain), 0, ReadBuffer.BytesPerRead / Size);
        await reader.CompleteAsync();
    }

    /// <summary>As the reader of PipeReader.Create does: a loop that breaks at the end often lacks the last AdvanceTo.</summary>
    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Complete_WhileABufferIsHeld_GivesTheCallersMemoryBack(bool isNets)
    {
        string path = _folder.File("f", Pattern.Bytes(100_000));
        CheckedPool pool = new();
        PipeReader reader = isNets ? PipeReader.Create(new FileStream(path, FileMode.Open), new StreamPipeReaderOptions(pool))
            : FilePipeReader.Create(path, new() { Pool = pool });
        ReadResult result = await reader.ReadAsync(_stop);
        await reader.CompleteAsync();
        Assert.Equal(0, pool.Rented);
        Assert.Equal((0, 0), (pool.ReturnedPinned, pool.ReturnedTwice));
        Assert.Throws<InvalidOperationException>(() => reader.AdvanceTo(result.Buffer.End));
        Assert.Equal((0, 0), (pool.Rented, pool.ReturnedTwice));
    }

    /// <summary>The system frees the blocks of a deleted file when it is closed, which takes seconds for gigabytes.</summary>
    [Theory]
    [InlineData(false, false), InlineData(false, true), InlineData(true, false), InlineData(true, true)]
    public async Task Complete_DeletedFile_IsClosedOnAThreadOfTheLibrary(bool isDeleted, bool writes)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Elsewhere the system does not tell.");
        string path = _folder.File("f", Pattern.Bytes(1000));
        SafeFileHandle handle = File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite, FileShare.ReadWrite | FileShare.Delete);
        ClosedFile file = new(handle, path);
        Func<ValueTask> complete;
        if (writes)
        {
            FilePipeWriter writer = FilePipeWriter.Create(
                file, new() { Mode = FileMode.Append }, leaveOpen: false, isOpenedByPath: true, StoppedClock.NoInlineWrites());
            complete = () => writer.CompleteAsync();
        }
        else
        {
            FilePipeReader reader = FilePipeReader.Create(file, new(), leaveOpen: false);
            complete = () => reader.CompleteAsync();
        }

        if (isDeleted)
        {
            File.Delete(path);
        }

        string? closedBy = null;
        await OwnThread.RunAsync(() =>
        {
            Thread.CurrentThread.Name = "caller";
            ValueTask completion = complete();
            completion.AsTask().Wait(Eventually.Limit, _stop);
            closedBy = file.ClosedBy;
        });
        Assert.Equal(isDeleted, closedBy?.StartsWith("Pipelines.File ", StringComparison.Ordinal));
        Assert.True(handle.IsClosed);
    }

    [Fact]
    public async Task Dispose_OfAReader_Completes()
    {
        string path = _folder.File("f", Pattern.Bytes(100));
        SafeFileHandle handle;
        using (FilePipeReader reader = FilePipeReader.Create(path))
        {
            handle = reader.OpenedFile.Handle;
            reader.AdvanceTo((await reader.ReadAsync(_stop)).Buffer.End);
        }

        Assert.True(handle.IsClosed);
        await using (FilePipeReader reader = FilePipeReader.Create(path, new() { PauseReadAheadThreshold = 1000 }))
        {
            handle = reader.OpenedFile.Handle;
            reader.AdvanceTo((await reader.ReadAsync(_stop)).Buffer.End);

            // A second end changes nothing.
            await reader.CompleteAsync();
        }

        Assert.True(handle.IsClosed);
    }

    [Fact]
    public async Task Dispose_OfAWriter_WritesEverything()
    {
        string path = _folder.File("f");
        using (FilePipeWriter writer = FilePipeWriter.Create(path))
        {
            writer.Put(100);
        }

        Assert.Equal(Pattern.Bytes(100), File.ReadAllBytes(path));
        SafeFileHandle handle;
        await using (FilePipeWriter writer = FilePipeWriter.Create(path))
        {
            handle = writer.OpenedFile.Handle;
            await writer.WriteAsync(Pattern.Bytes(200), _stop);
        }

        Assert.True(handle.IsClosed);
        Assert.Equal(Pattern.Bytes(200), File.ReadAllBytes(path));
    }

    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task Dispose_OfAWriterThatHasFailed_ThrowsOnceAndClosesTheFile(bool isAsync)
    {
        ScriptedCalls calls = new() { OnWrite = _ => -Libc.EIO };
        FilePipeWriter writer = calls.Write(_folder.File("f"));
        writer.Put(100);
        Exception? thrown = isAsync
            ? await Record.ExceptionAsync(async () => await writer.DisposeAsync())
            : Record.Exception(writer.Dispose);
        Assert.IsType<IOException>(thrown);
        Assert.True(writer.OpenedFile.Handle.IsClosed);

        // IDisposable: once more is allowed, and does nothing.
        writer.Dispose();
        await writer.DisposeAsync();
    }

    private string Sparse(long length)
    {
        string path = _folder.File("sparse");
        using FileStream file = new(path, FileMode.Create);
        file.SetLength(length);
        return path;
    }

    private static void AssertClosed(string path)
    {
        if (!OperatingSystem.IsLinux())
        {
            File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite, FileShare.None).Dispose();
        }
        else
        {
            // Not by a lock: a process that another test starts holds it between fork(2) and execve(2).
            Assert.Equal(0, OpenHandles.Of(path));
        }
    }

    /// <summary>A file that knows which thread has closed it.</summary>
    private sealed class ClosedFile(SafeFileHandle handle, string path)
        : PortableFile(handle, path, FileProperties.Of(handle, path))
    {
        public string? ClosedBy { get; private set; }

        internal override void Release(bool closeHandle)
        {
            ClosedBy = Thread.CurrentThread.Name;
            base.Release(closeHandle);
        }
    }
}
