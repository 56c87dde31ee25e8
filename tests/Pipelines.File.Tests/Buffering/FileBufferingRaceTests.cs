namespace FilePipelines.Tests;

/// <summary>The writer, the readers and those who may call at any moment, on threads of their own.</summary>
public sealed class FileBufferingRaceTests : FileTests
{
    private static readonly string[] s_calls =
    ["read", "flush", "cancel read", "cancel flush", "complete reader", "complete writer", "dispose", "stream", "open", "token", "save"];

    public static TheoryData<string, string> Pairs
    {
        get
        {
            TheoryData<string, string> pairs = [];
            foreach (string first in s_calls)
            {
                foreach (string second in s_calls.Where(second => string.CompareOrdinal(first, second) <= 0))
                {
                    // One caller at a time writes, and one reads.
                    if (!IsSameCaller(first, second, "read", "token", "complete reader")
                        && !IsSameCaller(first, second, "flush", "complete writer"))
                    {
                        pairs.Add(first, second);
                    }
                }
            }

            return pairs;
        }
    }

    [Theory]
    [MemberData(nameof(Pairs))]
    [Trait("Category", "Exploration")]
    public async Task TwoCallsAtOnce_InTheFileAndInMemory_EndAndLoseNothing(string first, string second)
    {
        for (int round = 0; round < Rounds.Of(20, 500); round++)
        {
            CheckedPool pool = new();
            bool hasPool = round % 8 < 4;
            FileBufferingPipe pipe = new(new()
            {
                Folder = _folder.Path,
                Pool = hasPool ? pool : null,
                MemoryThreshold = round % 2 == 0 ? 1000 : 1 << 20,
            });
            await pipe.Writer.WriteAsync(Pattern.Bytes(200_000), _stop);
            if (round % 4 < 2)
            {
                ReadResult begun = await pipe.Reader.ReadAsync(_stop);
                pipe.Reader.AdvanceTo(begun.Buffer.End);
            }

            using Barrier barrier = new(2);
            using CancellationTokenSource over = new();
            await Task.WhenAll(RunAsync(first), RunAsync(second)).WaitAsync(Eventually.Limit, _stop);
            await pipe.DisposeAsync();
            Assert.Equal(0, pool.ReturnedTwice);
            Assert.Equal(0, pool.ReturnedPinned);

            // A write may hold memory when the pipe is disposed of: nobody gets it back.
            int held = first == "dispose" && second == "flush" ? 1 : 0;
            await Eventually.TrueAsync(() => pool.Rented <= held);

            Task RunAsync(string call) => Task.Run(async () =>
            {
                await Task.Yield();
                barrier.SignalAndWait();
                try
                {
                    await CallAsync(pipe, call, round, !hasPool || (first != "dispose" && second != "dispose"), over.Token);
                }
                catch (Exception e) when (e is InvalidOperationException or OperationCanceledException or ObjectDisposedException)
                {
                    // What a call throws whose pipe, reader or writer was ended by the other one.
                }
                finally
                {
                    // A read may wait for what nobody writes any more.
                    await over.CancelAsync();
                }
            });
        }

        Assert.All(Directory.GetFiles(_folder.Path), path => Assert.StartsWith("saved", Path.GetFileName(path), StringComparison.Ordinal));
    }

    private static bool IsSameCaller(string first, string second, params string[] calls) => calls.Contains(first) && calls.Contains(second);

    private async Task CallAsync(FileBufferingPipe pipe, string call, int round, bool isHeld, CancellationToken over)
    {
        switch (call)
        {
            case "read":
                await ReadAsync(pipe.Reader, null, 200_000, round, reads: 3, over);
                break;
            case "token":
                using (CancellationTokenSource source = new())
                {
                    Task read = ReadAsync(pipe.Reader, null, 200_000, round, reads: 3, source.Token);
                    await source.CancelAsync();
                    await read;
                }

                break;
            case "flush":
                for (int i = 0; i < 5; i++)
                {
                    await pipe.Writer.WriteAsync(Pattern.Bytes(50_000, pipe.Length), _stop);
                }

                break;
            case "cancel read":
                pipe.Reader.CancelPendingRead();
                break;
            case "cancel flush":
                pipe.Writer.CancelPendingFlush();
                break;
            case "complete reader":
                await pipe.Reader.CompleteAsync();
                break;
            case "complete writer":
                await pipe.Writer.CompleteAsync();
                break;
            case "dispose":
                await pipe.DisposeAsync();
                break;
            case "stream":
                byte[] bytes = new byte[200_000];
                await pipe.AsStream().ReadExactlyAsync(bytes, _stop);
                Assert.Equal(-1, Pattern.FirstDifference(bytes));
                break;
            case "open":
                // Dispose gives a caller's pool the memory back of a buffer that a reader has just got.
                await ReadAsync(pipe.OpenReader(100_000), isHeld ? 100_000 : null, pipe.Length, round, reads: 1, over);
                break;
            case "save":
                string path = _folder.File("saved" + Guid.NewGuid());
                await pipe.SaveAsync(path, cancellationToken: _stop);
                Assert.Equal(-1, Pattern.FirstDifference(await File.ReadAllBytesAsync(path, _stop)));
                break;
        }
    }

    /// <summary>Reads to the end, or so often, without waiting for what nobody writes; checks every byte.</summary>
    private static async Task ReadAsync(PipeReader reader, long? offset, long length, int seed, int reads = int.MaxValue,
        CancellationToken token = default)
    {
        Random random = new(seed);
        for (long at = offset ?? -1; reads > 0; reads--)
        {
            ReadResult result = random.Next(3) == 0 ? await reader.ReadAtLeastAsync(random.Next(1, 1000), token)
                : await reader.ReadAsync(token);
            long end = at;
            foreach (ReadOnlyMemory<byte> memory in result.Buffer)
            {
                Assert.True(at < 0 || Pattern.FirstDifference(memory.Span, end) < 0);
                end += memory.Length;
            }

            long used = result.IsCompleted ? result.Buffer.Length : random.NextInt64(result.Buffer.Length + 1);
            reader.AdvanceTo(result.Buffer.GetPosition(used), result.Buffer.End);
            at += at < 0 ? 0 : used;
            if (result.IsCompleted)
            {
                Assert.True(at < 0 || at >= length);
                return;
            }
        }
    }
}
