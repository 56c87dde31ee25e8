using System.Globalization;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Measuring;

namespace FilePipelinesBenchmarks.Copying;

/// <summary>
/// <c>trees [--files N] [--largest BYTES] [--rounds N] [--jobs 1|2]</c>: a folder of files of all sizes is copied, with the SHA-256 of
/// each, by File.Copy and SHA256.HashData and by samples/Copy, in turns; with <c>--jobs</c> only by the ways with so many files at once.
/// </summary>
internal static class TreeCommand
{
    private const int DefaultLargest = 16 * 1024 * 1024;
    private const int DefaultFiles = 1000;
    private const int DefaultRounds = 5;

    internal static async Task<int> RunAsync(string[] arguments)
    {
        int files = DefaultFiles;
        int largest = DefaultLargest;
        int rounds = DefaultRounds;
        int? jobs = null;
        for (int i = 0; i < arguments.Length; i += 2)
        {
            bool hasNumber = int.TryParse(arguments.ElementAtOrDefault(i + 1), CultureInfo.InvariantCulture, out int number) && number > 0;
            switch (arguments[i])
            {
                case "--files" when hasNumber:
                    files = number;
                    break;
                case "--largest" when hasNumber && number > 1024:
                    largest = number;
                    break;
                case "--rounds" when hasNumber:
                    rounds = number;
                    break;
                case "--jobs" when hasNumber && number <= 2:
                    jobs = number;
                    break;
                default:
                    await Console.Error.WriteLineAsync(
                        "trees does not understand that: trees [--files N] [--largest BYTES, more than 1024] [--rounds N] "
                        + "[--jobs 1|2]");
                    return 2;
            }
        }

        using TemporaryFolder folder = new();
        string source = folder.PathOf("source");
        long bytes = TreeWays.Make(source, files, largest);
        Column column = new("all", TreeWays.Candidates(source, folder.PathOf("destination"), bytes, jobs));
        PairedMeasurement measurement = new(rounds, rounds, TimeSpan.FromMilliseconds(1));
        Console.WriteLine(string.Create(
            CultureInfo.InvariantCulture, $"{files:N0} files of 1 KiB to {SizeText.Of(largest)}, {bytes / 1e6:N0} MB"));
        Console.WriteLine("way; seconds (quartiles); ratio to the first (quartiles)");
        foreach (Measured way in await measurement.RunAsync(column))
        {
            Spread time = way.Microseconds;
            Console.WriteLine(string.Create(
                CultureInfo.InvariantCulture,
                $"{way.Name}; {time.Median / 1e6:0.00} ({time.LowerQuartile / 1e6:0.00}–{time.UpperQuartile / 1e6:0.00}); "
                + $"{way.Ratio.Median:0.00} ({way.Ratio.LowerQuartile:0.00}–{way.Ratio.UpperQuartile:0.00})"));
        }

        return 0;
    }
}
