namespace FilePipelines.Tests;

/// <summary>A copy that is canceled or fails, and another one behind it: the destination gets each byte once.</summary>
public sealed class CopyCanceledTests : FileTests
{
    private const int Length = 1_000_000;
    private const int Pause = 100_000;


    public CopyCanceledTests() => Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts the Unix system calls.");

    public enum Source
    {
        InTheCache,

        /// <summary>Some of it is buffered, and examined.</summary>
        Buffered,

        ReadAhead,

        /// <summary>A read that was canceled is under way.</summary>
        LeftBehind,

        CallersPool,
        CallersPoolReadAhead,
        Portable,

        /// <summary>A pipe whose reads cannot be given up.</summary>
        PortableFifo,
    }

    public static MatrixTheoryData<Source, bool> Ways { get; } = new(Enum.GetValues<Source>(), [false, true]);

    [Theory]
    [MemberData(nameof(Ways))]
    public async Task CopyToAsync_FlushIsCanceled_TheNextCopyRepeatsNothing(Source source, bool byToken)
    {
        byte[] content = Pattern.Bytes(Length);
        await using FilePipeReader reader = await OpenAsync(source, content);
        Pipe pipe = new(new PipeOptions(pauseWriterThreshold: Pause, resumeWriterThreshold: Pause / 2, useSynchronizationContext: false));
        using CancellationTokenSource cancel = new();
        Task copy = reader.CopyToAsync(pipe.Writer, cancel.Token);
        ReadResult stopped = await pipe.Reader.ReadAtLeastAsync(Pause, _stop).AsTask().WaitAsync(Eventually.Limit, _stop);
        pipe.Reader.AdvanceTo(stopped.Buffer.Start);
        if (byToken)
        {
            await cancel.CancelAsync();
        }
        else
        {
            pipe.Writer.CancelPendingFlush();
        }

        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => copy.WaitAsync(Eventually.Limit, _stop));
        Task<byte[]> got = ReadAllAsync(pipe.Reader);
        await reader.CopyToAsync(pipe.Writer, _stop).WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(Length, reader.Position);
        await pipe.Writer.CompleteAsync();
        Assert.Equal(content, await got.WaitAsync(Eventually.Limit, _stop));
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task CopyToAsync_DestinationGivesMemoryOfNoBytes_ThrowsAndIsNotTakenForTheEnd(bool isBuffered)
    {
        byte[] content = Pattern.Bytes(10_000);
        await using FilePipeReader reader = FilePipeReader.Create(_folder.File("f", content));
        if (isBuffered)
        {
            ReadResult read = await reader.ReadAsync(_stop);
            reader.AdvanceTo(read.Buffer.Start, read.Buffer.End);
        }

        await Assert.ThrowsAsync<InvalidOperationException>(
            () => Task.Run(() => reader.CopyToAsync(new WatchedWriter(0), _stop), _stop).WaitAsync(Eventually.Limit, _stop));
        Assert.Equal(0, reader.Position);
        Assert.Equal(content, await ReadAllAsync(reader));
    }

    private static async Task<byte[]> ReadAllAsync(PipeReader reader)
    {
        MemoryStream all = new();
        await reader.CopyToAsync(all);
        return all.ToArray();
    }

    private async Task<FilePipeReader> OpenAsync(Source source, byte[] content)
    {
        string path = _folder.File("f", content);
        switch (source)
        {
            case Source.Buffered:
                FilePipeReader buffered = FilePipeReader.Create(path);
                ReadResult read = await buffered.ReadAsync(_stop);
                buffered.AdvanceTo(read.Buffer.Start, read.Buffer.End);
                return buffered;
            case Source.ReadAhead:
                return FilePipeReader.Create(path, new() { PauseReadAheadThreshold = 300_000 });
            case Source.LeftBehind:
                Gate gate = new();
                ScriptedCalls calls = new() { OnReadNoWait = call => call == 1 ? -Libc.EAGAIN : null, OnRead = gate.Hold };
                FilePipeReader reader = calls.Read(path);
                ValueTask<ReadResult> pending = reader.ReadAsync(_stop);
                reader.CancelPendingRead();
                Assert.True((await pending).IsCanceled);
                gate.Open();
                return reader;
            case Source.CallersPool:
                return FilePipeReader.Create(path, new() { Pool = new CheckedPool() });
            case Source.CallersPoolReadAhead:
                return FilePipeReader.Create(path, new() { Pool = new CheckedPool(), PauseReadAheadThreshold = 300_000 });
            case Source.Portable:
                return FilePipeReader.Create(path, new() { Backend = FilePipeBackend.Portable });
            case Source.PortableFifo:
                string fifo = Fifo.Make(_folder);
                _ = Task.Run(
                    () =>
                    {
                        using FileStream stream = new(fifo, FileMode.Open, FileAccess.Write, FileShare.ReadWrite, bufferSize: 0);
                        stream.Write(content);
                    },
                    _stop);
                return FilePipeReader.Create(fifo, new() { Backend = FilePipeBackend.Portable });
            default:
                return FilePipeReader.Create(path);
        }
    }
}
