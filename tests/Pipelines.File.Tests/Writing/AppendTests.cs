using Pipelines.File.Writing;

namespace FilePipelines.Tests;

/// <summary>Files that are appended to, alone and beside others.</summary>
public sealed class AppendTests : FileTests
{
    [Theory]
    [InlineData(FilePipeBackend.Auto, FileShare.ReadWrite)]
    [InlineData(FilePipeBackend.Auto, FileShare.ReadWrite | FileShare.Inheritable)]
    [InlineData(FilePipeBackend.Portable, FileShare.ReadWrite)]
    public async Task WriteAsync_TwoAppendersInTurns_KeepEveryLineAndKnowWhereTheirOwnAre(FilePipeBackend backend, FileShare share)
    {
        string path = _folder.File("log", "old\n"u8.ToArray());
        FilePipeWriterOptions options =
            new() { Mode = FileMode.Append, Share = share, Backend = backend, FlushGuarantee = FlushGuarantee.Written };
        FilePipeWriter[] writers = [FilePipeWriter.Create(path, options), FilePipeWriter.Create(path, options)];
        for (int i = 0; i < 100; i++)
        {
            FilePipeWriter writer = writers[i % 3 == 0 ? 0 : 1];
            await writer.WriteAsync(Encoding.ASCII.GetBytes($"line {i}\n"), _stop);
            if (OperatingSystem.IsLinux() && backend == FilePipeBackend.Auto)
            {
                Assert.Equal(new FileInfo(path).Length, writer.Position);
            }
        }

        await writers[0].CompleteAsync();
        await writers[1].CompleteAsync();
        Assert.Equal("old\n" + string.Concat(Enumerable.Range(0, 100).Select(i => $"line {i}\n")),
            await File.ReadAllTextAsync(path, _stop));
    }

    [Theory]
    [InlineData(1), InlineData(5000), InlineData(100_000)]
    public async Task FlushAsync_AppendersAtOnce_KeepEveryFlushWhole(int segmentSize)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Wine looks for the end and writes there in two steps.");

        // Of every size up to the largest that is kept whole, each a line of one letter; over segments of every size, and from memory of
        // every kind.
        string path = _folder.File("log");
        const int Writers = 4;
        const int Flushes = 200;
        await Task.WhenAll(Enumerable.Range(0, Writers).Select(writer => Task.Run(
            async () =>
            {
                Random random = new(writer);
                FilePipeWriter appender = FilePipeWriter.Create(path, new()
                {
                    Mode = FileMode.Append,
                    Share = FileShare.ReadWrite,
                    MinimumBufferSize = segmentSize,
                    Pool = writer == 0 ? new CheckedPool(4096) : null,
                    PauseWriterThreshold = writer == 1 ? 0 : 1 << 20,
                });
                for (int i = 0; i < Flushes; i++)
                {
                    byte[] line = new byte[1 + random.Next(random.Next(2) == 0 ? 200 : WriteQueue.MaxWholeFlush)];
                    line.AsSpan().Fill((byte)('a' + writer));
                    line[^1] = (byte)'\n';

                    // In pieces, as a serializer writes it.
                    for (int start = 0, length; start < line.Length; start += length)
                    {
                        length = Math.Min(line.Length - start, 1 + random.Next(20_000));
                        if (random.Next(2) == 0)
                        {
                            line.AsSpan(start, length).CopyTo(appender.GetSpan(length));
                            appender.Advance(length);
                        }
                        else
                        {
                            appender.Write(line.AsSpan(start, length));
                        }
                    }

                    await appender.FlushAsync(_stop);
                }

                await appender.CompleteAsync();
            },
            _stop)));

        int[] lines = new int[Writers];
        await foreach (ReadOnlySequence<byte> line in FilePipeReader.Create(path).ReadLineSequencesAsync(cancellationToken: _stop))
        {
            byte[] letters = line.ToArray();
            Assert.True(letters.Length == 0 || letters.AsSpan().Count(letters[0]) == letters.Length, "A line is in pieces.");
            if (letters.Length > 0)
            {
                lines[letters[0] - 'a']++;
            }
        }

        // A line of its end alone has no letter.
        Assert.All(lines, count => Assert.InRange(count, Flushes - 10, Flushes));
    }

    [Fact]
    public async Task WriteAsync_ManyProcessesAppend_KeepEveryLine()
    {
        ChildProcess.SkipUnlessLinux();
        string path = _folder.File("log");
        (int status, string output, string error) = await ChildProcess.RunAsync(
            string.Join(" & ", Enumerable.Range(0, 4).Select(i => ChildProcess.Command("append", path, $"process {i} says", "20000")))
            + " & wait");
        Assert.True(status == 0, output + error);
        string[] lines = await File.ReadAllLinesAsync(path, _stop);
        Assert.Equal(
            Enumerable.Range(0, 4).SelectMany(i => Enumerable.Range(0, 20_000).Select(line => $"process {i} says {line}"))
                .Order(StringComparer.Ordinal),
            lines.Order(StringComparer.Ordinal));
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Create_Append_BeginsAtTheEnd(bool isByHandle)
    {
        string path = _folder.File("f", Pattern.Bytes(100));
        FilePipeWriterOptions options = new() { Mode = FileMode.Append };
        FilePipeWriter writer = isByHandle
            ? FilePipeWriter.Create(File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite), options)
            : FilePipeWriter.Create(path, options);
        Assert.Equal(100, writer.Position);
        await writer.WriteAsync(Pattern.Bytes(50, 100), _stop);
        Assert.Equal(150, writer.Position);
        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(150), File.ReadAllBytes(path));
    }

    [Fact]
    public async Task Create_HandleThatAppends_KnowsWhereItsBytesGo()
    {
        ChildProcess.SkipUnlessLinux("bash");

        // Bash has opened it with O_APPEND; the child's Position is told at the end of each line.
        string path = _folder.File("f", "header\n"u8.ToArray());
        (int status, string output, string error) = await ChildProcess.RunAsync($"{ChildProcess.Command("handle", "3")} 3>>'{path}'");
        Assert.True(status == 0, output + error);
        Assert.Equal("header\nhandle\n", await File.ReadAllTextAsync(path, _stop));
        Assert.Equal("7 14\n", output);
    }

    [Fact]
    public async Task FlushAsync_ManyWhileAWriteIsStuck_ShareNoMoreThan4KiBAWrite()
    {
        using ManualResetEventSlim gate = new();
        RecordedCalls calls = new()
        {
            SyncError = _ =>
            {
                gate.Wait(CancellationToken.None);
                return 0;
            },
        };
        string path = _folder.File("f");
        SafeFileHandle handle = File.OpenHandle(path, FileMode.CreateNew, FileAccess.Write, FileShare.ReadWrite);
        calls.KnowNew(handle, path);
        UnixFile file = new(handle, path, FileProperties.Of(handle, path), calls) { Appends = true };
        FilePipeWriter writer = FilePipeWriter.Create(file, new(), leaveOpen: false, isOpenedByPath: true);

        // A sync holds up the writes, and these flushes gather behind it: many that share writes, one that is longer, and many more.
        Task first = writer.FlushAsync(FlushGuarantee.Durable, _stop).AsTask();
        int index = 0;
        foreach (int length in Enumerable.Repeat(300, 100).Append(9000).Concat(Enumerable.Repeat(700, 50)))
        {
            await writer.WriteAsync(Pattern.Bytes(length, index), _stop);
            index += length;
        }

        gate.Set();
        await first;
        await writer.CompleteAsync();
        int[] writes = [.. calls.Calls.OfType<FileCall.Write>().Select(write => write.Bytes.Length)];
        Assert.Equal(index, writes.Sum());
        Assert.Contains(9000, writes);
        Assert.All(writes, length => Assert.True(length is 9000 or <= 4096, $"{length} bytes"));
        Assert.InRange(writes.Length, 1, 30);
    }

    /// <summary>A serializer that asks for much and takes little leaves each of its pieces in memory of its own.</summary>
    [Theory]
    [InlineData(300, 1), InlineData(256, 256), InlineData(255, 257)]
    public async Task FlushAsync_OfManyPiecesThatHaveAskedForMuch_IsOneWrite(int pieces, int length)
    {
        ChildProcess.SkipUnlessLinux();
        ScriptedCalls calls = new();
        string path = _folder.File("f");
        FilePipeWriter writer = Append(calls, path, new() { FlushGuarantee = FlushGuarantee.Written });
        Fill(writer, 0, pieces, length);
        await writer.FlushAsync(_stop);
        Assert.Equal(1, calls.Writes);
        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(pieces * length), File.ReadAllBytes(path));
    }

    /// <summary>The write takes no more segments, and is not to end within the last flush.</summary>
    [Fact]
    public async Task FlushAsync_MoreSegmentsThanAWriteTakes_EndsTheWriteBetweenTwoFlushes()
    {
        ChildProcess.SkipUnlessLinux();
        using ManualResetEventSlim gate = new();
        List<long> lengths = [];
        string path = _folder.File("f");
        ScriptedCalls calls = new()
        {
            OnWrite = _ =>
            {
                gate.Wait(_stop);
                lengths.Add(new FileInfo(path).Length);
                return null;
            },
        };
        FilePipeWriter writer = Append(calls, path, new());
        const int Flushes = 260;
        Fill(writer, 0, 1, 1);
        await writer.FlushAsync(_stop);
        for (int i = 0; i < Flushes; i++)
        {
            bool isLong = i == 255;
            Fill(writer, writer.Position, isLong ? 2 : 1, isLong ? 300 : 1);
            await writer.FlushAsync(_stop);
        }

        gate.Set();
        await writer.CompleteAsync();
        byte[] content = File.ReadAllBytes(path);
        Assert.Equal(Pattern.Bytes(1 + Flushes - 1 + 600), content);

        // The long one begins behind one byte and 255 others.
        Assert.DoesNotContain(lengths, static length => length is > 256 and < 856);
    }

    /// <summary>A pool that flushes the writer hands over the bytes that were to be moved, and they are being written.</summary>
    [Fact]
    public async Task GetMemory_PoolFlushesTheWriterMeanwhile_KeepsTheMemoryOfTheWriteThatRuns()
    {
        ChildProcess.SkipUnlessLinux();
        using Gate gate = new();
        ScriptedCalls calls = new() { OnWrite = gate.Hold };
        FilePipeWriter? flushed = null;
        HostilePool pool = new() { OnCall = part => _ = part == CheckedPool.Part.Rent ? flushed?.FlushAsync(_stop).AsTask() : null };
        string path = _folder.File("f");
        FilePipeWriter writer = Append(calls, path, new() { Pool = pool });
        Fill(writer, 0, 1, 100);
        flushed = writer;
        Pattern.Fill(writer.GetSpan(100_000)[..200], 100);
        writer.Advance(200);
        flushed = null;
        gate.Open();
        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(300), File.ReadAllBytes(path));
        Assert.Equal((0, 0), (pool.Rented, pool.ReturnedTwice));
    }

    private static FilePipeWriter Append(ScriptedCalls calls, string path, FilePipeWriterOptions options)
    {
        SafeFileHandle handle = File.OpenHandle(path, FileMode.CreateNew, FileAccess.Write, FileShare.ReadWrite);
        UnixFile file = new(handle, path, FileProperties.Of(handle, path), calls) { Appends = true };
        Assert.True(LibcCalls.ChangeFlags(handle, set: Libc.O_APPEND) >= 0);
        return FilePipeWriter.Create(file, options, leaveOpen: false, isOpenedByPath: true, calls.Inline);
    }

    private static void Fill(FilePipeWriter writer, long position, int pieces, int length)
    {
        for (int i = 0; i < pieces; i++, position += length)
        {
            Pattern.Fill(writer.GetSpan(WriteQueue.MaxWholeFlush)[..length], position);
            writer.Advance(length);
        }
    }

    [Fact]
    public async Task CopyToAsync_OfMuchIntoAFileThatOthersAppendTo_PositionIsBehindTheOwnBytes()
    {
        ChildProcess.SkipUnlessLinux();
        string path = _folder.File("f", Pattern.Bytes(10));
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Mode = FileMode.Append, Share = FileShare.ReadWrite });
        File.AppendAllText(path, new string('x', 1000));
        using PooledMemoryStream content = new();
        content.Write(Pattern.Bytes(300_000));
        content.Position = 0;
        await content.CopyToAsync(writer, _stop);
        await writer.FlushAsync(FlushGuarantee.Written, _stop);
        Assert.Equal(301_010, writer.Position);
        await writer.CompleteAsync();
    }

    [Fact]
    public async Task GetMemory_PortableAppenderWithAPoolAndAbortFromAnotherThread_NeverTouchesMemoryThatWasGivenBack()
    {
        string path = _folder.File("f");
        for (int round = 0; round < 300; round += Rounds.Of(6, 1))
        {
            CheckedPool pool = new(100_000);
            FilePipeWriter writer = FilePipeWriter.Create(
                path, new() { Mode = FileMode.Append, Pool = pool, Backend = FilePipeBackend.Portable });
            using Barrier barrier = new(2);
            Task aborting = Task.Run(() =>
            {
                barrier.SignalAndWait(CancellationToken.None);
                Thread.SpinWait(round * 5);
                writer.Abort();
            }, _stop);
            try
            {
                // The second piece begins with the bytes of the first.
                writer.GetSpan(60_000)[..60_000].Fill(1);
                writer.Advance(60_000);
                barrier.SignalAndWait(_stop);
                for (int i = 0; i < 20; i++)
                {
                    Memory<byte> room = writer.GetMemory(50_000);
                    room.Span[..50_000].Fill(1);
                    writer.Advance(1);
                }
            }
            catch (InvalidOperationException)
            {
            }

            await aborting;
            await writer.CompleteAsync();
            Assert.Equal(0, pool.ReturnedTwice);
        }
    }
}
