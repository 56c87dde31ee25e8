namespace FilePipelines.Tests;

/// <summary>What <see cref="PooledMemoryStream"/> promises beyond <see cref="MemoryStream"/>, and where the two differ.</summary>
public sealed class PooledMemoryStreamTests : FileTests
{
    public static TheoryData<string> Uses => [.. s_uses.Keys];

    private static readonly Dictionary<string, Func<PooledMemoryStream, object?>> s_uses = new()
    {
        ["Length"] = s => s.Length,
        ["Position"] = s => s.Position,
        ["set Position"] = s => s.Position = 1,
        ["Sequence"] = s => s.Sequence.Length,
        ["Write span"] = s => Do(() => s.Write([1])),
        ["Write empty span"] = s => Do(() => s.Write([])),
        ["Write array"] = s => Do(() => s.Write([1], 0, 1)),
        ["WriteByte"] = s => Do(() => s.WriteByte(1)),
        ["WriteAsync"] = s => s.WriteAsync(new byte[1]).AsTask(),
        ["WriteAsync array"] = s => s.WriteAsync([1], 0, 1),
        ["Read span"] = s => s.Read(new byte[1].AsSpan()),
        ["Read array"] = s => s.Read(new byte[1], 0, 1),
        ["ReadByte"] = s => s.ReadByte(),
        ["ReadAsync"] = s => s.ReadAsync(new byte[1]).AsTask(),
        ["ReadAsync array"] = s => s.ReadAsync(new byte[1], 0, 1),
        ["Seek"] = s => s.Seek(0, SeekOrigin.Begin),
        ["SetLength"] = s => Do(() => s.SetLength(0)),
        ["Flush"] = s => Do(s.Flush),
        ["FlushAsync"] = s => s.FlushAsync(),
        ["ToArray"] = s => s.ToArray(),
        ["WriteTo"] = s => Do(() => s.WriteTo(Stream.Null)),
        ["CopyTo"] = s => Do(() => s.CopyTo(Stream.Null)),
        ["CopyToAsync stream"] = s => s.CopyToAsync(Stream.Null),
        ["CopyToAsync pipe"] = s => s.CopyToAsync(PipeWriter.Create(Stream.Null)),
        ["GetSpan"] = s => s.GetSpan().Length,
        ["GetMemory"] = s => s.GetMemory().Length,
        ["Advance"] = s => Do(() => s.Advance(0)),
        ["WriteInt32LittleEndian"] = s => Do(() => s.WriteInt32LittleEndian(1)),
        ["WriteString"] = s => Do(() => s.WriteString("text")),
    };

    [Theory]
    [MemberData(nameof(Uses))]
    public async Task AnyUse_AfterDispose_ThrowsObjectDisposedException(string use)
    {
        foreach (int length in (int[])[0, 10, 100_000])
        {
            PooledMemoryStream stream = new();
            Assert.True(stream is { CanRead: true, CanSeek: true, CanWrite: true, CanTimeout: false });
            stream.Write(Pattern.Bytes(length));
            stream.Dispose();
            stream.Dispose();
            Assert.False(stream.CanRead || stream.CanSeek || stream.CanWrite);
            await Assert.ThrowsAsync<ObjectDisposedException>(async () =>
            {
                if (s_uses[use](stream) is Task task)
                {
                    await task;
                }
            });
        }
    }

    [Fact]
    public void ForgottenStream_IsCollected()
    {
        WeakReference stream = Forget();
        for (int i = 0; i < 10 && stream.IsAlive; i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }

        Assert.False(stream.IsAlive);

        [MethodImpl(MethodImplOptions.NoInlining)]
        static WeakReference Forget()
        {
            PooledMemoryStream stream = new();
            stream.Write(Pattern.Bytes(3_000_000));
            stream.Position = 1;
            Assert.Equal(Pattern.At(1), stream.ReadByte());
            return new WeakReference(stream);
        }
    }

    [Fact]
    public void GetSpan_AskedAgainForMore_KeepsTheOrder()
    {
        using PooledMemoryStream stream = new();
        byte[] data = Pattern.Bytes(3_500_000);
        int done = 0;
        foreach (int size in (int[])[10, 5000, 100, 70_000, 1_200_000, 1, 2_000_000])
        {
            stream.GetSpan(size / 2).Clear();
            stream.GetSpan(size / 2 * 3).Clear();
            Memory<byte> memory = stream.GetMemory(size);
            Assert.True(memory.Length >= size);
            data.AsSpan(done, size).CopyTo(memory.Span);
            stream.Advance(size);
            done += size;
        }

        Assert.Equal(data[..done], stream.ToArray());
        Assert.Equal(data[..done], stream.Sequence.ToArray());
        stream.Position = 0;
        byte[] read = new byte[done];
        stream.ReadExactly(read);
        Assert.Equal(data[..done], read);
    }

    [Fact]
    public void Advance_FurtherThanTheMemory_Throws()
    {
        using PooledMemoryStream stream = new();
        Assert.Throws<ArgumentOutOfRangeException>(() => stream.Advance(1));
        int length = stream.GetSpan().Length;
        Assert.Throws<ArgumentOutOfRangeException>(() => stream.Advance(length + 1));
        Assert.Throws<ArgumentOutOfRangeException>(() => stream.Advance(-1));
        Assert.Throws<ArgumentOutOfRangeException>(() => stream.GetSpan(-1));
        Assert.Throws<ArgumentOutOfRangeException>(() => stream.GetMemory(-1));
        stream.Write(Pattern.Bytes(100));
        stream.Position = 50;
        int scratch = stream.GetSpan(10).Length;
        Assert.Throws<ArgumentOutOfRangeException>(() => stream.Advance(scratch + 1));
        Assert.Throws<ArgumentOutOfRangeException>(() => stream.Advance(-1));
        Assert.Equal(Pattern.Bytes(100), stream.ToArray());
    }

    [Fact]
    public void Seek_FarAndOftenInManySegments_FindsEveryByte()
    {
        using PooledMemoryStream stream = new();
        stream.Write(Pattern.Bytes(20_000_000));
        Random random = new(1);
        for (int i = 0; i < 2000; i++)
        {
            long place = random.NextInt64(stream.Length);
            stream.Position = place;
            Assert.Equal(Pattern.At(place), stream.ReadByte());
            if (i % 500 == 0)
            {
                // The index that seeks use has to follow when the chain changes.
                stream.SetLength(stream.Length - 1_000_000);
                stream.Seek(0, SeekOrigin.End);
                stream.Write(Pattern.Bytes(2_000_000, stream.Length));
            }
        }
    }

    [Theory]
    [InlineData(long.MaxValue - 2)]
    [InlineData(1L << 50)]
    public void WriteOrSetLength_FartherThanMemoryReaches_ThrowsAndChangesNothing(long place)
    {
        using PooledMemoryStream stream = new();
        stream.Write(Pattern.Bytes(10));
        Assert.ThrowsAny<OutOfMemoryException>(() => stream.SetLength(place));
        stream.Position = place;
        Assert.ThrowsAny<Exception>(() => stream.Write(new byte[10]));
        Assert.ThrowsAny<Exception>(() => stream.WriteByte(1));
        Assert.Equal(0, stream.Read(new byte[10]));
        Assert.Throws<IOException>(() => stream.Seek(long.MaxValue, SeekOrigin.Current));
        Assert.Equal(place, stream.Position);
        Assert.Equal(Pattern.Bytes(10), stream.ToArray());
    }

    [Fact]
    public async Task AsyncMembers_WithACanceledToken_DoNothing()
    {
        using PooledMemoryStream stream = new();
        stream.Write(Pattern.Bytes(10));
        stream.Position = 0;
        CancellationToken canceled = new(canceled: true);
        foreach (Func<Task> use in (Func<Task>[])
        [
            () => stream.ReadAsync(new byte[1], canceled).AsTask(),
            () => stream.ReadAsync(new byte[1], 0, 1, canceled),
            () => stream.WriteAsync(new byte[1], canceled).AsTask(),
            () => stream.WriteAsync(new byte[1], 0, 1, canceled),
            () => stream.FlushAsync(canceled),
            () => stream.CopyToAsync(Stream.Null, canceled),
            () => stream.CopyToAsync(PipeWriter.Create(Stream.Null), canceled),
        ])
        {
            Task task = use();
            Assert.True(task.IsCanceled);
            await Assert.ThrowsAnyAsync<OperationCanceledException>(() => task);
        }

        Assert.Equal(0, stream.Position);
        Assert.Equal(Pattern.Bytes(10), stream.ToArray());
    }

    [Theory]
    [InlineData(0, 0)]
    [InlineData(100, 0)]
    [InlineData(100, 40)]
    [InlineData(3_000_000, 0)]
    [InlineData(3_000_000, 1_234_567)]
    [InlineData(100, 100)]
    [InlineData(100, 200)]
    public async Task CopyToAsync_FilePipeWriter_WritesWhatIsBehindThePosition(int length, int position)
    {
        using PooledMemoryStream stream = new();
        stream.Write(Pattern.Bytes(length));
        stream.Position = position;
        string path = _folder.File("f");
        FilePipeWriter writer = FilePipeWriter.Create(path);
        await writer.WriteAsync("head"u8.ToArray(), _stop);
        await stream.CopyToAsync(writer, _stop);
        Assert.Equal(Math.Max(position, length), stream.Position);
        await writer.WriteAsync("tail"u8.ToArray(), _stop);
        await writer.CompleteAsync();
        int rest = Math.Max(0, length - position);
        Assert.Equal([.. "head"u8, .. Pattern.Bytes(rest, position), .. "tail"u8], File.ReadAllBytes(path));
        Assert.Equal(Pattern.Bytes(length), stream.ToArray());
    }

    [Theory]
    [InlineData(FlushGuarantee.WriteBehind, 0), InlineData(FlushGuarantee.Durable, 1)]
    public async Task CopyToAsync_FilePipeWriter_SyncsAtMostOnce(FlushGuarantee guarantee, int syncs)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "It scripts the Unix system calls.");
        using PooledMemoryStream stream = new();
        stream.Write(Pattern.Bytes(5_000_000));
        stream.Position = 1000;
        string path = _folder.File("f");

        // Short writes are gone on with.
        ScriptedCalls calls = new() { OnWrite = call => call switch { 2 => 150_000, 3 => 7, _ => null } };
        FilePipeWriter writer = calls.Write(path, new() { FlushGuarantee = guarantee });
        Pattern.Bytes(1000).CopyTo(writer.GetSpan(1000));
        writer.Advance(1000);
        await stream.CopyToAsync(writer, _stop);
        Assert.Equal(syncs, calls.Syncs);
        Assert.Equal(5_000_000, writer.Position);
        Assert.Equal(0, writer.UnflushedBytes);
        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(5_000_000), File.ReadAllBytes(path));
        Assert.Equal(Pattern.Bytes(5_000_000), stream.ToArray());
    }

    [Fact]
    public async Task CopyToAsync_FilePipeWriterThatFails_IsTheWritersErrorAndLeavesAnUnbrokenPrefix()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "It scripts the Unix system calls.");
        const int NoSpace = 28;
        using PooledMemoryStream stream = new();
        stream.Write(Pattern.Bytes(3_000_000));
        stream.Position = 0;
        string path = _folder.File("f");
        ScriptedCalls calls = new() { OnWrite = call => call == 1 ? 1_234_567 : -NoSpace };
        FilePipeWriter writer = calls.Write(path);
        IOException error = await Assert.ThrowsAsync<IOException>(async () =>
        {
            await stream.CopyToAsync(writer, _stop);
            await writer.FlushAsync(FlushGuarantee.Written, _stop);
        });
        Assert.Contains(path, error.Message, StringComparison.Ordinal);
        await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync());
        byte[] written = File.ReadAllBytes(path);
        Assert.InRange(written.Length, 1, 2_999_999);
        Assert.Equal(Pattern.Bytes(written.Length), written);
    }

    [Fact]
    public async Task CopyToAsync_FilePipeWriterThatIsCompleted_Throws()
    {
        using PooledMemoryStream stream = new();
        stream.Write(Pattern.Bytes(3_000_000));
        stream.Position = 0;
        FilePipeWriter writer = FilePipeWriter.Create(_folder.File("f"));
        await writer.CompleteAsync();
        await Assert.ThrowsAsync<InvalidOperationException>(() => stream.CopyToAsync(writer, _stop));
    }

    [Fact]
    public async Task CopyToAsync_PipeWhoseReaderIsGone_StopsBehindTheSegmentThatWasFlushed()
    {
        using PooledMemoryStream stream = new();
        stream.Write(Pattern.Bytes(1_000_000));
        stream.Position = 0;
        Pipe pipe = new();
        await pipe.Reader.CompleteAsync();
        await stream.CopyToAsync(pipe.Writer, _stop);
        Assert.InRange(stream.Position, 1, 999_999);
    }

    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task CopyToAsync_PipeAfterACanceledCopy_RepeatsNothing(bool byToken)
    {
        using PooledMemoryStream stream = new();
        stream.Write(Pattern.Bytes(3_000_000));
        stream.Position = 0;
        Pipe pipe = new(new PipeOptions(pauseWriterThreshold: 300_000, resumeWriterThreshold: 150_000));
        using CancellationTokenSource canceled = CancellationTokenSource.CreateLinkedTokenSource(_stop);
        Task copy = stream.CopyToAsync(pipe.Writer, canceled.Token);
        Assert.False(copy.IsCompleted);
        if (byToken)
        {
            await canceled.CancelAsync();
        }
        else
        {
            pipe.Writer.CancelPendingFlush();
        }

        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => copy.WaitAsync(Eventually.Limit, _stop));
        Assert.InRange(stream.Position, 300_000, 2_999_999);
        Task<byte[]> received = ReadToEndAsync(pipe.Reader);
        await stream.CopyToAsync(pipe.Writer, _stop);
        await pipe.Writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(3_000_000), await received);
    }

    [Theory]
    [InlineData("length"), InlineData("gap")]
    public async Task SetLengthOrWrite_WhenMemoryRunsOut_LeavesContentAndPosition(string how)
    {
        ChildProcess.SkipUnlessLinux();
        (int exitCode, string output, string error) = await ChildProcess.RunAsync(
            "DOTNET_GCHeapHardLimit=0x6000000 " + ChildProcess.Command("memory", how));
        Assert.True(exitCode == 0, output + error);
        Assert.Equal("OutOfMemoryException, 1000000 bytes, position " + (how == "gap" ? "700000000" : "5"), output.Trim());
    }

    [Fact]
    public async Task CopyToAsync_DestinationFails_IsTheTasksError()
    {
        using PooledMemoryStream stream = new();
        stream.WriteByte(1);
        stream.Position = 0;
        using MemoryStream readOnly = new([], writable: false);
        await Assert.ThrowsAsync<NotSupportedException>(() => stream.CopyToAsync(readOnly, _stop));
    }

    private static async Task<byte[]> ReadToEndAsync(PipeReader reader)
    {
        using MemoryStream content = new();
        await reader.CopyToAsync(content);
        return content.ToArray();
    }

    private static object? Do(Action action)
    {
        action();
        return null;
    }
}
