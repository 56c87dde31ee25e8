namespace FilePipelinesBenchmarks.Files;

/// <summary>Many small files in a folder of their own, of lengths that repeat in the same order on every machine.</summary>
internal sealed class SmallFileSet
{
    private SmallFileSet(IReadOnlyList<string> paths, long answer)
    {
        Paths = paths;
        Answer = answer;
    }

    internal IReadOnlyList<string> Paths { get; }

    /// <summary>What reading all of them and adding up what <see cref="Look"/> says of each gives.</summary>
    internal long Answer { get; }

    /// <param name="folder">Where the folder goes.</param>
    /// <param name="count">How many files.</param>
    /// <param name="minimum">The length of the shortest, bytes.</param>
    /// <param name="maximum">The length of the longest, bytes.</param>
    internal static SmallFileSet Make(TemporaryFolder folder, int count, int minimum, int maximum)
    {
        string root = folder.PathOf($"{count}-files-{minimum}-{maximum}");
        Directory.CreateDirectory(root);
        Random random = new(Seed: 20190);
        List<string> paths = new(count);
        byte[] content = new byte[maximum];
        long answer = 0;
        for (int i = 0; i < count; i++)
        {
            random.NextBytes(content);
            ReadOnlySpan<byte> span = content.AsSpan(0, random.Next(minimum, maximum + 1));
            string path = System.IO.Path.Join(root, $"{i}.bin");
            File.WriteAllBytes(path, span);
            paths.Add(path);
            answer += Look(span.Length, span[^1]);
        }

        return new SmallFileSet(paths, answer);
    }

    /// <summary>What one file gives: its length, weighted with its last byte.</summary>
    internal static long Look(long length, byte last) => length * (last + 1L);

    internal long Check(long answer) => answer == Answer ? answer : throw new InvalidDataException($"{answer} instead of {Answer}.");
}
