namespace Pipelines.File;

/// <summary>What is counted of one journal.</summary>
/// <param name="journal">The journal.</param>
internal sealed class JournalMeter(Journal journal)
{
    private readonly WeakReference<Journal> _journal = new(journal);
    private readonly long _opened = journal.NextSequence;

    // Interlocked: how often a committed record was the first one of those that waited together.
    private long _rounds;
    private long _retentionFailures;
    private JournalTotals _totals;

    internal string Name { get; } = journal.Name;

    /// <summary>Whether the journal has gone without being closed.</summary>
    internal bool IsGone => !_journal.TryGetTarget(out _);

    internal void OnRound(long records, long started)
    {
        Interlocked.Increment(ref _rounds);
        JournalMetrics.OnCommit(records, started, Name);
    }

    internal void OnRetentionFailed() => Interlocked.Increment(ref _retentionFailures);

    /// <summary>What has come together; counters never go back. One thread at a time calls it.</summary>
    internal JournalTotals Read()
    {
        if (_journal.TryGetTarget(out Journal? journal))
        {
            _totals = new JournalTotals(
                Math.Max(_totals.Appended, journal.NextSequence - _opened), Math.Max(_totals.Committed, journal.Committed - _opened),
                Volatile.Read(ref _rounds), journal.CommittedBytes, Volatile.Read(ref _retentionFailures), journal.SegmentCount);
        }

        return _totals;
    }
}
