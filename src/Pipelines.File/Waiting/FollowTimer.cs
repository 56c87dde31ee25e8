namespace Pipelines.File.Waiting;

/// <summary>
/// Has followed files looked at from time to time, all of them by one timer. The looks are made by the <see cref="WaitingThreads"/>, the files of one volume one after the other, so that a
/// server which does not answer holds up its own files and one thread.
/// </summary>
internal static class FollowTimer
{
    // Guards everything below, and the entries of the files.
    private static readonly Lock s_gate = new();
    private static readonly Dictionary<int, Period> s_periods = [];
    private static readonly Dictionary<ulong, Volume> s_volumes = [];
    private static readonly Timer s_timer = CreateTimer();
    private static long s_due = long.MaxValue;

    /// <summary>Has the file looked at after at most so many milliseconds, and again and again, while a read waits there. A file that was removed stays so.</summary>
    internal static void Set(FollowedFile file, int milliseconds)
    {
        lock (s_gate)
        {
            ref Entry entry = ref file.TimerEntry;
            if (entry.IsRemoved || entry.Period?.Milliseconds == milliseconds)
            {
                return;
            }

            Leave(ref entry);
            if (!s_periods.TryGetValue(milliseconds, out Period? period))
            {
                period = new Period(milliseconds) { Due = Environment.TickCount64 + milliseconds };
                s_periods.Add(milliseconds, period);
                if (period.Due < s_due)
                {
                    SetDue(period.Due);
                }
            }

            entry.Period = period;
            entry.Index = period.Files.Count;
            period.Files.Add(file);
        }
    }

    /// <summary>Does not look at the file any more, but for a look that is being made.</summary>
    internal static void Remove(FollowedFile file)
    {
        lock (s_gate)
        {
            file.TimerEntry.IsRemoved = true;
            Leave(ref file.TimerEntry);
        }
    }

    // The timer is the process's: it must not keep what flows with whoever happens to be first.
    private static Timer CreateTimer()
    {
        using (ExecutionContext.SuppressFlow())
        {
            return new Timer(static _ => Tick(), null, Timeout.Infinite, Timeout.Infinite);
        }
    }

    private static void Leave(ref Entry entry)
    {
        if (entry.Period is not { } period)
        {
            return;
        }

        // The last one takes its place.
        FollowedFile last = period.Files[^1];
        period.Files[entry.Index] = last;
        last.TimerEntry.Index = entry.Index;
        period.Files.RemoveAt(period.Files.Count - 1);
        entry.Period = null;
        if (period.Files.Count == 0)
        {
            s_periods.Remove(period.Milliseconds);
        }
    }

    private static void SetDue(long due)
    {
        s_due = due;
        s_timer.Change(due == long.MaxValue ? Timeout.Infinite : Math.Max(0, due - Environment.TickCount64), Timeout.Infinite);
    }

    /// <summary>On a thread of the application's pool, for moments.</summary>
    private static void Tick()
    {
        List<Volume>? started = null;
        lock (s_gate)
        {
            long now = Environment.TickCount64;
            long due = long.MaxValue;
            foreach (Period period in s_periods.Values)
            {
                if (period.Due <= now)
                {
                    period.Due = now + period.Milliseconds;
                    AddLooks(period, ref started);
                }

                due = Math.Min(due, period.Due);
            }

            SetDue(due);
        }

        if (started is not null)
        {
            foreach (Volume volume in started)
            {
                WaitingThreads.Shared.Queue(volume);
            }
        }
    }

    private static void AddLooks(Period period, ref List<Volume>? started)
    {
        foreach (FollowedFile file in period.Files)
        {
            if (file.TimerEntry.IsLookQueued || !file.IsWaiting)
            {
                continue;
            }

            file.TimerEntry.IsLookQueued = true;
            if (!s_volumes.TryGetValue(file.Identity.Volume, out Volume? volume))
            {
                volume = new Volume(file.Identity.Volume);
                s_volumes.Add(volume.Number, volume);
                (started ??= []).Add(volume);
            }

            volume.Files.Enqueue(file);
        }
    }

    /// <summary>What the timer keeps in a file.</summary>
    internal struct Entry
    {
        internal Period? Period;
        internal int Index;
        internal bool IsLookQueued;
        internal bool IsRemoved;
    }

    /// <summary>The files that are looked at together.</summary>
    internal sealed class Period(int milliseconds)
    {
        internal int Milliseconds { get; } = milliseconds;

        internal List<FollowedFile> Files { get; } = [];

        /// <summary>When they are looked at next, <see cref="Environment.TickCount64"/>.</summary>
        internal long Due { get; set; }
    }

    /// <summary>The files of one volume that wait for a look. It is queued, or performed, while it is in the dictionary.</summary>
    private sealed class Volume(ulong number) : IWaitingCall
    {
        internal ulong Number { get; } = number;

        internal Queue<FollowedFile> Files { get; } = new();

        // As many threads as calls: it holds up nobody.
        WaitKind IWaitingCall.WaitKind => WaitKind.Open;

        IWaitingCall? IWaitingCall.NextCall { get; set; }

        long IWaitingCall.QueuedAt { get; set; }

        bool IWaitingCall.Perform()
        {
            while (true)
            {
                FollowedFile? file;
                lock (s_gate)
                {
                    if (!Files.TryDequeue(out file))
                    {
                        s_volumes.Remove(Number);
                        return false;
                    }

                    file.TimerEntry.IsLookQueued = false;
                }

                file.LookAgain();
            }
        }
    }
}
