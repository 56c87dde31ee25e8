using System.Security.Cryptography;
using CopySample;

namespace FilePipelines.Benchmarks;

/// <summary>A folder of files is copied, with the SHA-256 of each, by File.Copy and SHA256.HashData, and by samples/Copy.</summary>
internal static class Trees
{
    private const int LeastSize = 1024;

    internal static Grid Grid(Scale scale)
    {
        int count = scale.IsQuick ? 200 : 1000;
        return new(
            "trees", $"A folder of {Figures.Count(count)} files of 1 to 64 KiB, copied with the SHA-256 of each", "folder", 12,
            new PairedMeasurement(scale.MinRounds, 15, TimeSpan.FromMilliseconds(1)),
            "**Folders**: samples/Copy gives each file its name when it is whole.",
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
    private static IReadOnlyList<Candidate> Candidates(string source, string destination, long bytes)
    {
        return
        [
            Way("File.Copy, SHA256, 2 at once", () => LoopAsync(source, destination, 2)),
            Way("File.Copy, SHA256, one after the other", () => LoopAsync(source, destination, 1)),
            Way("samples/Copy --sha256 --jobs 2", () => SampleAsync(source, destination, 2)),
            Way("samples/Copy --sha256 --jobs 1", () => SampleAsync(source, destination, 1)),
        ];

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
