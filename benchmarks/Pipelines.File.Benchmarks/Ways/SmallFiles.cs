using System.Buffers;
using System.IO.Pipelines;
using Pipelines.File;

namespace FilePipelines.Benchmarks;

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

/// <summary>Every way to read small files, one after the other: opened, read and closed. The first is the baseline.</summary>
internal static class SmallFiles
{
    private static readonly (int Minimum, int Maximum)[] s_lengths = [(4096, 4096), (1024, 16384)];

    private static readonly Way<SmallFileSet>[] s_ways =
    [
        Way("File.ReadAllBytesAsync", static async path => Look(await File.ReadAllBytesAsync(path))),
        Way("File.ReadAllBytes", static path => new(Look(File.ReadAllBytes(path)))),
        Way("FileStreamAsync, rented buffer", static async path =>
        {
            using FileStream stream = new(path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0);
            byte[] buffer = ArrayPool<byte>.Shared.Rent((int)stream.Length);
            int length = await stream.ReadAtLeastAsync(buffer, (int)stream.Length);
            long answer = Look(buffer.AsSpan(0, length));
            ArrayPool<byte>.Shared.Return(buffer);
            return answer;
        }),
        Way("PipeReader.Create", static path => ReadAsync(
            PipeReader.Create(new FileStream(path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0)))),
        Way("FilePipeReader", static path => ReadAsync(FilePipeReader.Create(path))),
    ];

    internal static Grid Grid(Scale scale)
    {
        int count = scale.IsQuick ? 500 : 2000;
        return new(
            "small",
            $"One of {Figures.Count(count)} small files, opened, read and closed one after the other",
            "length",
            14,
            new PairedMeasurement(scale.MinRounds, 31, scale.Sample),
            "**Small files.** Nearly all of it is open and close, which every way needs; the rest is noise of about a microsecond.",
            folder => [.. s_lengths.Select(lengths => Column.Of(
                lengths.Minimum == lengths.Maximum ? SizeText.Of(lengths.Minimum)
                    : $"{lengths.Minimum / 1024} to {SizeText.Of(lengths.Maximum)}",
                s_ways,
                SmallFileSet.Make(folder, count, lengths.Minimum, lengths.Maximum)))])
        {
            Operations = count,
        };
    }

    private static Way<SmallFileSet> Way(string name, Func<string, ValueTask<long>> readAsync) => new(name, async files =>
    {
        long answer = 0;
        foreach (string path in files.Paths)
        {
            answer += await readAsync(path);
        }

        return files.Check(answer);
    });

    private static long Look(ReadOnlySpan<byte> file) => SmallFileSet.Look(file.Length, file[^1]);

    private static async ValueTask<long> ReadAsync(PipeReader reader)
    {
        ReadResult result;
        while (true)
        {
            // Examined and not consumed, so that all of it is there at the end, as it is for the other ways.
            result = await reader.ReadAsync();
            if (result.IsCompleted)
            {
                break;
            }

            reader.AdvanceTo(result.Buffer.Start, result.Buffer.End);
        }

        ReadOnlySequence<byte> buffer = result.Buffer;
        long answer = buffer.IsSingleSegment
            ? Look(buffer.FirstSpan) : SmallFileSet.Look(buffer.Length, buffer.Slice(buffer.Length - 1).FirstSpan[0]);
        reader.AdvanceTo(buffer.End);
        await reader.CompleteAsync();
        return answer;
    }
}
