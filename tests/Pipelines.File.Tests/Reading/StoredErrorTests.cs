namespace FilePipelines.Tests;

/// <summary>One error of a file that many calls throw: each with where it came from, and with no more of the calls before it.</summary>
public sealed class StoredErrorTests : FileTests
{
    private const int Calls = 50;

    public StoredErrorTests() => Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts system calls of Linux.");

    [Fact]
    public async Task Writer_ErrorThrownByManyCalls_HasTheTraceOfEachAlone()
    {
        ScriptedCalls calls = new() { OnWrite = _ => -Libc.EIO };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Written });
        await Assert.ThrowsAsync<IOException>(async () => await writer.WriteAsync(Pattern.Bytes(10), _stop));
        await AssertTracesAsync(async () => await writer.FlushAsync(_stop));
        await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync());
        await AssertTracesAsync(async () => await writer.CompleteAsync());
        await AssertTracesAsync(() =>
        {
            writer.Complete();
            return Task.CompletedTask;
        });
    }

    [Fact]
    public async Task Reader_ErrorThrownByManyCalls_HasTheTraceOfEachAlone()
    {
        ScriptedCalls calls = new() { OnReadNoWait = call => call == 1 ? 100 : -Libc.EAGAIN, OnRead = _ => -Libc.EIO };
        FilePipeReader reader = calls.Read(_folder.File("f", Pattern.Bytes(1000)));
        reader.AdvanceTo((await reader.ReadAsync(_stop)).Buffer.End);
        await Assert.ThrowsAsync<IOException>(async () => await reader.ReadAsync(_stop));
        await AssertTracesAsync(async () => await reader.ReadAsync(_stop));
        await AssertTracesAsync(async () => await reader.ReadAtLeastAsync(10, _stop));
        await AssertTracesAsync(() => reader.CopyToAsync(Stream.Null, _stop));
        await AssertTracesAsync(() => reader.CopyToAsync(PipeWriter.Create(Stream.Null), _stop));
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task Writer_ErrorThrownByManyCallsAtOnce_IsWholeForEach()
    {
        using ManualResetEventSlim gate = new();
        ScriptedCalls calls = new()
        {
            OnWrite = _ =>
            {
                gate.Wait(TestContext.Current.CancellationToken);
                return -Libc.EIO;
            },
        };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { FlushGuarantee = FlushGuarantee.Written });
        Task[] throwing = [.. Enumerable.Range(0, 20).Select(
            async i => await Assert.ThrowsAsync<IOException>(async () => await writer.WriteAsync(Pattern.Bytes(10, i * 10), _stop)))];
        Task<IOException>[] completing = [.. Enumerable.Range(0, 20).Select(i => Task.Factory.StartNew(
            () => Assert.Throws<IOException>(() => CompleteFrom(writer)), _stop, TaskCreationOptions.LongRunning, TaskScheduler.Default))];
        gate.Set();
        await Task.WhenAll(throwing).WaitAsync(Eventually.Limit, _stop);
        foreach (IOException e in await Task.WhenAll(completing).WaitAsync(Eventually.Limit, _stop))
        {
            Assert.Contains(_folder.File("f"), e.Message, StringComparison.Ordinal);
            Assert.Equal(Libc.EIO, e.HResult);
        }
    }

    private static void CompleteFrom(FilePipeWriter writer) => writer.Complete();

    /// <summary>The trace of the fiftieth call is as long as that of the first: no call adds to those of the others.</summary>
    private static async Task AssertTracesAsync(Func<Task> call)
    {
        int first = (await Assert.ThrowsAsync<IOException>(call)).StackTrace!.Length;
        for (int i = 1; i < Calls; i++)
        {
            int length = (await Assert.ThrowsAsync<IOException>(call)).StackTrace!.Length;
            Assert.InRange(length, 1, first + 100);
        }
    }
}
