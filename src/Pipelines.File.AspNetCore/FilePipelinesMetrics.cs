using System.Collections.Concurrent;
using System.Diagnostics;
using System.Diagnostics.Metrics;
using System.Runtime.CompilerServices;
using Microsoft.Extensions.DependencyInjection;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// The counters of one application. Every counter is observable: a listener reads it on its own thread, and counting calls no listener.
/// Only the histograms of uploads call one.
/// </summary>
internal sealed class FilePipelinesMetrics
{
    // An application's counters live as long as its meter factory.
    private static readonly ConditionalWeakTable<IMeterFactory, FilePipelinesMetrics> s_ofApplications = [];

    // Interlocked.
    private long _sent;
    private long _left;
    private long _opened;
    private long _kept;
    private long _saved;
    private readonly ConcurrentDictionary<string, long> _brokenResponses = new();
    private readonly ConcurrentDictionary<string, long> _brokenUploads = new();
    private readonly Histogram<double> _uploadDuration;
    private readonly Histogram<long> _uploadSize;

    private FilePipelinesMetrics(Meter meter)
    {
        Counter(FilePipelinesMeter.ResponsesSent, "Files, or ranges of them, that were sent whole", () => Volatile.Read(ref _sent));
        Counter(FilePipelinesMeter.ResponsesLeft, "Files, or ranges of them, that were left to the server's own SendFileAsync",
            () => Volatile.Read(ref _left));
        Counter(FilePipelinesMeter.ResponsesOpened, "Files that were opened to be sent; the others were open",
            () => Volatile.Read(ref _opened));
        Counter(FilePipelinesMeter.UploadsSaved, "Request bodies, or sections of them, that were saved whole",
            () => Volatile.Read(ref _saved));
        ByKind(FilePipelinesMeter.ResponsesBroken, "Files, or ranges of them, whose sending ended before their end", _brokenResponses);
        ByKind(FilePipelinesMeter.UploadsBroken, "Request bodies, or sections of them, that broke off, were refused, or could not be saved",
            _brokenUploads);
        meter.CreateObservableUpDownCounter(FilePipelinesMeter.ResponsesKept, () => Volatile.Read(ref _kept), "{file}",
            "Files that are kept open for the next request");
        _uploadDuration = meter.CreateHistogram<double>(FilePipelinesMeter.UploadDuration, "s", "How long uploads took");
        _uploadSize = meter.CreateHistogram<long>(FilePipelinesMeter.UploadSize, "By", "How many bytes of uploads came");

        void Counter(string name, string description, Func<long> observe)
            => meter.CreateObservableCounter(name, observe, "{file}", description);

        void ByKind(string name, string description, ConcurrentDictionary<string, long> counts)
            => meter.CreateObservableCounter(
                name,
                () => counts.Select(static one => new Measurement<long>(one.Value, new KeyValuePair<string, object?>("kind", one.Key))),
                "{file}",
                description);
    }

    /// <summary>The counters of what has no application that makes meters.</summary>
    internal static FilePipelinesMetrics Shared => WithoutApplication.Metrics;

    /// <summary>The counters of the application with these services.</summary>
    internal static FilePipelinesMetrics Of(IServiceProvider? services)
        => services?.GetService<IMeterFactory>() is { } factory
            ? s_ofApplications.GetOrAdd(factory, static factory => new FilePipelinesMetrics(factory.Create(Options()))) : Shared;

    internal void Opened() => Interlocked.Increment(ref _opened);

    internal void Kept(int change) => Interlocked.Add(ref _kept, change);

    internal void Sent() => Interlocked.Increment(ref _sent);

    internal void Left() => Interlocked.Increment(ref _left);

    internal void Saved(TimeSpan duration, long length)
    {
        Interlocked.Increment(ref _saved);
        Record(duration, length, error: null);
    }

    internal void ResponseBroke(string kind) => Count(_brokenResponses, kind);

    internal void UploadBroke(string kind, TimeSpan duration, long length)
    {
        Count(_brokenUploads, kind);
        Record(duration, length, kind);
    }

    // A listener is called on this thread. What it throws is not the upload's, whose file may have its name by now.
    private void Record(TimeSpan duration, long length, string? error)
    {
        try
        {
            TagList tags = default;
            if (error is not null)
            {
                tags.Add("error.type", error);
            }

            _uploadDuration.Record(duration.TotalSeconds, tags);
            _uploadSize.Record(length, tags);
        }
        catch (Exception e)
        {
            Debug.WriteLine(e);
        }
    }

    private static void Count(ConcurrentDictionary<string, long> counts, string kind)
        => counts.AddOrUpdate(kind, 1, static (_, count) => count + 1);

    private static MeterOptions Options()
        => new(FilePipelinesMeter.Name) { Version = typeof(FilePipelinesMetrics).Assembly.GetName().Version?.ToString(3) };

    // Made when it is needed: a listener would see every instrument twice.
    private static class WithoutApplication
    {
        internal static readonly FilePipelinesMetrics Metrics = new(new Meter(Options()));
    }
}
