using System.Buffers;
using System.Globalization;
using System.IO.Pipelines;
using JournalSample;
using Pipelines.File;
using Spectre.Console;

// dotnet run -c Release --project samples/Journal -- verify FOLDER    --help tells more
const string Usage = """
    usage: Journal append FOLDER      every line of standard input is a record; says how many are on the device
           Journal dump FOLDER [FROM] writes every record as a line, from record number FROM on
           Journal follow FOLDER      the same, and waits for more, also while another process appends
           Journal verify FOLDER      reads and checks everything; changes nothing
           Journal repair FOLDER      cuts the journal before the first damage, and keeps the segments as they were in a folder beside it
           Journal bench [--producers N] [--seconds N] [--size BYTES] [--folder FOLDER]
                                      commits a second, and how long half of them and 99 of 100 took at most
                                      (64 producers, 5 s, 512 bytes, a temporary folder)
    exit status: 0 as asked, 1 the journal is damaged, 2 it cannot be done
    """;
if (args is ["-h" or "--help"])
{
    Console.WriteLine(Usage);
    return 0;
}

using CancellationTokenSource interrupted = new();
Console.CancelKeyPress += (_, e) =>
{
    e.Cancel = true;
    interrupted.Cancel();
};
try
{
    return args switch
    {
        ["append", string folder] => await AppendAsync(folder),
        ["dump", string folder] => await DumpAsync(folder, Journal.Oldest, follow: false, interrupted.Token),
        ["dump", string folder, string from] when long.TryParse(from, NumberStyles.None, CultureInfo.InvariantCulture, out long first)
            => await DumpAsync(folder, first, follow: false, interrupted.Token),
        ["follow", string folder] => await DumpAsync(folder, Journal.Oldest, follow: true, interrupted.Token),
        ["verify", string folder] => await VerifyAsync(folder, interrupted.Token),
        ["repair", string folder] => await RepairAsync(folder, interrupted.Token),
        ["bench", .. string[] options] => await BenchAsync(options),
        _ => Refuse("Journal: append, dump, follow, verify, repair or bench? --help tells more."),
    };
}
catch (InvalidJournalException e)
{
    Console.Error.WriteLine($"Journal: {e.Message}");
    return 1;
}
catch (OperationCanceledException)
{
    return 130;
}
catch (Exception e) when (e is IOException or UnauthorizedAccessException or NotSupportedException or ArgumentOutOfRangeException)
{
    return Refuse($"Journal: {e.Message}");
}

static int Refuse(string why)
{
    Console.Error.WriteLine(why);
    return 2;
}

static IAnsiConsole StandardError() => AnsiConsole.Create(new AnsiConsoleSettings { Out = new AnsiConsoleOutput(Console.Error) });

static async Task<int> AppendAsync(string folder)
{
    // Lines wait for the device together, this many at a time.
    const int MostWaiting = 1024;
    await using Journal journal = await Journal.OpenAsync(folder);
    if (journal.CutBytes > 0)
    {
        Console.Error.WriteLine($"Journal: {journal.CutBytes:N0} bytes behind the last whole record were cut off.");
    }

    long appended = 0;
    long before = journal.NextSequence;
    Queue<Task<long>> waiting = new(MostWaiting);
    await StandardError().Status().StartAsync("Appending", async status =>
    {
        PipeReader input = PipeReader.Create(Console.OpenStandardInput());
        await foreach (LineBatch batch in input.ReadLineBatchesAsync())
        {
            foreach (ReadOnlySpan<byte> line in batch)
            {
                waiting.Enqueue(journal.AppendAsync(line.ToArray()).AsTask());
                appended++;
            }

            while (waiting.Count > MostWaiting)
            {
                await waiting.Dequeue();
            }

            status.Status($"{appended - waiting.Count:N0} records on the device");
        }

        while (waiting.TryDequeue(out Task<long>? last))
        {
            await last;
        }
    });
    Console.WriteLine($"{appended:N0} records appended, from record {before:N0} on");
    return 0;
}

static async Task<int> DumpAsync(string folder, long from, bool follow, CancellationToken interrupted)
{
    PipeWriter output = PipeWriter.Create(Console.OpenStandardOutput());
    await foreach (JournalBatch batch in JournalReader.Open(folder).ReadBatchesAsync(from, follow, interrupted))
    {
        foreach (JournalRecord record in batch)
        {
            output.Write(record.Span);
            output.Write("\n"u8);
        }

        await output.FlushAsync(interrupted);
    }

    await output.CompleteAsync();
    return 0;
}

static async Task<int> VerifyAsync(string folder, CancellationToken interrupted)
{
    JournalSummary summary = await WithProgressAsync("Verifying", progress => Journal.VerifyAsync(folder, progress, interrupted).AsTask());
    Console.WriteLine(
        $"whole: records {summary.FirstSequence} to {summary.NextSequence - 1}, {summary.Bytes:N0} bytes in {summary.Segments:N0} "
        + (summary.Segments == 1 ? "segment" : "segments")
        + (summary.TornBytes > 0 ? $"; {summary.TornBytes:N0} bytes behind the last record are torn, and opening cuts them off" : ""));
    return 0;
}

static async Task<int> RepairAsync(string folder, CancellationToken interrupted)
{
    JournalRepair repair = await WithProgressAsync("Repairing", progress => Journal.RepairAsync(folder, progress, interrupted).AsTask());
    Console.WriteLine(repair.Damage is { } damage
        ? $"{damage.Message}\n{repair.CutBytes:N0} bytes were cut off; all of them are in {repair.SavedIn}"
        : "Nothing was damaged.");
    Console.WriteLine($"records {repair.Summary.FirstSequence} to {repair.Summary.NextSequence - 1} are whole");
    return 0;
}

static Task<T> WithProgressAsync<T>(string what, Func<IProgress<JournalProgress>, Task<T>> runAsync)
    => StandardError().Progress().StartAsync(context =>
    {
        ProgressTask task = context.AddTask(what);
        return runAsync(new Progress<JournalProgress>(progress =>
        {
            task.MaxValue = Math.Max(progress.TotalBytes, 1);
            task.Value = progress.Bytes;
        }));
    });

static async Task<int> BenchAsync(string[] options)
{
    int producers = 64;
    double seconds = 5;
    int size = 512;
    string? folder = null;
    for (int i = 0; i < options.Length; i += 2)
    {
        string? value = i + 1 < options.Length ? options[i + 1] : null;
        bool isKnown = options[i] switch
        {
            "--producers" => int.TryParse(value, CultureInfo.InvariantCulture, out producers) && producers > 0,
            "--seconds" => double.TryParse(value, CultureInfo.InvariantCulture, out seconds) && seconds > 0,
            "--size" => int.TryParse(value, CultureInfo.InvariantCulture, out size) && size is >= 0 and <= 16 * 1024 * 1024,
            "--folder" => (folder = value) is not null,
            _ => false,
        };
        if (!isKnown)
        {
            return Refuse($"Journal: bench does not understand '{options[i]} {value}'; --help tells more.");
        }
    }

    bool isTemporary = folder is null;
    folder ??= Path.Join(Path.GetTempPath(), $"journal-{Guid.NewGuid():N}");
    try
    {
        TimeSpan[] latencies;
        await using (Journal journal = await Journal.OpenAsync(folder))
        {
            latencies = await AnsiConsole.Status().StartAsync($"{producers} producers, {size} bytes a record, {seconds} s", _ =>
                JournalBench.RunAsync(journal, producers, size, TimeSpan.FromSeconds(seconds)));
        }

        Console.WriteLine(string.Create(
            CultureInfo.InvariantCulture,
            $"{producers} producers: {latencies.Length / seconds:N0} commits/s, p50 {latencies[latencies.Length / 2].TotalMicroseconds:N0} "
            + $"µs, p99 {latencies[(int)(latencies.Length * 0.99)].TotalMicroseconds:N0} µs"));
        return 0;
    }
    finally
    {
        if (isTemporary)
        {
            Directory.Delete(folder, recursive: true);
        }
    }
}
