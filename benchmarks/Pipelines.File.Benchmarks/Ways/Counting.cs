using System.Text;

namespace FilePipelines.Benchmarks;

/// <summary>The ways to know how many lines a file has; the first, a loop by hand, is the baseline.</summary>
internal static class Counting
{
    private static readonly int[] s_sizes = [256 * 1024, 64 * 1024];

    /// <summary>How many lines a file has, and nothing else; a program that is not installed is left out.</summary>
    internal static Grid Counts(Scale scale) => new(
        "counts", $"Lines of 13 B counted, {SizeText.Of(scale.CountedBytes)}; the programs with their start, and without their CPU time",
        "file", 6, new PairedMeasurement(scale.MinRounds, 15, scale.Sample),
        "**Counting**: who only counts need not know where each line ends.",
        folder => [ColumnOf(folder, scale, lineLength: 13, path => ByHand(path, s_sizes[0]),
        [
            .. s_sizes.Select(size => WayOf($"by hand: Span.Count, {SizeText.Of(size)}", path => new(ByHand(path, size)))),
            ("FilePipeReader, batch.Count", BatchesAsync),
            Programs.IsInstalled("wc") ? ("wc -l", static path => RunAsync("wc", "-l", path)) : default,
        ])]);

    /// <summary>How many lines contain a few bytes, which one of a thousand does.</summary>
    internal static Grid Searches(Scale scale) => new(
        "searches",
        $"Lines of 100 B that contain a word, {SizeText.Of(scale.CountedBytes)}; the program with its start, and without its CPU time",
        "file", 8, new PairedMeasurement(scale.MinRounds, 15, scale.Sample),
        "**Searching**: ripgrep looks for ends of lines only around what it has found.",
        folder => [ColumnOf(folder, scale, lineLength: 100, path => SearchByHand(path, s_sizes[0]),
        [
            .. s_sizes.Select(size => WayOf($"by hand: IndexOf a line, {SizeText.Of(size)}", path => new(SearchByHand(path, size)))),
            ("FilePipeReader, batches, IndexOf", SearchBatchesAsync),
            Programs.IsInstalled("rg")
                ? ("ripgrep, rg -c -F", static path => RunAsync("rg", "-c", "-F", Encoding.ASCII.GetString(Needle), path)) : default,
        ])]);

    private static Column ColumnOf(TemporaryFolder folder, Scale scale, int lineLength, Func<string, long> expect,
        IEnumerable<(string Name, Func<string, ValueTask<long>> CountAsync)> ways)
    {
        string path = TextFile.MakeNumbers<LineParser>(folder, scale.CountedBytes, lineLength).Path;
        long lines = expect(path);
        return new Column(SizeText.Of(scale.CountedBytes), [.. ways.Where(way => way.Name is not null).Select(way => new Candidate(
            way.Name,
            async () => await way.CountAsync(path) is var count && count == lines ? count
                : throw new InvalidDataException($"{count} lines instead of {lines}.")))]);
    }

    private static (string Name, Func<string, ValueTask<long>> CountAsync) WayOf(string name, Func<string, ValueTask<long>> countAsync)
        => (name, countAsync);

    private static ReadOnlySpan<byte> Needle => " 4711 "u8;

    private static long SearchByHand(string path, int size)
    {
        long lines = 0;
        _ = ReadLoop.Run(path, size, rest =>
        {
            long found = 0;
            for (int end; (end = rest.IndexOf((byte)'\n')) >= 0; rest = rest[(end + 1)..])
            {
                found += rest[..end].IndexOf(Needle) >= 0 ? 1 : 0;
            }

            lines += found;
            return rest;
        });
        return lines;
    }

    private static async ValueTask<long> SearchBatchesAsync(string path)
    {
        long lines = 0;
        await foreach (LineBatch batch in FilePipeReader.Create(path).ReadLineBatchesAsync())
        {
            foreach (ReadOnlySpan<byte> line in batch)
            {
                lines += line.IndexOf(Needle) >= 0 ? 1 : 0;
            }
        }

        return lines;
    }

    private static long ByHand(string path, int size)
    {
        long lines = 0;
        _ = ReadLoop.Run(path, size, bytes =>
        {
            lines += bytes.Count((byte)'\n');
            return [];
        });
        return lines;
    }

    private static async ValueTask<long> BatchesAsync(string path)
    {
        long lines = 0;
        await foreach (LineBatch batch in FilePipeReader.Create(path).ReadLineBatchesAsync())
        {
            lines += batch.Count;
        }

        return lines;
    }

    // Its answer begins with the number.
    private static async ValueTask<long> RunAsync(string program, params string[] arguments)
    {
        using Process process = Process.Start(new ProcessStartInfo(program, arguments) { RedirectStandardOutput = true })!;
        string answer = await process.StandardOutput.ReadToEndAsync();
        await process.WaitForExitAsync();
        return long.Parse(answer.Trim().Split(' ')[0], CultureInfo.InvariantCulture);
    }
}
