using System.IO.Pipes;

namespace FilePipelines.Tests;

/// <summary>Handles that cannot seek, by blocking calls, as the standard streams of a process of Windows are: anonymous pipes.</summary>
public sealed class SequentialFileTests
{
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    [Fact]
    public async Task ReadAsync_Pipe_ReadsAllAndEnds()
    {
        using AnonymousPipeServerStream server = new(PipeDirection.Out);
        FilePipeReader reader = Reader(server);
        Assert.Equal(FilePipeBackend.Portable, reader.Backend);
        Task writing = Task.Run(
            () =>
            {
                for (int index = 0; index < 1_000_000; index += 10_000)
                {
                    server.Write(Pattern.Bytes(10_000, index));
                }

                server.Dispose();
            },
            _stop);
        using MemoryStream content = new();
        await reader.CopyToAsync(content, _stop).WaitAsync(Eventually.Limit, _stop);
        await writing;
        Assert.Equal(-1, Pattern.FirstDifference(content.ToArray()));
        Assert.Equal(1_000_000, content.Length);
        await reader.CompleteAsync();
        Assert.True(reader.OpenedFile.Handle.IsClosed);
    }

    [Theory]
    [InlineData(FlushGuarantee.WriteBehind), InlineData(FlushGuarantee.Durable)]
    public async Task WriteAsync_Pipe_WritesAll(FlushGuarantee guarantee)
    {
        using AnonymousPipeServerStream server = new(PipeDirection.In);
        FilePipeWriter writer = Writer(server, guarantee);
        Task writing = PatternFile.WriteAsync(writer, 1_000_000);
        byte[] content = new byte[1_000_000];
        await Task.Run(() => server.ReadExactly(content), _stop).WaitAsync(Eventually.Limit, _stop);
        await writing.WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(-1, Pattern.FirstDifference(content));
        Assert.Equal(-1, server.ReadByte());
    }

    [Fact]
    public async Task Complete_WhileTheReadIsBlocked_EndsItAtOnceAndTheHandleIsClosedWithItsCall()
    {
        for (int round = 0; round < 50; round++)
        {
            using AnonymousPipeServerStream server = new(PipeDirection.Out);
            FilePipeReader reader = Reader(server);
            Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
            Thread.SpinWait(round * 200);
            reader.Complete();
            await Assert.ThrowsAsync<InvalidOperationException>(() => read.WaitAsync(Eventually.Limit, _stop));
            await reader.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
            server.Dispose();
            await Eventually.TrueAsync(() => reader.OpenedFile.Handle.IsClosed);
        }
    }

    /// <summary>The read has its memory and no system call yet, and begins that behind the completion.</summary>
    [Fact]
    public async Task CompleteAsync_JustBeforeTheReadBlocks_DoesNotWaitForIt()
    {
        using AnonymousPipeServerStream server = new(PipeDirection.Out);
        FilePipeReader? reader = null;
        Task? completion = null;
        using HostilePool pool = new()
        {
            OnCall = part => completion ??= part == HostilePool.Part.Rent ? reader!.CompleteAsync().AsTask() : null,
        };
        reader = FilePipeReader.Create(Backend(server), new() { Pool = pool }, leaveOpen: false);
        await Assert.ThrowsAsync<InvalidOperationException>(() => reader.ReadAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop));
        await completion!.WaitAsync(Eventually.Limit, _stop);
        server.Dispose();
        await Eventually.TrueAsync(() => reader.OpenedFile.Handle.IsClosed && pool.Rented == 0);
    }

    [Fact]
    public async Task CancelPendingRead_WhileTheReadIsBlocked_LosesNothing()
    {
        using AnonymousPipeServerStream server = new(PipeDirection.Out);
        FilePipeReader reader = Reader(server);
        for (int i = 0; i < 50; i++)
        {
            using CancellationTokenSource token = new();
            Task<ReadResult> pending = reader.ReadAsync(token.Token).AsTask();
            Thread.SpinWait(i * 100);
            if (i % 2 == 0)
            {
                reader.CancelPendingRead();
                Assert.True((await pending.WaitAsync(Eventually.Limit, _stop)).IsCanceled);
            }
            else
            {
                await token.CancelAsync();
                await Assert.ThrowsAsync<OperationCanceledException>(() => pending.WaitAsync(Eventually.Limit, _stop));
            }

            server.Write(Pattern.Bytes(10, i * 10));
            ReadResult result = await reader.ReadAtLeastAsync(10, _stop).AsTask().WaitAsync(Eventually.Limit, _stop);
            Assert.Equal(-1, Pattern.FirstDifference(result.Buffer.ToArray(), i * 10));
            reader.AdvanceTo(result.Buffer.End);
        }

        await reader.CompleteAsync();
    }

    [Fact]
    public async Task Abort_WhileTheWriteIsBlocked_EndsItAtOnceAndTheHandleIsClosedWithItsCall()
    {
        using AnonymousPipeServerStream server = new(PipeDirection.In);
        FilePipeWriter writer = Writer(server);
        Task<FlushResult> write = writer.WriteAsync(new byte[1_000_000], _stop).AsTask();
        Assert.False(write.IsCompleted);
        writer.Abort();
        await Assert.ThrowsAsync<OperationCanceledException>(() => write.WaitAsync(Eventually.Limit, _stop));
        server.Dispose();
        await Eventually.TrueAsync(() => writer.OpenedFile.Handle.IsClosed);
    }

    [Fact]
    public async Task ReadAsync_HundredBlocked_NoneKeepsAnotherFromItsBytes()
    {
        List<AnonymousPipeServerStream> servers = [];
        List<FilePipeReader> readers = [];
        try
        {
            List<Task<ReadResult>> reads = [];
            for (int i = 0; i < 100; i++)
            {
                servers.Add(new AnonymousPipeServerStream(PipeDirection.Out));
                readers.Add(Reader(servers[i]));
                reads.Add(readers[i].ReadAsync(_stop).AsTask());
            }

            servers[^1].WriteByte(1);
            Assert.Equal(1, (await reads[^1].WaitAsync(Eventually.Limit, _stop)).Buffer.Length);
        }
        finally
        {
            readers.ForEach(reader => reader.Complete());
            servers.ForEach(server => server.Dispose());
        }
    }

    [Fact]
    [SupportedOSPlatform("windows")]
    public async Task ReadAsync_OverlappedPipeOfTheCallers_NothingThatIsWrittenIsNoEnd()
    {
        Assert.SkipUnless(OperatingSystem.IsWindows(), "Only there something can be written that is nothing; .ci/wine runs it.");
        string name = $"pipelines-file-{Guid.NewGuid():N}";
        using NamedPipeServerStream server = new(
            name, PipeDirection.Out, 1, PipeTransmissionMode.Byte, System.IO.Pipes.PipeOptions.None, 4096, 4096);
        FilePipeReader reader = FilePipeReader.Create(
            File.OpenHandle($@"\\.\pipe\{name}", FileMode.Open, FileAccess.Read, FileShare.None, FileOptions.Asynchronous),
            new() { Backend = FilePipeBackend.Portable });
        server.WaitForConnection();
        using SafeFileHandle handle = new(server.SafePipeHandle.DangerousGetHandle(), ownsHandle: false);
        Assert.NotEqual(0, Write(handle));
        server.Write(Pattern.Bytes(10));
        ReadResult result = await reader.ReadAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(10, result.Buffer.Length);
        reader.AdvanceTo(result.Buffer.End);
        server.Dispose();
        result = await reader.ReadAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop);
        Assert.True(result.IsCompleted && result.Buffer.IsEmpty);
        await reader.CompleteAsync();
    }

    [Fact]
    [SupportedOSPlatform("windows")]
    public async Task ReadAsync_NothingIsWritten_IsNoEnd()
    {
        Assert.SkipUnless(OperatingSystem.IsWindows(), "Only there something can be written that is nothing; .ci/wine runs it.");
        using AnonymousPipeServerStream server = new(PipeDirection.Out);
        FilePipeReader reader = Reader(server);
        Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
        using SafeFileHandle handle = new(server.SafePipeHandle.DangerousGetHandle(), ownsHandle: false);
        Assert.NotEqual(0, Write(handle));
        server.Write(Pattern.Bytes(10));
        Assert.Equal(10, (await read.WaitAsync(Eventually.Limit, _stop)).Buffer.Length);
        await reader.CompleteAsync();
    }

    private static FilePipeReader Reader(AnonymousPipeServerStream server)
        => FilePipeReader.Create(Backend(server), new(), leaveOpen: false);

    private static FilePipeWriter Writer(AnonymousPipeServerStream server, FlushGuarantee guarantee = FlushGuarantee.WriteBehind)
        => FilePipeWriter.Create(Backend(server), new() { PauseWriterThreshold = 10_000, FlushGuarantee = guarantee }, leaveOpen: false,
            isOpenedByPath: false);

    private static SequentialFile Backend(AnonymousPipeServerStream server)
    {
        SafeFileHandle handle = new(server.ClientSafePipeHandle.DangerousGetHandle(), ownsHandle: true);
        server.ClientSafePipeHandle.SetHandleAsInvalid();
        return Assert.IsType<SequentialFile>(FileOpening.Choose(FilePipeBackend.Portable, handle, path: null));
    }

    /// <summary>Writes nothing into the pipe.</summary>
    private static unsafe int Write(SafeFileHandle handle)
    {
        uint transferred;
        return Kernel32.WriteFile(handle, 0, 0, &transferred, null);
    }
}
