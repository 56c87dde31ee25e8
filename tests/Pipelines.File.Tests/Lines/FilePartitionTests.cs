using System.Reflection;

namespace FilePipelines.Tests;

/// <summary>
/// Files in parts that begin at lines, and several readers at once: errors, cancellation, and files that change meanwhile.
/// </summary>
public sealed class FilePartitionTests : FileTests
{
    [Fact]
    public void AtLineEnds_LineLongerThanAPart_BelongsToThePartItBeginsIn()
    {
        string path = _folder.File("f", Encoding.Latin1.GetBytes("a\n" + new string('x', 1_000_000) + "\nb\nc"));
        Assert.Equal([new FileRange(0, 1_000_003), new FileRange(1_000_003, 3)],
            FilePartitions.AtLineEnds(path, 2 * 7).Where(range => range.Length > 2));
        Assert.Equal([new FileRange(0, 1_000_006)], FilePartitions.AtLineEnds(path, 1));
        Assert.Equal([new FileRange(0, 1_000_003), new FileRange(1_000_003, 3)], FilePartitions.AtLineEnds(path, 2));
        Assert.Equal([new FileRange(0, 1_000_004), new FileRange(1_000_004, 2)], FilePartitions.AtLineEnds(path, 2, (byte)'b'));
    }

    [Fact]
    public void AtLineEnds_MorePartsThanBytes_GivesEachLineOne()
    {
        string path = _folder.File("f", "a\nb\n"u8.ToArray());
        Assert.Equal([new FileRange(0, 2), new FileRange(2, 2)], FilePartitions.AtLineEnds(path, int.MaxValue));
    }

    [Fact]
    public async Task ForEachPartitionAsync_Lines_AreReadOnceInOneOpenFile()
    {
        string[] expected = [.. Enumerable.Range(0, 50_000).Select(i => $"line {i}")];
        string path = _folder.File("f", Encoding.Latin1.GetBytes(string.Join("\n", expected)));
        foreach (FilePipeBackend backend in new[] { FilePipeBackend.Auto, FilePipeBackend.Portable })
        {
            foreach (int degree in new[] { 1, 2, 3, 7 })
            {
                ConcurrentDictionary<long, List<string>> parts = [];
                ConcurrentBag<FilePipeReader> readers = [];
                await FilePipeReader.ForEachPartitionAsync(
                    path,
                    async (reader, cancellationToken) =>
                    {
                        readers.Add(reader);
                        parts[reader.Position] = await LineWays.BatchesAsync(reader);
                    },
                    degree,
                    new() { BufferSize = 1000, Backend = backend },
                    cancellationToken: _stop);
                Assert.Equal(degree, parts.Count);
                Assert.Equal(expected, parts.OrderBy(part => part.Key).SelectMany(part => part.Value));
                Assert.Single(readers.Select(reader => reader.OpenedFile.Handle).Distinct());
                Assert.True(readers.First().OpenedFile.Handle.IsClosed);
            }
        }

        await FilePipeReader.ForEachPartitionAsync(_folder.File("empty", []),
            (_, _) => throw new InvalidOperationException("There is nothing to read."), 2, cancellationToken: _stop);
    }

    [Fact]
    public async Task ForEachPartitionAsync_BodyFails_CancelsTheOthersAndThrowsTheFirst()
    {
        string path = _folder.File("f", Encoding.Latin1.GetBytes(string.Concat(Enumerable.Repeat("line\n", 1000))));
        int canceled = 0;
        TaskCompletionSource allRun = new(TaskCreationOptions.RunContinuationsAsynchronously);
        int run = 0;
        FormatException e = await Assert.ThrowsAsync<FormatException>(() => FilePipeReader.ForEachPartitionAsync(
            path,
            async (reader, cancellationToken) =>
            {
                if (Interlocked.Increment(ref run) == 3)
                {
                    allRun.SetResult();
                }

                await allRun.Task.WaitAsync(Eventually.Limit, CancellationToken.None);
                if (reader.Position == 0)
                {
                    throw new FormatException("of the parser");
                }

                try
                {
                    await Task.Delay(Timeout.Infinite, cancellationToken);
                }
                catch (OperationCanceledException)
                {
                    Interlocked.Increment(ref canceled);
                    throw;
                }
            },
            3,
            cancellationToken: _stop).WaitAsync(Eventually.Limit, _stop));
        Assert.Equal("of the parser", e.Message);
        Assert.Equal(2, canceled);
    }

    [Fact]
    public async Task ForEachPartitionAsync_TokenIsCanceled_ThrowsWhenTheBodiesAreOver()
    {
        string path = _folder.File("f", "a\nb\n"u8.ToArray());
        using CancellationTokenSource cancellation = new();
        int ended = 0;
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => FilePipeReader.ForEachPartitionAsync(
            path,
            async (_, cancellationToken) =>
            {
                await cancellation.CancelAsync();
                await Task.Delay(20, CancellationToken.None);
                Interlocked.Increment(ref ended);
                cancellationToken.ThrowIfCancellationRequested();
            },
            1,
            cancellationToken: cancellation.Token).WaitAsync(Eventually.Limit, _stop));
        Assert.Equal(1, ended);
        await Assert.ThrowsAnyAsync<OperationCanceledException>(
            () => FilePipeReader.ForEachPartitionAsync(path, (_, _) => Task.CompletedTask, 2, cancellationToken: cancellation.Token));
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task ForEachPartitionAsync_TokenIsCanceledLate_EndsAsTheBodiesDo(bool fails)
    {
        string path = _folder.File("f", "a\nb\n"u8.ToArray());
        using CancellationTokenSource source = new();
        Exception? error = await Record.ExceptionAsync(() => FilePipeReader.ForEachPartitionAsync(
            path,
            (_, _) =>
            {
                source.Cancel();
                return fails ? Task.FromException(new FormatException("of the parser")) : Task.CompletedTask;
            },
            1,
            cancellationToken: source.Token).WaitAsync(Eventually.Limit, _stop));
        Assert.Equal(fails ? typeof(FormatException) : null, error?.GetType());
    }

    [Fact]
    public async Task ForEachPartitionAsync_FileGrows_ReadsWhatItWas()
    {
        string path = _folder.File("f", Encoding.Latin1.GetBytes(string.Concat(Enumerable.Repeat("line\n", 1000))));
        int lines = 0;
        await FilePipeReader.ForEachPartitionAsync(
            path,
            async (reader, _) =>
            {
                using (FileStream stream = new(path, FileMode.Append, FileAccess.Write, FileShare.ReadWrite))
                {
                    stream.Write("more\n"u8);
                }

                List<string> some = await LineWays.LinesAsync(reader);
                Assert.All(some, line => Assert.Equal("line", line));
                Interlocked.Add(ref lines, some.Count);
            },
            2,
            new() { Share = FileShare.ReadWrite },
            cancellationToken: _stop);
        Assert.Equal(1000, lines);
    }

    [Fact]
    public async Task ForEachPartitionAsync_FileIsCut_ThrowsAndReadsNothingTwice()
    {
        string path = _folder.File("f", Encoding.Latin1.GetBytes(string.Concat(Enumerable.Range(0, 100_000).Select(i => $"{i:00000}\n"))));
        ConcurrentBag<string> lines = [];
        IOException e = await Assert.ThrowsAsync<IOException>(() => FilePipeReader.ForEachPartitionAsync(
            path,
            async (reader, cancellationToken) =>
            {
                await foreach (LineBatch batch in reader.ReadLineBatchesAsync(cancellationToken: cancellationToken))
                {
                    foreach (ReadOnlySpan<byte> line in batch)
                    {
                        lines.Add(Encoding.Latin1.GetString(line));
                    }

                    using FileStream stream = new(path, FileMode.Open, FileAccess.Write, FileShare.ReadWrite);
                    stream.SetLength(Math.Min(stream.Length, 50_000));
                }
            },
            2,
            new() { Share = FileShare.ReadWrite, BufferSize = 1000 },
            cancellationToken: _stop));
        Assert.Contains(path, e.Message, StringComparison.Ordinal);
        Assert.Contains("50000", e.Message, StringComparison.Ordinal);

        // A line may be cut, too.
        Assert.Equal(lines.Count(line => line.Length == 5), lines.Where(line => line.Length == 5).Distinct().Count());
    }

    /// <summary>logrotate's copytruncate, and a writer that has written as much again when all have read.</summary>
    [Fact]
    public async Task ForEachPartitionAsync_FileIsCutAndGrowsToItsOldLength_Throws()
    {
        const int Length = 600_000;
        string path = _folder.File(
            "f", Encoding.Latin1.GetBytes(string.Concat(Enumerable.Range(0, Length / 6).Select(i => $"{i:00000}\n"))));
        TaskCompletionSource isRegrown = new();
        IOException e = await Assert.ThrowsAsync<IOException>(() => FilePipeReader.ForEachPartitionAsync(
            path,
            async (reader, _) =>
            {
                if (reader.Position > 0)
                {
                    await isRegrown.Task;
                }

                using FileStream stream = new(path, FileMode.Open, FileAccess.Write, FileShare.ReadWrite);
                stream.SetLength(isRegrown.Task.IsCompleted ? Length : 0);
                await LineWays.LinesAsync(reader);
                stream.SetLength(Length);
                isRegrown.TrySetResult();
            },
            2,
            new() { Share = FileShare.ReadWrite },
            cancellationToken: _stop));
        Assert.Contains(path, e.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task ForEachPartitionAsync_BodyLeavesEarly_IsNoError()
    {
        string path = _folder.File("f", FilePipelines.Child.Pattern.Bytes(100_000));
        await FilePipeReader.ForEachPartitionAsync(
            path, async (reader, _) => reader.AdvanceTo((await reader.ReadAsync(_stop)).Buffer.Start), 2, cancellationToken: _stop);
    }

    [Fact]
    public async Task ForEachPartitionAsync_ReadFails_ThrowsWhatReadingThrows()
    {
        string path = _folder.File("f", Encoding.Latin1.GetBytes(string.Concat(Enumerable.Repeat("line\n", 1000))));
        await Assert.ThrowsAsync<IOException>(() => FilePipeReader.ForEachPartitionAsync(
            path,
            async (reader, _) =>
            {
                // What a body reads with may fail as any reader does.
                await LineWays.LinesAsync(reader.Position > 0 ? Failing() : reader);
            },
            2,
            cancellationToken: _stop));

        static System.IO.Pipelines.PipeReader Failing()
        {
            System.IO.Pipelines.Pipe pipe = new();
            pipe.Writer.Complete(new IOException("of the device"));
            return pipe.Reader;
        }
    }

    [Fact]
    public async Task ForEachPartitionAsync_BadArgument_Throws()
    {
        string path = _folder.File("f", "a\n"u8.ToArray());
        foreach (FilePipeReaderOptions options in new FilePipeReaderOptions[] { new() { Offset = 1 }, new() { Length = 1 },
            new() { Follow = true }, new() { LeaveOpen = true } })
        {
            await Assert.ThrowsAsync<ArgumentException>(
                () => FilePipeReader.ForEachPartitionAsync(path, (_, _) => Task.CompletedTask, 1, options, cancellationToken: _stop));
        }

        await Assert.ThrowsAsync<ArgumentNullException>(
            () => FilePipeReader.ForEachPartitionAsync(path, null!, 1, cancellationToken: _stop));
        await Assert.ThrowsAsync<ArgumentOutOfRangeException>(
            () => FilePipeReader.ForEachPartitionAsync(path, (_, _) => Task.CompletedTask, 0, cancellationToken: _stop));
        await Assert.ThrowsAsync<FileNotFoundException>(
            () => FilePipeReader.ForEachPartitionAsync(path + "none", (_, _) => Task.CompletedTask, 1, cancellationToken: _stop));
        Assert.Throws<ArgumentOutOfRangeException>(() => FilePartitions.AtLineEnds(path, 0));
        Assert.Throws<ArgumentException>(() => FilePartitions.AtLineEnds("", 1));
        Assert.Throws<FileNotFoundException>(() => FilePartitions.AtLineEnds(path + "none", 1));
    }

    [Fact]
    public void With_AnotherPart_KeepsEveryOtherOption()
    {
        FilePipeReaderOptions options = new()
        {
            BufferSize = 77,
            Offset = 1,
            Length = 2,
            LeaveOpen = true,
            Pool = new CheckedPool(),
            PauseReadAheadThreshold = 5,
            ResumeReadAheadThreshold = 4,
            Follow = true,
            FollowInterval = TimeSpan.FromSeconds(3),
            Share = FileShare.None,
            FileOptions = FileOptions.SequentialScan,
            Backend = FilePipeBackend.Portable,
        };
        FilePipeReaderOptions copy = options.With(10, null);
        Assert.Equal((10, null), (copy.Offset, copy.Length));
        foreach (PropertyInfo property
            in typeof(FilePipeReaderOptions).GetProperties().Where(property => property.Name is not ("Offset" or "Length")))
        {
            Assert.Equal(property.GetValue(options), property.GetValue(copy));
        }
    }
}
