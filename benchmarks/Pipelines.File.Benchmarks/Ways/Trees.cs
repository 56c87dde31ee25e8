using System.Globalization;
using System.Security.Cryptography;
using CopySample;

namespace FilePipelines.Benchmarks;

/// <summary>
/// <c>trees [--files N] [--largest BYTES] [--rounds N] [--jobs 1|2]</c>: a folder of files of all sizes is copied, with the SHA-256 of
/// each, by File.Copy and SHA256.HashData and by samples/Copy, in turns; with <c>--jobs</c> only by the ways with so many files at once.
/// </summary>
internal static class Trees
{
    private const int LeastSize = 1024;

    internal static async Task<int> RunAsync(string[] arguments)
    {
        Arguments given = new(arguments, "trees [--files N] [--largest BYTES, more than 1024] [--rounds N] [--jobs 1|2]");
        int files = given.Number("--files", 1000);
        int largest = given.Number("--largest", 16 * 1024 * 1024);
        int rounds = given.Number("--rounds", 5);
        int jobs = given.Number("--jobs", 0);
        if (given.AreWrong(also: largest <= LeastSize || jobs > 2))
        {
            return 2;
        }

        using TemporaryFolder folder = new();
        string source = folder.PathOf("source");
        long bytes = Make(source, files, largest);
        Column column = new("all", Candidates(source, folder.PathOf("destination"), bytes, jobs == 0 ? null : jobs));
        Console.WriteLine(string.Create(
            CultureInfo.InvariantCulture, $"{files:N0} files of 1 KiB to {SizeText.Of(largest)}, {bytes / 1e6:N0} MB"));
        Console.WriteLine("way; seconds (quartiles); ratio to the first (quartiles)");
        foreach (Measured way in await new PairedMeasurement(rounds, rounds, TimeSpan.FromMilliseconds(1)).RunAsync(column))
        {
            Spread time = way.Microseconds;
            Console.WriteLine(string.Create(
                CultureInfo.InvariantCulture,
                $"{way.Name}; {time.Median / 1e6:0.00} ({time.LowerQuartile / 1e6:0.00}–{time.UpperQuartile / 1e6:0.00}); "
                + $"{Figures.Ratio(way.Ratio)}"));
        }

        return 0;
    }

    internal static Grid Grid(Scale scale)
    {
        int count = scale.IsQuick ? 200 : 1000;
        return new(
            "trees",
            $"A folder of {Figures.Count(count)} files of 1 to 64 KiB, copied with the SHA-256 of each",
            "folder",
            12,
            new PairedMeasurement(scale.MinRounds, 15, TimeSpan.FromMilliseconds(1)),
            "**Folders.** samples/Copy gives each file its name when it is whole; File.Copy writes under the name.",
            folder =>
            {
                string source = folder.PathOf("source");
                long bytes = Make(source, count, mostSize: 64 * 1024);
                return [new Column($"{Figures.Count(count)} files", Candidates(source, folder.PathOf("destination"), bytes))];
            })
        {
            IsWarm = true,
        };
    }

    /// <summary>Makes a folder of files from 1 KiB up to a size, as many of each order of size as of any other.</summary>
    private static long Make(string folder, int count, int mostSize)
    {
        Directory.CreateDirectory(folder);
        Random random = new(1);
        byte[] content = new byte[mostSize];
        random.NextBytes(content);
        long bytes = 0;
        for (int i = 0; i < count; i++)
        {
            int length = (int)(LeastSize * Math.Pow((double)mostSize / LeastSize, random.NextDouble()));
            File.WriteAllBytes(Path.Join(folder, $"{i}"), content.AsSpan(0, length));
            bytes += length;
        }

        return bytes;
    }

    /// <summary>By hand and by samples/Copy, with one file at a time and with two at once.</summary>
    /// <param name="source">A folder that <see cref="Make"/> has made.</param>
    /// <param name="destination">Is deleted before each run, and the device has all that was written before.</param>
    /// <param name="bytes">All that is copied.</param>
    /// <param name="only">Only the ways with so many files at once.</param>
    private static IReadOnlyList<Candidate> Candidates(string source, string destination, long bytes, int? only = null)
    {
        (int Jobs, Candidate Way)[] ways =
        [
            (2, Way("File.Copy, SHA256, 2 at once", () => LoopAsync(source, destination, 2))),
            (1, Way("File.Copy, SHA256, one after the other", () => LoopAsync(source, destination, 1))),
            (2, Way("samples/Copy --sha256 --jobs 2", () => SampleAsync(source, destination, 2))),
            (1, Way("samples/Copy --sha256 --jobs 1", () => SampleAsync(source, destination, 1))),
        ];
        return [.. ways.Where(way => only is null || way.Jobs == only).Select(way => way.Way)];

        Candidate Way(string name, Func<Task> copyAsync) => new(
            name,
            async () =>
            {
                await copyAsync();
                long copied = Directory.EnumerateFiles(destination).Sum(file => new FileInfo(file).Length);
                return copied == bytes ? copied : throw new InvalidDataException($"{name} copied something else.");
            },
            () =>
            {
                if (Directory.Exists(destination))
                {
                    Directory.Delete(destination, recursive: true);
                }

                // Otherwise a way also waits for what the way before it has written.
                if (!OperatingSystem.IsWindows())
                {
                    Libc.SyncAll();
                }
            });
    }

    private static Task LoopAsync(string source, string destination, int jobs)
    {
        Directory.CreateDirectory(destination);
        Parallel.ForEach(new DirectoryInfo(source).EnumerateFiles(), new ParallelOptions { MaxDegreeOfParallelism = jobs }, file =>
        {
            File.Copy(file.FullName, Path.Join(destination, file.Name));
            using FileStream stream = file.OpenRead();
            SHA256.HashData(stream);
        });
        return Task.CompletedTask;
    }

    private static Task SampleAsync(string source, string destination, int jobs)
        => new TreeCopier(new Settings(source, destination, Hash: true, Jobs: jobs), new Totals()).CopyAsync(
            static message => throw new IOException(message), CancellationToken.None);
}
