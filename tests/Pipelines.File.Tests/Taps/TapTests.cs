using System.Security.Cryptography;

namespace FilePipelines.Tests;

/// <summary>A tap sees each byte once and in order, and the pipe behind it does what it would do without.</summary>
public sealed class TapTests : FileTests
{
    private const int Length = 100_000;

    public enum Verb
    {
        Read,
        ReadAtLeast,
        TryRead,
        CancelAndRead,
    }

    public sealed record ReadAct(Verb Verb, int Size, int Consumed, int Examined);

    [Fact]
    [Trait("Category", FuzzTime.Category)]
    public void TappedReader_AnyMixtureOfReads_DoesWhatThePlainOneDoesAndSeesWhatIsConsumed()
    {
        Gen<ReadAct> act = Gen.Zip(
            Gen.Elements(Enum.GetValues<Verb>()), Gen.Zip(Gen.Choose(0, 20_000), Gen.Zip(Gen.Choose(0, 100), Gen.Choose(0, 100))))
            .Select(t => new ReadAct(t.Item1, t.Item2.Item1, t.Item2.Item2.Item1, Math.Max(t.Item2.Item2.Item1, t.Item2.Item2.Item2)));
        FuzzTime.Check(Prop.ForAll(Gen.ListOf(act).Select(acts => acts.ToArray()).ToArbitrary(), CheckReads), cases: 50, endSize: 40);
    }

    private static void CheckReads(ReadAct[] acts)
    {
        byte[] content = Pattern.Bytes(Length);
        TestPipeReader plain = new(content) { PieceSize = 7001, SegmentSize = 1000 };
        TestPipeReader inner = new(content) { PieceSize = 7001, SegmentSize = 1000 };
        List<byte> seen = [];
        PipeReader tapped = inner.Tap(span => seen.AddRange(span));
        foreach (ReadAct act in acts)
        {
            Assert.Equal(Play(plain, act), Play(tapped, act));
            Assert.Equal(plain.Consumed, inner.Consumed);
            Assert.Equal(content[..(int)inner.Consumed], seen);
        }

        static string Play(PipeReader reader, ReadAct act)
        {
            ReadResult result;
            switch (act.Verb)
            {
                case Verb.TryRead:
                    if (!reader.TryRead(out result))
                    {
                        return "none";
                    }

                    break;
                case Verb.ReadAtLeast:
                    result = reader.ReadAtLeastAsync(act.Size).AsTask().Result;
                    break;
                default:
                    if (act.Verb == Verb.CancelAndRead)
                    {
                        reader.CancelPendingRead();
                    }

                    result = reader.ReadAsync().AsTask().Result;
                    break;
            }

            long length = result.Buffer.Length;
            byte[] hash = SHA256.HashData(result.Buffer.ToArray());
            reader.AdvanceTo(
                result.Buffer.GetPosition(length * act.Consumed / 100), result.Buffer.GetPosition(length * act.Examined / 100));
            return $"{result.IsCanceled} {result.IsCompleted} {length} {Convert.ToHexString(hash)}";
        }
    }

    [Theory]
    [InlineData("ToPipe")]
    [InlineData("ToFile")]
    [InlineData("ToStream")]
    [InlineData("AsStream")]
    [InlineData("Lines")]
    [InlineData("AsyncLate")]
    public async Task TappedReader_EveryWayToTheEnd_HashesTheWholeFile(string way)
    {
        byte[] content = Pattern.Bytes(Length);
        using IncrementalHash hash = IncrementalHash.CreateHash(HashAlgorithmName.SHA256);
        PipeReader inner = way == "AsyncLate"
            ? new TestPipeReader(content) { PieceSize = 999, IsLate = true }
            : FilePipeReader.Create(_folder.File("f", content), new() { BufferSize = 1000 });
        PipeReader reader = inner.Tap(hash);
        using PooledMemoryStream received = new();
        switch (way)
        {
            case "ToPipe":
                Pipe pipe = new(new PipeOptions(pauseWriterThreshold: 0));
                await reader.CopyToAsync(pipe.Writer, _stop);
                await pipe.Writer.CompleteAsync();
                await pipe.Reader.CopyToAsync(received, _stop);
                break;
            case "ToFile":
                await using (FilePipeWriter copy = FilePipeWriter.Create(Path.Combine(_folder.Path, "copy")))
                {
                    await reader.CopyToAsync(copy, _stop);
                }

                received.Write(File.ReadAllBytes(Path.Combine(_folder.Path, "copy")));
                break;
            case "Lines":
                await foreach (ReadOnlySequence<byte> line in reader.ReadLineSequencesAsync(cancellationToken: _stop))
                {
                    received.Write(line.ToArray());
                }

                received.SetLength(0);
                received.Write(content);
                break;
            case "AsStream":
                await using (Stream stream = reader.AsStream())
                {
                    await stream.CopyToAsync(received, 1234, _stop);
                }

                break;
            default:
                await reader.CopyToAsync(received, _stop);
                break;
        }

        await reader.CompleteAsync();
        Assert.Equal(content, received.ToArray());
        Assert.Equal(SHA256.HashData(content), hash.GetHashAndReset());
    }

    [Fact]
    public async Task TappedReader_CopyOfSegmentsOfWhichSomeAreEmpty_CopiesAllOfThem()
    {
        PooledMemoryStream received = new();
        PipeWriter writer = PipeWriter.Create(received, new StreamPipeWriterOptions(leaveOpen: true));
        List<byte> seen = [];
        PipeReader reader = PipeReader.Create(Piece.Chain([], [1, 2], [], [], [3], [])).Tap(span => seen.AddRange(span));
        try
        {
            await Task.Run(() => reader.CopyToAsync(writer, _stop), _stop).WaitAsync(Eventually.Limit, _stop);
        }
        finally
        {
            // A copy that goes on for ever ends here.
            await reader.CompleteAsync();
        }

        await writer.CompleteAsync();
        Assert.Equal([1, 2, 3], received.ToArray());
        Assert.Equal([1, 2, 3], seen);
    }

    /// <summary>A flush may be a sync, and the destination's memory does not grow with what the reader has buffered.</summary>
    [Theory]
    [InlineData(100_000, 1000, 1), InlineData(1_048_576, 1_048_576, 4)]
    public async Task TappedReader_CopyOfSegments_FlushesOnceForEachReadAndEvery256KiB(int length, int segment, int flushes)
    {
        byte[] content = Pattern.Bytes(length);
        PipeReader reader = PipeReader.Create(Piece.Chain([.. content.Chunk(segment)])).Tap(_ => { });
        WatchedWriter received = new(1 << 20);
        await reader.CopyToAsync(received, _stop);
        await reader.CompleteAsync();
        Assert.Equal(content, received.Received);
        Assert.Equal(flushes, received.Flushes);
    }

    [Fact]
    public async Task TappedReader_CopyThatIsCanceled_RepeatsNothing()
    {
        byte[] content = Pattern.Bytes(Length);
        List<byte> seen = [];
        PipeReader reader = new TestPipeReader(content) { SegmentSize = 1000 }.Tap(span => seen.AddRange(span));
        Pipe pipe = new(new PipeOptions(pauseWriterThreshold: 10_000, resumeWriterThreshold: 5000));
        Task copy = reader.CopyToAsync(pipe.Writer, _stop);
        pipe.Writer.CancelPendingFlush();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => copy.WaitAsync(Eventually.Limit, _stop));
        using PooledMemoryStream received = new();
        Task receiving = pipe.Reader.CopyToAsync(received, _stop);
        await reader.CopyToAsync(pipe.Writer, _stop);
        await pipe.Writer.CompleteAsync();
        await receiving;
        Assert.Equal(content, received.ToArray());
        Assert.Equal(content, seen);
    }

    [Fact]
    public async Task TappedReader_TapThrowsWithinTheBytes_SeesNoneTwice()
    {
        byte[] content = Pattern.Bytes(100);
        List<byte> seen = [];
        bool throws = true;
        TestPipeReader inner = new(content) { SegmentSize = 10 };
        PipeReader reader = inner.Tap(bytes =>
        {
            if (throws && seen.Count == 50)
            {
                throw new TimeoutException("tap");
            }

            seen.AddRange(bytes);
        });
        ReadResult result = await reader.ReadAsync(_stop);
        Assert.Throws<TimeoutException>(() => reader.AdvanceTo(result.Buffer.GetPosition(70)));
        Assert.Equal(0, inner.Consumed);
        throws = false;
        reader.AdvanceTo(result.Buffer.GetPosition(20));
        result = await reader.ReadAsync(_stop);
        Assert.Throws<InvalidOperationException>(() => reader.AdvanceTo(result.Buffer.End, result.Buffer.Start));
        reader.AdvanceTo(result.Buffer.End);
        Assert.Equal(content, seen);
        Assert.Equal(100, inner.Consumed);
        await reader.CompleteAsync();
        Assert.True(inner.IsCompleted);
    }

    [Fact]
    public async Task TappedReader_CopyToAWriterThatThrows_LeavesTheReaderAsItWas()
    {
        List<byte> seen = [];
        Pipe source = new();
        PipeReader reader = source.Reader.Tap(span => seen.AddRange(span));
        await source.Writer.WriteAsync(Pattern.Bytes(10), _stop);
        Pipe completed = new();
        await completed.Writer.CompleteAsync();
        await Assert.ThrowsAsync<InvalidOperationException>(() => reader.CopyToAsync(completed.Writer, _stop));
        Assert.Empty(seen);
        ReadResult result = await reader.ReadAsync(_stop);
        Assert.Equal(Pattern.Bytes(10), result.Buffer.ToArray());
    }

    [Fact]
    public async Task TappedReader_PositionOfAnEarlierRead_IsRefusedByTheReader()
    {
        List<byte> seen = [];
        PipeReader reader = FilePipeReader.Create(_folder.File("f", Pattern.Bytes(100))).Tap(span => seen.AddRange(span));
        ReadResult result = await reader.ReadAsync(_stop);
        SequencePosition earlier = result.Buffer.Start;
        reader.AdvanceTo(result.Buffer.GetPosition(50));
        result = await reader.ReadAsync(_stop);
        Assert.Throws<InvalidOperationException>(() => reader.AdvanceTo(earlier));
        reader.AdvanceTo(result.Buffer.End);
        Assert.Equal(Pattern.Bytes(100), seen);
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task TappedReader_CompletedWithinALoop_SeesNothingMore()
    {
        int seen = 0;
        PipeReader reader = new TestPipeReader("1\n2\n"u8.ToArray()).Tap(bytes => seen += bytes.Length);
        await foreach (ReadOnlySequence<byte> _ in reader.ReadLineSequencesAsync(cancellationToken: _stop))
        {
            await reader.CompleteAsync();
            break;
        }

        Assert.Equal(0, seen);
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task TappedWriter_EveryWayToWrite_HashesWhatIsWritten(bool toFile)
    {
        byte[] content = Pattern.Bytes(Length);
        string path = _folder.File("f");
        using IncrementalHash hash = IncrementalHash.CreateHash(HashAlgorithmName.SHA256);
        Pipe pipe = new(new PipeOptions(pauseWriterThreshold: 0));
        PipeWriter inner = toFile ? FilePipeWriter.Create(path) : pipe.Writer;
        PipeWriter writer = inner.Tap(hash);
        Assert.True(writer.CanGetUnflushedBytes);

        // More is written to the memory than is advanced over, in two steps and none.
        content.AsSpan(0, 40).CopyTo(writer.GetSpan(100));
        writer.Advance(30);
        writer.Advance(10);
        writer.Advance(0);
        Assert.Equal(40, writer.UnflushedBytes);
        content.AsMemory(40, 60).CopyTo(writer.GetMemory(60));
        writer.Advance(60);
        Assert.False((await writer.FlushAsync(_stop)).IsCompleted);
        await writer.WriteAsync(content.AsMemory(100, 50_000), _stop);
        await writer.AsStream(leaveOpen: true).WriteAsync(content.AsMemory(50_100, 900), _stop);
        writer.Write(content.AsSpan(51_000, 1000));
        using MemoryStream rest = new(content, 52_000, Length - 52_000);
        await rest.CopyToAsync(writer.AsStream(leaveOpen: true), _stop);
        await writer.CompleteAsync();
        Assert.Equal(SHA256.HashData(content), hash.GetHashAndReset());
        using PooledMemoryStream received = new();
        if (!toFile)
        {
            await pipe.Reader.CopyToAsync(received, _stop);
        }

        Assert.Equal(content, toFile ? File.ReadAllBytes(path) : received.ToArray());
    }

    [Fact]
    public async Task TappedWriter_FromAFileAndFromMemory_SeesTheCopy()
    {
        byte[] content = Pattern.Bytes(3_000_000);
        string path = _folder.File("f", content);
        using IncrementalHash hash = IncrementalHash.CreateHash(HashAlgorithmName.SHA256);
        PipeWriter writer = FilePipeWriter.Create(Path.Combine(_folder.Path, "g")).Tap(hash);
        FilePipeReader reader = FilePipeReader.Create(path);
        await reader.CopyToAsync(writer, _stop);
        await reader.CompleteAsync();
        using PooledMemoryStream stream = new();
        stream.Write(content);
        stream.Position = 0;
        await stream.CopyToAsync(writer, _stop);
        await writer.CompleteAsync();
        Assert.Equal(SHA256.HashData([.. content, .. content]), hash.GetHashAndReset());
    }

    [Fact]
    public async Task TappedWriter_TapThrows_IsTheErrorOfAdvanceAndNothingIsWritten()
    {
        Pipe pipe = new();
        PipeWriter writer = pipe.Writer.Tap(_ => throw new TimeoutException("tap"));
        writer.GetSpan(10).Clear();
        Assert.Throws<TimeoutException>(() => writer.Advance(10));
        Assert.Equal(0, writer.UnflushedBytes);
        await Assert.ThrowsAsync<TimeoutException>(async () => await writer.WriteAsync(new byte[10], _stop));
        await writer.CompleteAsync(new IOException("given up"));
        await Assert.ThrowsAsync<IOException>(async () => await pipe.Reader.ReadAsync(_stop));
    }

    [Fact]
    public async Task TappedWriter_AdvanceTooFar_IsRefusedByTheWriterAndNotSeen()
    {
        long seen = 0;
        Pipe pipe = new();
        PipeWriter writer = pipe.Writer.Tap(span => seen += span.Length);
        int length = writer.GetSpan(10).Length;
        Assert.Throws<ArgumentOutOfRangeException>(() => writer.Advance(length + 1));
        Assert.Throws<ArgumentOutOfRangeException>(() => writer.Advance(-1));
        Assert.Equal(0, seen);
        await Assert.ThrowsAnyAsync<OperationCanceledException>(
            async () => await writer.WriteAsync(new byte[10], new CancellationToken(canceled: true)));
        Assert.Equal(0, seen);
    }

    [Fact]
    public async Task TappedWriter_AdvanceAfterComplete_IsNotSeen()
    {
        int seen = 0;
        PipeWriter writer = FilePipeWriter.Create(_folder.File("f")).Tap(span => seen += span.Length);
        writer.GetSpan(10);
        await writer.CompleteAsync();
        _ = Record.Exception(() => writer.Advance(10));
        Assert.Equal(0, seen);
    }

    [Fact]
    public async Task TappedWriter_CancelPendingFlush_EndsTheWait()
    {
        Pipe pipe = new(new PipeOptions(pauseWriterThreshold: 10, resumeWriterThreshold: 5));
        long seen = 0;
        PipeWriter writer = pipe.Writer.Tap(span => seen += span.Length);
        ValueTask<FlushResult> flush = writer.WriteAsync(new byte[100], _stop);
        Assert.False(flush.IsCompleted);
        writer.CancelPendingFlush();
        Assert.True((await flush).IsCanceled);
        Assert.Equal(100, seen);
    }

    [Fact]
    public void Tap_OfNothing_Throws()
    {
        Assert.Throws<ArgumentNullException>(() => ((PipeReader)null!).Tap(_ => { }));
        Assert.Throws<ArgumentNullException>(() => ((PipeWriter)null!).Tap(_ => { }));
        Assert.Throws<ArgumentNullException>(() => new Pipe().Reader.Tap((IncrementalHash)null!));
        Assert.Throws<ArgumentNullException>(() => new Pipe().Writer.Tap((Action<ReadOnlySpan<byte>>)null!));
    }

    private sealed class Piece : ReadOnlySequenceSegment<byte>
    {
        public static ReadOnlySequence<byte> Chain(params byte[][] pieces)
        {
            Piece first = new() { Memory = pieces[0] };
            Piece last = first;
            foreach (byte[] piece in pieces[1..])
            {
                Piece next = new() { Memory = piece, RunningIndex = last.RunningIndex + last.Memory.Length };
                last.Next = next;
                last = next;
            }

            return new ReadOnlySequence<byte>(first, 0, last, last.Memory.Length);
        }
    }
}
