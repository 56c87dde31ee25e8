using System.Collections.Concurrent;
using System.Diagnostics.Metrics;

namespace Pipelines.File;

/// <summary>
/// The counters of the meter "Pipelines.File.Logs", of all followers of the process together. Every instrument is observable: a listener
/// reads the counters on its own thread, and counting calls no listener.
/// </summary>
internal static class LogFollowerMetrics
{
    private static readonly Meter s_meter = new("Pipelines.File.Logs",
        typeof(LogFollowerMetrics).Assembly.GetName().Version!.ToString(3));

    // All enumerations of the process.
    private static readonly ConcurrentDictionary<LogSet, byte> s_sets = new();

    static LogFollowerMetrics()
    {
        Counter("lines", "{line}", "Lines that followers have returned", All.Lines);
        Counter("rotations", "{file}", "Files that followers have left for the next one", All.Rotations);
        Counter("gaps", "{gap}", "How often lines were missed", All.Gaps);
        Counter("skipped", "By", "Bytes of holes, which are NULs, that were skipped at the beginning of lines", All.Skipped);
        Level("files", "{file}", "Files that followers have open", static set => set.Files);
        Level("behind", "By", "Bytes of logs that were written and not returned yet", static set => set.BytesBehind);
    }

    internal static LogFollowerCounts All { get; } = new(null);

    internal static void Add(LogSet set) => s_sets[set] = 0;

    internal static void Remove(LogSet set) => s_sets.TryRemove(set, out _);

    private static void Counter(string name, string unit, string description, LogFollowerCounts.Count count)
        => s_meter.CreateObservableCounter("pipelines.file.logs." + name, () => count.Value, unit, description);

    private static void Level(string name, string unit, string description, Func<LogSet, long> level)
        => s_meter.CreateObservableUpDownCounter("pipelines.file.logs." + name, () => s_sets.Keys.Sum(level), unit, description);
}
