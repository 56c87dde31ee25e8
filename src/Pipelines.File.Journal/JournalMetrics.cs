using System.Diagnostics.Metrics;

namespace Pipelines.File;

/// <summary>
/// The counters of the meter "Pipelines.File.Journal", of all journals of the process together. Every instrument is observable, so an
/// append costs nothing more.
/// </summary>
internal static class JournalMetrics
{
    private static readonly Lock s_gate = new();
    private static readonly List<WeakReference<Journal>> s_open = [];
    private static readonly Meter s_meter = new("Pipelines.File.Journal");

    // Of the journals that are closed. The lock guards it.
    private static Totals s_closed;

    static JournalMetrics()
    {
        Counter("appended", "{record}", "Records that journals have taken", static totals => totals.Appended);
        Counter("committed", "{record}", "Records that were committed", static totals => totals.Committed);
        Counter("commits", "{commit}",
            "Groups of records that were committed together; with Durable each takes one sync, and committed / commits is records a sync",
            static totals => totals.Rounds);
        Counter("bytes", "By", "Bytes of records that were committed, with their headers", static totals => totals.Bytes);
        s_meter.CreateObservableUpDownCounter("pipelines.file.journal.segments", static () => Read().Segments, "{segment}",
            "Segment files of the open journals");
    }

    internal static void Add(Journal journal)
    {
        lock (s_gate)
        {
            s_open.RemoveAll(static reference => !reference.TryGetTarget(out _));
            s_open.Add(new WeakReference<Journal>(journal));
        }
    }

    internal static void Remove(Journal journal)
    {
        lock (s_gate)
        {
            s_open.RemoveAll(reference => !reference.TryGetTarget(out Journal? other) || other == journal);
            s_closed = s_closed.Plus(journal) with { Segments = 0 };
        }
    }

    private static void Counter(string name, string unit, string description, Func<Totals, long> value)
        => s_meter.CreateObservableCounter("pipelines.file.journal." + name, () => value(Read()), unit, description);

    private static Totals Read()
    {
        lock (s_gate)
        {
            Totals totals = s_closed;
            foreach (WeakReference<Journal> reference in s_open)
            {
                totals = reference.TryGetTarget(out Journal? journal) ? totals.Plus(journal) : totals;
            }

            return totals;
        }
    }

    private readonly record struct Totals(long Appended, long Committed, long Rounds, long Bytes, long Segments)
    {
        internal Totals Plus(Journal journal) => new(Appended + journal.Appended, Committed + journal.Committed,
            Rounds + journal.CommitRounds, Bytes + journal.CommittedBytes, Segments + journal.SegmentCount);
    }
}
