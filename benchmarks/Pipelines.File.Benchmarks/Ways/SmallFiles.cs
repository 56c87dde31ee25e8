using System.Buffers;

namespace FilePipelines.Benchmarks;

/// <summary>Many small files, and what reading all of them and adding up what is said of each gives.</summary>
internal sealed record SmallFileSet(IReadOnlyList<string> Paths, long Answer);

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
            "small", $"One of {Figures.Count(count)} small files, opened, read and closed one after the other", "length", 14,
            new PairedMeasurement(scale.MinRounds, 31, scale.Sample), "**Small files**: nearly all of it is open and close.",
            folder => [.. s_lengths.Select(lengths => Column.Of(
                lengths.Minimum == lengths.Maximum ? SizeText.Of(lengths.Minimum)
                    : $"{lengths.Minimum / 1024} to {SizeText.Of(lengths.Maximum)}",
                s_ways,
                Make(folder, count, lengths.Minimum, lengths.Maximum)))])
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

        return answer == files.Answer ? answer : throw new InvalidDataException($"{answer} instead of {files.Answer}.");
    });

    // Of lengths that repeat in the same order on every machine.
    private static SmallFileSet Make(TemporaryFolder folder, int count, int minimum, int maximum)
    {
        string root = Directory.CreateDirectory(folder.PathOf($"{count}-files-{minimum}-{maximum}")).FullName;
        Random random = new(Seed: 20190);
        string[] paths = [.. Enumerable.Range(0, count).Select(i => Path.Join(root, $"{i}.bin"))];
        byte[] content = new byte[maximum];
        long answer = 0;
        foreach (string path in paths)
        {
            random.NextBytes(content);
            ReadOnlySpan<byte> file = content.AsSpan(0, random.Next(minimum, maximum + 1));
            File.WriteAllBytes(path, file);
            answer += Look(file);
        }

        return new SmallFileSet(paths, answer);
    }

    private static long Look(ReadOnlySpan<byte> file) => Look(file.Length, file[^1]);
    private static long Look(long length, byte last) => length * (last + 1L);

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
            ? Look(buffer.FirstSpan) : Look(buffer.Length, buffer.Slice(buffer.Length - 1).FirstSpan[0]);
        reader.AdvanceTo(buffer.End);
        await reader.CompleteAsync();
        return answer;
    }
}
