using System.Diagnostics;
using System.Globalization;
using OneBillionRows;
using Pipelines.File;
using Spectre.Console;

// dotnet run -c Release --project samples/OneBillionRows -- [--rows N] [--threads N] [--simple] [FILE]
const string Usage = """
    usage: OneBillionRows [--rows N] [--threads N] [--simple] [FILE]
      minimum, mean and maximum of each station in a file of lines "station;temperature", as in the one billion row challenge
      --rows N       makes FILE first, with N rows that are the same every time; without FILE it is made in the temporary folder, and deleted
      --threads N    reads that many parts of the file at once; as many as there are processors by default
      --simple       the same in ten lines, with File.ReadLines, to compare the answer and the time with
    """;

string? file = null;
long rows = 0;
int threads = Environment.ProcessorCount;
bool isSimple = false;
for (int i = 0; i < args.Length; i++)
{
    switch (args[i])
    {
        case "-h" or "--help":
            Console.WriteLine(Usage);
            return 0;
        case "--simple":
            isSimple = true;
            break;
        case "--rows" when i + 1 < args.Length && long.TryParse(args[i + 1], CultureInfo.InvariantCulture, out rows) && rows > 0:
        case "--threads" when i + 1 < args.Length && int.TryParse(args[i + 1], CultureInfo.InvariantCulture, out threads) && threads > 0:
            i++;
            break;
        case var path when file is null && !path.StartsWith('-'):
            file = path;
            break;
        default:
            Console.Error.WriteLine($"OneBillionRows: what is '{args[i]}'? --help tells what there is.");
            return 2;
    }
}

if (file is null && rows == 0)
{
    Console.Error.WriteLine("OneBillionRows: no file, and no --rows to make one of. --help tells what there is.");
    return 2;
}

using CancellationTokenSource interrupted = new();
Console.CancelKeyPress += (_, e) =>
{
    e.Cancel = true;
    interrupted.Cancel();
};

string measurements = file ?? Path.Combine(Path.GetTempPath(), $"onebillionrows-{Guid.NewGuid():N}.txt");
try
{
    if (rows > 0)
    {
        await ProgressAsync("Making rows", rows, progress => Measurements.MakeAsync(measurements, rows, progress, interrupted.Token));
    }

    long length = new FileInfo(measurements).Length;
    long start = Stopwatch.GetTimestamp();
    SortedDictionary<string, Station> stations = new(StringComparer.Ordinal);
    await ProgressAsync("Reading", length, async progress => stations = isSimple
        ? Simple.Read(measurements)
        : await StationTable.ReadAsync(measurements, threads, progress, interrupted.Token));
    double seconds = Stopwatch.GetElapsedTime(start).TotalSeconds;
    Console.WriteLine($"{{{string.Join(", ", stations.Select(station => $"{station.Key}={station.Value}"))}}}");
    Console.Error.WriteLine(string.Create(
        CultureInfo.InvariantCulture,
        $"{stations.Values.Sum(station => station.Count):N0} rows, {length:N0} bytes in {seconds:0.00} s, {length / seconds / 1e6:N0} "
        + $"MB/s{(isSimple ? " with File.ReadLines" : $" on {threads} threads")}"));
    return 0;
}
catch (Exception e) when (e is OperationCanceledException or IOException or UnauthorizedAccessException or ArgumentException
    or NotSupportedException or FormatException)
{
    Console.Error.WriteLine(e is OperationCanceledException ? "OneBillionRows: interrupted" : $"OneBillionRows: {e.Message}");
    return e is OperationCanceledException ? 130 : 2;
}
finally
{
    if (file is null)
    {
        File.Delete(measurements);
    }
}

// A bar, where somebody looks.
static async Task ProgressAsync(string what, long most, Func<Action<long>, Task> run)
{
    if (Console.IsOutputRedirected)
    {
        await run(_ => { });
        return;
    }

    await AnsiConsole.Progress()
        .Columns(new TaskDescriptionColumn(), new ProgressBarColumn(), new PercentageColumn(), new RemainingTimeColumn())
        .StartAsync(async context =>
        {
            ProgressTask task = context.AddTask(what, maxValue: most);
            await run(done => task.Increment(done));
            task.Value = most;
        });
}
