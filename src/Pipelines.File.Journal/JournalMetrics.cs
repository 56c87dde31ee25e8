using System.Diagnostics;
using System.Diagnostics.Metrics;
using System.Runtime.CompilerServices;

namespace Pipelines.File;

/// <summary>
/// The meter and the activities "Pipelines.File.Journal". The counters are observable, and nothing else is measured unless somebody
/// listens.
/// </summary>
internal static class JournalMetrics
{
    private const string SourceName = "Pipelines.File.Journal";
    private const string Tag = "journal";

    private static readonly Lock s_gate = new();
    private static readonly List<JournalMeter> s_open = [];

    // Of the journals that are closed. The lock guards it.
    private static readonly Dictionary<string, JournalTotals> s_closed = [];

    private static readonly Meter s_meter = new(SourceName);
    private static readonly Histogram<double> s_append = s_meter.CreateHistogram<double>(
        "pipelines.file.journal.append.duration", "s", "From the call of an append that had to wait until the record was committed");

    private static readonly Histogram<double> s_commit = s_meter.CreateHistogram<double>(
        "pipelines.file.journal.commit.duration", "s", "How long the first record of each group waited to be committed");

    private static readonly Histogram<long> s_records = s_meter.CreateHistogram<long>(
        "pipelines.file.journal.commit.records", "{record}", "Records that were committed together, with Durable by one sync");

    static JournalMetrics()
    {
        Counter("appended", "{record}", "Records that journals have taken", static totals => totals.Appended);
        Counter("committed", "{record}", "Records that were committed", static totals => totals.Committed);
        Counter("commits", "{commit}",
            "Groups of records that were committed together; with Durable each takes one sync, and committed / commits is records a sync",
            static totals => totals.Rounds);
        Counter("bytes", "By", "Bytes of records that were committed, with their headers", static totals => totals.Bytes);
        Counter("retention.failures", "{failure}", "How often old segments could not be removed",
            static totals => totals.RetentionFailures);
        s_meter.CreateObservableUpDownCounter(
            "pipelines.file.journal.segments", static () => Read(static totals => totals.Segments), "{segment}",
            "Segment files of the open journals");
    }

    internal static ActivitySource Activities { get; } = new(SourceName);

    /// <summary>Whether somebody listens to what an append takes.</summary>
    internal static bool IsAppendMeasured => s_append.Enabled || Activities.HasListeners();

    /// <summary>The time, if somebody listens to what commits take; 0.</summary>
    internal static long Now() => s_commit.Enabled ? Stopwatch.GetTimestamp() : 0;

    internal static JournalMeter Add(Journal journal)
    {
        JournalMeter meter = new(journal);
        lock (s_gate)
        {
            foreach (JournalMeter gone in s_open.FindAll(static other => other.IsGone))
            {
                RemoveLocked(gone);
            }

            s_open.Add(meter);
        }

        return meter;
    }

    internal static void Remove(JournalMeter meter)
    {
        lock (s_gate)
        {
            RemoveLocked(meter);
        }
    }

    internal static void OnCommit(long records, long started, string name)
    {
        KeyValuePair<string, object?> tag = new(Tag, name);
        Record(s_records, records, tag);
        if (started != 0)
        {
            Record(s_commit, Stopwatch.GetElapsedTime(started).TotalSeconds, tag);
        }
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    internal static async ValueTask<long> MeasureAsync(ValueTask<long> append, string name)
    {
        long started = Stopwatch.GetTimestamp();
        Activity? activity = BeginAppend();
        activity?.SetTag(Tag, name);
        long sequence;
        try
        {
            sequence = await append.ConfigureAwait(false);
        }
        catch (Exception e)
        {
            activity?.SetStatus(ActivityStatusCode.Error, e.Message);
            End(activity);
            throw;
        }

        activity?.SetTag("journal.sequence", sequence);
        End(activity);
        Record(s_append, Stopwatch.GetElapsedTime(started).TotalSeconds, new KeyValuePair<string, object?>(Tag, name));
        return sequence;
    }

    // A listener is called on this thread. What it throws is not that of who appends: the record is committed. So in the next two.
    private static Activity? BeginAppend()
    {
        try
        {
            return Activities.StartActivity("journal append");
        }
        catch (Exception e)
        {
            Debug.WriteLine(e);
            return null;
        }
    }

    private static void End(Activity? activity)
    {
        try
        {
            activity?.Dispose();
        }
        catch (Exception e)
        {
            Debug.WriteLine(e);
        }
    }

    private static void Record<T>(Histogram<T> histogram, T value, KeyValuePair<string, object?> tag)
        where T : struct
    {
        try
        {
            histogram.Record(value, tag);
        }
        catch (Exception e)
        {
            Debug.WriteLine(e);
        }
    }

    private static void RemoveLocked(JournalMeter meter)
    {
        s_open.Remove(meter);
        s_closed[meter.Name] = s_closed.GetValueOrDefault(meter.Name).Plus(meter.Read() with { Segments = 0 });
    }

    private static void Counter(string name, string unit, string description, Func<JournalTotals, long> value)
        => s_meter.CreateObservableCounter("pipelines.file.journal." + name, () => Read(value), unit, description);

    private static List<Measurement<long>> Read(Func<JournalTotals, long> value)
    {
        lock (s_gate)
        {
            Dictionary<string, JournalTotals> totals = new(s_closed);
            foreach (JournalMeter meter in s_open)
            {
                totals[meter.Name] = totals.GetValueOrDefault(meter.Name).Plus(meter.Read());
            }

            return [.. totals.Select(
                total => new Measurement<long>(value(total.Value), new KeyValuePair<string, object?>(Tag, total.Key)))];
        }
    }
}
