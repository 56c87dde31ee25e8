using System.Collections.Concurrent;
using System.Diagnostics.Metrics;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Http;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// The counters that this package adds to the meter "Pipelines.File"; those of the library count the bytes. Every one is observable, so
/// counting calls no listener.
/// </summary>
internal static class FilePipelinesMetrics
{
    private static readonly Meter s_meter = new("Pipelines.File");

    // Interlocked; they count for all applications of the process.
    private static long s_sent;
    private static long s_left;
    private static long s_opened;
    private static long s_kept;
    private static long s_saved;
    private static readonly ConcurrentDictionary<string, long> s_broken = new();

    static FilePipelinesMetrics()
    {
        Counter("responses.sent", "Files, or ranges of them, that were pumped into a response", static () => Volatile.Read(ref s_sent));
        Counter("responses.left", "Files, or ranges of them, that were left to the server's own SendFileAsync",
            static () => Volatile.Read(ref s_left));
        Counter("responses.opened", "Files that were opened to be sent; the others were open", static () => Volatile.Read(ref s_opened));
        Counter("uploads.saved", "Request bodies, or sections of them, that were saved whole", static () => Volatile.Read(ref s_saved));
        s_meter.CreateObservableCounter(
            "pipelines.file.uploads.broken",
            static () => s_broken.Select(
                static broken => new Measurement<long>(broken.Value, new KeyValuePair<string, object?>("kind", broken.Key))),
            "{file}",
            "Request bodies, or sections of them, that broke off, were refused, or could not be saved");
        s_meter.CreateObservableUpDownCounter("pipelines.file.responses.kept", static () => Volatile.Read(ref s_kept), "{file}",
            "Files that are kept open for the next request");
    }

    internal static void Opened() => Interlocked.Increment(ref s_opened);

    internal static void Kept(int change) => Interlocked.Add(ref s_kept, change);

    internal static void Sent() => Interlocked.Increment(ref s_sent);

    internal static void Left() => Interlocked.Increment(ref s_left);

    internal static void Saved() => Interlocked.Increment(ref s_saved);

    /// <summary>Counts an upload that has failed with this exception.</summary>
    internal static void Broke(Exception reason) => s_broken.AddOrUpdate(KindOf(reason), 1, static (_, count) => count + 1);

    private static string KindOf(Exception reason) => reason switch
    {
        BadHttpRequestException { StatusCode: StatusCodes.Status413PayloadTooLarge } => "too_long",
        BadHttpRequestException { StatusCode: StatusCodes.Status415UnsupportedMediaType } => "unsupported",
        BadHttpRequestException { StatusCode: StatusCodes.Status412PreconditionFailed } => "precondition",
        BadHttpRequestException { StatusCode: StatusCodes.Status422UnprocessableEntity } => "inspection",
        BadHttpRequestException or ConnectionResetException or ConnectionAbortedException => "broken_off",
        OperationCanceledException => "canceled",
        FileExistsException => "exists",
        _ => "failed",
    };

    private static void Counter(string name, string description, Func<long> observe)
        => s_meter.CreateObservableCounter("pipelines.file." + name, observe, "{file}", description);
}
