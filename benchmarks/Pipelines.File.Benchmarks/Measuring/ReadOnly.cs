using System.Diagnostics;
using System.Globalization;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Reading;

namespace FilePipelinesBenchmarks.Measuring;

/// <summary>
/// <c>read WAY MIB BUFFER TIMES PATH</c>: one way to read and nothing else, for strace and perf to look at. The file is made first where
/// there is none.
/// </summary>
internal static class ReadOnly
{
    internal static async Task<int> RunAsync(string[] arguments)
    {
        ReadWay? way = arguments.Length == 5 ? ReadWays.All.FirstOrDefault(way => way.Name == arguments[0]) : null;
        if (way is null
            || !int.TryParse(arguments[1], CultureInfo.InvariantCulture, out int mebibytes)
            || !int.TryParse(arguments[2], CultureInfo.InvariantCulture, out int bufferSize)
            || !int.TryParse(arguments[3], CultureInfo.InvariantCulture, out int times))
        {
            await Console.Error.WriteLineAsync(
                $"read WAY MIB BUFFER TIMES PATH, where WAY is one of: {string.Join("; ", ReadWays.All.Select(way => way.Name))}");
            return 2;
        }

        ReadCase point = new(IntegerFile.MakeOnce(arguments[4], mebibytes * 1024L * 1024), bufferSize, FileOptions.SequentialScan);
        TimeSpan best = TimeSpan.MaxValue;
        for (int i = 0; i < times; i++)
        {
            long start = Stopwatch.GetTimestamp();
            await way.ReadAsync<LastEightBytes>(point);
            TimeSpan elapsed = Stopwatch.GetElapsedTime(start);
            best = elapsed < best ? elapsed : best;
        }

        Console.WriteLine(string.Create(CultureInfo.InvariantCulture, $"{way.Name}: {best.TotalMicroseconds:0} µs at best of {times}"));
        return 0;
    }
}
