using System.IO.Compression;
using System.Net;
using System.Net.Sockets;
using System.Text.Json;

namespace FilePipelines.Tests;

/// <summary>Files of every kind: FIFOs, devices, /proc, sparse, growing, truncated; and what is no file.</summary>
public sealed class ReaderFileKindTests : FileTests
{
    [Fact]
    public async Task Fifo_HundredIdleOnes_HoldNoThreadOfThePool()
    {
        List<(FilePipeReader Reader, FileStream Source, Task<ReadResult> Read)> pipes = [];
        for (int i = 0; i < 100; i++)
        {
            string path = Fifo.Make(_folder, $"fifo{i}");
            FileStream source = new(Fifo.OpenBothWays(path), FileAccess.Write, 0);
            FilePipeReader reader = FilePipeReader.Create(path);
            pipes.Add((reader, source, reader.ReadAsync(_stop).AsTask()));
        }

        // With a blocked thread each, this work item would wait for the pool to grow, one thread a second or so.
        await Task.Run(() => { }, _stop).WaitAsync(TimeSpan.FromSeconds(20), _stop);
        foreach ((FilePipeReader reader, FileStream source, Task<ReadResult> read) in pipes)
        {
            source.Write([1, 2, 3]);
            Assert.Equal([1, 2, 3], (await read.WaitAsync(Eventually.Limit, _stop)).Buffer.ToArray());
            await reader.CompleteAsync();
            await source.DisposeAsync();
        }
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Socket_OtherSideIsReset_IsAnErrorAndNotTheEnd(bool waits)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux only: a socket is a descriptor there.");
        (Socket mine, Socket other) = await ConnectAsync();
        using SafeFileHandle handle = new(mine.Handle, ownsHandle: false);
        FilePipeReader reader = FilePipeReader.Create(handle, new() { LeaveOpen = true });
        Task<ReadResult>? pending = waits ? reader.ReadAsync(_stop).AsTask() : null;
        other.Close(timeout: 0);
        if (!waits)
        {
            await Eventually.TrueAsync(() => mine.Poll(0, SelectMode.SelectRead));
        }

        IOException error =
            await Assert.ThrowsAsync<IOException>(() => (pending ?? reader.ReadAsync(_stop).AsTask()).WaitAsync(Eventually.Limit, _stop));
        Assert.Contains("reset", error.Message, StringComparison.OrdinalIgnoreCase);
        await reader.CompleteAsync();
        mine.Dispose();
    }

    [Fact]
    public async Task Socket_OtherSideIsReset_WriteTellsThat()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux only: a socket is a descriptor there.");
        (Socket mine, Socket other) = await ConnectAsync();
        using SafeFileHandle handle = new(mine.Handle, ownsHandle: false);
        FilePipeWriter writer = FilePipeWriter.Create(handle, new() { LeaveOpen = true, FlushGuarantee = FlushGuarantee.Written });
        await writer.WriteAsync(new byte[10], _stop);
        other.Close(timeout: 0);
        await Eventually.TrueAsync(() => mine.Poll(0, SelectMode.SelectRead));
        IOException error =
            await Assert.ThrowsAsync<IOException>(() => writer.WriteAsync(new byte[10], _stop).AsTask().WaitAsync(Eventually.Limit, _stop));
        Assert.Contains("reset", error.Message, StringComparison.OrdinalIgnoreCase);
        await Assert.ThrowsAsync<IOException>(() => writer.CompleteAsync().AsTask());
        mine.Dispose();
    }

    [Fact]
    public async Task Device_Zero_GivesAsManyBytesAsAsked()
    {
        Assert.SkipUnless(File.Exists("/dev/zero"), "There is no /dev/zero.");
        FilePipeReader reader = FilePipeReader.Create("/dev/zero", new() { Length = 100_000 });
        MemoryStream copied = new();
        await reader.CopyToAsync(copied, _stop);
        Assert.Equal(100_000, copied.Length);
        Assert.Equal(100_000, reader.Position);
        await reader.CompleteAsync();
        Assert.Throws<NotSupportedException>(() => FilePipeReader.Create("/dev/zero", new() { Offset = 1 }));
        reader = FilePipeReader.Create("/dev/null");
        Assert.True((await reader.ReadAsync(_stop)).IsCompleted);
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task Proc_FilesThatSayZero_AreReadToTheirEnd()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "There is no /proc.");
        FilePipeReader reader = FilePipeReader.Create("/proc/self/maps", new() { BufferSize = 512 });
        using StreamReader text = new(reader.AsStream());
        string content = await text.ReadToEndAsync(_stop);
        Assert.Contains("[stack]", content, StringComparison.Ordinal);
        Assert.EndsWith("\n", content, StringComparison.Ordinal);
    }

    [Fact]
    public async Task SparseFile_PastFourGiB_IsReadAtTheRightPlace()
    {
        string path = _folder.File("sparse");
        const long Far = (5L << 30) + 12_345;
        using (SafeFileHandle handle = File.OpenHandle(path, FileMode.CreateNew, FileAccess.Write))
        {
            Assert.SkipWhen(OperatingSystem.IsWindows(), "Wine does not make sparse files: this one would take 5 GiB.");
            RandomAccess.Write(handle, Pattern.Bytes(1000, Far), Far);
        }

        FilePipeReader reader = FilePipeReader.Create(path, new() { Offset = Far - 100_000 });
        ReadResult result = await reader.ReadAtLeastAsync(101_000, _stop);
        byte[] content = result.Buffer.ToArray();
        Assert.Equal(101_000, content.Length);
        Assert.Equal(-1, content.AsSpan(0, 100_000).IndexOfAnyExcept((byte)0));
        Assert.Equal(-1, Pattern.FirstDifference(content.AsSpan(100_000), Far));
        reader.AdvanceTo(result.Buffer.End);
        Assert.Equal(Far + 1000, reader.Position);
        Assert.True((await reader.ReadAsync(_stop)).IsCompleted);
        await reader.CompleteAsync();
    }

    [Theory]
    [InlineData(0), InlineData(150_000)]
    public async Task TruncatedFile_EndsThereWithoutAnException(int newLength)
    {
        string path = _folder.File("f", Pattern.Bytes(1_000_000));
        FilePipeReader reader = FilePipeReader.Create(path, new() { Share = FileShare.ReadWrite, BufferSize = 1000 });
        ReadResult result = await reader.ReadAsync(_stop);
        long first = result.Buffer.Length;
        reader.AdvanceTo(result.Buffer.End);
        PatternFile.SetLength(path, newLength);

        result = await reader.ReadAtLeastAsync(1_000_000, _stop);
        Assert.True(result.IsCompleted);
        Assert.Equal(Math.Max(0, newLength - first), result.Buffer.Length);
        await reader.CompleteAsync();
    }

    [Fact]
    public void Create_NoSuchThing_ThrowsTypedErrorsThatNameIt()
    {
        string missing = _folder.File("missing");
        Assert.Equal(missing, Assert.Throws<FileNotFoundException>(() => FilePipeReader.Create(missing)).FileName);
        string lost = Path.Combine(missing, "f");
        Assert.Contains(
            lost, Assert.Throws<DirectoryNotFoundException>(() => FilePipeReader.Create(lost)).Message, StringComparison.Ordinal);
        Assert.Contains(_folder.Path, Assert.Throws<UnauthorizedAccessException>(() => FilePipeReader.Create(_folder.Path)).Message,
            StringComparison.Ordinal);
        Assert.Throws<ArgumentException>(() => FilePipeReader.Create(""));
        Assert.Throws<ArgumentException>(() => FilePipeReader.Create("a\0b"));
        Assert.Throws<ArgumentNullException>(() => FilePipeReader.Create((string)null!));
        Assert.Throws<ArgumentNullException>(() => FilePipeReader.Create((SafeFileHandle)null!));
        Assert.Throws<ArgumentException>(() => FilePipeReader.Create(new SafeFileHandle()));
    }

    [Theory]
    [InlineData(FileShare.None)]
    [InlineData(FileShare.Read)]
    [InlineData(FileShare.Write)]
    [InlineData(FileShare.ReadWrite)]
    [InlineData(FileShare.ReadWrite | FileShare.Delete)]
    public async Task Create_OfAFileThatOthersHaveOpen_AnswersAndLocksAsFileStreamDoes(FileShare share)
    {
        string path = _folder.File("f", [1]);
        foreach (FileAccess access in Enum.GetValues<FileAccess>())
        {
            foreach (FileShare others in new[] { FileShare.None, FileShare.Read, FileShare.ReadWrite })
            {
                // The others first.
                using (new FileStream(path, FileMode.Open, access, others))
                {
                    FilePipeReader? second = null;
                    Assert.Equal(Refusal(() => new FileStream(path, FileMode.Open, FileAccess.Read, share).Dispose()),
                        Refusal(() => second = FilePipeReader.Create(path, new() { Share = share })));
                    second?.Complete();
                }

                // The reader first.
                string? expected;
                using (new FileStream(path, FileMode.Open, FileAccess.Read, share))
                {
                    expected = Refusal(() => new FileStream(path, FileMode.Open, access, others).Dispose());
                }

                FilePipeReader reader = FilePipeReader.Create(path, new() { Share = share });
                Assert.Equal(expected, Refusal(() => new FileStream(path, FileMode.Open, access, others).Dispose()));
                await reader.CompleteAsync();
            }
        }

        static string? Refusal(Action open) => Record.Exception(open) is { } e ? $"{e.GetType()} {e.HResult} {e.Message}" : null;
    }

    [Fact]
    public async Task Create_OffsetOfAFifo_ThrowsAndLeavesOnlyTheCallersHandleOpen()
    {
        using Fifo fifo = Fifo.Create(_folder);
        using (SafeFileHandle readEnd = File.OpenHandle(fifo.Path))
        {
            Assert.Contains(
                fifo.Path, Assert.Throws<NotSupportedException>(() => FilePipeReader.Create(readEnd, new() { Offset = 1 })).Message,
                StringComparison.Ordinal);
            Assert.Throws<NotSupportedException>(() => FilePipeReader.Create(fifo.Path, new() { Offset = 1 }));
            Assert.False(readEnd.IsClosed);
            using SafeFileHandle writeEnd = File.OpenHandle(fifo.Path, FileMode.Open, FileAccess.Write);
            Assert.Throws<NotSupportedException>(() => FilePipeWriter.Create(writeEnd, new() { Offset = 1 }));
            Assert.Throws<NotSupportedException>(() => FilePipeWriter.Create(fifo.Path, new() { Mode = FileMode.Open, Offset = 1 }));
            Assert.False(writeEnd.IsClosed);
        }

        // One is the Fifo's own.
        await Eventually.TrueAsync(() => OpenHandles.Of(fifo.Path) == 1);
    }

    [Fact]
    public async Task AsStream_WorksWithTheStreamsOfOthers()
    {
        string text = string.Concat(Enumerable.Range(0, 20_000).Select(i => $"{{\"n\":{i}}}\n"));
        string path = _folder.File("f.gz");
        using (GZipStream zip = new(File.Create(path), CompressionLevel.Fastest))
        {
            zip.Write(Encoding.UTF8.GetBytes(text));
        }

        using StreamReader unzipped = new(
            new GZipStream(FilePipeReader.Create(path, new() { BufferSize = 777 }).AsStream(), CompressionMode.Decompress));
        Assert.Equal(text, await unzipped.ReadToEndAsync(_stop));

        string plain = _folder.File("f.ndjson", Encoding.UTF8.GetBytes(text));
        int next = 0;
        FilePipeReader reader = FilePipeReader.Create(plain, new() { BufferSize = 100 });
        await foreach (JsonElement element
            in JsonSerializer.DeserializeAsyncEnumerable<JsonElement>(reader, topLevelValues: true, cancellationToken: _stop))
        {
            Assert.Equal(next++, element.GetProperty("n").GetInt32());
        }

        await reader.CompleteAsync();
        Assert.Equal(20_000, next);

        // The blocking way, too.
        using Stream stream = FilePipeReader.Create(plain).AsStream();
        Assert.Equal('{', stream.ReadByte());
    }

    private async Task<(Socket Mine, Socket Other)> ConnectAsync()
    {
        using Socket listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen();
        Socket mine = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        await mine.ConnectAsync(listener.LocalEndPoint!, _stop);
        return (mine, await listener.AcceptAsync(_stop));
    }

    /// <summary>/dev/kmsg answers EPIPE for messages that were overwritten before they were read, and then goes on.</summary>
    [Fact]
    public async Task ReadAsync_BrokenPipeOfADevice_IsAnErrorAndNotTheEnd()
    {
        ScriptedCalls calls = new() { OnRead = _ => -Libc.EPIPE, OnReadNoWait = _ => -Libc.EPIPE };
        FilePipeReader device = calls.Read("/dev/zero");
        Assert.Equal(Libc.EPIPE, (await Assert.ThrowsAsync<IOException>(async () => await device.ReadAsync(_stop))).HResult);
        await device.CompleteAsync();
        using Fifo fifo = Fifo.Create(_folder);
        fifo.Write([1]);
        FilePipeReader pipe = calls.Read(fifo.Path);
        Assert.True((await pipe.ReadAsync(_stop)).IsCompleted);
        await pipe.CompleteAsync();
    }
}
