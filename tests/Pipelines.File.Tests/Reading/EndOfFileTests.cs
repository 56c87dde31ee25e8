using Pipelines.File.Growing;

namespace FilePipelines.Tests;

/// <summary>
/// The end, which is not for ever: what a file gets later is read later, as PipeReader.Create does it, and no slower than the rest of the
/// file.
/// </summary>
public sealed class EndOfFileTests : FileTests
{
    /// <summary>A way to read, told as text: what it has given.</summary>
    public enum Reading
    {
        ReadAsync,
        ReadAtLeastAsync,
        TryReadAfterRead,
        CopyToAsync,
        CopyToStreamAsync,
        AsStream,
        Mixed,
    }

    [Theory]
    [InlineData(Reading.ReadAsync)]
    [InlineData(Reading.ReadAtLeastAsync)]
    [InlineData(Reading.TryReadAfterRead)]
    [InlineData(Reading.CopyToAsync)]
    [InlineData(Reading.CopyToStreamAsync)]
    [InlineData(Reading.AsStream)]
    [InlineData(Reading.Mixed)]
    public async Task File_ThatGrowsAfterItsEnd_IsReadAsPipeReaderCreateReadsIt(Reading reading)
    {
        List<string>[] told = [[], [], []];
        for (int which = 0; which < 3; which++)
        {
            string path = _folder.File($"f{which}", "0123456789"u8.ToArray());
            PipeReader reader = which switch
            {
                0 => PipeReader.Create(new FileStream(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite)),
                1 => FilePipeReader.Create(path, new() { Share = FileShare.ReadWrite }),
                _ => FilePipeReader.Create(path, new() { Share = FileShare.ReadWrite, PauseReadAheadThreshold = 1000 }),
            };
            Stream stream = reader.AsStream(leaveOpen: true);
            for (int growth = 0; growth < 4; growth++)
            {
                // Twice, so that the end is told twice before the file grows.
                await TellAsync(reading, reader, stream, growth, told[which]);
                await TellAsync(reading, reader, stream, growth, told[which]);
                await File.AppendAllTextAsync(path, $"<{growth}>", _stop);
            }

            await reader.CompleteAsync();
        }

        Assert.Equal(told[0], told[1]);
        Assert.Equal(told[0], told[2]);
        Assert.Equal("0123456789<0><1><2>", string.Concat(told[1].Select(line => line.Split('|')[1])));
    }

    [Theory]
    [InlineData(Reading.ReadAsync), InlineData(Reading.TryReadAfterRead), InlineData(Reading.CopyToAsync), InlineData(Reading.AsStream)]
    public async Task Fifo_ThatGetsAnotherWriterAfterItsEnd_IsReadAsPipeReaderCreateReadsIt(Reading reading)
    {
        List<string>[] told = [[], []];
        for (int which = 0; which < 2; which++)
        {
            string path = Fifo.Make(_folder, $"fifo{which}");
            SafeFileHandle writeEnd = Fifo.OpenBothWays(path);
            SafeFileHandle readEnd = File.OpenHandle(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite);
            PipeReader reader = which == 0
                ? PipeReader.Create(new FileStream(readEnd, FileAccess.Read, 1))
                : FilePipeReader.Create(readEnd);
            Stream stream = reader.AsStream(leaveOpen: true);
            for (int writer = 0; writer < 3; writer++)
            {
                using (FileStream source = new(writeEnd, FileAccess.Write, 0))
                {
                    source.Write(Encoding.ASCII.GetBytes($"<{writer}>"));
                }

                // The last writer is gone: the bytes, then the end.
                await TellAsync(reading, reader, stream, writer, told[which]);
                await TellAsync(reading, reader, stream, writer, told[which]);
                writeEnd = Fifo.OpenBothWays(path);
            }

            writeEnd.Dispose();
            await reader.CompleteAsync();
        }

        Assert.Equal(told[0], told[1]);
        Assert.Equal("<0><1><2>", string.Concat(told[1].Select(line => line.Split('|')[1])));
    }

    [Fact]
    public async Task Fifo_WhoseNextWriterComesWhileTheReadWaits_GivesItsBytes()
    {
        string path = Fifo.Make(_folder);
        SafeFileHandle first = Fifo.OpenBothWays(path);
        FilePipeReader reader = FilePipeReader.Create(path);
        first.Dispose();
        Assert.True((await reader.ReadAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop)).IsCompleted);
        using FileStream second = new(Fifo.OpenBothWays(path), FileAccess.Write, 0);
        Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
        second.Write("abc"u8);
        Assert.Equal("abc"u8.ToArray(), (await read.WaitAsync(Eventually.Limit, _stop)).Buffer.ToArray());
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task File_ThatGrowsPastItsLengthAtOpening_IsReadWithoutWaitingAgain()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It counts system calls of Linux.");
        ScriptedCalls calls = new();
        string path = _folder.File("f", Pattern.Bytes(1000));
        FilePipeReader reader = calls.Read(path, new() { BufferSize = 1000 });
        ReadResult result = await reader.ReadAsync(_stop);
        reader.AdvanceTo(result.Buffer.End);
        PatternFile.Append(path, 2_000_000, 1000);

        int before = calls.Reads;
        Assert.Equal(2_001_000, await PatternFile.ReadToEndAsync(reader, 1000));

        // One at the end that was known, one that finds the new end, and room for a page that the system has dropped.
        Assert.InRange(calls.Reads - before, 1, 4);
        Assert.True(calls.ReadsNoWait >= 8, $"{calls.ReadsNoWait}");
    }

    /// <summary>
    /// A server is asked for the length, and takes as long as it likes: no token, and no CancelPendingRead, would end the call.
    /// </summary>
    [Theory]
    [InlineData(0x65735546L)] // FUSE
    [InlineData(0x6969L)] // NFS
    [InlineData(0xff534d42L)] // SMB
    [InlineData(0x794c7630L)] // overlayfs, which may be over one of them
    [InlineData(-1L)]
    public async Task File_OfAServer_IsAskedForItsEndByAThreadOfTheLibrary(long fileSystem)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts system calls of Linux.");
        ConcurrentQueue<string?> readers = [];
        using ManualResetEventSlim answers = new();
        ScriptedCalls calls = new()
        {
            FileSystem = fileSystem,
            OnRead = _ =>
            {
                readers.Enqueue(Thread.CurrentThread.Name);
                Assert.True(answers.Wait(Eventually.Limit, _stop));
                return null;
            },
        };
        FilePipeReader reader = calls.Read(_folder.File("f", Pattern.Bytes(1000)));
        reader.AdvanceTo((await reader.ReadAsync(_stop)).Buffer.End);
        ValueTask<ReadResult> end = reader.ReadAsync(_stop);
        Assert.False(end.IsCompleted);
        reader.CancelPendingRead();
        Assert.True((await end).IsCanceled);
        answers.Set();
        Assert.True((await reader.ReadAsync(_stop)).IsCompleted);
        Assert.All(readers, static name => Assert.StartsWith("Pipelines.File ", name));
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task File_OfKnownLength_IsAskedOnceForItsEnd()
    {
        ScriptedCalls calls = new() { FileSystem = LocalFileSystems.Ext, OnReadNoWait = _ => 10_000 };
        FilePipeReader reader = calls.Read(_folder.File("f", Pattern.Bytes(100_000)), new() { BufferSize = 1000 });
        long index = 0;
        while (await reader.ReadAsync(_stop) is { IsCompleted: false } result)
        {
            index += result.Buffer.Length;
            reader.AdvanceTo(result.Buffer.End);
        }

        Assert.Equal(100_000, index);
        Assert.Equal((11, 0), (calls.ReadsNoWait, calls.Reads));
        await reader.CompleteAsync();
    }

    /// <summary>What was appended may have to be fetched: another process has written it past the page cache, or it has left it.</summary>
    [Theory]
    [InlineData("before its end was seen")]
    [InlineData("after its end was seen")]
    [InlineData("while it is followed")]
    public async Task ReadAsync_Grown_WaitsOnAThreadOfTheLibrary(string when)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux only.");
        string path = _folder.File("f", "12"u8.ToArray());
        ConcurrentQueue<string?> readers = [];
        bool isCached = true;
        bool follows = when == "while it is followed";
        await using FilePipeReader reader = Telling(readers, () => Volatile.Read(ref isCached)).Read(
            path, new() { Follow = follows, Share = FileShare.ReadWrite, FollowInterval = TimeSpan.FromMilliseconds(50) });
        reader.AdvanceTo((await reader.ReadAsync(_stop)).Buffer.End);
        ValueTask<ReadResult> waiting = when == "before its end was seen" ? default : reader.ReadAsync(_stop);
        if (when == "after its end was seen")
        {
            ReadResult end = await waiting;
            Assert.True(end.IsCompleted);
            reader.AdvanceTo(end.Buffer.End);
        }

        readers.Clear();
        Volatile.Write(ref isCached, false);
        await File.AppendAllTextAsync(path, "34", _stop);
        ReadResult grown = await (follows ? waiting : reader.ReadAsync(_stop));
        Assert.Equal("34", Encoding.ASCII.GetString(grown.Buffer));
        Assert.True(follows || !readers.IsEmpty);
        Assert.All(readers, static name => Assert.StartsWith("Pipelines.File ", name));
        Assert.DoesNotContain(FileWatches.ThreadName, readers);
        reader.AdvanceTo(grown.Buffer.End);
    }

    /// <summary>The waiting thread that has read to the end has only asked for the length then.</summary>
    [Fact]
    public async Task ReadAtLeastAsync_GrownAfterItsLengthWasAskedFor_WaitsOnAThreadThatMayWait()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux only.");
        string path = _folder.File("f", "12"u8.ToArray());
        ConcurrentQueue<string?> readers = [];
        await using FilePipeReader reader = Telling(readers, static () => false).Read(
            path, new() { Follow = true, Share = FileShare.ReadWrite, FollowInterval = TimeSpan.FromHours(1) });
        Assert.SkipUnless(LocalFileSystems.TakeWrites(reader.OpenedFile.Properties), "Files are polled there.");
        Task<ReadResult> waiting = reader.ReadAtLeastAsync(4, _stop).AsTask();
        await Eventually.TrueAsync(() => ((FollowedFile)reader.OpenedFile).IsWaiting);
        await File.AppendAllTextAsync(path, "34", _stop);
        ReadResult grown = await waiting.WaitAsync(Eventually.Limit, _stop);
        Assert.Equal("1234", Encoding.ASCII.GetString(grown.Buffer));
        Assert.DoesNotContain(FileWatches.ThreadName, readers);
        reader.AdvanceTo(grown.Buffer.End);
    }

    /// <summary>Tells the threads of the calls that may wait.</summary>
    private static ScriptedCalls Telling(ConcurrentQueue<string?> readers, Func<bool> isCached) => new()
    {
        OnReadNoWait = _ => isCached() ? null : -Libc.EAGAIN,
        OnRead = _ =>
        {
            readers.Enqueue(Thread.CurrentThread.Name);
            return null;
        },
    };

    /// <summary>Reads to the end that there is now, and tells what came: the step, the bytes, and whether it was the end.</summary>
    private async Task TellAsync(Reading reading, PipeReader reader, Stream stream, int step, List<string> told)
    {
        byte[] buffer = new byte[100];
        switch (reading == Reading.Mixed ? (Reading)(step % 4) : reading)
        {
            case Reading.ReadAsync:
                TellResult(await reader.ReadAsync(_stop));
                break;
            case Reading.ReadAtLeastAsync:
                TellResult(await reader.ReadAtLeastAsync(2, _stop));
                break;
            case Reading.TryReadAfterRead:
                ReadResult result = await reader.ReadAsync(_stop);
                reader.AdvanceTo(result.Buffer.Start);
                if (!result.Buffer.IsEmpty)
                {
                    Assert.True(reader.TryRead(out result));
                    TellResult(result);
                }

                bool isThere = reader.TryRead(out result);
                told.Add($"{step} TryRead {isThere} {isThere && result.IsCompleted}||");
                if (isThere)
                {
                    reader.AdvanceTo(result.Buffer.Start);
                }

                break;
            case Reading.CopyToAsync:
                MemoryStream piped = new();
                await reader.CopyToAsync(PipeWriter.Create(piped, new StreamPipeWriterOptions(leaveOpen: true)), _stop);
                told.Add($"{step}|{Encoding.ASCII.GetString(piped.ToArray())}|");
                break;
            case Reading.CopyToStreamAsync:
                MemoryStream copied = new();
                await reader.CopyToAsync(copied, _stop);
                told.Add($"{step}|{Encoding.ASCII.GetString(copied.ToArray())}|");
                break;
            default:
                int read = await stream.ReadAsync(buffer, _stop);
                told.Add($"{step}|{Encoding.ASCII.GetString(buffer.AsSpan(0, read))}|");
                break;
        }

        void TellResult(ReadResult result)
        {
            // Whether the end comes with the last bytes or after them is the reader's: a result without bytes has to say it.
            told.Add($"{step}|{Encoding.ASCII.GetString(result.Buffer)}|{(result.Buffer.IsEmpty ? result.IsCompleted : "")}");
            reader.AdvanceTo(result.Buffer.End);
        }
    }
}
