using System.Diagnostics;
using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.IO;

namespace Pipelines.File.Threading;

/// <summary>
/// Linux: waits, with one thread for all of them, until descriptors that can block (FIFOs, terminals, sockets) are ready, so that an idle one holds no thread and can be given up at once. By
/// epoll(7) with one-shot registrations, so that a wake-up costs the same however many wait.
/// </summary>
internal sealed unsafe class DescriptorPoller
{
    /// <summary>At most the 15 characters that Linux keeps.</summary>
    internal const string ThreadName = "File pipe poll";

    private const int StackBytes = 256 * 1024;
    private const int MaxEvents = 64;

    // The low half of what the kernel gives back is the descriptor; the high half tells waits for one number from each other.
    private const int TicketShift = 32;

    // Guards everything below and the waits, and is held for moments only, never while the thread waits.
    private readonly Lock _gate = new();

    // By the descriptor that each has in the epoll instance.
    private readonly Dictionary<int, DescriptorWait> _waits = [];

    // The epoll instance. It and the thread are there for the life of the process, as a wait may begin when no descriptor is left, without which the runtime starts no thread either. -1: not made
    // yet.
    private int _epoll = -1;
    private uint _lastTicket;

    internal static DescriptorPoller Shared { get; } = new();

    /// <summary>Takes the descriptor and the thread that waiting needs. Whoever opens a file that may wait calls it then, when it can still say that there are none.</summary>
    /// <exception cref="IOException">The system has no descriptors, or no thread.</exception>
    internal void Prepare()
    {
        lock (_gate)
        {
            PrepareLocked();
        }
    }

    /// <summary>
    /// Calls <see cref="IDescriptorWaiter.OnReady"/> once when the descriptor is ready, unless <see cref="TryCancel"/> comes first. <see langword="false"/>: it came already, and nothing waits
    /// here.
    /// </summary>
    /// <param name="wait">What waits.</param>
    /// <param name="file">The descriptor, which is held open until the wait ends.</param>
    /// <param name="events">POLLIN or POLLOUT, the same bits as epoll's.</param>
    /// <exception cref="IOException">The system has no descriptors, or no thread, to wait with; nothing waits here.</exception>
    internal bool TryAdd(DescriptorWait wait, SafeFileHandle file, short events)
    {
        lock (_gate)
        {
            if (wait.CanceledGeneration == wait.Waiter.Generation)
            {
                return false;
            }

            PrepareLocked();
            bool isHeld = false;
            file.DangerousAddRef(ref isHeld);
            int number = (int)file.DangerousGetHandle();

            // Somebody may wait for that number already, for the same file or for one that its owner has closed since. A descriptor is registered once: this wait has one of its own, then.
            wait.OwnsDescriptor = _waits.ContainsKey(number);
            int descriptor = wait.OwnsDescriptor ? Libc.FCntl(file, Libc.F_DUPFD_CLOEXEC, 0) : number;
            if (descriptor < 0
                || Libc.EpollControl(_epoll, Libc.EPOLL_CTL_ADD, descriptor, (ushort)events | Libc.EPOLLONESHOT, ((ulong)++_lastTicket << TicketShift) | (uint)descriptor) != 0)
            {
                IOException error = LastError();
                Release(file, wait.OwnsDescriptor ? descriptor : -1);
                throw error;
            }

            wait.File = file;
            wait.Descriptor = descriptor;
            wait.Ticket = _lastTicket;
            _waits.Add(descriptor, wait);
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
            bool waits = wait.File is not null;
            if (waits)
            {
                RemoveLocked(wait);
            }

            return waits;
        }
    }

    private static void Release(SafeFileHandle file, int copy)
    {
        if (copy >= 0)
        {
            _ = Libc.Close(copy);
        }

        // Releasing the last reference to a file that was closed meanwhile closes it: a moment.
        file.DangerousRelease();
    }

    private static IOException LastError()
    {
        int error = Marshal.GetLastPInvokeError();
        return new IOException(Marshal.GetPInvokeErrorMessage(error), error);
    }

    private void RemoveLocked(DescriptorWait wait)
    {
        Debug.Assert(_gate.IsHeldByCurrentThread);
        _waits.Remove(wait.Descriptor);
        _ = Libc.EpollControl(_epoll, Libc.EPOLL_CTL_DEL, wait.Descriptor, 0, 0);
        Release(wait.File!, wait.OwnsDescriptor ? wait.Descriptor : -1);
        wait.File = null;
    }

    private void PrepareLocked()
    {
        Debug.Assert(_gate.IsHeldByCurrentThread);
        if (_epoll >= 0)
        {
            return;
        }

        int epoll = Libc.EpollCreate(Libc.EPOLL_CLOEXEC);
        if (epoll < 0)
        {
            throw LastError();
        }

        try
        {
            new Thread(epoll => Run((int)epoll!), StackBytes) { IsBackground = true, Name = ThreadName }.UnsafeStart(epoll);
        }
        catch (Exception e) when (e is OutOfMemoryException or ThreadStartException)
        {
            _ = Libc.Close(epoll);
            throw new IOException("The system could not start the thread that waits for the file.", e);
        }

        _epoll = epoll;
    }

    private void Run(int epoll)
    {
        byte* events = stackalloc byte[MaxEvents * Libc.EpollEventSize];
        List<DescriptorWait> ended = [];
        while (true)
        {
            // What is registered meanwhile is waited for, too.
            int ready = Libc.EpollWait(epoll, events, MaxEvents, -1);
            lock (_gate)
            {
                for (int i = 0; i < ready; i++)
                {
                    ulong told = *(ulong*)(events + (i * Libc.EpollEventSize) + Libc.EpollDataOffset);
                    if (_waits.TryGetValue((int)(uint)told, out DescriptorWait? wait) && wait.Ticket == (uint)(told >> TicketShift))
                    {
                        RemoveLocked(wait);
                        ended.Add(wait);
                    }
                }
            }

            ended.ForEach(static wait => wait.Waiter.OnReady());
            ended.Clear();
        }
    }
}
