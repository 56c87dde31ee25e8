namespace FilePipelines.Tests;

/// <summary>What a follower's buffer knows of the file before the end of what was read: that of the file, however it was read.</summary>
public sealed class LineBufferTests
{
    [Theory]
    [InlineData(1), InlineData(2), InlineData(3), InlineData(4), InlineData(5)]
    public void HashAtEnd_AnyLinesInAnyPieces_IsThatOfTheFile(int seed)
    {
        Random random = new(seed);
        for (int round = 0; round < 40; round++)
        {
            byte[] file = new byte[random.Next(1, 9000)];
            random.NextBytes(file);
            int lineLength = random.Next(2, 3000);
            for (int i = 0; i < file.Length; i++)
            {
                file[i] = random.Next(lineLength) == 0 ? (byte)'\n' : (byte)('a' + (file[i] % 26));
            }

            LogFollowerCounts counts = new(all: null);
            BatchLimits limits = new(random.Next(1, 50), random.Next(1, 5000), TimeSpan.Zero);
            LineBuffer buffer = new("log", random.Next(1, 4000), limits, counts);
            int begin = random.Next(2) * random.Next(file.Length);
            buffer.Begin(default, begin, file.AsSpan(Math.Max(0, begin - LogContent.MaxKnown)..begin), LogContent.HashOfBeginning(file));
            FollowedLine[] lines = [];
            while (buffer.End < file.Length)
            {
                if (buffer.IsEmpty && buffer.End >= LogContent.MaxKnown && random.Next(3) == 0)
                {
                    int end = (int)buffer.End + random.Next(2 * LogContent.MaxKnown);
                    end = Math.Min(end, file.Length);
                    file.AsSpan((int)buffer.End..end).Clear();
                    buffer.Skip(end);
                }
                else
                {
                    int length = random.Next(1, (int)Math.Min(file.Length - buffer.End, 2500) + 1);
                    buffer.Append(new System.Buffers.ReadOnlySequence<byte>(file, (int)buffer.End, length));
                }

                Assert.Equal(HashAt(file, buffer.End), buffer.HashAtEnd);
                while (buffer.HasLines && (buffer.IsFull || random.Next(2) == 0))
                {
                    foreach (FollowedLine line in buffer.Take(ref lines, new Loan(), []).Lines)
                    {
                        Assert.Equal(HashAt(file, line.Checkpoint.Offset), line.Checkpoint.ContentHash);
                    }

                    buffer.OnReturned();
                    Assert.Equal(HashAt(file, buffer.End), buffer.HashAtEnd);
                }
            }

            buffer.Return();
        }
    }

    private static ulong HashAt(byte[] file, long end)
        => LogContent.Hash(file.AsSpan((int)Math.Max(0, end - LogContent.MaxKnown)..(int)end), LogContent.HashOfBeginning(file));
}
