using System.Buffers;
using System.Globalization;
using System.IO.Pipelines;
using JournalSample;
using Pipelines.File;
using Spectre.Console;

// dotnet run -c Release --project samples/Journal -- bench --producers 64    --help tells more
const string Usage = """
    usage: Journal append FILE    every line of standard input is a record; says how many are on the device
           Journal follow FILE    as append, and writes every record as a line when the file has it
           Journal read FILE      writes every record as a line, up to the first torn one
           Journal bench [--producers N] [--seconds N] [--size BYTES] [--file FILE]
                                  commits a second, and how long half of them and 99 of 100 took at most (64 producers, 5 s, 512 bytes, a temporary file)
    """;
if (args is ["-h" or "--help"])
{
    Console.WriteLine(Usage);
    return 0;
}

try
{
    return args switch
    {
        ["append", string path] => await AppendAsync(path, isFollowed: false),
        ["follow", string path] => await AppendAsync(path, isFollowed: true),
        ["read", string path] => await ReadAsync(path),
        ["bench", .. string[] options] => await BenchAsync(options),
        _ => Refuse("Journal: append FILE, follow FILE, read FILE or bench? --help tells more."),
    };
}
catch (Exception e) when (e is IOException or UnauthorizedAccessException or InvalidDataException or NotSupportedException)
{
    return Refuse($"Journal: {e.Message}");
}

static int Refuse(string why)
{
    Console.Error.WriteLine(why);
    return 2;
}

static async Task<int> AppendAsync(string path, bool isFollowed)
{
    // Lines wait for the device together, this many at a time.
    const int MostWaiting = 1024;

    // Who follows reads each byte once, so zeros must not stand where records are to come.
    await using Journal journal = isFollowed ? await Journal.OpenAsync(path, step: 0) : await Journal.OpenAsync(path);
    using FilePipeReader? followed = isFollowed
        ? FilePipeReader.Create(path, new FilePipeReaderOptions { Follow = true, Share = FileShare.ReadWrite }) : null;
    using CancellationTokenSource isAllWritten = new();
    Task following = followed is null ? Task.CompletedTask : FollowAsync(followed, path, isAllWritten.Token);
    if (journal.Cut > 0)
    {
        Console.Error.WriteLine($"Journal: {journal.Cut:N0} bytes behind the last of {journal.Recovered:N0} whole records were cut off.");
    }

    long appended = 0;
    Queue<Task<FlushResult>> waiting = new(MostWaiting);
    await AnsiConsole.Create(new AnsiConsoleSettings { Out = new AnsiConsoleOutput(Console.Error) }).Status()
        .StartAsync("Appending", async status =>
        {
            PipeReader input = PipeReader.Create(Console.OpenStandardInput());
            while (true)
            {
                ReadResult result = await input.ReadAsync();
                ReadOnlySequence<byte> buffer = result.Buffer;
                while (TryTakeLine(ref buffer, result.IsCompleted, out ReadOnlySequence<byte> line))
                {
                    waiting.Enqueue(journal.AppendAsync(line.IsSingleSegment ? line.FirstSpan : line.ToArray()).AsTask());
                    appended++;
                    if (waiting.Count == MostWaiting)
                    {
                        await waiting.Dequeue();
                        status.Status($"{appended - waiting.Count:N0} records on the device");
                    }
                }

                input.AdvanceTo(buffer.Start, buffer.End);
                if (result.IsCompleted)
                {
                    break;
                }
            }

            while (waiting.TryDequeue(out Task<FlushResult>? last))
            {
                await last;
            }
        });
    await isAllWritten.CancelAsync();
    followed?.CancelPendingRead();
    await following;
    Console.WriteLine($"{appended:N0} records appended, behind {journal.Recovered:N0}");
    return 0;
}

// The records as the file gets them, which may be a moment before they are on the device.
static async Task FollowAsync(FilePipeReader file, string path, CancellationToken isAllWritten)
{
    JournalReader reader = new(file);
    PipeWriter output = PipeWriter.Create(Console.OpenStandardOutput(), new StreamPipeWriterOptions(leaveOpen: true));
    while (!isAllWritten.IsCancellationRequested || reader.End < new FileInfo(path).Length)
    {
        if (await reader.ReadAsync() is { } record)
        {
            WriteLine(output, record);
            await output.FlushAsync(CancellationToken.None);
        }
        else if (!isAllWritten.IsCancellationRequested)
        {
            throw new IOException($"The journal was taken away while it was written: '{path}'");
        }
    }
}

static bool TryTakeLine(ref ReadOnlySequence<byte> buffer, bool isLast, out ReadOnlySequence<byte> line)
{
    if (buffer.PositionOf((byte)'\n') is SequencePosition end)
    {
        line = buffer.Slice(0, end);
        buffer = buffer.Slice(buffer.GetPosition(1, end));
        return true;
    }

    line = buffer;
    bool isLine = isLast && !buffer.IsEmpty;
    buffer = isLine ? buffer.Slice(buffer.End) : buffer;
    return isLine;
}

static async Task<int> ReadAsync(string path)
{
    FilePipeReader file = FilePipeReader.Create(path, new FilePipeReaderOptions { Share = FileShare.ReadWrite });
    await using JournalReader reader = new(file);
    PipeWriter output = PipeWriter.Create(Console.OpenStandardOutput());
    long records = 0;
    while (await reader.ReadAsync() is { } record)
    {
        WriteLine(output, record);
        records++;
        if (output.UnflushedBytes > 65536)
        {
            await output.FlushAsync();
        }
    }

    await output.CompleteAsync();
    long behind = new FileInfo(path).Length - reader.End;
    Console.Error.WriteLine(
        $"{records:N0} records{(behind > 0 ? $"; {behind:N0} bytes behind the last are torn, or were preallocated" : string.Empty)}");
    return 0;
}

static void WriteLine(PipeWriter output, ReadOnlySequence<byte> record)
{
    foreach (ReadOnlyMemory<byte> part in record)
    {
        output.Write(part.Span);
    }

    output.Write("\n"u8);
}

static async Task<int> BenchAsync(string[] options)
{
    int producers = 64;
    double seconds = 5;
    int size = 512;
    string? path = null;
    for (int i = 0; i < options.Length; i += 2)
    {
        string? value = i + 1 < options.Length ? options[i + 1] : null;
        bool isKnown = options[i] switch
        {
            "--producers" => int.TryParse(value, CultureInfo.InvariantCulture, out producers) && producers > 0,
            "--seconds" => double.TryParse(value, CultureInfo.InvariantCulture, out seconds) && seconds > 0,
            "--size" => int.TryParse(value, CultureInfo.InvariantCulture, out size) && size is >= 0 and <= JournalRecord.MaxLength,
            "--file" => (path = value) is not null,
            _ => false,
        };
        if (!isKnown)
        {
            return Refuse($"Journal: bench does not understand '{options[i]} {value}'; --help tells more.");
        }
    }

    bool isTemporary = path is null;
    path ??= Path.Join(Path.GetTempPath(), $"journal-{Guid.NewGuid():N}");
    try
    {
        TimeSpan[] latencies;
        await using (Journal journal = await Journal.OpenAsync(path))
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
            File.Delete(path);
        }
    }
}
