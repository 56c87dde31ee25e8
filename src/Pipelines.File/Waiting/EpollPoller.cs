using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using Pipelines.File.Interop;

namespace Pipelines.File.Waiting;

/// <summary>Linux: epoll(7) with one-shot registrations, so that a wake-up costs the same however many wait.</summary>
/// <remarks>
/// A descriptor can be registered once, and several may wait for it: they share the registration, which is made by the first of them and removed with the last. So nothing
/// is registered that nobody waits for, and no descriptor number that was closed and given out again.
/// </remarks>
internal sealed unsafe class EpollPoller : DescriptorPoller
{
    private const int MaxEvents = 64;

    // The low half of what the kernel gives back is the descriptor; the high half tells registrations of one number from each other.
    private const int StampShift = 32;

    // The stamp of the descriptor that ends the thread's sleep.
    private const uint WakeStamp = 0;

    // By descriptor.
    private readonly Dictionary<int, Registration> _registrations = [];

    // Waits that end at some moment, the first moment first. What was removed meanwhile stays until then, and is told by its ticket.
    private readonly PriorityQueue<(DescriptorWait Wait, long Ticket), long> _timed = new();

    private int _count;
    private bool _isRunning;
    private int _epoll;
    private int _wakeReadEnd;
    private int _wakeWriteEnd;

    // As in PollPoller: never more than one byte is in the pipe.
    private bool _isWoken;
    private uint _lastStamp;

    /// <summary>When the thread will look by itself, <see cref="Environment.TickCount64"/>.</summary>
    private long _sleepsUntil;

    protected override void Add(DescriptorWait wait)
    {
        if (!_isRunning)
        {
            Start();
        }

        if (wait.Descriptor >= 0)
        {
            Register(wait);
        }

        _count++;
        if (wait.Due != long.MaxValue)
        {
            // The one that comes first decides when the thread looks.
            _timed.Enqueue((wait, wait.Ticket), wait.Due);
            if (wait.Due < _sleepsUntil)
            {
                Wake();
            }
        }
    }

    protected override void Remove(DescriptorWait wait)
    {
        if (wait.Descriptor >= 0)
        {
            Unregister(wait);
        }

        if (--_count == 0)
        {
            // The thread sleeps without end while something waits, and is to end itself soon when nothing does.
            Wake();
        }
    }

    private void Register(DescriptorWait wait)
    {
        ref Registration registration = ref CollectionsMarshal.GetValueRefOrAddDefault(_registrations, wait.Descriptor, out bool isKnown);
        wait.NextOfDescriptor = registration.First;
        registration.First = wait;
        if (isKnown)
        {
            // Always told to the kernel: the number may mean another file by now, where the handle of an earlier wait does not own it and its owner has closed it. That
            // file is not registered (ENOENT).
            if (Arm(ref registration, wait.Descriptor, wait.Events, Libc.EPOLL_CTL_MOD) == 0 || Marshal.GetLastPInvokeError() != Libc.ENOENT)
            {
                return;
            }
        }

        registration.Stamp = ++_lastStamp == WakeStamp ? ++_lastStamp : _lastStamp;
        if (Arm(ref registration, wait.Descriptor, wait.Events, Libc.EPOLL_CTL_ADD) == 0)
        {
            return;
        }

        int error = Marshal.GetLastPInvokeError();
        registration.First = wait.NextOfDescriptor;
        wait.NextOfDescriptor = null;
        if (registration.First is null)
        {
            _registrations.Remove(wait.Descriptor);
        }

        if (error != Libc.EPERM)
        {
            throw LastError();
        }

        // A file that is always ready for epoll_ctl(2), which refuses it: it is asked again soon.
        wait.Descriptor = -1;
        wait.Due = Environment.TickCount64 + 1;
    }

    private void Unregister(DescriptorWait wait)
    {
        ref Registration registration = ref CollectionsMarshal.GetValueRefOrNullRef(_registrations, wait.Descriptor);
        if (registration.First == wait)
        {
            registration.First = wait.NextOfDescriptor;
        }
        else
        {
            DescriptorWait before = registration.First!;
            while (before.NextOfDescriptor != wait)
            {
                before = before.NextOfDescriptor!;
            }

            before.NextOfDescriptor = wait.NextOfDescriptor;
        }

        wait.NextOfDescriptor = null;
        if (registration.First is null)
        {
            _registrations.Remove(wait.Descriptor);
            _ = Libc.EpollControl(_epoll, Libc.EPOLL_CTL_DEL, wait.Descriptor, 0, 0);
        }
    }

    /// <summary>Makes the kernel tell of these events, too: the same bits as poll(2)'s.</summary>
    private int Arm(ref Registration registration, int descriptor, short events, int operation)
    {
        uint armed = registration.Armed | (ushort)events;
        registration.Armed = armed;
        return Libc.EpollControl(_epoll, operation, descriptor, armed | Libc.EPOLLONESHOT, ((ulong)registration.Stamp << StampShift) | (uint)descriptor);
    }

    private void Start()
    {
        int epoll = Libc.EpollCreate(Libc.EPOLL_CLOEXEC);
        if (epoll < 0)
        {
            throw LastError();
        }

        int* ends = stackalloc int[2];
        bool hasPipe = false;
        try
        {
            hasPipe = Libc.Pipe2(ends, Libc.O_CLOEXECLinux) == 0;
            if (!hasPipe || Libc.EpollControl(epoll, Libc.EPOLL_CTL_ADD, ends[0], (ushort)Libc.POLLIN, (ulong)WakeStamp << StampShift) != 0)
            {
                throw LastError();
            }

            StartThread(Run);
        }
        catch
        {
            if (hasPipe)
            {
                _ = Libc.Close(ends[0]);
                _ = Libc.Close(ends[1]);
            }

            _ = Libc.Close(epoll);
            throw;
        }

        // The thread looks when the lock is free.
        _epoll = epoll;
        _wakeReadEnd = ends[0];
        _wakeWriteEnd = ends[1];
        _isWoken = false;
        _sleepsUntil = 0;
        _isRunning = true;
    }

    private void Wake()
    {
        if (!_isWoken)
        {
            _isWoken = true;
            byte wake = 1;
            _ = Libc.Write(_wakeWriteEnd, &wake, 1);
        }
    }

    private void Run()
    {
        byte* events = stackalloc byte[MaxEvents * Libc.EpollEventSize];
        List<DescriptorWait> ended = [];
        int epoll;
        lock (Gate)
        {
            epoll = _epoll;
        }

        while (true)
        {
            int timeout;
            bool isIdle;
            lock (Gate)
            {
                isIdle = _count == 0;
                _sleepsUntil = isIdle ? Environment.TickCount64 + LingerMilliseconds : NextDue();
                timeout = TimeoutUntil(_sleepsUntil);
            }

            int ready = Libc.EpollWait(epoll, events, MaxEvents, timeout);
            lock (Gate)
            {
                for (int i = 0; i < ready; i++)
                {
                    byte* next = events + (i * Libc.EpollEventSize);
                    Take(*(uint*)next, *(ulong*)(next + Libc.EpollDataOffset), ended);
                }

                TakeDue(ended);
                if (isIdle && ready == 0 && _count == 0 && ended.Count == 0)
                {
                    _isRunning = false;
                    _timed.Clear();
                    _ = Libc.Close(_wakeReadEnd);
                    _ = Libc.Close(_wakeWriteEnd);
                    _ = Libc.Close(_epoll);
                    return;
                }
            }

            foreach (DescriptorWait wait in ended)
            {
                wait.Waiter.OnReady();
            }

            ended.Clear();
        }
    }

    /// <summary>Under the lock: what the kernel has told of one descriptor.</summary>
    private void Take(uint happened, ulong data, List<DescriptorWait> ended)
    {
        uint stamp = (uint)(data >> StampShift);
        int descriptor = (int)(uint)data;
        if (stamp == WakeStamp)
        {
            byte drained;
            _isWoken = false;
            _ = Libc.Read(_wakeReadEnd, &drained, 1);
            return;
        }

        ref Registration registration = ref CollectionsMarshal.GetValueRefOrNullRef(_registrations, descriptor);
        if (Unsafe.IsNullRef(ref registration) || registration.Stamp != stamp)
        {
            // Nobody waits any more, or somebody for another file of that number.
            return;
        }

        // An error or a hang-up is for all: the call itself tells.
        bool isForAll = (happened & ~(uint)(ushort)(Libc.POLLIN | Libc.POLLOUT)) != 0;
        DescriptorWait? next = registration.First;
        short left = 0;
        registration.Armed = 0;
        while (next is { } wait)
        {
            next = wait.NextOfDescriptor;
            if (isForAll || (happened & (ushort)wait.Events) != 0)
            {
                End(wait, ended);
            }
            else
            {
                left |= wait.Events;
            }
        }

        if (left != 0)
        {
            Arm(ref registration, descriptor, left, Libc.EPOLL_CTL_MOD);
        }
    }

    private void TakeDue(List<DescriptorWait> ended)
    {
        long now = Environment.TickCount64;
        while (_timed.TryPeek(out (DescriptorWait Wait, long Ticket) first, out long due) && (due <= now || first.Wait.Ticket != first.Ticket))
        {
            _timed.Dequeue();
            if (first.Wait.Ticket == first.Ticket)
            {
                End(first.Wait, ended);
            }
        }
    }

    private long NextDue() => _timed.TryPeek(out _, out long due) ? due : long.MaxValue;

    private void End(DescriptorWait wait, List<DescriptorWait> ended)
    {
        if (wait.Descriptor >= 0)
        {
            Unregister(wait);
        }

        _count--;
        Release(wait);
        ended.Add(wait);
    }

    /// <summary>One descriptor in the epoll instance.</summary>
    private struct Registration
    {
        internal DescriptorWait? First;
        internal uint Stamp;

        /// <summary>The events that the kernel tells of, once.</summary>
        internal uint Armed;
    }
}
