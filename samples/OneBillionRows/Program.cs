using System.Diagnostics;
using System.Globalization;
using OneBillionRows;

// dotnet run -c Release --project samples/OneBillionRows -- [--rows N] [--threads N] [--simple] FILE
// Minimum, mean and maximum of each station in a file of lines "station;temperature", as in the one billion row challenge.
//   --rows N       makes FILE first, with N rows that are the same every time
//   --threads N    reads that many parts of the file at once; as many as there are processors by default
//   --simple       the same in ten lines, with File.ReadLines, to compare the answer and the time with
string? path = null;
long rows = 0;
int threads = Environment.ProcessorCount;
bool isSimple = false;
try
{
    for (int i = 0; i < args.Length; i++)
    {
        string? next = i + 1 < args.Length ? args[i + 1] : null;
        switch (args[i])
        {
            case "--simple":
                isSimple = true;
                break;
            case "--rows" when long.TryParse(next, CultureInfo.InvariantCulture, out rows) && rows > 0:
            case "--threads" when int.TryParse(next, CultureInfo.InvariantCulture, out threads) && threads > 0:
                i++;
                break;
            case [not '-', ..] when path is null:
                path = args[i];
                break;
            default:
                throw new ArgumentException($"what is '{args[i]}'? There is [--rows N] [--threads N] [--simple] FILE.");
        }
    }

    string file = path ?? throw new ArgumentException("no file. There is [--rows N] [--threads N] [--simple] FILE.");
    if (rows > 0)
    {
        await Measurements.MakeAsync(file, rows);
    }

    long length = new FileInfo(file).Length;
    long start = Stopwatch.GetTimestamp();
    SortedDictionary<string, Station> stations = isSimple ? ReadSimply(file) : await StationTable.ReadAsync(file, threads);
    double seconds = Stopwatch.GetElapsedTime(start).TotalSeconds;
    Console.WriteLine($"{{{string.Join(", ", stations.Select(station => $"{station.Key}={station.Value}"))}}}");
    long count = stations.Values.Sum(station => station.Count);
    Console.Error.WriteLine($"{count:N0} rows, {length:N0} bytes in {seconds:0.00} s, {length / seconds / 1e6:N0} MB/s");
    return 0;
}
catch (Exception e) when (e is IOException or UnauthorizedAccessException or ArgumentException or NotSupportedException or FormatException)
{
    Console.Error.WriteLine($"OneBillionRows: {e.Message}");
    return 2;
}

// The same as one would write it first.
static SortedDictionary<string, Station> ReadSimply(string path)
{
    Dictionary<string, Station> stations = [];
    foreach (string line in File.ReadLines(path))
    {
        string[] parts = line.Split(';');
        if (!stations.TryGetValue(parts[0], out Station? station))
        {
            stations.Add(parts[0], station = new Station());
        }

        station.Add((int)Math.Round(double.Parse(parts[1], CultureInfo.InvariantCulture) * 10));
    }

    return new(stations, StringComparer.Ordinal);
}
