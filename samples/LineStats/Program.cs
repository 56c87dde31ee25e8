using System.Diagnostics;
using System.IO.Pipelines;
using LineStats;
using Pipelines.File;
using Spectre.Console;

// dotnet run -c Release --project samples/LineStats -- [FILE | -]
if (args.Length > 1 || args is ["-h" or "--help"])
{
    TextWriter output = args.Length > 1 ? Console.Error : Console.Out;
    output.WriteLine("usage: LineStats [FILE | -]    counts the lines of FILE, of standard input (-), or of 256 MiB that it makes itself, "
        + "and compares ways to read the file");
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

// Whole lines, batch by batch: where a line ends is found for the program.
static async Task<long> CountBatchesAsync(string path, CancellationToken cancellationToken)
{
    long lines = 0;
    await foreach (LineBatch batch in FilePipeReader.Create(path).ReadLineBatchesAsync(int.MaxValue, cancellationToken: cancellationToken))
    {
        foreach (ReadOnlySpan<byte> line in batch)
        {
            lines++;
        }
    }

    return lines;
}

static Task<LineCounter> CountByHandAsync(string path, CancellationToken cancellationToken)
{
    LineCounter counter = new();
    byte[] buffer = new byte[64 * 1024];
    using FileStream stream = new(path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0);
    for (int length; (length = stream.Read(buffer)) > 0;)
    {
        cancellationToken.ThrowIfCancellationRequested();
        counter.Add(buffer.AsSpan(0, length));
    }

    counter.Complete();
    return Task.FromResult(counter);
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
    => PipeReader.Create(new FileStream(path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0),
        new StreamPipeReaderOptions(bufferSize: 64 * 1024));

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

// Each way to read, in turns, since machines have moods: a ratio compares times of the same round, and its quartiles tell how far to
// believe it.
static async Task CompareAsync(string path, CancellationToken cancellationToken)
{
    (string Name, Func<Task> Run)[] ways =
    [
        ("FilePipeReader", () => CountAsync(FilePipeReader.Create(path), null, cancellationToken)),
        ("  batches of lines", () => CountBatchesAsync(path, cancellationToken)),
        ("FileStream by hand", () => CountByHandAsync(path, cancellationToken)),
        ("PipeReader.Create", () => CountAsync(PipeReader.Create(File.OpenRead(path)), null, cancellationToken)),
        ("  64 KiB buffers", () => CountAsync(CreateTuned(path), null, cancellationToken)),
        ("StreamReader", () => CountWithStreamReaderAsync(path, cancellationToken)),
    ];
    long length = new FileInfo(path).Length;
    if (length == 0)
    {
        // A FIFO or a device: there is nothing to read twice.
        return;
    }

    int rounds = length > 1L << 30 ? 3 : length > 1 << 24 ? 7 : 51;
    double[][] seconds = [.. ways.Select(_ => new double[rounds])];
    long[] allocated = [.. ways.Select(_ => long.MaxValue)];
    for (int round = 0; round < rounds; round++)
    {
        for (int way = 0; way < ways.Length; way++)
        {
            long before = GC.GetTotalAllocatedBytes(precise: true);
            long start = Stopwatch.GetTimestamp();
            await ways[way].Run();
            seconds[way][round] = Stopwatch.GetElapsedTime(start).TotalSeconds;
            allocated[way] = Math.Min(allocated[way], GC.GetTotalAllocatedBytes(precise: true) - before);
        }
    }

    Table table = new() { Border = TableBorder.Simple };
    table.AddColumns(
        new TableColumn("the file through"),
        new TableColumn("MB/s").RightAligned(),
        new TableColumn("relative").RightAligned(),
        new TableColumn("half of rounds").RightAligned(),
        new TableColumn("allocated").RightAligned());
    for (int way = 0; way < ways.Length; way++)
    {
        double[] ratios = [.. seconds[way].Zip(seconds[0], (time, first) => time / first).Order()];
        table.AddRow(
            Markup.Escape(ways[way].Name),
            $"{length / seconds[way].Order().ElementAt(rounds / 2) / 1e6:N0}",
            $"{ratios[rounds / 2]:0.00}×",
            $"{ratios[rounds / 4]:0.00} to {ratios[rounds * 3 / 4]:0.00}",
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
