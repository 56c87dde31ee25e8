using System.Diagnostics.Metrics;

namespace Pipelines.File.AspNetCore;

/// <summary>Counters of the meter "Pipelines.File", beside those of the library, which count the bytes.</summary>
internal static class FilePipelinesMetrics
{
    private static readonly Meter s_meter = new("Pipelines.File");
    private static readonly Counter<long> s_sent = s_meter.CreateCounter<long>("pipelines.file.responses.sent", "{file}", "Files, or ranges of them, that were pumped into a response");
    private static readonly Counter<long> s_left = s_meter.CreateCounter<long>("pipelines.file.responses.left", "{file}", "Files, or ranges of them, that were left to the server's own SendFileAsync");
    private static readonly Counter<long> s_saved = s_meter.CreateCounter<long>("pipelines.file.uploads.saved", "{file}", "Request bodies that were saved whole");
    private static readonly Counter<long> s_broken = s_meter.CreateCounter<long>("pipelines.file.uploads.broken", "{file}", "Request bodies that broke off or could not be saved");

    private static readonly Counter<long> s_opened = s_meter.CreateCounter<long>("pipelines.file.responses.opened", "{file}", "Files that were opened to be sent; the others were open");

    // Interlocked: of all applications of the process.
    private static long s_kept;

    static FilePipelinesMetrics()
        => s_meter.CreateObservableUpDownCounter("pipelines.file.responses.kept", static () => Volatile.Read(ref s_kept), "{file}", "Files that are kept open for the next request");

    internal static void Opened() => s_opened.Add(1);

    internal static void Kept(int change) => Interlocked.Add(ref s_kept, change);

    internal static void Sent() => s_sent.Add(1);

    internal static void Left() => s_left.Add(1);

    internal static void Saved() => s_saved.Add(1);

    internal static void Broke() => s_broken.Add(1);
}
