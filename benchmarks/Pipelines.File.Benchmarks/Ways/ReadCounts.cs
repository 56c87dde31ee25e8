using System.Diagnostics;
using System.Diagnostics.Metrics;
using System.Globalization;
using System.IO.Pipelines;
using System.Text;
using Pipelines.File;

namespace FilePipelines.Benchmarks;

/// <summary>
/// <c>counts [--size MIB] [--output FILE]</c>: how many reads finish on the caller's thread and how many are handed over, with the file in
/// the system's cache and without. That is what decides how fast a back end is, and differs from system to system: a table in Markdown.
/// </summary>
internal static class ReadCounts
{
    private const int DefaultMebibytes = 128;

    /// <summary>
    /// FILE_FLAG_NO_BUFFERING: Windows lets go of what it has in its cache of a file that is opened with it, where nobody else has it open.
    /// </summary>
    private const FileOptions NoBuffering = (FileOptions)0x20000000;

    private static readonly int[] s_bufferSizes = [4 * 1024, 64 * 1024, 1024 * 1024];

    internal static async Task<int> RunAsync(string[] arguments)
    {
        Arguments given = new(arguments, "counts [--size MIB] [--output FILE]");
        int mebibytes = given.Number("--size", DefaultMebibytes);
        string? output = given.Text("--output");
        if (given.AreWrong())
        {
            return 2;
        }

        using TemporaryFolder folder = new();
        using IntegerFile file = IntegerFile.Make(folder, mebibytes * 1024L * 1024);
        StringBuilder table = new();
        table.AppendLine(CultureInfo.InvariantCulture,
            $"Reads of {mebibytes} MiB on {Environment.OSVersion.VersionString}, .NET {Environment.Version}").AppendLine();
        table.AppendLine("| cache | options | BufferSize | back end | inline | handed over | ms |")
            .AppendLine("| --- | --- | ---: | --- | ---: | ---: | ---: |");
        foreach (bool isCold in (bool[])[false, true])
        {
            foreach (FileOptions options in (FileOptions[])[FileOptions.None, FileOptions.SequentialScan])
            {
                foreach (int bufferSize in s_bufferSizes)
                {
                    table.AppendLine(await MeasureAsync(file, isCold, new() { FileOptions = options, BufferSize = bufferSize }));
                }
            }
        }

        Console.Write(table);
        if (output is not null)
        {
            Directory.CreateDirectory(Path.GetDirectoryName(Path.GetFullPath(output))!);
            await File.WriteAllTextAsync(output, table.ToString());
        }

        return 0;
    }

    private static async Task<string> MeasureAsync(IntegerFile file, bool isCold, FilePipeReaderOptions options)
    {
        if (!isCold)
        {
            await using FileStream warm = File.OpenRead(file.Path);
            await warm.CopyToAsync(Stream.Null);
        }
        else if (OperatingSystem.IsWindows())
        {
            File.OpenHandle(file.Path, options: NoBuffering).Dispose();
        }
        else if (PageCache.IsSupported)
        {
            PageCache.Evict(file.Path);
        }

        long inline = 0;
        long handedOver = 0;
        using MeterListener listener = new();
        listener.InstrumentPublished = static (instrument, listener) =>
        {
            if (instrument.Name is "pipelines.file.reads.inline" or "pipelines.file.reads.handed_over")
            {
                listener.EnableMeasurementEvents(instrument);
            }
        };
        listener.SetMeasurementEventCallback<long>((instrument, value, _, _) =>
        {
            // Observed: the sum since the process began.
            if (instrument.Name == "pipelines.file.reads.inline")
            {
                inline = value;
            }
            else
            {
                handedOver = value;
            }
        });
        listener.Start();
        listener.RecordObservableInstruments();
        (long inlineBefore, long handedOverBefore) = (inline, handedOver);
        long start = Stopwatch.GetTimestamp();
        FilePipeReader reader = FilePipeReader.Create(file.Path, options);
        ReadResult result;
        do
        {
            result = await reader.ReadAsync();
            reader.AdvanceTo(result.Buffer.End);
        }
        while (!result.IsCompleted);

        double milliseconds = Stopwatch.GetElapsedTime(start).TotalMilliseconds;
        await reader.CompleteAsync();
        listener.RecordObservableInstruments();
        return string.Create(
            CultureInfo.InvariantCulture,
            $"| {(isCold ? "cold" : "warm")} | {options.FileOptions} | {options.BufferSize} | {reader.Backend} | {inline - inlineBefore} | "
            + $"{handedOver - handedOverBefore} | {milliseconds:0.0} |");
    }
}
