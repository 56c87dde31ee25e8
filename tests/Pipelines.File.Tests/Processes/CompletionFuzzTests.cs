namespace FilePipelines.Tests;

/// <summary>
/// Readers and writers that another thread cancels and completes, or aborts, at a random moment: what was read, and what the file has, is
/// an unbroken beginning; what was told is written; no memory comes back twice; the file is closed.
/// </summary>
[Trait("Category", FuzzTime.Category)]
public sealed class CompletionFuzzTests : FileTests
{
    private const int MaxLength = 1_000_000;

    [Fact]
    public Task Reader_CompletedFromElsewhere_HasGivenAnUnbrokenBeginning()
        => FuzzTime.RunAsync(seed => ReadAsync(new Random(seed)), times: 40);

    [Fact]
    public Task Writer_EndedFromElsewhere_FileHasAnUnbrokenBeginningWithAllThatWasTold()
        => FuzzTime.RunAsync(seed => WriteAsync(new Random(seed)), times: 40);

    private async Task ReadAsync(Random random)
    {
        string path = _folder.File($"read-{random.Next()}", Pattern.Bytes(random.Next(MaxLength)));
        CheckedPool pool = new();
        bool hasPool = random.Next(2) == 0;
        bool isEnding = false;
        FilePipeReader reader = FilePipeReader.Create(path, new()
        {
            BufferSize = random.Next(1, 20_000),
            Pool = hasPool ? pool : null,
            PauseReadAheadThreshold = random.Next(2) * random.Next(100_000),
            FollowInterval = GrowingFile.Interval,
            Follow = random.Next(3) == 0,
        });
        Task ending = EndAsync(
            random.Next(),
            reader.CancelPendingRead,
            () =>
            {
                Volatile.Write(ref isEnding, true);
                reader.Complete();
            },
            () =>
            {
                Volatile.Write(ref isEnding, true);
                return reader.CompleteAsync();
            });
        long position = 0;
        try
        {
            for (ReadResult result = default; !result.IsCompleted;)
            {
                result = await reader.ReadAsync(_stop);
                foreach (ReadOnlyMemory<byte> memory in result.Buffer)
                {
                    // Complete gives a caller's pool its memory back, also that of this buffer.
                    Assert.True(Pattern.FirstDifference(memory.Span, position) < 0 || (hasPool && Volatile.Read(ref isEnding)));
                    position += memory.Length;
                }

                reader.AdvanceTo(result.Buffer.End);
            }
        }
        catch (Exception e) when (e is InvalidOperationException || (e is ArgumentOutOfRangeException && hasPool && isEnding))
        {
            // It was completed.
        }

        await ending;
        await reader.CompleteAsync();
        Assert.InRange(position, 0, new FileInfo(path).Length);
        await Eventually.FreeAsync(path);
        Assert.Equal((0, 0), (pool.ReturnedTwice, pool.ReturnedPinned));
        File.Delete(path);
    }

    private async Task WriteAsync(Random random)
    {
        string path = _folder.File($"written-{random.Next()}");
        CheckedPool pool = new();
        FlushGuarantee guarantee = random.Next(2) == 0 ? FlushGuarantee.Written : FlushGuarantee.WriteBehind;
        FilePipeWriter writer = FilePipeWriter.Create(path, new()
        {
            FlushGuarantee = guarantee,
            MinimumBufferSize = random.Next(1, 20_000),
            PauseWriterThreshold = random.Next(1, 100_000),
            ResumeWriterThreshold = 1,
            Pool = random.Next(2) == 0 ? pool : null,
        });
        bool aborts = random.Next(3) == 0;
        Task ending = aborts
            ? EndAsync(random.Next(), writer.CancelPendingFlush, writer.Abort, endAsync: null)
            : EndAsync(random.Next(), writer.CancelPendingFlush, () => writer.Complete(), () => writer.CompleteAsync());
        long position = 0;
        long told = 0;
        try
        {
            while (position < MaxLength)
            {
                int length = random.Next(random.Next(4) == 0 ? 100_000 : 1000);
                FlushResult result = await writer.WriteAsync(Pattern.Bytes(length, position), _stop);
                position += length;
                told = result.IsCanceled || guarantee == FlushGuarantee.WriteBehind ? told : position;

                // What a canceled call has not taken is not written, and nobody knows how much that is.
                if (result.IsCanceled)
                {
                    break;
                }
            }
        }
        catch (Exception e) when (e is InvalidOperationException or OperationCanceledException)
        {
            // It was ended.
        }

        // While a write is under way, completing from elsewhere is refused.
        Exception? refused = await Record.ExceptionAsync(() => ending);
        Assert.True(refused is null || (refused is InvalidOperationException && !aborts), $"{refused}");
        await writer.CompleteAsync();
        await Eventually.FreeAsync(path);
        byte[] content = await File.ReadAllBytesAsync(path, _stop);
        Assert.Equal(-1, Pattern.FirstDifference(content));
        Assert.True(content.Length >= told, $"{content.Length} bytes, and {told} were told as written");
        Assert.Equal((0, 0), (pool.ReturnedTwice, pool.ReturnedPinned));
        File.Delete(path);
    }

    /// <summary>After a while, from another thread.</summary>
    private static Task EndAsync(int seed, Action cancel, Action end, Func<ValueTask>? endAsync)
    {
        Random random = new(seed);
        return Task.Run(async () =>
        {
            if (random.Next(4) == 0)
            {
                await Task.Delay(random.Next(3));
            }

            Thread.SpinWait(random.Next(50_000));
            if (random.Next(3) == 0)
            {
                cancel();
                Thread.SpinWait(random.Next(10_000));
            }

            if (endAsync is not null && random.Next(2) == 0)
            {
                await endAsync();
            }
            else
            {
                end();
            }
        });
    }
}
