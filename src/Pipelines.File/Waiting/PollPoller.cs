using System.Runtime.InteropServices;
using Pipelines.File.Interop;

namespace Pipelines.File.Waiting;

/// <summary>With poll(2), which every Unix has: each wake-up costs as much as there are waits.</summary>
internal sealed unsafe class PollPoller : DescriptorPoller
{
    /// <summary>What a process can be expected to have open at the least.</summary>
    private const int PieceLength = 64;

    private const int PieceMilliseconds = 5;

    private readonly List<DescriptorWait> _waits = [];
    private bool _isRunning;
    private int _wakeWriteEnd;

    // A wake-up is in the pipe, or the thread has not looked at the waits since: never more than a few bytes are there, so that writing one, under the lock that
    // the thread needs as well, does not wait.
    private bool _isWoken;

    protected override void Add(DescriptorWait wait)
    {
        if (_isRunning)
        {
            Wake();
        }
        else
        {
            Start();
        }

        _waits.Add(wait);
    }

    protected override void Remove(DescriptorWait wait)
    {
        // The descriptor may still be in the poll(2) of this moment: that does no harm, since the thread looks the waits up again afterwards.
        _waits.Remove(wait);
        Wake();
    }

    private void Start()
    {
        int* ends = stackalloc int[2];
        if (OpenPipe(ends) != 0)
        {
            throw LastError();
        }

        int wakeReadEnd = ends[0];
        try
        {
            StartThread(() => Run(wakeReadEnd));
        }
        catch
        {
            _ = Libc.Close(ends[0]);
            _ = Libc.Close(ends[1]);
            throw;
        }

        // The thread looks when the lock is free.
        _wakeWriteEnd = ends[1];
        _isWoken = false;
        _isRunning = true;
    }

    // Not for processes that are started meanwhile. Elsewhere than on Linux that takes fcntl(2), whose variable arguments not every ABI passes as a declaration would.
    private static int OpenPipe(int* ends) => OperatingSystem.IsLinux() ? Libc.Pipe2(ends, Libc.O_CLOEXECLinux) : Libc.Pipe(ends);

    private void Wake()
    {
        if (!_isWoken)
        {
            _isWoken = true;
            byte wake = 1;
            _ = Libc.Write(_wakeWriteEnd, &wake, 1);
        }
    }

    private void Run(int wakeReadEnd)
    {
        Libc.PollDescriptor[] descriptors = new Libc.PollDescriptor[8];
        (DescriptorWait Wait, long Ticket)[] polled = new (DescriptorWait, long)[8];
        byte* drained = stackalloc byte[64];
        while (true)
        {
            int count;
            long due = long.MaxValue;
            lock (Gate)
            {
                _isWoken = false;
                count = _waits.Count;
                if (descriptors.Length <= count)
                {
                    descriptors = new Libc.PollDescriptor[count * 2];
                    polled = new (DescriptorWait, long)[count * 2];
                }

                descriptors[0] = new() { Descriptor = wakeReadEnd, Events = Libc.POLLIN };
                for (int i = 0; i < count; i++)
                {
                    DescriptorWait wait = _waits[i];
                    polled[i] = (wait, wait.Ticket);
                    due = Math.Min(due, wait.Due);

                    // poll(2) skips the negative one of a wait for a moment.
                    descriptors[i + 1] = new() { Descriptor = wait.Descriptor, Events = wait.Events };
                }
            }

            int ready;
            fixed (Libc.PollDescriptor* first = descriptors)
            {
                int timeout = count == 0 ? LingerMilliseconds : TimeoutUntil(due);
                ready = Libc.Poll(first, (nuint)(count + 1), timeout);
                if (ready < 0 && Marshal.GetLastPInvokeError() != Libc.EINTR)
                {
                    ready = PollInPieces(first, count + 1, timeout);
                }
            }

            if (ready > 0 && descriptors[0].ReturnedEvents != 0)
            {
                _ = Libc.Read(wakeReadEnd, drained, 64);
            }

            long now = Environment.TickCount64;
            for (int i = 0; i < count; i++)
            {
                if ((ready > 0 && descriptors[i + 1].ReturnedEvents != 0) || now >= due)
                {
                    End(polled[i].Wait, polled[i].Ticket, isReady: ready > 0 && descriptors[i + 1].ReturnedEvents != 0, now);
                }
            }

            Array.Clear(polled, 0, count);
            if (count == 0 && ready == 0 && TryStop(wakeReadEnd))
            {
                return;
            }
        }
    }

    /// <summary>
    /// For what poll(2) refuses at once: more entries than the process may have files open (EINVAL), which several waits for one file, or a limit that was lowered, come to; or more
    /// than it has memory for (ENOMEM). Looks at them from time to time.
    /// </summary>
    private static int PollInPieces(Libc.PollDescriptor* descriptors, int count, int timeout)
    {
        long due = timeout < 0 ? long.MaxValue : Environment.TickCount64 + timeout;
        while (true)
        {
            int ready = 0;
            for (int i = 0; i < count; i += PieceLength)
            {
                ready += Math.Max(0, Libc.Poll(descriptors + i, (nuint)Math.Min(PieceLength, count - i), 0));
            }

            if (ready > 0 || Environment.TickCount64 >= due)
            {
                return ready;
            }

            Thread.Sleep(PieceMilliseconds);
        }
    }

    private void End(DescriptorWait wait, long ticket, bool isReady, long now)
    {
        lock (Gate)
        {
            // The ticket tells this wait from a later one.
            if (wait.Ticket != ticket || !(isReady || now >= wait.Due))
            {
                return;
            }

            _waits.Remove(wait);
            Release(wait);
        }

        wait.Waiter.OnReady();
    }

    private bool TryStop(int wakeReadEnd)
    {
        lock (Gate)
        {
            if (_waits.Count > 0)
            {
                return false;
            }

            _isRunning = false;
            _ = Libc.Close(_wakeWriteEnd);
            _ = Libc.Close(wakeReadEnd);
            return true;
        }
    }
}
