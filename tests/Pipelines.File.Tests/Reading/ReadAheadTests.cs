namespace FilePipelines.Tests;

/// <summary>
/// Where reads ahead are made: by the application's pool as long as nothing waits, by threads that may wait where the device is slow.
/// </summary>
public sealed class ReadAheadTests : FileTests
{
    private const int Length = 2_000_000;

    [Theory]
    [InlineData("in memory"), InlineData("on the device"), InlineData("not known")]
    public async Task ReadAsync_ReadsAhead_NoCallThatMayWaitIsOnAThreadOfTheApplications(string what)
    {
        int refusal = what switch
        {
            "on the device" => Libc.EAGAIN,
            "not known" => Libc.EOPNOTSUPP,
            _ => 0,
        };
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Only Linux has a call that does not wait.");
        ConcurrentBag<string> offenders = [];
        int plain = 0;
        ScriptedCalls calls = new()
        {
            OnReadNoWait = number => number > 1 && refusal != 0 && (refusal != Libc.EAGAIN || number % 3 == 0) ? -refusal : null,
            OnRead = _ =>
            {
                // At the end of the file the plain call is made wherever the read is tried: it does not wait there.
                Interlocked.Increment(ref plain);
                if (refusal != 0 && Thread.CurrentThread.IsThreadPoolThread)
                {
                    offenders.Add(Environment.StackTrace);
                }

                return null;
            },
        };
        FilePipeReader reader = calls.Read(
            _folder.File("f", Pattern.Bytes(Length)), new() { BufferSize = 4096, PauseReadAheadThreshold = 100_000, Length = Length - 1 });
        long index = await PatternFile.ReadToEndAsync(reader).WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(Length - 1, index);
        Assert.Empty(offenders);
        Assert.True(plain > 0, $"{plain} plain calls, {calls.ReadsNoWait} that do not wait");
    }

    [Fact]
    public async Task ReadAhead_TheDeviceStalls_OthersReadAhead()
    {
        using Gate gate = new();
        string path = _folder.File("f", Pattern.Bytes(Length));
        FilePipeReaderOptions options = new() { BufferSize = 4096, PauseReadAheadThreshold = 100_000, Share = FileShare.ReadWrite };
        List<(FilePipeReader Reader, long Index)> waiting = [];
        for (int i = 0; i < 10; i++)
        {
            // The first read of each is in memory.
            ScriptedCalls stalled = new() { OnReadNoWait = number => number > 1 ? -Libc.EAGAIN : null, OnRead = gate.Hold };
            FilePipeReader one = stalled.Read(path, options);
            ReadResult first = await one.ReadAsync(_stop);
            long index = first.Buffer.Length;
            one.AdvanceTo(first.Buffer.End);
            waiting.Add((one, index));
        }

        FilePipeReader reader = FilePipeReader.Create(path, options);
        long length = await PatternFile.ReadToEndAsync(reader).WaitAsync(Eventually.Limit, _stop);
        gate.Open();
        Assert.Equal(Length, length);
        foreach ((FilePipeReader one, long index) in waiting)
        {
            Assert.Equal(Length, await PatternFile.ReadToEndAsync(one, index));
        }
    }
}
