using Pipelines.File.IO;

namespace Pipelines.File.Threading;

/// <summary>
/// Linux: waits, with one thread for all of them, until descriptors that can block (FIFOs, terminals, sockets) are ready, so that an idle
/// one holds no thread and can be given up at once. By epoll(7) with one-shot registrations, so that a wake-up costs the same however many
/// wait.
/// </summary>
/// <remarks>
/// A descriptor can be registered once, and several may wait for it: they share the registration, which is made by the first of them and
/// removed with the last. So nothing is registered that nobody waits for, and no descriptor number that was closed and given out again.
/// </remarks>
internal sealed unsafe class DescriptorPoller
{
    /// <summary>At most the 15 characters that Linux keeps.</summary>
    internal const string ThreadName = "File pipe poll";

    private const int StackBytes = 256 * 1024;
    private const int MaxEvents = 64;
    private const int LaterMilliseconds = 20;

    // Guards everything below and the waits, and is held for moments only, never while the thread waits.
    private readonly Lock _gate = new();

    // By descriptor. One that was made stays: there are never more of them than the process has had files open at once.
    private readonly Dictionary<int, Registration> _registrations = [];

    // What is queued for the waiting threads at the next moment, Environment.TickCount64, which counts where there is something.
    private readonly List<IWaitingCall> _later = [];
    private long _nextMoment;

    // The epoll instance, and a descriptor that is always ready, which ends its wait once whenever it is told to tell of it; -1: not made
    // yet. They and the thread are there for the life of the process, as a wait may begin when no descriptor is left, without which the
    // runtime starts no thread either.
    private int _epoll = -1;
    private int _ready = -1;
    private bool _hasThread;

    internal static DescriptorPoller Shared { get; } = new();

    /// <summary>
    /// Takes the descriptors and the thread that waiting needs. Whoever opens a file that may wait calls it then, when it can still say
    /// that there are none.
    /// </summary>
    /// <exception cref="IOException">The system has no descriptors, or no thread.</exception>
    internal void Prepare()
    {
        lock (_gate)
        {
            if (_hasThread)
            {
                return;
            }

            // What was made stays where the next is not to be had, for the next try.
            _epoll = _epoll < 0 ? Libc.EpollCreate(Libc.EPOLL_CLOEXEC) : _epoll;
            _ready = _ready < 0 && _epoll >= 0 ? Libc.EventDescriptor(1, Libc.EFD_CLOEXEC) : _ready;
            if (_ready < 0 || (Libc.EpollControl(_epoll, Libc.EPOLL_CTL_ADD, _ready, Libc.EPOLLONESHOT, (uint)_ready) != 0
                && Marshal.GetLastPInvokeError() != Libc.EEXIST))
            {
                throw LastError();
            }

            try
            {
                new Thread(Run, StackBytes) { IsBackground = true, Name = ThreadName }.UnsafeStart();
                _hasThread = true;
            }
            catch (Exception e) when (e is OutOfMemoryException or ThreadStartException)
            {
                throw new IOException("The system could not start the thread that waits for the file.", e);
            }
        }
    }

    /// <summary>
    /// Has the call queued for a waiting thread some milliseconds from now, together with others: for what the system does not report.
    /// </summary>
    /// <inheritdoc cref="Prepare" path="/exception"/>
    internal void QueueLater(IWaitingCall call)
    {
        Prepare();
        lock (_gate)
        {
            if (_later.Count == 0)
            {
                _nextMoment = Environment.TickCount64 + LaterMilliseconds;
                _ = Libc.EpollControl(_epoll, Libc.EPOLL_CTL_MOD, _ready, (ushort)Libc.POLLIN | Libc.EPOLLONESHOT, (uint)_ready);
            }

            _later.Add(call);
        }
    }

    /// <summary>Whether the call has been waiting here, and no longer does. Else it is queued, or on its way here.</summary>
    internal bool TryRemove(IWaitingCall call)
    {
        lock (_gate)
        {
            return _later.Remove(call);
        }
    }

    /// <summary>
    /// Calls <see cref="FileRequest.OnReady"/> once when the descriptor is ready, or when another wait for it ends, unless
    /// <see cref="TryCancel"/> comes first. <see langword="false"/>: it came already, and nothing waits here.
    /// </summary>
    /// <param name="wait">What waits.</param>
    /// <param name="file">The descriptor.</param>
    /// <param name="events">POLLIN or POLLOUT.</param>
    /// <exception cref="IOException">
    /// The system has no descriptor, or no thread, to wait with, or does not wait for such a file; nothing waits here.
    /// </exception>
    internal bool TryAdd(FileRequest wait, SafeFileHandle file, short events)
    {
        Prepare();
        lock (_gate)
        {
            if (wait.IsCancelWanted)
            {
                return false;
            }

            bool isHeld = false;
            file.DangerousAddRef(ref isHeld);
            wait.Polled = file;
            int descriptor = (int)file.DangerousGetHandle();
            if (!_registrations.TryGetValue(descriptor, out Registration? registration))
            {
                _registrations.Add(descriptor, registration = new Registration());
            }

            registration.Waits.Add(wait);
            registration.Armed |= (ushort)events;

            // Added whoever waits already: the number may mean another file by now, where the handle of an earlier wait does not own it and
            // its owner has closed it. A file that is registered (EEXIST) may have had that number before, too.
            uint armed = registration.Armed | Libc.EPOLLONESHOT;
            if (Libc.EpollControl(_epoll, Libc.EPOLL_CTL_ADD, descriptor, armed, (uint)descriptor) != 0
                && (Marshal.GetLastPInvokeError() != Libc.EEXIST
                    || Libc.EpollControl(_epoll, Libc.EPOLL_CTL_MOD, descriptor, armed, (uint)descriptor) != 0))
            {
                IOException error = LastError();
                EndLocked(wait);
                throw error;
            }

            return true;
        }
    }

    /// <summary>
    /// <see langword="true"/>: it waited here and no longer does, so that ending it is now the caller's. <see langword="false"/>: it is on
    /// its way here, or past it; if it does come, <see cref="TryAdd"/> refuses it. Or the object serves another purpose by now, and is left
    /// alone.
    /// </summary>
    internal bool TryCancel(FileRequest wait, int generation)
    {
        lock (_gate)
        {
            if (wait.Generation != generation)
            {
                return false;
            }

            wait.CanceledGeneration = generation;
            if (wait.Polled is null)
            {
                return false;
            }

            EndLocked(wait);
            return true;
        }
    }

    private static IOException LastError()
    {
        int error = Marshal.GetLastPInvokeError();
        return new IOException(Marshal.GetPInvokeErrorMessage(error), error);
    }

    private void EndLocked(FileRequest wait)
    {
        Debug.Assert(_gate.IsHeldByCurrentThread);
        SafeFileHandle file = wait.Polled!;
        int descriptor = (int)file.DangerousGetHandle();
        Registration registration = _registrations[descriptor];
        registration.Waits.Remove(wait);
        if (registration.Waits.Count == 0)
        {
            registration.Armed = 0;
            _ = Libc.EpollControl(_epoll, Libc.EPOLL_CTL_DEL, descriptor, 0, 0);
        }

        // Releasing the last reference to a file that was closed meanwhile closes it: a moment.
        wait.Polled = null;
        file.DangerousRelease();
    }

    private void Run()
    {
        byte* events = stackalloc byte[MaxEvents * Libc.EpollEventSize];
        List<FileRequest> ended = [];
        List<IWaitingCall> due = [];
        while (true)
        {
            int timeout;
            lock (_gate)
            {
                timeout = _later.Count == 0 ? -1 : (int)Math.Max(0, _nextMoment - Environment.TickCount64);
            }

            int ready = Libc.EpollWait(_epoll, events, MaxEvents, timeout);
            lock (_gate)
            {
                for (int i = 0; i < ready; i++)
                {
                    TakeLocked((int)*(ulong*)(events + (i * Libc.EpollEventSize) + Libc.EpollDataOffset), ended);
                }

                if (Environment.TickCount64 >= _nextMoment)
                {
                    due.AddRange(_later);
                    _later.Clear();
                }
            }

            foreach (FileRequest wait in ended)
            {
                wait.OnReady();
            }

            foreach (IWaitingCall call in due)
            {
                WaitingThreads.Shared.Queue(call);
            }

            ended.Clear();
            due.Clear();
        }
    }

    /// <summary>
    /// The kernel has told of a descriptor: all who wait for it look. Who has waited for something else, or for another file of that
    /// number, finds nothing, and waits anew.
    /// </summary>
    private void TakeLocked(int descriptor, List<FileRequest> ended)
    {
        if (_registrations.TryGetValue(descriptor, out Registration? registration))
        {
            // Removing leaves the enumerator valid.
            foreach (FileRequest wait in registration.Waits)
            {
                EndLocked(wait);
                ended.Add(wait);
            }
        }
    }

    /// <summary>One descriptor, which is in the epoll instance while somebody waits for it.</summary>
    private sealed class Registration
    {
        internal HashSet<FileRequest> Waits { get; } = [];

        /// <summary>The events that the kernel tells of, once: the same bits as poll(2)'s.</summary>
        internal uint Armed { get; set; }
    }
}
