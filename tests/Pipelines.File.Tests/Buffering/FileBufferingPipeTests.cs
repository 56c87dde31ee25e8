namespace FilePipelines.Tests;

/// <summary>A pipe that goes on in a file: what its writer, its readers and its streams see.</summary>
public sealed class FileBufferingPipeTests : FileTests
{
    public static TheoryData<int> Lengths => [0, 1, 4096, 65_536, 65_537, 200_000, 3_000_003];

    [Theory]
    [MemberData(nameof(Lengths))]
    public async Task EveryReader_WhileItIsWrittenAndAfterwards_GetsEveryByte(int length)
    {
        byte[] content = Pattern.Bytes(length);
        CheckedPool pool = new();
        FileBufferingPipe pipe = new(Options(pool: pool));
        Task<byte[]>[] during = [.. Offsets(length).Select(offset => Task.Run(() => ReadAllAsync(pipe.OpenReader(offset)), _stop))];
        Task<byte[]> forward = Task.Run(() => ReadAllAsync(pipe.Reader), _stop);
        await WriteAsync(pipe, content, 10_007);
        await pipe.Writer.CompleteAsync();
        Assert.Equal(length, pipe.Length);
        Assert.Equal(length > 65_536, pipe.IsInFile);
        Assert.Equal(content, await forward);
        foreach ((long offset, Task<byte[]> read) in Offsets(length).Zip(during))
        {
            Assert.Equal(content[(int)offset..], await read);
            Assert.Equal(content[(int)offset..], await ReadAllAsync(pipe.OpenReader(offset)));
        }

        using MemoryStream copy = new();
        Stream stream = pipe.AsStream();
        await stream.CopyToAsync(copy, _stop);
        Assert.Equal(content, copy.ToArray());
        stream.Position = length / 2;
        byte[] half = new byte[length - (length / 2)];
        stream.ReadExactly(half);
        Assert.Equal(content[(length / 2)..], half);
        Assert.Equal(0, await stream.ReadAsync(half, _stop));
        await pipe.DisposeAsync();
        Assert.Empty(Directory.EnumerateFileSystemEntries(_folder.Path));
        Assert.Equal(0, pool.ReturnedTwice);
        Assert.Equal(0, pool.ReturnedPinned);
        await Eventually.TrueAsync(() => pool.Rented == 0);
    }

    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task Writer_NobodyReads_DoesNotWait(bool keeps)
    {
        byte[] content = Pattern.Bytes(10_000_000);
        await using FileBufferingPipe pipe = new(Options(keeps: keeps));
        await WriteAsync(pipe, content, 64 * 1024);
        await pipe.Writer.CompleteAsync();
        Assert.Equal(content, await ReadAllAsync(pipe.Reader));
    }

    [Fact]
    public async Task OpenReader_BehindWhatIsWritten_WaitsForItsByte()
    {
        await using FileBufferingPipe pipe = new(Options());
        PipeReader reader = pipe.OpenReader(5);
        await pipe.Writer.WriteAsync(new byte[] { 0, 1, 2, 3, 4 }, _stop);
        ValueTask<ReadResult> read = reader.ReadAsync(_stop);
        Assert.False(read.IsCompleted);
        await pipe.Writer.WriteAsync(new byte[] { 5, 6 }, _stop);
        ReadResult result = await read;
        Assert.Equal([5, 6], result.Buffer.ToArray());
        Assert.False(result.IsCompleted);
        reader.AdvanceTo(result.Buffer.End);
        PipeReader far = pipe.OpenReader(100);
        await pipe.Writer.CompleteAsync();
        Assert.True((await reader.ReadAsync(_stop)).IsCompleted);
        Assert.True((await far.ReadAsync(_stop)).IsCompleted);
    }

    [Theory]
    [InlineData(10), InlineData(300_000)]
    public async Task WriterCompletesWithAnError_EachReaderGetsEveryByteAndThenTheError(int length)
    {
        byte[] content = Pattern.Bytes(length);
        await using FileBufferingPipe pipe = new(Options());
        PipeReader waiting = pipe.OpenReader(length);
        Task<ReadResult> pending = waiting.ReadAsync(_stop).AsTask();
        await WriteAsync(pipe, content, 10_000);
        await pipe.Writer.CompleteAsync(new InvalidDataException("broken"));
        Assert.Equal("broken", (await Assert.ThrowsAsync<InvalidDataException>(() => pending)).Message);
        foreach (PipeReader reader in new[] { pipe.Reader, pipe.OpenReader(0), pipe.OpenReader(length / 2) })
        {
            ArrayBufferWriter<byte> read = new();
            await Assert.ThrowsAsync<InvalidDataException>(() => PatternFile.ReadAllAsync(reader, read));
            Assert.Equal(content[^read.WrittenCount..], read.WrittenSpan.ToArray());
            Assert.True(read.WrittenCount >= length / 2);
        }

        using MemoryStream copy = new();
        await Assert.ThrowsAsync<InvalidDataException>(() => pipe.AsStream().CopyToAsync(copy, _stop));
        await Assert.ThrowsAsync<InvalidDataException>(async () => await pipe.SaveAsync(_folder.File("f"), cancellationToken: _stop));
    }

    [Theory]
    [InlineData(1), InlineData(65_536), InlineData(200_000)]
    public async Task MaxLength_AtTheBorder_HoldsInMemoryAndInTheFile(int most)
    {
        foreach ((int threshold, int more) in new[] { (0, 0), (0, 1), (most, 0), (most, 1), (1_000_000, 0), (1_000_000, 1) })
        {
            await using FileBufferingPipe pipe = new(new() { Folder = _folder.Path, MaxLength = most, MemoryThreshold = threshold });
            Exception? e = await Record.ExceptionAsync(async () => await WriteAsync(pipe, Pattern.Bytes(most + more), 10_000));
            Assert.Equal(more > 0, e is BufferTooLongException tooLong && tooLong.MaxLength == most
                && e.Message.Contains($"{most} byte", StringComparison.Ordinal));
            Assert.Equal(e, await Record.ExceptionAsync(async () => await pipe.Writer.CompleteAsync()));
            ArrayBufferWriter<byte> read = new();
            Assert.Equal(e, await Record.ExceptionAsync(() => PatternFile.ReadAllAsync(pipe.Reader, read)));
            Assert.Equal(Pattern.Bytes((int)pipe.Length), read.WrittenSpan.ToArray());
        }
    }

    [Fact]
    public async Task MaxLength_CallerWritesOnAllTheSame_NothingIsTaken()
    {
        CheckedPool pool = new();
        await using FileBufferingPipe pipe = new(new() { MaxLength = 100_000, Folder = _folder.Path, Pool = pool });
        for (int i = 0; i < 1000; i++)
        {
            Exception? e = await Record.ExceptionAsync(async () => await pipe.Writer.WriteAsync(new byte[5000], _stop));
            Assert.Equal(i >= 20, e is BufferTooLongException);
        }

        Assert.Equal(5000, pipe.Writer.UnflushedBytes);
    }

    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task Advance_AfterDispose_IsAsWithTheFilesWriter_TheNextCallThrows(bool isInFile)
    {
        FileBufferingPipe pipe = new(Options());
        await pipe.Writer.WriteAsync(new byte[isInFile ? 100_000 : 10], _stop);
        Assert.Equal(isInFile, pipe.IsInFile);
        _ = pipe.Writer.GetMemory(10);
        pipe.Dispose();
        pipe.Writer.Advance(10);
        Assert.Throws<ObjectDisposedException>(() => pipe.Writer.GetMemory(10));
        await Assert.ThrowsAsync<ObjectDisposedException>(async () => await pipe.Writer.FlushAsync(_stop));
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task FolderMissing_WriterAndReadersGetTheSameClearError(bool isFile)
    {
        string missing = isFile ? _folder.File("f", [1]) : _folder.File("missing");
        CheckedPool pool = new();
        FileBufferingPipe pipe = new(new() { Folder = missing, Pool = pool });
        await pipe.Writer.WriteAsync(new byte[65_536], _stop);
        IOException e = await Assert.ThrowsAsync<IOException>(async () => await pipe.Writer.WriteAsync(new byte[1], _stop));
        Assert.Contains(missing, e.Message, StringComparison.Ordinal);
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(async () => await pipe.Writer.CompleteAsync()));
        ArrayBufferWriter<byte> read = new();
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(() => PatternFile.ReadAllAsync(pipe.Reader, read)));
        Assert.Equal(65_536, read.WrittenCount);
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(() => pipe.AsStream().CopyToAsync(Stream.Null, _stop)));
        await pipe.DisposeAsync();
        await Eventually.TrueAsync(() => pool.Rented == 0);
    }

    [Theory]
    [InlineData(10, false), InlineData(300_000, false), InlineData(10, true)]
    public async Task CompletedTwice_IsAsWithAPipe(int length, bool fails)
    {
        await using FileBufferingPipe pipe = new(Options());
        Pipe oracle = new(new PipeOptions(pauseWriterThreshold: 0));
        foreach (PipeWriter writer in new[] { oracle.Writer, pipe.Writer })
        {
            await writer.WriteAsync(new byte[length], _stop);
            await writer.CompleteAsync(fails ? new InvalidDataException("first") : null);
            await writer.CompleteAsync();
            await writer.CompleteAsync(new InvalidDataException("second"));
            writer.Complete();
            Assert.Throws<InvalidOperationException>(() => writer.GetMemory());
        }

        foreach (PipeReader reader in new[] { oracle.Reader, pipe.Reader })
        {
            ArrayBufferWriter<byte> read = new();
            Task reading = PatternFile.ReadAllAsync(reader, read);
            Assert.Equal(fails ? "first" : null, (await Record.ExceptionAsync(() => reading))?.Message);
            Assert.True(fails || read.WrittenCount == length);
        }
    }

    [Fact]
    public async Task NotKept_ConsumedMemoryIsGivenBack()
    {
        CheckedPool pool = new();
        await using FileBufferingPipe pipe = new(Options(keeps: false, pool: pool));
        byte[] content = Pattern.Bytes(1000);
        for (int i = 0; i < 1000; i++)
        {
            await pipe.Writer.WriteAsync(content, _stop);
            ReadResult result = await pipe.Reader.ReadAsync(_stop);
            Assert.Equal(content, result.Buffer.ToArray());
            pipe.Reader.AdvanceTo(result.Buffer.End);
        }

        Assert.False(pipe.IsInFile);
        Assert.InRange(pool.Rented, 0, 2);
        Assert.Throws<InvalidOperationException>(() => pipe.OpenReader());
        Assert.Throws<InvalidOperationException>(pipe.AsStream);
        await Assert.ThrowsAsync<InvalidOperationException>(async () => await pipe.SaveAsync(_folder.File("f"), cancellationToken: _stop));
        await pipe.Reader.CompleteAsync();
        Assert.True((await pipe.Writer.WriteAsync(content, _stop)).IsCompleted);
    }

    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task WriteAsync_LongAndCanceled_ShowsEveryByteAllTheSame(bool byToken)
    {
        byte[] content = Pattern.Bytes(1_000_000);
        await using FileBufferingPipe pipe = new(Options());
        if (byToken)
        {
            await Assert.ThrowsAnyAsync<OperationCanceledException>(
                async () => await pipe.Writer.WriteAsync(content, new CancellationToken(canceled: true)));
        }
        else
        {
            pipe.Writer.CancelPendingFlush();
            Assert.True((await pipe.Writer.WriteAsync(content, _stop)).IsCanceled);
        }

        Assert.Equal(content.Length, pipe.Length);
        await pipe.Writer.CompleteAsync();
        Assert.Equal(content, await ReadAllAsync(pipe.Reader));
    }

    [Fact]
    public async Task AsStream_CopyThatBeginsBeforeTheFirstByte_CopiesInLargePieces()
    {
        await using FileBufferingPipe pipe = new(Options());
        using PieceCounter copy = new();
        Task copying = pipe.AsStream().CopyToAsync(copy, _stop);
        await WriteAsync(pipe, Pattern.Bytes(100_000), 100_000);
        await pipe.Writer.CompleteAsync();
        await copying;
        Assert.Equal(Pattern.Bytes(100_000), copy.ToArray());
        Assert.InRange(copy.Pieces, 1, 10);
    }

    [Fact]
    public async Task GetMemory_MoreThanTheCallersPoolHas_IsServed()
    {
        CheckedPool pool = new(4096);
        FileBufferingPipe pipe = new(Options(pool: pool));
        Pattern.Bytes(10).CopyTo(pipe.Writer.GetMemory(10));
        pipe.Writer.Advance(10);
        Pattern.Bytes(100_000, 10).CopyTo(pipe.Writer.GetMemory(100_000));
        pipe.Writer.Advance(100_000);
        await pipe.Writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(100_010), await ReadAllAsync(pipe.Reader));
        await pipe.DisposeAsync();
        Assert.Equal(0, pool.Rented);
    }

    [Fact]
    public async Task CallersPoolThrows_ItsCallersGetIt_AndThePipeGoesOn()
    {
        CheckedPool pool = new();
        FileBufferingPipe pipe = new(Options(pool: pool));
        await pipe.Writer.WriteAsync(Pattern.Bytes(200_000), _stop);
        pool.Limit = 0;
        Assert.Throws<InvalidOperationException>(() => pipe.Writer.GetMemory(1_000_000));
        pool.Limit = int.MaxValue;
        await pipe.Writer.WriteAsync(Pattern.Bytes(200_000, 200_000), _stop);
        await pipe.Writer.CompleteAsync();
        pool.Limit = 0;
        InvalidOperationException e = await Assert.ThrowsAsync<InvalidOperationException>(
            async () => await pipe.OpenReader().ReadAsync(_stop));
        Assert.Equal("The pool is empty.", e.Message);
        pool.Limit = int.MaxValue;
        Assert.Equal(Pattern.Bytes(400_000), await ReadAllAsync(pipe.Reader));
        await pipe.DisposeAsync();
        await Eventually.TrueAsync(() => pool.Rented == 0);
    }

    [Fact]
    public async Task Dispose_CallsThatWait_EndAtOnce()
    {
        CheckedPool pool = new();
        FileBufferingPipe pipe = new(Options(pool: pool));
        await WriteAsync(pipe, new byte[100], 100);
        PipeReader held = pipe.OpenReader();
        _ = await held.ReadAsync(_stop);
        Task<ReadResult> read = pipe.OpenReader(100).ReadAsync(_stop).AsTask();
        Stream stream = pipe.AsStream();
        stream.Position = 100;
        Task<int> streamRead = stream.ReadAsync(new byte[1], _stop).AsTask();
        pipe.Dispose();
        await Assert.ThrowsAnyAsync<InvalidOperationException>(() => read);
        await Assert.ThrowsAsync<ObjectDisposedException>(() => streamRead);
        await Assert.ThrowsAsync<ObjectDisposedException>(async () => await pipe.Writer.FlushAsync(_stop));
        Assert.Throws<ObjectDisposedException>(() => pipe.OpenReader());
        await pipe.DisposeAsync();
        Assert.Equal(0, pool.Rented);
        Assert.Equal(0, pool.ReturnedTwice);
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Dispose_WriterHoldsMemoryOfItsPool_ThePoolDoesNotGetItBack(bool isHeld)
    {
        CheckedPool pool = new();
        FileBufferingPipe pipe = new(Options(pool: pool));
        await pipe.Writer.WriteAsync(new byte[10], _stop);
        Memory<byte> room = isHeld ? pipe.Writer.GetMemory(10) : default;
        await pipe.DisposeAsync();
        Assert.Equal(isHeld ? 1 : 0, pool.Rented);
        Assert.Equal(0, pool.ReturnedPinned);
        room.Span.Clear();
        pipe.Writer.Advance(0);
    }

    [Fact]
    public async Task Dispose_WriterHasGotMemoryBeforeItsFile_ThePoolGetsItBack()
    {
        CheckedPool pool = new();
        FileBufferingPipe pipe = new(new() { Folder = _folder.Path, MemoryThreshold = 0, Pool = pool });
        pipe.Writer.Write(new byte[10]);
        _ = pipe.Writer.GetMemory(10);
        await pipe.Writer.FlushAsync(_stop);
        Assert.True(pipe.IsInFile);
        await pipe.DisposeAsync();
        Assert.Equal(0, pool.Rented);
    }

    [Fact]
    public async Task Calls_InTheWrongOrder_ThrowAndHarmNothing()
    {
        await using FileBufferingPipe pipe = new(Options());
        Task<ReadResult> read = pipe.Reader.ReadAsync(_stop).AsTask();
        await Assert.ThrowsAsync<InvalidOperationException>(async () => await pipe.Reader.ReadAsync(_stop));
        Assert.Throws<InvalidOperationException>(() => pipe.Reader.TryRead(out _));
        await pipe.Writer.WriteAsync(new byte[] { 1, 2, 3 }, _stop);
        ReadResult result = await read;
        Assert.Throws<InvalidOperationException>(() => pipe.Reader.AdvanceTo(new ReadOnlySequence<byte>(new byte[1]).End));
        pipe.Reader.AdvanceTo(result.Buffer.GetPosition(1));
        ReadResult rest = await pipe.Reader.ReadAsync(_stop);
        Assert.Equal([2, 3], rest.Buffer.ToArray());
        await pipe.Writer.CompleteAsync();
        Assert.Throws<InvalidOperationException>(() => pipe.Writer.GetMemory());
        await pipe.Reader.CompleteAsync();
        Assert.Throws<InvalidOperationException>(() => pipe.Reader.AdvanceTo(rest.Buffer.End));
        Assert.Throws<InvalidOperationException>(() => pipe.Reader.TryRead(out _));
        Assert.Throws<ArgumentOutOfRangeException>(() => pipe.OpenReader(-1));
        Assert.Throws<ArgumentOutOfRangeException>(() => new FileBufferingPipe(new() { MemoryThreshold = -1 }));
        Assert.Throws<ArgumentOutOfRangeException>(() => new FileBufferingPipe(new() { MaxLength = -1 }));
        Assert.Throws<ArgumentException>(() => new FileBufferingPipe(new() { Folder = "" }));
    }

    [Theory]
    [InlineData(10, false), InlineData(200_000, false), InlineData(200_000, true), InlineData(3_000_000, true)]
    public async Task SaveAsync_MakesAFileOfEverything(int length, bool isDurable)
    {
        byte[] content = Pattern.Bytes(length);
        await using FileBufferingPipe pipe = new(Options());
        await Assert.ThrowsAsync<InvalidOperationException>(async () => await pipe.SaveAsync(_folder.File("f"), cancellationToken: _stop));
        await WriteAsync(pipe, content, 10_000);
        await pipe.Writer.CompleteAsync();
        FilePipeWriterOptions options = new() { FlushGuarantee = isDurable ? FlushGuarantee.Durable : FlushGuarantee.WriteBehind };
        string path = _folder.File("f", [1]);
        await pipe.SaveAsync(path, options, _stop);
        Assert.Equal(content, await File.ReadAllBytesAsync(path, _stop));
        string second = _folder.File("g");
        await pipe.SaveAsync(second, new() { Mode = FileMode.CreateNew }, _stop);
        Assert.Equal(content, await File.ReadAllBytesAsync(second, _stop));
        await Assert.ThrowsAsync<FileExistsException>(async () => await pipe.SaveAsync(second, new() { Mode = FileMode.CreateNew }, _stop));
        Assert.Equal(content, await ReadAllAsync(pipe.Reader));

        // On Windows the pipe's own file has a name until it is closed.
        Assert.Equal(OperatingSystem.IsWindows() && pipe.IsInFile ? 3 : 2, Directory.GetFiles(_folder.Path).Length);
        if (OperatingSystem.IsLinux())
        {
            Assert.Equal(File.GetUnixFileMode(_folder.File("new", [])), File.GetUnixFileMode(second));
        }
    }

    [Fact]
    public async Task SaveAsync_TheSameFileSystem_CopiesNothing()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Only there a file without a name can get one.");
        NamedCalls calls = new();
        await using FileBufferingPipe pipe = new(Options(), calls);
        await WriteAsync(pipe, Pattern.Bytes(200_000), 10_000);
        await pipe.Writer.CompleteAsync();
        await pipe.SaveAsync(_folder.File("f"), new() { UnixCreateMode = UnixFileMode.UserRead }, _stop);
        Assert.Equal(1, calls.Links);
        Assert.Equal(UnixFileMode.UserRead, File.GetUnixFileMode(_folder.File("f")));
        Assert.Equal(200_000, new FileInfo(_folder.File("f")).Length);
        Assert.Equal(1, calls.Made);
    }

    private static IEnumerable<long> Offsets(int length) => new long[] { 0, 1, length / 2, length }.Where(offset => offset <= length);

    private FileBufferingPipeOptions Options(bool keeps = true, CheckedPool? pool = null)
        => new() { Folder = _folder.Path, Keep = keeps, Pool = pool };

    private async Task WriteAsync(FileBufferingPipe pipe, byte[] content, int size)
    {
        for (int at = 0; at < content.Length; at += size)
        {
            await pipe.Writer.WriteAsync(content.AsMemory(at, Math.Min(size, content.Length - at)), _stop);
        }
    }

    private static async Task<byte[]> ReadAllAsync(PipeReader reader)
    {
        ArrayBufferWriter<byte> read = new();
        await PatternFile.ReadAllAsync(reader, read);
        await reader.CompleteAsync();
        return read.WrittenSpan.ToArray();
    }

    private sealed class PieceCounter : MemoryStream
    {
        internal int Pieces { get; private set; }

        public override ValueTask WriteAsync(ReadOnlyMemory<byte> buffer, CancellationToken cancellationToken = default)
        {
            Pieces++;
            return base.WriteAsync(buffer, cancellationToken);
        }
    }

    private sealed class NamedCalls : UnixCalls
    {
        internal int Links { get; private set; }

        internal int Made { get; private set; }

        internal override long LinkNameless(Microsoft.Win32.SafeHandles.SafeFileHandle file, in UnixName name)
        {
            Links++;
            return base.LinkNameless(file, name);
        }

        internal override long MakeNameless(in UnixName name, int flags, uint mode)
        {
            Made++;
            return base.MakeNameless(name, flags, mode);
        }
    }
}
