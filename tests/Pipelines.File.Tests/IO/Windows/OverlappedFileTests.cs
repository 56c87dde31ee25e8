using System.IO.Pipes;
using Pipelines.File.Reading;
using Pipelines.File.Writing;

namespace FilePipelines.Tests;

/// <summary>Reading and writing on Windows: ends, errors, large offsets, named pipes and devices.</summary>
[SupportedOSPlatform("windows")]
public sealed class OverlappedFileTests : FileTests
{
    private const long FourGiB = 1L << 32;

    public OverlappedFileTests() => Assert.SkipUnless(OperatingSystem.IsWindows(), "Overlapped I/O is of Windows; .ci/wine runs it.");

    [Fact]
    public async Task ReadAsync_OneCall_FillsOneSegmentThatHoldsTheWholeRead()
    {
        FilePipeReader reader = FilePipeReader.Create(_folder.File("f", Pattern.Bytes(1_000_000)), new() { BufferSize = 4096 });
        ReadResult result = await reader.ReadAsync(_stop);
        Assert.Equal(ReadBuffer.BytesPerRead, result.Buffer.Length);
        Assert.True(result.Buffer.IsSingleSegment);
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task PastFourGiB_WritesAndReadsThere()
    {
        string path = _folder.File("f");
        using (FileStream sparse = new(path, FileMode.Create, FileAccess.Write))
        {
            sparse.WriteByte(1);
        }

        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Mode = FileMode.Open, Offset = FourGiB + 5 });
        await writer.WriteAllAsync(Pattern.Bytes(100_000));
        Assert.Equal(FourGiB + 5 + 100_000, new FileInfo(path).Length);
        FilePipeReader reader = FilePipeReader.Create(path, new() { Offset = FourGiB + 5 });
        ReadResult result = await reader.ReadAtLeastAsync(100_000, _stop);
        Assert.Equal(-1, Pattern.FirstDifference(result.Buffer.ToArray()));
        Assert.Equal(FourGiB + 5, reader.Position);
        await reader.CompleteAsync();
        reader = FilePipeReader.Create(path, new() { Length = 1 });
        Assert.Equal(1, (await reader.ReadAsync(_stop)).Buffer.FirstSpan[0]);
        await reader.CompleteAsync();
    }

    [Theory]
    [InlineData(Kernel32.ERROR_LOCK_VIOLATION, 1), InlineData(Kernel32.ERROR_SHARING_VIOLATION, 2)]
    public async Task ReadAsync_CallFails_ThrowsTheErrorWithThePathAgainAndAgain(int error, int failing)
    {
        string path = _folder.File("f", Pattern.Bytes(400_000));
        ScriptedWindowsCalls calls = new() { ReadError = read => read >= failing ? error : 0 };
        FilePipeReader reader = calls.Read(path);
        for (int i = 1; i < failing; i++)
        {
            ReadResult result = await reader.ReadAsync(_stop);
            reader.AdvanceTo(result.Buffer.End);
        }

        for (int i = 0; i < 2; i++)
        {
            IOException e = await Assert.ThrowsAsync<IOException>(async () => await reader.ReadAsync(_stop));
            Assert.Equal(unchecked((int)0x80070000) | error, e.HResult);
            Assert.Contains(path, e.Message, StringComparison.Ordinal);
        }

        Assert.Equal(failing, calls.Reads);
        await reader.CompleteAsync();
        calls.CloseSecond();
    }

    [Theory]
    [InlineData(1), InlineData(3)]
    public async Task WriteAsync_DiskIsFull_FileHoldsAnUnbrokenPrefix(int failing)
    {
        string path = _folder.File("f");
        ScriptedWindowsCalls calls = new() { WriteError = write => write >= failing ? Kernel32.ERROR_DISK_FULL : 0 };
        FilePipeWriter writer = calls.Write(path, new() { FlushGuarantee = FlushGuarantee.Written });
        IOException e = await Assert.ThrowsAsync<IOException>(async () =>
        {
            for (int i = 0; i < 10; i++)
            {
                await writer.WriteAsync(Pattern.Bytes(1000, i * 1000), _stop);
            }
        });
        Assert.Equal(unchecked((int)0x80070000) | Kernel32.ERROR_DISK_FULL, e.HResult);
        Assert.Contains(path, e.Message, StringComparison.Ordinal);
        await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync());
        calls.CloseSecond();
        Assert.Equal(Pattern.Bytes((failing - 1) * 1000), File.ReadAllBytes(path));
    }

    [Theory]
    [InlineData(FileAttributes.Compressed)]
    [InlineData(FileAttributes.Encrypted)]
    [InlineData(FileAttributes.Offline)]
    [InlineData((FileAttributes)0x40000)]
    [InlineData((FileAttributes)0x400000)]
    public async Task ReadAsync_FileThatIsReadWithinTheCall_DoesNotBlockTheCaller(FileAttributes attribute)
    {
        ScriptedWindowsCalls calls = new() { Attributes = attribute };
        FilePipeReader reader = calls.Read(_folder.File("f", Pattern.Bytes(600_000)));
        using MemoryStream content = new();
        await reader.CopyToAsync(content, _stop);
        Assert.Equal(Pattern.Bytes(600_000), content.ToArray());
        Assert.All(calls.Transfers, transfer => Assert.StartsWith("Pipelines.File", transfer.Thread.Name, StringComparison.Ordinal));
        await reader.CompleteAsync();
        calls.CloseSecond();
    }

    [Fact]
    public async Task ReadAsync_FileThatIsNot_IsReadByTheCaller()
    {
        ScriptedWindowsCalls calls = new() { Attributes = FileAttributes.Archive | FileAttributes.Hidden | FileAttributes.SparseFile };
        FilePipeReader reader = calls.Read(_folder.File("f", Pattern.Bytes(1000)));
        Thread caller = Thread.CurrentThread;
        ValueTask<ReadResult> read = reader.ReadAsync(_stop);
        Assert.Same(caller, calls.Transfers.First().Thread);
        _ = await read;
        await reader.CompleteAsync();
        calls.CloseSecond();
    }

    [Theory]
    [InlineData(Kernel32.ERROR_OPERATION_ABORTED), InlineData(Kernel32.ERROR_MORE_DATA)]
    public async Task ReadAsync_EndsWithAnErrorAndBytes_GivesTheBytesOnce(int error)
    {
        ScriptedWindowsCalls calls = new() { ReadError = read => read == 1 ? error : Kernel32.ERROR_HANDLE_EOF, MovedBeforeError = 7 };
        FilePipeReader reader = calls.Read(_folder.File("f", Pattern.Bytes(1000)));
        ReadResult result = await reader.ReadAtLeastAsync(100, _stop);
        Assert.True(result.IsCompleted);
        Assert.Equal(7, result.Buffer.Length);
        reader.AdvanceTo(result.Buffer.End);
        Assert.Equal(7, reader.Position);
        await reader.CompleteAsync();
        calls.CloseSecond();
    }

    [Fact]
    public async Task WriteAsync_CalledOffAfterSomeBytes_WritesTheOthers()
    {
        string path = _folder.File("f");
        ScriptedWindowsCalls calls =
            new() { WriteError = write => write <= 2 ? Kernel32.ERROR_OPERATION_ABORTED : 0, MovedBeforeError = 10 };
        FilePipeWriter writer = calls.Write(path);
        await writer.WriteAllAsync(Pattern.Bytes(100));
        calls.CloseSecond();
        Assert.Equal([(0, 100), (10, 90), (20, 80)], calls.Transfers.Select(transfer => ((int)transfer.Offset, (int)transfer.Count)));
        Assert.Equal(Pattern.Bytes(80, 20), File.ReadAllBytes(path)[20..]);
    }

    [Theory]
    [InlineData(Kernel32.ERROR_BROKEN_PIPE), InlineData(Kernel32.ERROR_PIPE_NOT_CONNECTED)]
    public async Task ReadAsync_OtherSideIsGone_Ends(int error)
    {
        ScriptedWindowsCalls calls = new() { ReadError = _ => error };
        FilePipeReader reader = calls.Read(_folder.File("f", Pattern.Bytes(1000)));
        ReadResult result = await reader.ReadAsync(_stop);
        Assert.True(result.IsCompleted && result.Buffer.IsEmpty);
        await reader.CompleteAsync();
        calls.CloseSecond();
    }

    [Fact]
    public async Task NamedPipe_NothingIsWrittenIntoIt_IsNoEnd()
    {
        foreach (PipeTransmissionMode mode in (PipeTransmissionMode[])[PipeTransmissionMode.Message, PipeTransmissionMode.Byte])
        {
            (NamedPipeServerStream server, string path) = Pipe(PipeDirection.Out, mode);
            FilePipeReader reader = FilePipeReader.Create(path);
            await server.WaitForConnectionAsync(_stop);
            Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
            WriteNothing(server);
            WriteNothing(server);
            await server.WriteAsync(Pattern.Bytes(10), _stop);
            ReadResult result = await read.WaitAsync(Eventually.Limit, _stop);
            Assert.False(result.IsCompleted);
            Assert.Equal(10, result.Buffer.Length);
            reader.AdvanceTo(result.Buffer.End);

            // Also where it is there before somebody reads.
            WriteNothing(server);
            await server.WriteAsync(Pattern.Bytes(20), _stop);
            result = await reader.ReadAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop);
            Assert.Equal(20, result.Buffer.Length);
            reader.AdvanceTo(result.Buffer.End);
            await server.DisposeAsync();
            result = await reader.ReadAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop);
            Assert.True(result.IsCompleted && result.Buffer.IsEmpty);
            await reader.CompleteAsync();
        }

        static unsafe void WriteNothing(NamedPipeServerStream server)
        {
            // The runtime's own WriteAsync makes no call for no bytes.
            using ManualResetEvent done = new(initialState: false);
            using SafeFileHandle handle = new(server.SafePipeHandle.DangerousGetHandle(), ownsHandle: false);
            NativeOverlapped overlapped = new() { EventHandle = done.SafeWaitHandle.DangerousGetHandle() | 1 };
            byte nothing;
            uint transferred;
            Assert.True(Kernel32.WriteFile(handle, (nint)(&nothing), 0, &transferred, &overlapped) != 0
                || WindowsCalls.Default.Wait(handle, &overlapped) == 0);
        }
    }

    [Fact]
    public async Task NamedPipe_CallerClosesTheHandleAsNothingIsRead_FailsAndReleasesEverything()
    {
        (NamedPipeServerStream server, string path) = Pipe(PipeDirection.Out);
        await using NamedPipeServerStream _ = server;
        SafeFileHandle handle = File.OpenHandle(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite, FileOptions.Asynchronous);
        FilePipeReader reader = FilePipeReader.Create(
            new OverlappedFile(handle, path, FileProperties.Of(handle, path), new ClosingCalls()), new(), leaveOpen: false);
        await Assert.ThrowsAsync<ObjectDisposedException>(async () => await reader.ReadAsync(_stop));
        await reader.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task CompleteAsync_AfterItsReadsOrWrites_HasClosedTheEvent(bool isWriter)
    {
        string path = _folder.File("f", Pattern.Bytes(1000));
        SafeFileHandle handle = File.OpenHandle(
            path, FileMode.Open, isWriter ? FileAccess.Write : FileAccess.Read, FileShare.ReadWrite, FileOptions.Asynchronous);
        OverlappedFile file = new(handle, path, FileProperties.Of(handle, path));
        SafeWaitHandle ended = file.Ended.SafeWaitHandle;
        if (isWriter)
        {
            FilePipeWriter writer = FilePipeWriter.Create(file, new(), leaveOpen: false, isOpenedByPath: true);
            await writer.WriteAllAsync(Pattern.Bytes(100));
        }
        else
        {
            FilePipeReader reader = FilePipeReader.Create(file, new(), leaveOpen: false);
            reader.AdvanceTo((await reader.ReadAsync(_stop)).Buffer.End);
            await reader.CompleteAsync();
        }

        Assert.True(handle.IsClosed && ended.IsClosed);
    }

    [Fact]
    public async Task WriteAsync_ManyBytes_GoOutInWritesOfASegment()
    {
        const int Length = 8 * 1024 * 1024;
        string path = _folder.File("f");
        ScriptedWindowsCalls calls = new();
        FilePipeWriter writer = calls.Write(path, new() { PauseWriterThreshold = Length });
        int segment = writer.GetMemory().Length;
        Assert.Equal(128 * 1024, segment);
        for (int index = 0; index < Length; index += 4096)
        {
            writer.Put(4096, index);
        }

        await writer.CompleteAsync();
        calls.CloseSecond();
        Assert.All(calls.Transfers, transfer => Assert.Equal(segment, (int)transfer.Count));
        Assert.Equal(-1, Pattern.FirstDifference(File.ReadAllBytes(path)));
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Abort_WriteToAFileThatStalls_IsGivenUp(bool isCompleting)
    {
        string path = _folder.File("f");
        SafeFileHandle handle = File.OpenHandle(path, FileMode.Create, FileAccess.Write, FileShare.Read, FileOptions.Asynchronous);
        StalledCalls calls = new();
        FilePipeWriter writer = FilePipeWriter.Create(
            new OverlappedFile(handle, path, FileProperties.Of(handle, path), calls), new(), leaveOpen: false, isOpenedByPath: true);
        writer.Put(1000);
        Task completing = Task.CompletedTask;
        if (isCompleting)
        {
            completing = Task.Run(() => writer.Complete(), _stop);
        }
        else
        {
            await writer.FlushAsync(_stop);
        }

        await calls.IsStalled.Task.WaitAsync(Eventually.Limit, _stop);
        writer.Abort();
        Exception? thrown = await Record.ExceptionAsync(() => completing.WaitAsync(Eventually.Limit, _stop));
        Assert.Equal(isCompleting, thrown is OperationCanceledException);
        await writer.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
        Assert.True(handle.IsClosed);
    }

    [Theory]
    [InlineData(CallFinish.Real), InlineData(CallFinish.AtOnce), InlineData(CallFinish.CompletionFirst)]
    public async Task Complete_OfAFile_WritesOnTheThreadThatWaits(CallFinish how)
    {
        await Task.Yield();
        string path = _folder.File("f");
        ScriptedWindowsCalls calls = new() { OnWrite = _ => how };
        FilePipeWriter writer = calls.Write(path, new() { FlushGuarantee = FlushGuarantee.Durable });
        writer.Put(1000);

        // Where a completion were needed, a thread of the pool would have to bring it.
        writer.Complete();
        Assert.All(calls.Transfers, transfer => Assert.Same(Thread.CurrentThread, transfer.Thread));
        Assert.True(calls.Waits > 0 || how != CallFinish.CompletionFirst);
        calls.CloseSecond();
        Assert.Equal(Pattern.Bytes(1000), File.ReadAllBytes(path));
    }

    [Fact]
    public async Task NamedPipe_OtherSideWritesAndGoes_ReadsAllAndEnds()
    {
        (NamedPipeServerStream server, string path) = Pipe(PipeDirection.Out);
        FilePipeReader reader = FilePipeReader.Create(path);
        Assert.Equal(FilePipeBackend.Overlapped, reader.Backend);
        await server.WaitForConnectionAsync(_stop);
        ValueTask<ReadResult> first = reader.ReadAsync(_stop);
        Assert.False(first.IsCompleted);
        await server.WriteAsync(Pattern.Bytes(100), _stop);
        ReadResult result = await first;
        Assert.Equal(100, result.Buffer.Length);
        reader.AdvanceTo(result.Buffer.Start, result.Buffer.End);
        Task writing = WriteAndGoAsync();
        result = await reader.ReadAtLeastAsync(1_000_000, _stop);
        await writing;
        Assert.True(result.IsCompleted);
        Assert.Equal(50_100, result.Buffer.Length);
        Assert.Equal(-1, Pattern.FirstDifference(result.Buffer.ToArray()));
        await reader.CompleteAsync();

        async Task WriteAndGoAsync()
        {
            await server.WriteAsync(Pattern.Bytes(50_000, 100), _stop);
            server.WaitForPipeDrain();
            await server.DisposeAsync();
        }
    }

    [Fact]
    public async Task NamedPipe_IdleReadIsCanceled_LosesNothing()
    {
        (NamedPipeServerStream server, string path) = Pipe(PipeDirection.Out);
        await using NamedPipeServerStream _ = server;
        FilePipeReader reader = FilePipeReader.Create(path);
        await server.WaitForConnectionAsync(_stop);
        for (int i = 0; i < 50; i++)
        {
            using CancellationTokenSource token = new();
            ValueTask<ReadResult> pending = reader.ReadAsync(token.Token);
            Assert.False(pending.IsCompleted);
            if (i % 2 == 0)
            {
                reader.CancelPendingRead();
                Assert.True((await pending).IsCanceled);
            }
            else
            {
                await token.CancelAsync();
                await Assert.ThrowsAsync<OperationCanceledException>(async () => await pending);
            }

            await server.WriteAsync(Pattern.Bytes(10, i * 10), _stop);
            ReadResult result = await reader.ReadAtLeastAsync(10, _stop);
            Assert.Equal(-1, Pattern.FirstDifference(result.Buffer.ToArray(), i * 10));
            reader.AdvanceTo(result.Buffer.End);
        }

        await reader.CompleteAsync();
    }

    [Fact]
    public async Task NamedPipe_CompleteWhileIdle_EndsTheReadAndClosesTheHandle()
    {
        (NamedPipeServerStream server, string path) = Pipe(PipeDirection.Out);
        await using NamedPipeServerStream _ = server;
        FilePipeReader reader = FilePipeReader.Create(path);
        await server.WaitForConnectionAsync(_stop);
        ValueTask<ReadResult> pending = reader.ReadAsync(_stop);
        await reader.CompleteAsync();
        await Assert.ThrowsAsync<InvalidOperationException>(async () => await pending);

        // The other side notices only when the handle is closed.
        await Eventually.TrueAsync(
            async () => await Record.ExceptionAsync(async () => await server.WriteAsync(new byte[1], _stop)) is IOException);
    }

    [Fact]
    public async Task NamedPipe_ReaderStalls_WriterPausesAndLosesNothing()
    {
        (NamedPipeServerStream server, string path) = Pipe(PipeDirection.In);
        await using NamedPipeServerStream _ = server;
        FilePipeWriter writer = FilePipeWriter.Create(
            path, new() { Mode = FileMode.Open, PauseWriterThreshold = 100_000, Share = FileShare.None });
        Assert.Equal(FilePipeBackend.Overlapped, writer.Backend);
        await server.WaitForConnectionAsync(_stop);
        Task writing = PatternFile.WriteAsync(writer, 1_000_000);
        await Task.Delay(200, _stop);
        Assert.False(writing.IsCompleted);
        byte[] content = new byte[1_000_000];
        await server.ReadExactlyAsync(content, _stop);
        await writing.WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(-1, Pattern.FirstDifference(content));
    }

    [Fact]
    public async Task NamedPipe_Offset_IsNotSupported()
    {
        (NamedPipeServerStream server, string path) = Pipe(PipeDirection.Out);
        await using NamedPipeServerStream _ = server;
        Assert.Throws<NotSupportedException>(() => FilePipeReader.Create(path, new() { Offset = 1 }));
    }

    /// <summary>A read takes a message of no bytes, and the owner of the handle closes it before anybody has looked at that.</summary>
    private sealed class ClosingCalls : WindowsCalls
    {
        internal override unsafe int Read(SafeFileHandle file, nint buffer, uint count, NativeOverlapped* overlapped)
        {
            file.Dispose();
            return Kernel32.ERROR_SUCCESS;
        }
    }

    /// <summary>A device that takes nothing until the write is given up.</summary>
    private sealed class StalledCalls : WindowsCalls
    {
        private readonly TaskCompletionSource _canceled = new();

        public TaskCompletionSource IsStalled { get; } = new();

        internal override unsafe int Write(SafeFileHandle file, nint buffer, uint count, NativeOverlapped* overlapped)
            => Kernel32.ERROR_IO_PENDING;

        internal override unsafe int Wait(SafeFileHandle file, NativeOverlapped* overlapped)
        {
            IsStalled.TrySetResult();
            return _canceled.Task.Wait(TimeSpan.FromSeconds(60)) ? Kernel32.ERROR_OPERATION_ABORTED : 0;
        }

        internal override unsafe void Cancel(SafeFileHandle file, NativeOverlapped* overlapped) => _canceled.TrySetResult();
    }

    private static (NamedPipeServerStream Server, string Path) Pipe(
        PipeDirection direction, PipeTransmissionMode mode = PipeTransmissionMode.Byte)
    {
        string name = $"pipelines-file-{Guid.NewGuid():N}";
        return (new NamedPipeServerStream(name, direction, 1, mode, System.IO.Pipes.PipeOptions.Asynchronous, 4096, 4096),
            $@"\\.\pipe\{name}");
    }
}
