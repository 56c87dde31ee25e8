using Pipelines.File.Records;

namespace FilePipelines.Tests;

/// <summary>
/// What batches of lines do that single lines do not: how long they are valid, lines in one piece, and what is left of a reader that is
/// left within a batch.
/// </summary>
public sealed class LineBatchTests : FileTests
{
    [Fact]
    public async Task Copy_OfABatch_IsValidBehindTheStepAndTheLoop()
    {
        // The last line has no line end, and one crosses the segments.
        byte[] bytes = "one\r\ntwo\nthree\nfour"u8.ToArray();
        List<(LineBatch Copy, LineBatch Batch, List<(string, long, long)> Lines)> kept = [];
        await foreach (LineBatch batch in new TestPipeReader(bytes) { SegmentSize = 7 }.ReadLineBatchesAsync(cancellationToken: _stop))
        {
            kept.Add((batch.Copy(), batch, Located(batch)));
        }

        Assert.True(kept.Count > 2);
        Assert.All(kept, one =>
        {
            Assert.Throws<InvalidOperationException>(() => one.Batch.Copy());
            Assert.Equal(one.Lines, Located(one.Copy));
            Assert.Equal(one.Lines.Count, one.Copy.Count);
            Assert.Equal(one.Lines[^1].Item1, Encoding.ASCII.GetString(one.Copy[one.Copy.Count - 1]));
        });
        Assert.Equal(["one", "two", "three", "four"], kept.SelectMany(one => Located(one.Copy)).Select(line => line.Item1));
        Assert.Equal(0, default(LineBatch).Copy().Count);

        static List<(string Text, long Offset, long EndOffset)> Located(LineBatch batch)
        {
            List<(string Text, long Offset, long EndOffset)> lines = [];
            foreach (Line line in batch.WithOffsets())
            {
                lines.Add((Encoding.ASCII.GetString(line.Span), line.Offset, line.EndOffset));
            }

            return lines;
        }
    }

    /// <summary>A copy goes to whoever wants it, also to two at once.</summary>
    [Fact]
    public async Task Copy_OnTwoThreadsAtOnce_HasTheSameLinesOnBoth()
    {
        const int Lines = 5000;
        string path = _folder.File("f", Encoding.UTF8.GetBytes(string.Concat(Enumerable.Range(0, Lines).Select(i => $"{i:D4}\n"))));
        for (int round = 0; round < 200; round++)
        {
            using Barrier barrier = new(2);
            await foreach (LineBatch batch in FilePipeReader.Create(path).ReadLineBatchesAsync(cancellationToken: _stop))
            {
                LineBatch copy = batch.Copy();
                await Task.WhenAll(Task.Run(() => Check(copy, barrier), _stop), Task.Run(() => Check(copy, barrier), _stop));
            }
        }

        static void Check(LineBatch copy, Barrier barrier)
        {
            barrier.SignalAndWait();
            int count = 0;
            foreach (ReadOnlySpan<byte> line in copy)
            {
                Assert.Equal(count++, int.Parse(line, CultureInfo.InvariantCulture));
            }

            Assert.Equal((Lines, Lines), (count, copy.Count));
        }
    }

    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task MoveNextAsync_BehindDisposeAsync_HasEnded(bool isText)
    {
        string path = _folder.File("f", "one\ntwo\nthree\n"u8.ToArray());
        FilePipeReader reader = FilePipeReader.Create(path);
        if (isText)
        {
            await CheckAsync(reader.ReadLinesAsync(cancellationToken: _stop));
        }
        else
        {
            await CheckAsync(reader.ReadLineSequencesAsync(cancellationToken: _stop));
        }

        static async Task CheckAsync<T>(IAsyncEnumerable<T> lines)
        {
            IAsyncEnumerator<T> line = lines.GetAsyncEnumerator();
            Assert.True(await line.MoveNextAsync());
            await line.DisposeAsync();
            Assert.False(await line.MoveNextAsync());
            await line.DisposeAsync();
        }
    }

    [Fact]
    public async Task ReadLineBatchesAsync_Batch_IsValidUntilTheNextStep()
    {
        Pipe pipe = new();
        await pipe.Writer.WriteAsync("a\nb\n"u8.ToArray(), _stop);
        await using IAsyncEnumerator<LineBatch> batches = pipe.Reader.ReadLineBatchesAsync(cancellationToken: _stop)
            .GetAsyncEnumerator(_stop);
        Assert.True(await batches.MoveNextAsync());
        LineBatch first = batches.Current;
        Assert.Equal(["a", "b"], LinesOf(first));
        Assert.Equal(["a", "b"], LinesOf(first));
        await pipe.Writer.WriteAsync("c\n"u8.ToArray(), _stop);
        Assert.True(await batches.MoveNextAsync());
        Assert.Equal(["c"], LinesOf(batches.Current));
        Assert.Throws<InvalidOperationException>(() => LinesOf(first));
        LineBatch last = batches.Current;
        await batches.DisposeAsync();
        Assert.Throws<InvalidOperationException>(() => LinesOf(last));
        Assert.Empty(LinesOf(default));
    }

    [Fact]
    public async Task ReadLineBatchesAsync_CurrentIsAskedForWithoutABatch_IsEmptyAndTheNextIsWhole()
    {
        TestPipeReader reader = new(["a\nb\n"u8.ToArray()]);
        await using IAsyncEnumerator<LineBatch> batches = reader.ReadLineBatchesAsync(cancellationToken: _stop).GetAsyncEnumerator(_stop);
        Assert.Equal(0, batches.Current.Count);
        Assert.Empty(LinesOf(batches.Current));
        Assert.True(await batches.MoveNextAsync());
        Assert.Equal(["a", "b"], LinesOf(batches.Current));
        Assert.Equal(2, batches.Current.Count);
        await batches.DisposeAsync();
        Assert.Empty(LinesOf(batches.Current));
    }

    [Fact]
    public async Task ReadLineBatchesAsync_LoopThatGoesOnBehindAStepThatWasNotAwaited_Throws()
    {
        TestPipeReader reader = new(["a\nb\n"u8.ToArray(), "c\nd\n"u8.ToArray()]);
        await using IAsyncEnumerator<LineBatch> batches = reader.ReadLineBatchesAsync(cancellationToken: _stop).GetAsyncEnumerator(_stop);
        Assert.True(await batches.MoveNextAsync());
        Assert.Throws<InvalidOperationException>(GoOn);
        Assert.Equal(["c", "d"], LinesOf(batches.Current));

        void GoOn()
        {
            LineBatch.Enumerator lines = batches.Current.GetEnumerator();
            Assert.True(lines.MoveNext());
            Assert.True(batches.MoveNextAsync().AsTask().IsCompletedSuccessfully);
            lines.MoveNext();
        }
    }

    [Fact]
    public async Task ReadLineBatchesAsync_LongLineInSegmentsOfOneByte_TakesNoTimeThatGrowsWithItsSquare()
    {
        // Where each segment was searched for from the first one, so many took minutes. The token, which is looked at between them, ends
        // that; otherwise they take less than a second.
        byte[] bytes = new byte[300_000];
        bytes[^1] = (byte)'\n';
        using CancellationTokenSource hang = CancellationTokenSource.CreateLinkedTokenSource(_stop);
        hang.CancelAfter(Eventually.Limit);
        int lines = 0;
        await foreach (LineBatch batch in new TestPipeReader(bytes) { SegmentSize = 1 }.ReadLineBatchesAsync(cancellationToken: hang.Token))
        {
            Assert.Equal(bytes.Length - 1, batch[0].Length);
            lines += batch.Count;
        }

        Assert.Equal(1, lines);
    }

    [Fact]
    public async Task ReadLineBatchesAsync_LinesThatArrive_AreGivenWithoutWaitingForMore()
    {
        Pipe pipe = new();
        await using IAsyncEnumerator<LineBatch> batches = pipe.Reader.ReadLineBatchesAsync(cancellationToken: _stop)
            .GetAsyncEnumerator(_stop);
        Task<bool> next = batches.MoveNextAsync().AsTask();
        await pipe.Writer.WriteAsync("a"u8.ToArray(), _stop);
        Assert.False(next.IsCompleted);
        await pipe.Writer.WriteAsync("b\nc"u8.ToArray(), _stop);
        Assert.True(await next.WaitAsync(Eventually.Limit, _stop));
        Assert.Equal(["ab"], LinesOf(batches.Current));
        await pipe.Writer.CompleteAsync();
        Assert.True(await batches.MoveNextAsync());
        Assert.Equal(["c"], LinesOf(batches.Current));
        Assert.False(await batches.MoveNextAsync());
        Assert.False(await batches.MoveNextAsync());
    }

    [Theory]
    [InlineData(0, 0), InlineData(1, 2), InlineData(2, 4), InlineData(3, 6)]
    public async Task ReadLineBatchesAsync_LeaveOpenWithinABatch_GoesOnBehindTheLine(int lines, int position)
    {
        FilePipeReader reader = FilePipeReader.Create(_folder.File("f", "a\nb\nc\n"u8.ToArray()));
        await foreach (LineBatch batch in reader.ReadLineBatchesAsync(leaveOpen: true, cancellationToken: _stop))
        {
            LineBatch.Enumerator enumerator = batch.GetEnumerator();
            for (int i = 0; i < lines; i++)
            {
                Assert.True(enumerator.MoveNext());
            }

            break;
        }

        Assert.Equal(position, reader.Position);
        Assert.Equal("abc"[lines..], string.Concat(await LineWays.LinesAsync(reader)));
    }

    [Fact]
    public async Task ReadLineBatchesAsync_BatchesThatNobodyEnumerates_CountForTheLineNumber()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "There one segment has 256 KiB at least, so the file is one batch.");
        string path = _folder.File("f", Encoding.Latin1.GetBytes(string.Concat(Enumerable.Repeat("ab\n", 1000)) + "too long\n"));
        LineTooLongException e = await Assert.ThrowsAsync<LineTooLongException>(async () =>
        {
            bool isFirst = true;
            await foreach (LineBatch batch in FilePipeReader.Create(path, new() { BufferSize = 10 })
                .ReadLineBatchesAsync(maxLength: 5, cancellationToken: _stop))
            {
                LineBatch.Enumerator lines = batch.GetEnumerator();
                Assert.True(lines.MoveNext());
                while (!isFirst && lines.MoveNext())
                {
                }

                isFirst = false;
            }
        });
        Assert.Equal((1001, 5), (e.LineNumber, e.MaxLength));
    }

    [Fact]
    public async Task ReadLineBatchesAsync_Offsets_AreThoseOfTheFile()
    {
        FilePipeReader reader = FilePipeReader.Create(
            _folder.File("f", "skipped\na\r\n\nbc"u8.ToArray()), new() { Offset = 8, BufferSize = 2 });
        List<(string Text, long Offset, long EndOffset)> lines = [];
        await foreach (LineBatch batch in reader.ReadLineBatchesAsync(cancellationToken: _stop))
        {
            foreach (Line line in batch.WithOffsets())
            {
                lines.Add((Encoding.Latin1.GetString(line.Span), line.Offset, line.EndOffset));
            }
        }

        Assert.Equal([("a", 8, 11), ("", 11, 12), ("bc", 12, 14)], lines);
    }

    [Fact]
    public async Task ReadLineBatchesAsync_TokenIsCanceled_ThrowsAtTheNextBatch()
    {
        using CancellationTokenSource cancellation = new();
        FilePipeReader reader = FilePipeReader.Create(
            _folder.File("f", new byte[1_000_000].Select((_, i) => (byte)(i % 10 == 0 ? '\n' : 'a')).ToArray()));
        var reading = (PipeBatches<LineBatch>)reader.ReadLineBatchesAsync(cancellationToken: CancellationToken.None);
        int batches = 0;
        await Assert.ThrowsAnyAsync<OperationCanceledException>(async () =>
        {
            await foreach (LineBatch batch in reading.WithCancellation(cancellation.Token))
            {
                batches++;
                await cancellation.CancelAsync();
            }
        });
        Assert.Equal(1, batches);

        // It is of a source of its own, of which nothing stays with the caller's, which may live as long as the process.
        Assert.Throws<ObjectDisposedException>(() => reading.CancellationToken.WaitHandle);
    }

    [Fact]
    public async Task LineBatch_CountAndIndex_AreThoseOfTheLines()
    {
        PipeReader reader = PipeReader.Create(new ReadOnlySequence<byte>("a\r\n\nccc\n"u8.ToArray()));
        await using IAsyncEnumerator<LineBatch> batches = reader.ReadLineBatchesAsync(cancellationToken: _stop).GetAsyncEnumerator(_stop);
        Assert.True(await batches.MoveNextAsync());
        LineBatch batch = batches.Current;
        Assert.Equal(3, batch.Count);
        Assert.Equal(["ccc", "", "a"], [Text(2), Text(1), Text(0)]);
        Assert.Equal(3, batch.Count);
        Assert.Throws<ArgumentOutOfRangeException>(() => Text(3));
        Assert.Throws<ArgumentOutOfRangeException>(() => Text(-1));
        Assert.False(await batches.MoveNextAsync());
        Assert.Throws<InvalidOperationException>(() => batch.Count);
        Assert.Throws<InvalidOperationException>(() => Text(0));
        Assert.Equal(0, default(LineBatch).Count);
        Assert.Throws<ArgumentOutOfRangeException>(() => default(LineBatch)[0].Length);

        string Text(int index) => Encoding.Latin1.GetString(batch[index]);
    }

    [Theory]
    [InlineData(0, 2), InlineData(1, 4)]
    public async Task LineBatch_LineThatWasAskedForLast_IsWhereALeftReaderGoesOn(int index, int position)
    {
        FilePipeReader reader = FilePipeReader.Create(_folder.File("f", "a\nb\nc\n"u8.ToArray()));
        await foreach (LineBatch batch in reader.ReadLineBatchesAsync(leaveOpen: true, cancellationToken: _stop))
        {
            Assert.Equal(1, batch[index].Length);
            break;
        }

        Assert.Equal(position, reader.Position);
        await reader.CompleteAsync();
    }

    [Fact]
    public async Task ReadLineBatchesAsync_LineThatIsTooLongWithinASegment_EndsTheBatchBeforeIt()
    {
        PipeReader reader = PipeReader.Create(new ReadOnlySequence<byte>("a\nb\n1234567890\nc\n"u8.ToArray()));
        await using IAsyncEnumerator<LineBatch> batches = reader.ReadLineBatchesAsync(maxLength: 5, cancellationToken: _stop)
            .GetAsyncEnumerator(_stop);
        Assert.True(await batches.MoveNextAsync());
        Assert.Equal(2, batches.Current.Count);
        for (int i = 0; i < 2; i++)
        {
            LineTooLongException e = await Assert.ThrowsAsync<LineTooLongException>(async () => await batches.MoveNextAsync());
            Assert.Equal(3, e.LineNumber);
        }
    }

    [Fact]
    public void ReadLineBatchesAsync_BadArgument_Throws()
    {
        Assert.Throws<ArgumentNullException>(() => ((PipeReader)null!).ReadLineBatchesAsync(cancellationToken: _stop));
        Assert.Throws<ArgumentOutOfRangeException>(
            () => PipeReader.Create(ReadOnlySequence<byte>.Empty).ReadLineBatchesAsync(maxLength: -1, cancellationToken: _stop));
    }

    [Fact]
    public void ReadLineBatchesAsync_WithoutWaiting_AllocatesNothingForALineOrABatch()
    {
        string path = _folder.File("f", Encoding.Latin1.GetBytes(string.Concat(Enumerable.Range(0, 100_000).Select(i => $"line {i}\n"))));
        long allocated = Warm.Least(enough: 5_000, () =>
        {
            long before = GC.GetAllocatedBytesForCurrentThread();
            Assert.Equal(100_000, Count(path));
            return GC.GetAllocatedBytesForCurrentThread() - before;
        });
        Assert.InRange(allocated, 0, 5_000);

        static int Count(string path)
        {
            ValueTask<int> count = CountAsync(path);
            return count.IsCompleted ? count.GetAwaiter().GetResult() : count.AsTask().GetAwaiter().GetResult();
        }

        static async ValueTask<int> CountAsync(string path)
        {
            int lines = 0;
            await foreach (LineBatch batch
                in FilePipeReader.Create(path).ReadLineBatchesAsync(cancellationToken: TestContext.Current.CancellationToken))
            {
                foreach (ReadOnlySpan<byte> line in batch)
                {
                    lines++;
                }
            }

            return lines;
        }
    }

    private static List<string> LinesOf(LineBatch batch)
    {
        List<string> lines = [];
        foreach (ReadOnlySpan<byte> line in batch)
        {
            lines.Add(Encoding.Latin1.GetString(line));
        }

        return lines;
    }

    /// <summary>Who blocks on a step that waits must get its result: of a task that is pooled, another step would get it.</summary>
    [Theory]
    [InlineData(false), InlineData(true)]
    public void MoveNextAsync_CallerBlocksUntilItIsOver_GetsItsResult(bool isOneByOne)
    {
        using Fifo fifo = Fifo.Create(_folder);
        FilePipeReader reader = FilePipeReader.Create(fifo.Path);
        CancellationToken token = TestContext.Current.CancellationToken;
        object steps = isOneByOne ? reader.ReadLinesAsync(cancellationToken: token).GetAsyncEnumerator(token)
            : reader.ReadLineBatchesAsync(cancellationToken: token).GetAsyncEnumerator(token);
        object? result = null;
        Thread blocked = new(() =>
        {
            try
            {
                ValueTask<bool> step = isOneByOne ? ((IAsyncEnumerator<string>)steps).MoveNextAsync()
                    : ((IAsyncEnumerator<LineBatch>)steps).MoveNextAsync();
                result = step.GetAwaiter().GetResult();
            }
            catch (Exception e)
            {
                result = e;
            }
        });
        blocked.Start();
        Assert.True(SpinWait.SpinUntil(() => !blocked.IsAlive || (blocked.ThreadState & ThreadState.WaitSleepJoin) != 0, Eventually.Limit));
        fifo.Write("line\n"u8);
        Assert.True(blocked.Join(Eventually.Limit));
        Assert.Equal(true, result);
        reader.Complete();
    }
}
