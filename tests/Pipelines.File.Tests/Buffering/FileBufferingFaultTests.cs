namespace FilePipelines.Tests;

/// <summary>A pipe whose file cannot be made, or not be written.</summary>
public sealed class FileBufferingFaultTests : FileTests
{
    public FileBufferingFaultTests() => Assert.SkipUnless(OperatingSystem.IsLinux(), "The system calls of Linux.");

    [Theory]
    [InlineData(1), InlineData(2), InlineData(5)]
    public async Task WriteFails_WriterAndReadersGetItAndEveryByteBefore(int failing)
    {
        FaultyCalls calls = new() { OnWrite = number => number >= failing ? -Libc.ENOSPC : null };
        FileBufferingPipe pipe = new(new() { Folder = _folder.Path }, calls);
        PipeReader during = pipe.OpenReader();
        ArrayBufferWriter<byte> seen = new();
        Task reading = Task.Run(() => PatternFile.ReadAllAsync(during, seen), _stop);
        IOException e = await Assert.ThrowsAsync<IOException>(() => WriteAsync(pipe, 10_000_000));
        Assert.Contains(_folder.Path, e.Message, StringComparison.Ordinal);
        Assert.Equal(Libc.ENOSPC, e.HResult);
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(async () => await pipe.Writer.CompleteAsync()));
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(() => reading));
        Assert.Equal(-1, Pattern.FirstDifference(seen.WrittenSpan));
        Assert.Equal(pipe.Length, seen.WrittenCount);
        PipeReader later = pipe.OpenReader();
        ArrayBufferWriter<byte> rest = new();
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(() => PatternFile.ReadAllAsync(later, rest)));
        Assert.Equal(-1, Pattern.FirstDifference(rest.WrittenSpan));
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(() => pipe.AsStream().CopyToAsync(Stream.Null, _stop)));
        await pipe.DisposeAsync();
        Assert.Equal(0, OpenHandles.Below(_folder.Path));
    }

    [Fact]
    public async Task WriteIsShort_GoesOn()
    {
        FaultyCalls calls = new() { OnWrite = number => number % 3 == 0 ? -Libc.EINTR : number * 1000 };
        await using FileBufferingPipe pipe = new(new() { Folder = _folder.Path }, calls);
        await WriteAsync(pipe, 1_000_000);
        await pipe.Writer.CompleteAsync();
        ArrayBufferWriter<byte> read = new();
        await PatternFile.ReadAllAsync(pipe.Reader, read);
        Assert.Equal(1_000_000, read.WrittenCount);
        Assert.Equal(-1, Pattern.FirstDifference(read.WrittenSpan));
    }

    [Fact]
    public async Task FileWithoutANameIsNotKnown_AFileIsMadeAndItsNameRemoved()
    {
        long[] lengths = [];
        FaultyCalls calls = new()
        {
            OnMakeNameless = -Libc.EOPNOTSUPP,
            OnUnlink = () => lengths = [.. new DirectoryInfo(_folder.Path).GetFiles().Select(file => file.Length)],
        };
        FileBufferingPipe pipe = new(new() { Folder = _folder.Path, MemoryThreshold = 0 }, calls);
        await WriteAsync(pipe, 1_000_000);
        await pipe.Writer.CompleteAsync();

        // What a kill leaves before that is an empty file.
        Assert.Equal([0], lengths);
        Assert.Empty(Directory.EnumerateFileSystemEntries(_folder.Path));
        Assert.Equal(1, OpenHandles.Below(_folder.Path));
        await pipe.SaveAsync(_folder.File("f"), cancellationToken: _stop);
        Assert.Equal(-1, Pattern.FirstDifference(await File.ReadAllBytesAsync(_folder.File("f"), _stop)));
        await pipe.DisposeAsync();
        Assert.Equal(0, OpenHandles.Below(_folder.Path));
    }

    [Fact]
    public async Task ProcessIsKilled_LeavesNothing()
    {
        using Process process = ChildProcess.Start("exec " + ChildProcess.Command("buffer", _folder.Path));
        Assert.Equal("buffered", await process.StandardOutput.ReadLineAsync(_stop));
        process.Kill();
        await process.WaitForExitAsync(_stop);
        Assert.Empty(Directory.EnumerateFileSystemEntries(_folder.Path));
    }

    [Fact]
    public async Task PagesAreNotCached_ReadersAndStreamsGetEveryByte()
    {
        FaultyCalls calls = new() { HasNoPages = true };
        FileBufferingPipe pipe = new(new() { Folder = _folder.Path }, calls);
        PipeReader during = pipe.OpenReader(10);
        Task<ArrayBufferWriter<byte>> reading = Task.Run(() => ReadAllAsync(during), _stop);
        await WriteAsync(pipe, 1_000_000);
        await pipe.Writer.CompleteAsync();
        ArrayBufferWriter<byte> read = await reading;
        Assert.Equal(-1, Pattern.FirstDifference(read.WrittenSpan, 10));
        Assert.Equal(999_990, read.WrittenCount);
        Assert.Equal(-1, Pattern.FirstDifference((await ReadAllAsync(pipe.OpenReader(500_000))).WrittenSpan, 500_000));
        using MemoryStream copy = new();
        await pipe.AsStream().CopyToAsync(copy, _stop);
        Assert.Equal(Pattern.Bytes(1_000_000), copy.ToArray());
        Assert.True(calls.Misses > 0);
        await pipe.DisposeAsync();
        Assert.Equal(0, OpenHandles.Below(_folder.Path));
    }

    [Fact]
    public async Task NoDescriptor_IsAClearError()
    {
        FaultyCalls calls = new() { OnMakeNameless = -24, OnMakeNew = -24 };
        await using FileBufferingPipe pipe = new(new() { Folder = _folder.Path }, calls);
        IOException e = await Assert.ThrowsAsync<IOException>(() => WriteAsync(pipe, 1_000_000));
        Assert.Equal(24, e.HResult);
        Assert.Contains(_folder.Path, e.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task SaveAsync_AnotherFileSystem_CopiesAndKeepsTheRules()
    {
        Assert.SkipUnless(Directory.Exists("/dev/shm"), "There is no other file system.");
        await using FileBufferingPipe pipe = new(new() { Folder = "/dev/shm" });
        await WriteAsync(pipe, 1_000_000);
        await pipe.Writer.CompleteAsync();
        string path = _folder.File("f", [1]);
        File.SetUnixFileMode(path, UnixFileMode.UserRead | UnixFileMode.UserWrite);
        await pipe.SaveAsync(path, new() { FlushGuarantee = FlushGuarantee.Durable }, _stop);
        Assert.Equal(-1, Pattern.FirstDifference(await File.ReadAllBytesAsync(path, _stop)));
        Assert.Equal(UnixFileMode.UserRead | UnixFileMode.UserWrite, File.GetUnixFileMode(path));
    }

    [Fact]
    public async Task SaveAsync_LinkFails_ThrowsAndTheOldFileStays()
    {
        FaultyCalls calls = new() { OnRename = -Libc.ENOSPC };
        await using FileBufferingPipe pipe = new(new() { Folder = _folder.Path }, calls);
        await WriteAsync(pipe, 1_000_000);
        await pipe.Writer.CompleteAsync();
        string path = _folder.File("f", [1]);
        await Assert.ThrowsAsync<IOException>(async () => await pipe.SaveAsync(path, cancellationToken: _stop));
        Assert.Equal([1], await File.ReadAllBytesAsync(path, _stop));
        Assert.Single(Directory.GetFileSystemEntries(_folder.Path));
    }

    [Fact]
    public async Task SavedFileIsTruncatedByAnother_ReadersAndStreamsThrow()
    {
        await using FileBufferingPipe pipe = new(new() { Folder = _folder.Path });
        await WriteAsync(pipe, 1_000_000);
        await pipe.Writer.CompleteAsync();
        await pipe.SaveAsync(_folder.File("f"), cancellationToken: _stop);
        using (FileStream other = new(_folder.File("f"), FileMode.Open))
        {
            other.SetLength(100_000);
        }

        ArrayBufferWriter<byte> read = new();
        await Assert.ThrowsAsync<EndOfStreamException>(() => PatternFile.ReadAllAsync(pipe.Reader, read));
        Assert.Equal(-1, Pattern.FirstDifference(read.WrittenSpan));
        Assert.InRange(read.WrittenCount, 0, 100_000);
        await Assert.ThrowsAsync<EndOfStreamException>(() => pipe.AsStream().CopyToAsync(Stream.Null, _stop));
    }

    [Fact]
    public async Task DiskStalls_WhileAReaderWaits_FlushesWaitAsWithoutOne()
    {
        using ManualResetEventSlim goesOn = new();
        FaultyCalls calls = new() { OnWriteAt = _ => Answer(goesOn, null) };
        FileBufferingPipeOptions options = new() { Folder = _folder.Path, MemoryThreshold = 1000 };
        await using FileBufferingPipe pipe = new(options, calls, StoppedClock.NoInlineWrites());
        await pipe.Writer.WriteAsync(new byte[2000], _stop);
        Task reading = pipe.Reader.CopyToAsync(Stream.Null, _stop);
        ValueTask<FlushResult> flush = default;
        while (flush.IsCompleted && pipe.Length < 3_000_000)
        {
            flush = pipe.Writer.WriteAsync(new byte[5000], _stop);
        }

        long most = pipe.Length;
        goesOn.Set();
        await flush;
        await pipe.Writer.CompleteAsync();
        await reading;
        Assert.InRange(most, 1_000_000, 2_000_000);
    }

    [Fact]
    public async Task SaveAsync_TheLastWriteFailsMeanwhile_NamesNothing()
    {
        using ManualResetEventSlim goesOn = new();
        FaultyCalls calls = new() { OnWriteAt = offset => offset == 0 ? null : Answer(goesOn, -Libc.ENOSPC) };
        FileBufferingPipeOptions options = new() { Folder = _folder.Path, MemoryThreshold = 1000 };
        await using FileBufferingPipe pipe = new(options, calls, StoppedClock.NoInlineWrites());
        await pipe.Writer.WriteAsync(new byte[2000], _stop);
        pipe.Writer.Complete();
        Task saving = pipe.SaveAsync(_folder.File("f"), cancellationToken: _stop).AsTask();
        goesOn.Set();
        await Assert.ThrowsAsync<IOException>(() => saving);
        Assert.Empty(Directory.EnumerateFileSystemEntries(_folder.Path));
    }

    [Fact]
    public async Task SaveAsync_WritingWhatIsInMemoryFails_ThePipeIsWhole()
    {
        FaultyCalls calls = new() { OnWriteAt = offset => offset == 0 ? -Libc.ENOSPC : null };
        await using FileBufferingPipe pipe = new(new() { Folder = _folder.Path }, calls);
        await WriteAsync(pipe, 200_000);
        await pipe.Writer.CompleteAsync();
        await Assert.ThrowsAsync<IOException>(async () => await pipe.SaveAsync(_folder.File("f"), cancellationToken: _stop));
        Assert.Equal(-1, Pattern.FirstDifference((await ReadAllAsync(pipe.Reader)).WrittenSpan));
        await pipe.SaveAsync(_folder.File("f"), cancellationToken: _stop);
        Assert.Equal(Pattern.Bytes(200_000), await File.ReadAllBytesAsync(_folder.File("f"), _stop));
    }

    [Fact]
    public async Task FlushThatGoesOnInAFile_IsNotAwaited_TheNextCallThrowsAndLosesNothing()
    {
        using ManualResetEventSlim goesOn = new();
        FaultyCalls calls = new() { OnMake = goesOn.Wait };
        await using FileBufferingPipe pipe = new(new() { Folder = _folder.Path, MemoryThreshold = 1000 }, calls);
        pipe.Writer.Write(Pattern.Bytes(2000));
        ValueTask<FlushResult> first = pipe.Writer.FlushAsync(_stop);
        Exception? room = Record.Exception(() => pipe.Writer.GetMemory());
        Exception? second = await Record.ExceptionAsync(async () => await pipe.Writer.FlushAsync(new CancellationToken(canceled: true)));
        goesOn.Set();
        await first;
        Assert.IsType<InvalidOperationException>(room);
        Assert.IsType<InvalidOperationException>(second);
        await pipe.Writer.WriteAsync(Pattern.Bytes(2000, 2000), _stop);
        await pipe.Writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(4000), (await ReadAllAsync(pipe.Reader)).WrittenSpan.ToArray());
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task FlushIsCanceled_WhileTheFileIsMade_EndsAtOnceAndLosesNothing(bool byToken)
    {
        using ManualResetEventSlim goesOn = new();
        using CancellationTokenSource source = new();
        FaultyCalls calls = new() { OnMake = goesOn.Wait };
        await using FileBufferingPipe pipe = new(new() { Folder = _folder.Path, MemoryThreshold = 1000 }, calls);
        pipe.Writer.Write(Pattern.Bytes(2000));
        Task<FlushResult> flush = pipe.Writer.FlushAsync(source.Token).AsTask();
        bool waits = !flush.IsCompleted;
        Exception? e;
        try
        {
            await (byToken ? source.CancelAsync() : Task.Run(pipe.Writer.CancelPendingFlush, _stop));
            e = await Record.ExceptionAsync(() => flush.WaitAsync(Eventually.Limit, _stop));
            pipe.Writer.Write(Pattern.Bytes(2000, 2000));
        }
        finally
        {
            goesOn.Set();
        }

        Assert.True(waits);
        Assert.Equal(byToken ? typeof(TaskCanceledException) : null, e?.GetType());
        Assert.True(byToken || (await flush).IsCanceled);
        Assert.False((await pipe.Writer.FlushAsync(_stop)).IsCanceled);
        Assert.True(pipe.IsInFile);
        await pipe.Writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(4000), (await ReadAllAsync(pipe.Reader)).WrittenSpan.ToArray());
    }

    private static long? Answer(ManualResetEventSlim goesOn, long? answer)
    {
        goesOn.Wait();
        return answer;
    }

    private async Task WriteAsync(FileBufferingPipe pipe, int length)
    {
        for (int at = 0; at < length; at += 10_000)
        {
            await pipe.Writer.WriteAsync(Pattern.Bytes(Math.Min(10_000, length - at), at), _stop);
        }
    }

    private static async Task<ArrayBufferWriter<byte>> ReadAllAsync(PipeReader reader)
    {
        ArrayBufferWriter<byte> read = new();
        await PatternFile.ReadAllAsync(reader, read);
        return read;
    }

    private sealed unsafe class FaultyCalls : UnixCalls
    {
        private int _writes;

        public Func<int, long?>? OnWrite { get; init; }

        public Func<long, long?>? OnWriteAt { get; init; }

        public Action? OnMake { get; init; }

        public long? OnMakeNameless { get; init; }

        public long? OnMakeNew { get; init; }

        public long? OnRename { get; init; }

        public Action? OnUnlink { get; init; }

        /// <summary>Whether every read that may not wait finds nothing in the page cache.</summary>
        public bool HasNoPages { get; init; }

        public int Misses { get; private set; }

        internal override long Unlink(in UnixName name)
        {
            OnUnlink?.Invoke();
            return base.Unlink(name);
        }

        internal override long MakeNameless(in UnixName name, int flags, uint mode)
        {
            OnMake?.Invoke();
            return OnMakeNameless ?? base.MakeNameless(name, flags, mode);
        }

        internal override long MakeNew(in UnixName name, int flags, uint mode) => OnMakeNew ?? base.MakeNew(name, flags, mode);

        internal override long Rename(in UnixName from, in UnixName to) => OnRename ?? base.Rename(from, to);

        internal override long Read(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset, int flags)
        {
            if (!HasNoPages || (flags & Libc.RWF_NOWAIT) == 0)
            {
                return base.Read(file, vectors, count, offset, flags);
            }

            Misses++;
            return -Libc.EAGAIN;
        }

        internal override long Write(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset, int flags)
        {
            long? answer = OnWriteAt?.Invoke(offset) ?? OnWrite?.Invoke(Interlocked.Increment(ref _writes));
            if (answer is not > 0)
            {
                return answer ?? base.Write(file, vectors, count, offset, flags);
            }

            Libc.IoVector first = vectors[0];
            first.Length = (nint)Math.Min(first.Length, answer.Value);
            return base.Write(file, &first, 1, offset, flags);
        }
    }
}
