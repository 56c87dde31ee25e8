using System.Diagnostics;
using System.Globalization;
using System.Text;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Measuring;
using Pipelines.File;

namespace FilePipelinesBenchmarks.Parsing;

/// <summary>The ways to know how many lines a file has; the first, a loop by hand, is the baseline.</summary>
internal static class CountWays
{
    private const int BufferSize = 64 * 1024;

    /// <summary>Makes a file in the folder, and the ways to count its lines; programs that are not installed are left out.</summary>
    internal static IReadOnlyList<Candidate> Candidates(TemporaryFolder folder, long length)
    {
        TextFile file = TextFile.MakeNumbers<LineParser>(folder, length, lineLength: 13);
        long lines = ByHand(file.Path);
        List<Candidate> ways =
        [
            new("by hand: 64 KiB, Span.Count", () => new ValueTask<long>(Check(ByHand(file.Path)))),
            new("FilePipeReader, batch.Count", async () => Check(await BatchesAsync(file.Path))),
        ];
        if (Programs.IsInstalled("wc"))
        {
            ways.Add(new("wc -l", async () => Check(await RunAsync("wc", "-l", file.Path))));
        }

        return ways;

        long Check(long count) => count == lines ? count : throw new InvalidDataException($"{count} lines instead of {lines}.");
    }

    /// <summary>The ways to count the lines that contain a few bytes, which one of a thousand does.</summary>
    internal static IReadOnlyList<Candidate> SearchCandidates(TemporaryFolder folder, long length)
    {
        TextFile file = TextFile.MakeNumbers<LineParser>(folder, length, lineLength: 100);
        long lines = SearchByHand(file.Path);
        List<Candidate> ways =
        [
            new("by hand: 64 KiB, IndexOf a line", () => new ValueTask<long>(Check(SearchByHand(file.Path)))),
            new("FilePipeReader, batches, IndexOf", async () => Check(await SearchBatchesAsync(file.Path))),
        ];
        if (Programs.IsInstalled("rg"))
        {
            string needle = Encoding.ASCII.GetString(Needle);
            ways.Add(new("ripgrep, rg -c -F", async () => Check(await RunAsync("rg", "-c", "-F", needle, file.Path))));
        }

        return ways;

        long Check(long count) => count == lines ? count : throw new InvalidDataException($"{count} lines instead of {lines}.");
    }

    private static ReadOnlySpan<byte> Needle => " 4711 "u8;

    private static long SearchByHand(string path)
    {
        byte[] buffer = new byte[BufferSize];
        using FileStream stream = new(path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0, FileOptions.SequentialScan);
        long lines = 0;
        int left = 0;
        for (int read; (read = stream.Read(buffer.AsSpan(left))) > 0;)
        {
            ReadOnlySpan<byte> rest = buffer.AsSpan(0, left + read);
            for (int end; (end = rest.IndexOf((byte)'\n')) >= 0; rest = rest[(end + 1)..])
            {
                lines += rest[..end].IndexOf(Needle) >= 0 ? 1 : 0;
            }

            rest.CopyTo(buffer);
            left = rest.Length;
        }

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

    private static long ByHand(string path)
    {
        byte[] buffer = new byte[BufferSize];
        using FileStream stream = new(path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0, FileOptions.SequentialScan);
        long lines = 0;
        for (int read; (read = stream.Read(buffer)) > 0;)
        {
            lines += buffer.AsSpan(0, read).Count((byte)'\n');
        }

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
