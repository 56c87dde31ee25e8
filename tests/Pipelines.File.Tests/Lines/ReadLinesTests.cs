namespace FilePipelines.Tests;

/// <summary>
/// The lines of a pipe: the same however the bytes are cut into segments and reads, and what is left of the reader after the loop.
/// </summary>
public sealed class ReadLinesTests : FileTests
{
    [Theory]
    [InlineData(0), InlineData(3), InlineData(40), InlineData(150), InlineData(5000)]
    public async Task ReadLineSequencesAsync_ManyLines_GivesEveryOne(int maxLength)
    {
        // More of them than the table holds, and of every length around that of a block.
        Random random = new(maxLength);
        List<string> lines = [];
        StringBuilder text = new();
        for (int i = 0; i < 700; i++)
        {
            lines.Add(new string((char)('a' + (i % 26)), random.Next(maxLength + 1)));
            text.Append(lines[^1]).Append(random.Next(3) == 0 ? "\r\n" : "\n");
        }

        text.Append("no end");
        lines.Add("no end");
        string path = _folder.File("f", Encoding.Latin1.GetBytes(text.ToString()));
        // Megabytes in pieces of some bytes would take most of the time of this class.
        int[] sizes = maxLength < 1000 ? [1, 63, 64, 65, 1000, 65536] : [1000, 65536];
        foreach (int size in sizes)
        {
            foreach (PipeReader reader in LineWays.ReadersOf(path, size))
            {
                Assert.Equal(lines, await LinesAsync(reader));
            }
        }
    }

    [Theory]
    [InlineData("12345\n123456\n", 2)]
    [InlineData("12345\r\n123456\r\n", 2)]
    [InlineData("12345\r\n123456", 2)]
    [InlineData("12345\r\n12345\r", 2)]
    [InlineData("123456", 1)]
    [InlineData("\n\n12345\n12345\r\n1234567890", 5)]
    public async Task ReadLineSequencesAsync_LongerThanAllowed_ThrowsAfterTheLinesBefore(string text, int number)
    {
        string path = _folder.File("f", Encoding.Latin1.GetBytes(text));
        for (int size = 1; size <= text.Length + 1; size++)
        {
            foreach (PipeReader reader in LineWays.ReadersOf(path, size))
            {
                int lines = 0;
                await using IAsyncEnumerator<ReadOnlySequence<byte>> enumerator = reader.ReadLineSequencesAsync(
                    maxLength: 5, cancellationToken: _stop).GetAsyncEnumerator(_stop);
                LineTooLongException e = await Assert.ThrowsAsync<LineTooLongException>(async () =>
                {
                    for (; await enumerator.MoveNextAsync(); lines++)
                    {
                        Assert.InRange(enumerator.Current.Length, 0, 5);
                    }
                });
                Assert.Equal((number - 1, number, 5), (lines, e.LineNumber, e.MaxLength));
                Assert.Contains($"Line {number} is longer than 5 bytes", e.Message, StringComparison.Ordinal);

                // It is not skipped.
                await Assert.ThrowsAsync<LineTooLongException>(async () => await enumerator.MoveNextAsync());
            }
        }
    }

    [Theory]
    [InlineData(1000, true), InlineData(1001, false)]
    public async Task ReadLineSequencesAsync_LineOfManyReads_MayHaveTheGreatestLengthAndNoMore(int length, bool isAllowed)
    {
        Pipe pipe = new();
        Task<List<string>> lines = LinesAsync(pipe.Reader, maxLength: 1000);
        for (int i = 0; i < length; i++)
        {
            await pipe.Writer.WriteAsync("x"u8.ToArray(), _stop);
        }

        await pipe.Writer.WriteAsync("\r"u8.ToArray(), _stop);
        if (isAllowed)
        {
            await pipe.Writer.WriteAsync("\n"u8.ToArray(), _stop);
            await pipe.Writer.CompleteAsync();
            Assert.Equal([new string('x', length)], await lines);
        }
        else
        {
            // Before the line has ended: it may have no end.
            await Assert.ThrowsAsync<LineTooLongException>(() => lines.WaitAsync(Eventually.Limit, _stop));
        }
    }

    [Fact]
    public async Task ReadLineSequencesAsync_Line_IsTheBytesOfTheFileWithoutACopy()
    {
        ReadOnlySequence<byte> text = new("first\r\nsecond\n"u8.ToArray());
        await using IAsyncEnumerator<ReadOnlySequence<byte>> lines = PipeReader.Create(text)
            .ReadLineSequencesAsync(cancellationToken: _stop).GetAsyncEnumerator(_stop);
        Assert.True(await lines.MoveNextAsync());
        Assert.True(lines.Current.FirstSpan.Overlaps(text.FirstSpan, out int offset) && offset == 0);
        Assert.True(await lines.MoveNextAsync());
        Assert.True(lines.Current.FirstSpan.Overlaps(text.FirstSpan, out offset) && offset == -7);
        Assert.False(await lines.MoveNextAsync());
    }

    [Theory]
    [InlineData("break"), InlineData("exception"), InlineData("long line"), InlineData("long last line")]
    public async Task ReadLineSequencesAsync_LoopIsLeft_CompletesTheReaderAndGivesItsMemoryBack(string how)
    {
        byte[] text = [.. "a\nb\n1234567890"u8, .. how == "long line" ? "\n"u8 : []];
        CheckedPool pool = new();
        FilePipeReader reader = FilePipeReader.Create(_folder.File("f", text), new() { Pool = pool });
        try
        {
            await foreach (ReadOnlySequence<byte> line in reader.ReadLineSequencesAsync(maxLength: 5, cancellationToken: _stop))
            {
                Assert.NotEqual(0, pool.Rented);
                if (how == "break")
                {
                    break;
                }

                if (how == "exception")
                {
                    throw new FormatException("of the parser");
                }
            }
        }
        catch (FormatException e)
        {
            Assert.Equal((how != "break", how == "exception"), (true, e is not LineTooLongException));
        }

        Assert.Equal((0, 0), (pool.Rented, pool.ReturnedTwice));
        Assert.True(reader.OpenedFile.Handle.IsClosed);
        Assert.Throws<InvalidOperationException>(() => reader.TryRead(out _));
    }

    [Fact]
    public async Task ReadLineSequencesAsync_ReaderIsCompletedInTheLoop_IsLeftWithoutAnError()
    {
        byte[] bytes = "a\nb\n"u8.ToArray();
        foreach (PipeReader reader in new[] { FilePipeReader.Create(_folder.File("f", bytes)), new TestPipeReader(bytes),
            PipeReader.Create(new MemoryStream(bytes)) })
        {
            await foreach (ReadOnlySequence<byte> line in reader.ReadLineSequencesAsync(cancellationToken: _stop))
            {
                await reader.CompleteAsync();
                break;
            }
        }
    }

    [Fact]
    public async Task ReadLineSequencesAsync_ToTheEnd_ConsumesEverythingAndCompletesTheReader()
    {
        FilePipeReader reader = FilePipeReader.Create(_folder.File("f", "a\nb\nc"u8.ToArray()), new() { Offset = 2 });
        Assert.Equal(["b", "c"], await LinesAsync(reader));
        Assert.Equal(5, reader.Position);
        Assert.True(reader.OpenedFile.Handle.IsClosed);
    }

    [Fact]
    public async Task ReadLineSequencesAsync_LeaveOpen_GoesOnBehindTheLine()
    {
        string text = string.Concat(Enumerable.Range(0, 400).Select(i => $"{i}{(i % 2 == 0 ? "\r\n" : "\n")}")) + "last";
        string path = _folder.File("f", Encoding.Latin1.GetBytes(text));
        foreach (int size in new[] { 1, 5, 100, 65536 })
        {
            foreach (int wanted in new[] { 1, 2, 100, 257, 400, 401 })
            {
                foreach (PipeReader reader in LineWays.ReadersOf(path, size))
                {
                    int lines = 0;
                    long position = 0;
                    await foreach (ReadOnlySequence<byte> line
                            in reader.ReadLineSequencesAsync(leaveOpen: true, cancellationToken: _stop))
                    {
                        position += line.Length + (lines == 400 ? 0 : lines % 2 == 0 ? 2 : 1);
                        if (++lines == wanted)
                        {
                            break;
                        }
                    }

                    // Lines again, and then bytes.
                    if (wanted < 300)
                    {
                        await foreach (ReadOnlySequence<byte> line
                            in reader.ReadLineSequencesAsync(leaveOpen: true, cancellationToken: _stop))
                        {
                            Assert.Equal(wanted.ToString(System.Globalization.CultureInfo.InvariantCulture),
                                Encoding.Latin1.GetString(line));
                            position += line.Length + (wanted % 2 == 0 ? 2 : 1);
                            break;
                        }
                    }

                    using StreamReader rest = new(reader.AsStream());
                    Assert.Equal(text[(int)position..], await rest.ReadToEndAsync(_stop));
                }
            }
        }
    }

    [Fact]
    public async Task ReadLineSequencesAsync_LeaveOpenAfterALineThatIsTooLong_GoesOnAtThatLine()
    {
        string path = _folder.File("f", "ab\n123456789\nc\n"u8.ToArray());
        for (int size = 1; size <= 16; size++)
        {
            foreach (PipeReader reader in LineWays.ReadersOf(path, size))
            {
                await Assert.ThrowsAsync<LineTooLongException>(async () =>
                {
                    await foreach (ReadOnlySequence<byte> line in reader.ReadLineSequencesAsync(maxLength: 3, leaveOpen: true, _stop))
                    {
                        Assert.Equal(2, line.Length);
                    }
                });
                Assert.Equal(["123456789", "c"], await LinesAsync(reader));
            }
        }
    }

    [Fact]
    public async Task ReadLineSequencesAsync_LinesThatComePieceByPiece_AreGivenAsSoonAsTheyAreWhole()
    {
        Pipe pipe = new();
        await using IAsyncEnumerator<ReadOnlySequence<byte>> lines = pipe.Reader.ReadLineSequencesAsync(cancellationToken: _stop)
            .GetAsyncEnumerator(_stop);
        Task<bool> next = lines.MoveNextAsync().AsTask();
        foreach (string piece in new[] { "a", "b\r" })
        {
            await WriteAsync(piece);
            Assert.False(next.IsCompleted);
        }

        await WriteAsync("\nc\nd");
        Assert.True(await next);
        Assert.Equal("ab", Encoding.Latin1.GetString(lines.Current));
        next = lines.MoveNextAsync().AsTask();
        Assert.True(next.IsCompletedSuccessfully);
        Assert.Equal("c", Encoding.Latin1.GetString(lines.Current));
        next = lines.MoveNextAsync().AsTask();
        await WriteAsync("\r");
        Assert.False(next.IsCompleted);
        await pipe.Writer.CompleteAsync();
        Assert.True(await next);
        Assert.Equal("d\r", Encoding.Latin1.GetString(lines.Current));
        Assert.False(await lines.MoveNextAsync());
        Assert.False(await lines.MoveNextAsync());

        ValueTask<FlushResult> WriteAsync(string piece) => pipe.Writer.WriteAsync(Encoding.Latin1.GetBytes(piece), _stop);
    }

    [Theory]
    [InlineData(true, false), InlineData(false, true), InlineData(true, true)]
    public async Task ReadLineSequencesAsync_TokenIsCanceledWhileItWaits_ThrowsAndLosesNothing(bool asArgument, bool withCancellation)
    {
        foreach (bool isFirst in new[] { true, false })
        {
            Pipe pipe = new();
            using CancellationTokenSource first = new();
            using CancellationTokenSource second = new();
            await pipe.Writer.WriteAsync("a\nb"u8.ToArray(), _stop);
            int lines = 0;
            Task loop = Task.Run(
                async () =>
                {
                    await foreach (ReadOnlySequence<byte> line in pipe.Reader
                        .ReadLineSequencesAsync(leaveOpen: true, cancellationToken: asArgument ? first.Token : CancellationToken.None)
                        .WithCancellation(withCancellation ? second.Token : CancellationToken.None))
                    {
                        Interlocked.Increment(ref lines);
                    }
                },
                _stop);
            await Eventually.TrueAsync(() => Volatile.Read(ref lines) == 1);
            await (asArgument && (isFirst || !withCancellation) ? first : second).CancelAsync();
            await Assert.ThrowsAnyAsync<OperationCanceledException>(() => loop);
            await pipe.Writer.WriteAsync("c\n"u8.ToArray(), _stop);
            await pipe.Writer.CompleteAsync();
            Assert.Equal(["bc"], await LinesAsync(pipe.Reader));
        }
    }

    [Fact]
    public async Task ReadLineSequencesAsync_TokenIsCanceledAmongBufferedLines_Throws()
    {
        using CancellationTokenSource cancellation = new();
        PipeReader reader = PipeReader.Create(new ReadOnlySequence<byte>(Enumerable.Repeat((byte)'\n', 100_000).ToArray()));
        int lines = 0;
        await Assert.ThrowsAnyAsync<OperationCanceledException>(async () =>
        {
            await foreach (ReadOnlySequence<byte> line in reader.ReadLineSequencesAsync(cancellationToken: cancellation.Token))
            {
                lines++;
                await cancellation.CancelAsync();
            }
        });
        Assert.InRange(lines, 1, 1000);
    }

    [Fact]
    public async Task ReadLineSequencesAsync_CancelPendingRead_ThrowsAndLosesNothing()
    {
        Pipe pipe = new();
        await pipe.Writer.WriteAsync("a\nb"u8.ToArray(), _stop);
        await using IAsyncEnumerator<ReadOnlySequence<byte>> lines = pipe.Reader
            .ReadLineSequencesAsync(leaveOpen: true, cancellationToken: _stop).GetAsyncEnumerator(_stop);
        Assert.True(await lines.MoveNextAsync());
        Task<bool> next = lines.MoveNextAsync().AsTask();
        pipe.Reader.CancelPendingRead();
        await Assert.ThrowsAsync<OperationCanceledException>(() => next);
        await pipe.Writer.WriteAsync("c\nd"u8.ToArray(), _stop);
        await pipe.Writer.CompleteAsync();
        Assert.True(await lines.MoveNextAsync());
        Assert.Equal("bc", Encoding.Latin1.GetString(lines.Current));
        await lines.DisposeAsync();
        Assert.Equal(["d"], await LinesAsync(pipe.Reader));
    }

    [Fact]
    public async Task ReadLineSequencesAsync_ReadFails_ThrowsWhatItThrows()
    {
        Pipe pipe = new();
        await pipe.Writer.WriteAsync("a\nb"u8.ToArray(), _stop);
        await using IAsyncEnumerator<ReadOnlySequence<byte>> lines = pipe.Reader.ReadLineSequencesAsync(cancellationToken: _stop)
            .GetAsyncEnumerator(_stop);
        Assert.True(await lines.MoveNextAsync());
        await pipe.Writer.CompleteAsync(new IOException("of the disk"));
        await Assert.ThrowsAsync<IOException>(async () => await lines.MoveNextAsync());
    }

    [Fact]
    public async Task ReadLineSequencesAsync_EnumeratedTwice_Throws()
    {
        IAsyncEnumerable<ReadOnlySequence<byte>> lines = PipeReader.Create(ReadOnlySequence<byte>.Empty)
            .ReadLineSequencesAsync(cancellationToken: _stop);
        await foreach (ReadOnlySequence<byte> line in lines.WithCancellation(_stop))
        {
            Assert.Fail("There is no line.");
        }

        Assert.Throws<InvalidOperationException>(() => lines.GetAsyncEnumerator(_stop));
    }

    [Fact]
    public void ReadLineSequencesAsync_BadArgument_Throws()
    {
        Assert.Throws<ArgumentNullException>(() => ((PipeReader)null!).ReadLineSequencesAsync(cancellationToken: _stop));
        Assert.Throws<ArgumentOutOfRangeException>(
            () => PipeReader.Create(ReadOnlySequence<byte>.Empty).ReadLineSequencesAsync(maxLength: -1, cancellationToken: _stop));
    }

    [Fact]
    public void ReadLineSequencesAsync_WithoutWaiting_AllocatesNothingForALine()
    {
        string path = _folder.File("f", Encoding.Latin1.GetBytes(string.Concat(Enumerable.Range(0, 100_000).Select(i => $"line {i}\n"))));
        long allocated = Warm.Least(enough: 10_000, () =>
        {
            long before = GC.GetAllocatedBytesForCurrentThread();
            Assert.Equal(100_000, Count(path));
            return GC.GetAllocatedBytesForCurrentThread() - before;
        });
        Assert.InRange(allocated, 0, 10_000);

        static int Count(string path)
        {
            ValueTask<int> count = CountAsync(path);
            return count.IsCompleted ? count.GetAwaiter().GetResult() : count.AsTask().GetAwaiter().GetResult();
        }

        static async ValueTask<int> CountAsync(string path)
        {
            int lines = 0;
            await foreach (ReadOnlySequence<byte> line
                in FilePipeReader.Create(path).ReadLineSequencesAsync(cancellationToken: TestContext.Current.CancellationToken))
            {
                lines++;
            }

            return lines;
        }
    }

    private async Task<List<string>> LinesAsync(PipeReader reader, int maxLength = int.MaxValue)
    {
        List<string> lines = [];
        await foreach (ReadOnlySequence<byte> line in reader.ReadLineSequencesAsync(maxLength, cancellationToken: _stop))
        {
            lines.Add(Encoding.Latin1.GetString(line));
        }

        return lines;
    }
}
