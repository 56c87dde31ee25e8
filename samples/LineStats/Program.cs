using System.Diagnostics;
using System.IO.Pipelines;
using LineStats;
using Pipelines.File;
using Spectre.Console;

// dotnet run -c Release --project samples/LineStats -- [FILE | -]
if (args.Length > 1 || args is ["-h" or "--help"])
{
    TextWriter output = args.Length > 1 ? Console.Error : Console.Out;
    output.WriteLine("usage: LineStats [FILE | -]    counts the lines of FILE, of standard input (-), or of 256 MiB that it makes itself, and compares ways to read the file");
    return args.Length > 1 ? 2 : 0;
}

using CancellationTokenSource interrupted = new();
Console.CancelKeyPress += (_, e) =>
{
    e.Cancel = true;
    interrupted.Cancel();
};

string? made = null;
try
{
    if (args is ["-"])
    {
        Print(await CountAsync(FilePipeReader.OpenStandardInput(), null, interrupted.Token));
        return 0;
    }

    string path = args.Length == 1 ? args[0] : made = await TextFile.MakeAsync(interrupted.Token);
    Print(await CountWithProgressAsync(path, interrupted.Token));
    await CompareAsync(path, interrupted.Token);
    return 0;
}
catch (OperationCanceledException)
{
    Console.Error.WriteLine("LineStats: interrupted");
    return 130;
}
catch (Exception e) when (e is IOException or UnauthorizedAccessException or ArgumentException)
{
    Console.Error.WriteLine($"LineStats: {e.Message}");
    return 2;
}
finally
{
    if (made is not null)
    {
        File.Delete(made);
    }
}

// The main job: the same loop for every PipeReader there is.
static async Task<LineCounter> CountAsync(PipeReader reader, Action<long>? progress, CancellationToken cancellationToken)
{
    LineCounter counter = new();
    try
    {
        while (true)
        {
            ReadResult result = await reader.ReadAsync(cancellationToken);
            counter.Add(result.Buffer);
            reader.AdvanceTo(result.Buffer.End);
            progress?.Invoke(counter.Bytes);
            if (result.IsCompleted)
            {
                counter.Complete();
                return counter;
            }
        }
    }
    finally
    {
        await reader.CompleteAsync();
    }
}

static async Task<long> CountWithStreamReaderAsync(string path, CancellationToken cancellationToken)
{
    using StreamReader reader = new(path);
    long lines = 0;
    while (await reader.ReadLineAsync(cancellationToken) is not null)
    {
        lines++;
    }

    return lines;
}

// Without FileStream's own buffer, and with segments as large as FilePipeReader's.
static PipeReader CreateTuned(string path)
    => PipeReader.Create(new FileStream(path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0), new StreamPipeReaderOptions(bufferSize: 64 * 1024));

static async Task<LineCounter> CountWithProgressAsync(string path, CancellationToken cancellationToken)
{
    // Not on this thread: to open a FIFO is to wait for its writer, and no token ends that.
    FilePipeReader reader = await Task.Run(() => FilePipeReader.Create(path), cancellationToken).WaitAsync(cancellationToken);
    if (Console.IsOutputRedirected)
    {
        return await CountAsync(reader, null, cancellationToken);
    }

    long length = Math.Max(1, new FileInfo(path).Length);
    return await AnsiConsole.Progress()
        .Columns(new TaskDescriptionColumn(), new ProgressBarColumn(), new PercentageColumn(), new TransferSpeedColumn())
        .StartAsync(async context =>
        {
            ProgressTask task = context.AddTask("Counting lines", maxValue: length);
            return await CountAsync(reader, bytes => task.Value = bytes, cancellationToken);
        });
}

// The same counter over each way to read; interleaved, since machines have moods, and the best round of each.
static async Task CompareAsync(string path, CancellationToken cancellationToken)
{
    (string Name, Func<Task> Run)[] ways =
    [
        ("FilePipeReader", () => CountAsync(FilePipeReader.Create(path), null, cancellationToken)),
        ("PipeReader.Create(FileStream)", () => CountAsync(PipeReader.Create(File.OpenRead(path)), null, cancellationToken)),
        ("  with buffers of 64 KiB", () => CountAsync(CreateTuned(path), null, cancellationToken)),
        ("StreamReader.ReadLineAsync", () => CountWithStreamReaderAsync(path, cancellationToken)),
    ];
    long length = new FileInfo(path).Length;
    if (length == 0)
    {
        // A FIFO or a device: there is nothing to read twice.
        return;
    }

    TimeSpan[] best = [.. ways.Select(_ => TimeSpan.MaxValue)];
    long[] allocated = [.. ways.Select(_ => long.MaxValue)];
    int rounds = length > 1L << 30 ? 1 : length > 1 << 24 ? 5 : 50;
    for (int round = 0; round < rounds; round++)
    {
        for (int way = 0; way < ways.Length; way++)
        {
            long before = GC.GetTotalAllocatedBytes(precise: true);
            long start = Stopwatch.GetTimestamp();
            await ways[way].Run();
            TimeSpan elapsed = Stopwatch.GetElapsedTime(start);
            best[way] = elapsed < best[way] ? elapsed : best[way];
            allocated[way] = Math.Min(allocated[way], GC.GetTotalAllocatedBytes(precise: true) - before);
        }
    }

    Table table = new() { Border = TableBorder.Simple };
    table.AddColumns(new TableColumn("the same file through"), new TableColumn("MB/s").RightAligned(), new TableColumn("time, relative").RightAligned(), new TableColumn("allocated").RightAligned());
    for (int way = 0; way < ways.Length; way++)
    {
        table.AddRow(
            Markup.Escape(ways[way].Name),
            $"{length / best[way].TotalSeconds / 1e6:N0}",
            $"{best[way] / best[0]:0.00}×",
            $"{allocated[way]:N0} B");
    }

    AnsiConsole.Write(table);
}

static void Print(LineCounter counter)
{
    Console.WriteLine($"lines         {counter.Lines:N0}");
    Console.WriteLine($"empty lines   {counter.EmptyLines:N0}");
    Console.WriteLine($"bytes         {counter.Bytes:N0}");
    Console.WriteLine($"longest line  {counter.LongestLine:N0} bytes, line {counter.LongestLineNumber:N0}");
}
