using System.IO.Pipelines;
using FilePipelines.Child;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;
using Pipelines.File.IO;

namespace FilePipelines.Tests;

/// <summary>What the call that does not wait is known to answer, and real errors.</summary>
public sealed class ReaderFaultTests : IDisposable
{
    private const int Length = 100_000;

    private readonly TempFolder _folder = new();
    private readonly string _path;
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public ReaderFaultTests()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts system calls of Linux.");
        _path = _folder.File("f", Pattern.Bytes(Length));
    }

    public void Dispose() => _folder.Dispose();

    [Theory]
    [InlineData(Libc.ENOSYS)]
    [InlineData(Libc.EOPNOTSUPP)]
    [InlineData(Libc.EPERM)]
    [InlineData(Libc.EINVAL)]
    public async Task ReadNoWait_IsNotSupported_IsAskedOnceForThisFileAndStillForTheNext(int errno)
    {
        ScriptedCalls calls = new() { OnReadNoWait = _ => -errno };
        Assert.Equal(Length, await PatternFile.ReadToEndAsync(calls.Read(_path, new() { BufferSize = 1000 })));
        Assert.Equal(1, calls.ReadsNoWait);
        Assert.True(calls.Reads > 0);
        Assert.Equal(Length, await PatternFile.ReadToEndAsync(calls.Read(_path)));
        Assert.Equal(2, calls.ReadsNoWait);
    }

    [Theory]
    [InlineData(false, 0)]
    [InlineData(true, 0)]
    [InlineData(true, 50_000)]
    public async Task ReadAtLeastAsync_FailsAfterSomeBytesCame_TheyComeWithTheNextReadAndTheErrorAfterThem(
        bool isHandedOver, long readAhead)
    {
        ScriptedCalls calls = new()
        {
            OnReadNoWait = call => isHandedOver || call > 3 ? -Libc.EAGAIN : 1000,
            OnRead = call => isHandedOver && call <= 3 ? 1000 : -Libc.EIO,
        };
        FilePipeReader reader = calls.Read(_path, new() { BufferSize = 1000, PauseReadAheadThreshold = readAhead });

        // The caller has looked at the first bytes, and wants more of them.
        ReadResult first = await reader.ReadAsync(_stop);
        reader.AdvanceTo(first.Buffer.Start, first.Buffer.End);
        await Assert.ThrowsAsync<IOException>(async () => await reader.ReadAtLeastAsync(Length, _stop));
        ReadResult result = await reader.ReadAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(Pattern.Bytes(3000), System.Buffers.BuffersExtensions.ToArray(result.Buffer));
        reader.AdvanceTo(result.Buffer.End);
        await Assert.ThrowsAsync<IOException>(async () => await reader.ReadAsync(_stop));
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task ReadAsync_EagainFromThePlainCallOnAFileThatCanSeek_IsAnError()
    {
        // Only what cannot seek is waited for: a poller would call this file ready for ever.
        ScriptedCalls calls = new() { OnReadNoWait = _ => -Libc.EAGAIN, OnRead = _ => -Libc.EAGAIN };
        FilePipeReader reader = calls.Read(_path);
        Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
        await Assert.ThrowsAsync<IOException>(() => read.WaitAsync(Eventually.Limit, _stop));
        await reader.CompleteAsync();
        Assert.True(reader.OpenedFile.Handle.IsClosed);
    }

    /// <summary>A C library may lack the call. A read that never ended would keep Complete from ending, too.</summary>
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Read_CallThrows_IsTheErrorOfThisReadAndOfLaterOnes(bool isHandedOver)
    {
        Exception thrown = new EntryPointNotFoundException("preadv");
        ScriptedCalls calls = new()
        {
            OnReadNoWait = _ => isHandedOver ? -Libc.EAGAIN : throw thrown,
            OnRead = _ => throw thrown,
        };
        FilePipeReader reader = calls.Read(_path);
        for (int i = 0; i < 2; i++)
        {
            Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
            Assert.Same(thrown, await Assert.ThrowsAsync<EntryPointNotFoundException>(() => read.WaitAsync(Eventually.Limit, _stop)));
        }

        await reader.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
        Assert.True(reader.OpenedFile.Handle.IsClosed);
    }

    [Fact]
    public async Task ReadNoWait_SaysZeroBeforeTheEnd_ThePlainCallDecides()
    {
        ScriptedCalls calls = new() { OnReadNoWait = call => call % 2 == 0 ? 0 : 9999 };
        Assert.Equal(Length, await PatternFile.ReadToEndAsync(calls.Read(_path)));
        Assert.True(calls.Reads > 0);
    }

    [Fact]
    public async Task ReadNoWait_SaysEioThatIsNotTrue_ThePlainCallDecides()
    {
        ScriptedCalls calls = new() { OnReadNoWait = call => call % 3 == 0 ? -Libc.EIO : 777 };
        Assert.Equal(Length, await PatternFile.ReadToEndAsync(calls.Read(_path)));
    }

    [Fact]
    public async Task ReadNoWait_IsShort_IsNotTheEnd()
    {
        ScriptedCalls calls = new() { OnReadNoWait = call => 1 + (call % 900) };
        Assert.Equal(Length, await PatternFile.ReadToEndAsync(calls.Read(_path, new() { BufferSize = 300 })));
    }

    [Fact]
    public async Task ReadNoWait_WouldWait_IsHandedOverAndTriedAgainNextTime()
    {
        ScriptedCalls calls =
            new() { OnReadNoWait = call => call % 2 == 0 ? -Libc.EAGAIN : 4096, OnRead = call => call % 3 == 0 ? -Libc.EINTR : 1000 };
        Assert.Equal(Length, await PatternFile.ReadToEndAsync(calls.Read(_path)));
        Assert.InRange(calls.ReadsNoWait, 20, 100);
    }

    [Fact]
    public async Task ReadNoWait_IsInterrupted_IsContinued()
    {
        ScriptedCalls calls = new() { OnReadNoWait = call => call % 2 == 0 ? -Libc.EINTR : 5000 };
        Assert.Equal(Length, await PatternFile.ReadToEndAsync(calls.Read(_path)));
    }

    [Theory]
    [InlineData(0)]
    [InlineData(50_000)]
    public async Task Read_Fails_ThrowsWithThePathAfterWhatCameBeforeAndAgainLater(long readAhead)
    {
        int calls = 0;
        ScriptedCalls scripted = new()
        {
            OnReadNoWait = _ => Interlocked.Increment(ref calls) <= 3 ? 10_000 : -Libc.EIO,
            OnRead = _ => Interlocked.Increment(ref calls) <= 3 ? 10_000 : -Libc.EIO,
        };
        FilePipeReader reader = scripted.Read(_path, new() { PauseReadAheadThreshold = readAhead });
        long index = 0;
        IOException e = await Assert.ThrowsAsync<IOException>(async () =>
        {
            while (true)
            {
                ReadResult result = await reader.ReadAsync(_stop);
                index += result.Buffer.Length;
                reader.AdvanceTo(result.Buffer.End);
            }
        });
        Assert.Equal(30_000, index);
        Assert.Contains(_path, e.Message, StringComparison.Ordinal);
        Assert.Equal(Libc.EIO, e.HResult);
        await Assert.ThrowsAsync<IOException>(async () => await reader.ReadAsync(_stop));
        await Assert.ThrowsAsync<IOException>(async () => await reader.ReadAtLeastAsync(10, _stop));
        await Assert.ThrowsAsync<IOException>(() => reader.CopyToAsync(Stream.Null, _stop));
        await reader.CompleteAsync();
        Assert.True(reader.OpenedFile.Handle.IsClosed);
    }

    [Theory]
    [InlineData("preadv2:error=EOPNOTSUPP:when=1")]
    [InlineData("preadv2:error=EAGAIN:when=1+2")]
    [InlineData("preadv2:error=EIO:when=2")]
    [InlineData("preadv2:error=EPERM:when=1")]
    [InlineData("preadv2:error=EINTR:when=1+2")]
    [InlineData("preadv2:retval=0:when=2")]
    [InlineData("preadv2:error=EAGAIN:when=1+2 -e inject=preadv:error=EINTR:when=1")]
    [InlineData("preadv2:delay_enter=20000:when=2")]
    public async Task Read_SystemCallInjected_EveryByteComesOnce(string injection)
    {
        ChildProcess.SkipUnlessLinux("strace");
        string trace = _folder.File("trace");
        string path = _folder.File("large", Pattern.Bytes(1_500_000));
        (int status, string output, string error) = await ChildProcess.RunAsync(
            $"strace -f -o '{trace}' -e trace=preadv,preadv2 -e inject={injection} {ChildProcess.Command("read", path, "4096")}");
        Assert.SkipWhen(error.Contains("PTRACE", StringComparison.Ordinal), "strace may not trace here.");
        Assert.True(status == 0, output + error);
        Assert.Equal("read 1500000", output.Trim());
        string traced = await File.ReadAllTextAsync(trace, _stop);
        bool isInjected = traced.Contains("INJECTED", StringComparison.Ordinal) || traced.Contains("DELAYED", StringComparison.Ordinal);
        Assert.SkipWhen(
            !isInjected && traced.Contains("RWF_NOWAIT) = -1 EOPNOTSUPP", StringComparison.Ordinal),
            "The file system does not know RWF_NOWAIT, so no second call comes.");
        Assert.True(isInjected, traced);
    }

    [Fact]
    public async Task Read_SystemCallFails_ThrowsAndNamesTheFile()
    {
        ChildProcess.SkipUnlessLinux("strace");
        string trace = _folder.File("trace");
        (int status, string output, string error) = await ChildProcess.RunAsync(
            $"strace -f -o '{trace}' -e trace=preadv,preadv2 -e inject=preadv2,preadv:error=EIO:when=1+ "
            + $"{ChildProcess.Command("read", _path, "4096")}");
        Assert.SkipWhen(error.Contains("PTRACE", StringComparison.Ordinal), "strace may not trace here.");
        Assert.True(status == 3, output + error);
        Assert.Contains("failed IOException", output, StringComparison.Ordinal);
        Assert.Contains(_path, output, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData(false, 0)]
    [InlineData(true, 0)]
    [InlineData(false, 1000)]
    [InlineData(true, 1000)]
    public async Task Read_HandleIsClosedUnderneath_ThrowsAndGivesTheMemoryBack(bool copies, long readAhead)
    {
        CheckedPool pool = new();
        SafeFileHandle handle = File.OpenHandle(_folder.File("larger", Pattern.Bytes(1_000_000)));
        FilePipeReader reader = FilePipeReader.Create(handle, new() { Pool = pool, PauseReadAheadThreshold = readAhead });
        reader.AdvanceTo((await reader.ReadAsync(_stop)).Buffer.End);
        handle.Dispose();
        Pipe pipe = new(new PipeOptions(pauseWriterThreshold: 0));
        await Assert.ThrowsAsync<ObjectDisposedException>(async () =>
        {
            while (true)
            {
                if (copies)
                {
                    await reader.CopyToAsync(pipe.Writer, _stop);
                }

                reader.AdvanceTo((await reader.ReadAsync(_stop)).Buffer.End);
            }
        });
        await Assert.ThrowsAsync<ObjectDisposedException>(async () => await reader.ReadAsync(_stop));
        await reader.CompleteAsync();
        Assert.Equal(0, pool.Rented);
        Assert.Equal(0, pool.ReturnedTwice);
        Assert.Equal(0, pool.ReturnedPinned);
    }

    [Fact]
    public async Task Read_HandleOfAFifoIsClosedUnderneath_Throws()
    {
        using Fifo fifo = Fifo.Create(_folder);
        SafeFileHandle handle = File.OpenHandle(fifo.Path);
        FilePipeReader reader = FilePipeReader.Create(handle);
        handle.Dispose();
        await Assert.ThrowsAsync<ObjectDisposedException>(() => reader.ReadAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop));
        await reader.CompleteAsync();
    }
}
