using System.Diagnostics;
using System.Globalization;
using System.Security.Cryptography;
using CopySample;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Measuring;

namespace FilePipelinesBenchmarks.Copying;

/// <summary>
/// <c>trees [--files N] [--rounds N]</c>: a folder of files of all sizes is copied, with the SHA-256 of each: a loop of File.Copy and
/// SHA256.HashData, and samples/Copy, in turns.
/// </summary>
internal static class TreeCommand
{
    private const int LeastSize = 1024;
    private const int MostSize = 16 * 1024 * 1024;
    private const int DefaultFiles = 1000;
    private const int DefaultRounds = 5;

    internal static async Task<int> RunAsync(string[] arguments)
    {
        int files = DefaultFiles;
        int rounds = DefaultRounds;
        for (int i = 0; i < arguments.Length; i += 2)
        {
            bool hasNumber = int.TryParse(arguments.ElementAtOrDefault(i + 1), CultureInfo.InvariantCulture, out int number) && number > 0;
            switch (arguments[i])
            {
                case "--files" when hasNumber:
                    files = number;
                    break;
                case "--rounds" when hasNumber:
                    rounds = number;
                    break;
                default:
                    await Console.Error.WriteLineAsync("trees does not understand that: trees [--files N] [--rounds N]");
                    return 2;
            }
        }

        using TemporaryFolder folder = new();
        string source = folder.PathOf("source");
        long bytes = Make(source, files);
        (string Name, Func<string, Task> CopyAsync)[] ways =
        [
            ("File.Copy and SHA256.HashData, one after the other", destination => LoopAsync(source, destination, 1)),
            ("the same, 2 at once", destination => LoopAsync(source, destination, 2)),
            ("samples/Copy --verify --jobs 1", destination => SampleAsync(source, destination, 1)),
            ("samples/Copy --verify --jobs 2", destination => SampleAsync(source, destination, 2)),
        ];
        List<double>[] seconds = [.. ways.Select(_ => new List<double>())];
        for (int round = -1; round < rounds; round++)
        {
            for (int i = 0; i < ways.Length; i++)
            {
                int way = (Math.Max(0, round) + i) % ways.Length;
                string destination = folder.PathOf("destination");
                long start = Stopwatch.GetTimestamp();
                await ways[way].CopyAsync(destination);
                double time = Stopwatch.GetElapsedTime(start).TotalSeconds;
                if (Directory.EnumerateFiles(destination).Sum(file => new FileInfo(file).Length) != bytes)
                {
                    throw new InvalidDataException($"{ways[way].Name} copied something else.");
                }

                Directory.Delete(destination, recursive: true);
                if (round >= 0)
                {
                    seconds[way].Add(time);
                }
            }
        }

        Console.WriteLine(string.Create(
            CultureInfo.InvariantCulture, $"{files:N0} files of {SizeText.Of(LeastSize)} to {SizeText.Of(MostSize)}, {bytes / 1e6:N0} MB"));
        Console.WriteLine("way; seconds (quartiles); ratio to the first (quartiles)");
        for (int i = 0; i < ways.Length; i++)
        {
            Spread time = Spread.Of(seconds[i]);
            Spread ratio = Spread.Of(seconds[i].Zip(seconds[0], (own, baseline) => own / baseline));
            Console.WriteLine(string.Create(
                CultureInfo.InvariantCulture,
                $"{ways[i].Name}; {time.Median:0.00} ({time.LowerQuartile:0.00}–{time.UpperQuartile:0.00}); "
                + $"{ratio.Median:0.00} ({ratio.LowerQuartile:0.00}–{ratio.UpperQuartile:0.00})"));
        }

        return 0;
    }

    // As many files of each order of size as of any other.
    private static long Make(string folder, int count)
    {
        Directory.CreateDirectory(folder);
        Random random = new(1);
        byte[] content = new byte[MostSize];
        random.NextBytes(content);
        long bytes = 0;
        for (int i = 0; i < count; i++)
        {
            int length = (int)(LeastSize * Math.Pow((double)MostSize / LeastSize, random.NextDouble()));
            File.WriteAllBytes(Path.Join(folder, $"{i}"), content.AsSpan(0, length));
            bytes += length;
        }

        return bytes;
    }

    private static async Task LoopAsync(string source, string destination, int jobs)
    {
        Directory.CreateDirectory(destination);
        await Parallel.ForEachAsync(
            new DirectoryInfo(source).EnumerateFiles(), new ParallelOptions { MaxDegreeOfParallelism = jobs }, (file, _) =>
            {
                File.Copy(file.FullName, Path.Join(destination, file.Name));
                using FileStream stream = file.OpenRead();
                SHA256.HashData(stream);
                return default;
            });
    }

    private static Task SampleAsync(string source, string destination, int jobs)
        => new TreeCopier(new Settings(source, destination, Verify: true, Jobs: jobs), new Totals()).CopyAsync(
            static message => throw new IOException(message), CancellationToken.None);
}
