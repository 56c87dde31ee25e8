namespace FilePipelines.Tests;

/// <summary>
/// The lines of random texts in random mixtures of ways, one going on where another has left off, over readers of every kind and size,
/// against string.Split. No memory of a caller's pool is lost, however the lines were left.
/// </summary>
[Trait("Category", FuzzTime.Category)]
public sealed class LineFuzzTests : FileTests
{
    private const int Readers = 6;

    [Fact]
    public Task Lines_RandomWaysInTurns_AreThoseOfSplit() => FuzzTime.RunAsync(seed => RunAsync(new Random(seed)), times: 100);

    private async Task RunAsync(Random random)
    {
        string text = RandomText(random);
        string path = _folder.File("f", Encoding.Latin1.GetBytes(text));
        List<string> expected = LineWays.Split(text);
        CheckedPool pool = new();
        PipeReader reader = RandomReader(random, path, pool);
        int maxLength = random.Next(4) == 0 ? random.Next(200) : int.MaxValue;
        int given = 0;
        bool isOver = false;
        while (!isOver)
        {
            LineWays.Way way = LineWays.All[random.Next(LineWays.All.Length)];
            int count = random.Next(3) == 0 ? int.MaxValue : random.Next(1, 30);
            bool leaveOpen = random.Next(20) != 0;
            int most = expected.Skip(given).Take(count).TakeWhile(line => line.Length <= maxLength).Count();
            try
            {
                List<string> lines = await way(reader, count, leaveOpen, maxLength);
                Assert.Equal(expected.Skip(given).Take(count), lines);
                given += lines.Count;
                isOver = lines.Count < count;
            }
            catch (LineTooLongException e)
            {
                Assert.Equal(most + 1, e.LineNumber);
                Assert.True(expected[given + most].Length > maxLength);
                given += most;
                maxLength = int.MaxValue;
            }

            isOver |= !leaveOpen;
        }

        await reader.CompleteAsync();
        Assert.Equal((0, 0), (pool.Rented, pool.ReturnedTwice));
    }

    private static string RandomText(Random random)
    {
        StringBuilder text = new();
        int longest = random.Next(5) switch { 0 => 0, 1 => 5, 2 => 100, 3 => 400, _ => 3000 };
        for (int lines = random.Next(300); lines > 0; lines--)
        {
            text.Append((char)('a' + random.Next(26)), random.Next(longest + 1))
                .Append(random.Next(8) switch { 0 => "\r\n", 1 => "\r", 2 => "\r\r\n", 3 => "\n\n", _ => "\n" });
        }

        return text.Append('z', random.Next(2) * random.Next(50)).ToString();
    }

    private static PipeReader RandomReader(Random random, string path, CheckedPool pool)
    {
        int size = random.Next(4) switch { 0 => random.Next(1, 20), 1 => random.Next(20, 300), 2 => random.Next(300, 5000), _ => 65536 };
        FilePipeReaderOptions options = new()
        {
            BufferSize = size,
            Pool = random.Next(2) == 0 ? pool : null,
            PauseReadAheadThreshold = random.Next(4) == 0 ? random.Next(1, 5000) : 0,
        };
        byte[] bytes = File.ReadAllBytes(path);
        switch (random.Next(Readers))
        {
            case 0:
                return PipeReader.Create(new FileStream(path, FileMode.Open, FileAccess.Read, FileShare.Read, 0),
                    new StreamPipeReaderOptions(pool, size, minimumReadSize: 1));
            case 1:
                return PipeReader.Create(new System.Buffers.ReadOnlySequence<byte>(bytes));
            case 2:
                Pipe pipe = new(new PipeOptions(pool, minimumSegmentSize: size, pauseWriterThreshold: 0));
                for (int i = 0; i < bytes.Length;)
                {
                    int length = Math.Min(bytes.Length - i, random.Next(1, size + 1));
                    bytes.AsSpan(i, length).CopyTo(pipe.Writer.GetSpan(length));
                    pipe.Writer.Advance(length);
                    i += length;
                    _ = random.Next(2) == 0 ? pipe.Writer.FlushAsync().AsTask() : null;
                }

                pipe.Writer.Complete();
                return pipe.Reader;
            case 3 when OperatingSystem.IsLinux():
                // Reads that end anywhere.
                int most = random.Next(1, 5000);
                return new ScriptedCalls
                {
                    OnRead = _ => Random.Shared.Next(1, most + 1),
                    OnReadNoWait = _ => Random.Shared.Next(1, most + 1),
                }.Read(path, options);
            default:
                return FilePipeReader.Create(path, options);
        }
    }
}
