using Pipelines.File.IO;

namespace Pipelines.File.Threading;

/// <summary>
/// Linux: waits, with one thread for all of them, until descriptors that can block (FIFOs, terminals, sockets) are ready, so that an idle one holds no thread and can be given up at once. By
/// epoll(7) with one-shot registrations, so that a wake-up costs the same however many wait.
/// </summary>
/// <remarks>
/// A descriptor can be registered once, and several may wait for it: they share the registration, which is made by the first of them and removed with the last. So nothing
/// is registered that nobody waits for, and no descriptor number that was closed and given out again.
/// </remarks>
internal sealed unsafe class DescriptorPoller
{
    /// <summary>At most the 15 characters that Linux keeps.</summary>
    internal const string ThreadName = "File pipe poll";

    private const int StackBytes = 256 * 1024;
    private const int MaxEvents = 64;

    // The low half of what the kernel gives back is the descriptor; the high half tells registrations of one number from each other.
    private const int StampShift = 32;

    // The stamp of the descriptor that ends the thread's sleep.
    private const uint WakeStamp = 0;

    // Guards everything below and the waits, and is held for moments only, never while the thread waits.
    private readonly Lock _gate = new();

    // By descriptor.
    private readonly Dictionary<int, Registration> _registrations = [];

    // Waits that end at some moment, the first moment first. What was removed meanwhile stays until then, and is told by its ticket.
    private readonly PriorityQueue<(DescriptorWait Wait, long Ticket), long> _timed = new();

    // The epoll instance, and the eventfd(2) that ends its wait. They and the thread are there for the life of the process, as a wait may begin when no descriptor is left, without which the
    // runtime starts no thread either. -1: not made yet.
    private int _epoll = -1;
    private int _wake = -1;

    private bool _isWoken;
    private uint _lastStamp;
    private long _lastTicket;

    /// <summary>When the thread will look by itself, <see cref="Environment.TickCount64"/>.</summary>
    private long _sleepsUntil;

    internal static DescriptorPoller Shared { get; } = new();

    /// <summary>Takes the descriptors and the thread that waiting needs. Whoever opens a file that may wait calls it then, when it can still say that there are none.</summary>
    /// <exception cref="IOException">The system has no descriptors, or no thread.</exception>
    internal void Prepare()
    {
        lock (_gate)
        {
            PrepareLocked();
        }
    }

    /// <summary>
    /// Calls <see cref="IDescriptorWaiter.OnReady"/> once when the descriptor is ready or that many milliseconds have passed, unless <see cref="TryCancel"/> comes first.
    /// <see langword="false"/>: it came already, and nothing waits here.
    /// </summary>
    /// <param name="wait">What waits.</param>
    /// <param name="file">The descriptor; <see langword="null"/> to wait for the moment only.</param>
    /// <param name="events">POLLIN or POLLOUT.</param>
    /// <param name="milliseconds">How long at most; negative for ever.</param>
    /// <exception cref="IOException">The system has no descriptors, or no thread, to wait with; nothing waits here.</exception>
    internal bool TryAdd(DescriptorWait wait, SafeFileHandle? file, short events, int milliseconds = -1)
    {
        lock (_gate)
        {
            if (wait.CanceledGeneration == wait.Waiter.Generation)
            {
                return false;
            }

            bool isHeld = false;
            file?.DangerousAddRef(ref isHeld);
            wait.Ticket = ++_lastTicket;
            wait.File = file;
            wait.Descriptor = file is null ? -1 : (int)file.DangerousGetHandle();
            wait.Events = events;
            wait.Due = milliseconds < 0 ? long.MaxValue : Environment.TickCount64 + milliseconds;
            try
            {
                AddLocked(wait);
            }
            catch
            {
                ReleaseLocked(wait);
                throw;
            }

            return true;
        }
    }

    /// <summary>
    /// <see langword="true"/>: it waited here and no longer does, so that ending it is now the caller's. <see langword="false"/>: it is on its way here, or
    /// past it; if it does come, <see cref="TryAdd"/> refuses it. Or the object serves another purpose by now, and is left alone.
    /// </summary>
    internal bool TryCancel(DescriptorWait wait, int generation)
    {
        lock (_gate)
        {
            if (wait.Waiter.Generation != generation)
            {
                return false;
            }

            wait.CanceledGeneration = generation;
            if (wait.Ticket == 0)
            {
                return false;
            }

            RemoveLocked(wait);
            ReleaseLocked(wait);
            return true;
        }
    }

    /// <summary>Once the wait has been removed.</summary>
    private static void ReleaseLocked(DescriptorWait wait)
    {
        // Releasing the last reference to a file that was closed meanwhile closes it: a moment.
        wait.File?.DangerousRelease();
        wait.File = null;
        wait.Ticket = 0;
    }

    private static IOException LastError()
    {
        int error = Marshal.GetLastPInvokeError();
        return new IOException(Marshal.GetPInvokeErrorMessage(error), error);
    }

    /// <summary>Where it throws, nothing waits.</summary>
    private void AddLocked(DescriptorWait wait)
    {
        PrepareLocked();
        if (wait.Descriptor >= 0)
        {
            RegisterLocked(wait);
        }

        if (wait.Due != long.MaxValue)
        {
            // The one that comes first decides when the thread looks.
            _timed.Enqueue((wait, wait.Ticket), wait.Due);
            if (wait.Due < _sleepsUntil)
            {
                WakeLocked();
            }
        }
    }

    private void RemoveLocked(DescriptorWait wait)
    {
        if (wait.Descriptor >= 0)
        {
            UnregisterLocked(wait);
        }
    }

    private void RegisterLocked(DescriptorWait wait)
    {
        ref Registration registration = ref CollectionsMarshal.GetValueRefOrAddDefault(_registrations, wait.Descriptor, out bool isKnown);
        wait.NextOfDescriptor = registration.First;
        registration.First = wait;

        // Always told to the kernel: the number may mean another file by now, where the handle of an earlier wait does not own it and its owner has closed it. That
        // file is not registered (ENOENT).
        if (isKnown && ArmLocked(ref registration, wait.Descriptor, wait.Events, Libc.EPOLL_CTL_MOD) == 0)
        {
            return;
        }

        if (!isKnown || Marshal.GetLastPInvokeError() == Libc.ENOENT)
        {
            registration.Stamp = ++_lastStamp == WakeStamp ? ++_lastStamp : _lastStamp;

            // Registered already (EEXIST): the file had that number before, and was not removed while that meant no file, or another one.
            if (ArmLocked(ref registration, wait.Descriptor, wait.Events, Libc.EPOLL_CTL_ADD) == 0
                || (Marshal.GetLastPInvokeError() == Libc.EEXIST && ArmLocked(ref registration, wait.Descriptor, wait.Events, Libc.EPOLL_CTL_MOD) == 0))
            {
                return;
            }
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

    private void UnregisterLocked(DescriptorWait wait)
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
    private int ArmLocked(ref Registration registration, int descriptor, short events, int operation)
    {
        uint armed = registration.Armed | (ushort)events;
        registration.Armed = armed;
        return Libc.EpollControl(_epoll, operation, descriptor, armed | Libc.EPOLLONESHOT, ((ulong)registration.Stamp << StampShift) | (uint)descriptor);
    }

    private void PrepareLocked()
    {
        if (_epoll >= 0)
        {
            return;
        }

        int epoll = Libc.EpollCreate(Libc.EPOLL_CLOEXEC);
        int wake = epoll < 0 ? -1 : Libc.EventDescriptor(0, Libc.EFD_CLOEXEC | Libc.EFD_NONBLOCK);
        try
        {
            if (wake < 0 || Libc.EpollControl(epoll, Libc.EPOLL_CTL_ADD, wake, (ushort)Libc.POLLIN, (ulong)WakeStamp << StampShift) != 0)
            {
                throw LastError();
            }

            // It looks when the lock is free.
            new Thread(Run, StackBytes) { IsBackground = true, Name = ThreadName }.UnsafeStart();
        }
        catch (Exception e) when (e is IOException or OutOfMemoryException or ThreadStartException)
        {
            _ = epoll < 0 ? 0 : Libc.Close(epoll);
            _ = wake < 0 ? 0 : Libc.Close(wake);
            throw e is IOException ? e : new IOException("The system could not start the thread that waits for the file.", e);
        }

        _epoll = epoll;
        _wake = wake;
    }

    private void WakeLocked()
    {
        Debug.Assert(_gate.IsHeldByCurrentThread);
        if (!_isWoken)
        {
            _isWoken = true;
            ulong one = 1;
            _ = Libc.Write(_wake, (byte*)&one, sizeof(ulong));
        }
    }

    private void Run()
    {
        byte* events = stackalloc byte[MaxEvents * Libc.EpollEventSize];
        List<DescriptorWait> ended = [];
        while (true)
        {
            int timeout;
            lock (_gate)
            {
                _sleepsUntil = NextDueLocked();
                timeout = _sleepsUntil == long.MaxValue ? -1 : (int)Math.Clamp(_sleepsUntil - Environment.TickCount64, 0, int.MaxValue);
            }

            int ready = Libc.EpollWait(_epoll, events, MaxEvents, timeout);
            lock (_gate)
            {
                for (int i = 0; i < ready; i++)
                {
                    byte* next = events + (i * Libc.EpollEventSize);
                    TakeLocked(*(uint*)next, *(ulong*)(next + Libc.EpollDataOffset), ended);
                }

                TakeDueLocked(ended);
            }

            foreach (DescriptorWait wait in ended)
            {
                wait.Waiter.OnReady();
            }

            ended.Clear();
        }
    }

    /// <summary>What the kernel has told of one descriptor.</summary>
    private void TakeLocked(uint happened, ulong data, List<DescriptorWait> ended)
    {
        uint stamp = (uint)(data >> StampShift);
        int descriptor = (int)(uint)data;
        if (stamp == WakeStamp)
        {
            ulong drained;
            _isWoken = false;
            _ = Libc.Read(_wake, (byte*)&drained, sizeof(ulong));
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
                EndLocked(wait, ended);
            }
            else
            {
                left |= wait.Events;
            }
        }

        if (left != 0)
        {
            ArmLocked(ref registration, descriptor, left, Libc.EPOLL_CTL_MOD);
        }
    }

    private void TakeDueLocked(List<DescriptorWait> ended)
    {
        long now = Environment.TickCount64;
        while (_timed.TryPeek(out (DescriptorWait Wait, long Ticket) first, out long due) && (due <= now || first.Wait.Ticket != first.Ticket))
        {
            _timed.Dequeue();
            if (first.Wait.Ticket == first.Ticket)
            {
                EndLocked(first.Wait, ended);
            }
        }
    }

    private long NextDueLocked() => _timed.TryPeek(out _, out long due) ? due : long.MaxValue;

    private void EndLocked(DescriptorWait wait, List<DescriptorWait> ended)
    {
        if (wait.Descriptor >= 0)
        {
            UnregisterLocked(wait);
        }

        ReleaseLocked(wait);
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
