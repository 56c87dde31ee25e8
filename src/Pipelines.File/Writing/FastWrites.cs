namespace Pipelines.File.Writing;

/// <summary>
/// Knows which file systems take writes without waiting at this moment, so that a thread that must not be held may make a short one. The
/// kernel holds writers while too many pages are dirty (balance_dirty_pages), while a journal waits for its device, and for as long as a
/// file system is frozen.
/// </summary>
/// <remarks>
/// It trusts a file system for 10 ms after a write or sync that was fast, unless one has been under way for longer than a millisecond. So
/// the first write after a pause is another thread's, and a file system that stalls holds only who writes in the 10 ms before anybody can
/// know it. (A write waits for a sync where it changes what the journal is writing.)
/// </remarks>
/// <param name="time">The clock; tests replace it.</param>
internal sealed class FastWrites(TimeProvider time)
{
    /// <summary>The longest write that is made without another thread, bytes: some tens of microseconds of copying.</summary>
    internal const int MaxBytes = 256 * 1024;

    private const int TrustMilliseconds = 10;

    /// <summary>A fast write of more bytes than this may take another millisecond for each of them.</summary>
    private const int BytesPerMillisecond = 256 * 1024;

    // By the hash of the volume's number: two file systems share an entry once in 256 pairs.
    private readonly Entry[] _entries = new Entry[256];

    private readonly long _millisecond = time.TimestampFrequency / 1000;

    internal static FastWrites Shared { get; } = new(TimeProvider.System);

    /// <summary>How long the thread of a <see cref="WriteLoop"/> stays awake after a write, Stopwatch ticks; tests set it.</summary>
    internal long AwakeTicks { get; init; } = Stopwatch.Frequency / 50_000;

    /// <summary>Whether a short write to that file system would not wait, as far as anybody knows; 0 is none.</summary>
    internal bool AreExpected(ulong volume)
    {
        ref Entry entry = ref EntryOf(volume);
        long now = time.GetTimestamp();
        long begun = Volatile.Read(ref entry.Begun);
        return volume != 0 && now < Volatile.Read(ref entry.TrustedUntil) && (begun == 0 || now - begun <= _millisecond);
    }

    /// <summary>Called before each write and sync, by whatever thread. Returns the timestamp, for <see cref="End"/>.</summary>
    internal long Begin(ulong volume)
    {
        long now = time.GetTimestamp();
        if (volume != 0)
        {
            _ = Interlocked.CompareExchange(ref EntryOf(volume).Begun, now, 0);
        }

        return now;
    }

    internal void End(ulong volume, long begun, long bytes)
    {
        if (volume == 0)
        {
            return;
        }

        ref Entry entry = ref EntryOf(volume);
        long now = time.GetTimestamp();
        bool isFast = now - begun <= _millisecond * (1 + (bytes / BytesPerMillisecond));
        Volatile.Write(ref entry.TrustedUntil, isFast ? now + (TrustMilliseconds * _millisecond) : 0);
        _ = Interlocked.CompareExchange(ref entry.Begun, 0, begun);
    }

    private ref Entry EntryOf(ulong volume) => ref _entries[(volume * 0x9E3779B97F4A7C15) >> 56];

    private struct Entry
    {
        /// <summary>Interlocked: when the write that is watched began, a timestamp; 0: none is.</summary>
        internal long Begun;

        /// <summary>A timestamp. Any thread; the last writer wins.</summary>
        internal long TrustedUntil;
    }
}
