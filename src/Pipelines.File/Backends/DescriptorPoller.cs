using System.Diagnostics;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Interop;

namespace Pipelines.File.Backends;

/// <summary>
/// Waits, with one thread for all of them, until descriptors that can block (FIFOs, terminals, sockets) are ready, so that an idle one holds no
/// thread of the pool and can be given up at once. The thread and its wake-up pipe exist only while something waits, and a little longer.
/// </summary>
internal sealed unsafe class DescriptorPoller
{
    /// <summary>How long the thread outlives the last waiter, milliseconds: starting one costs more than keeping it between two reads.</summary>
    private const int LingerMilliseconds = 200;

    /// <summary>At most the 15 characters that Linux keeps.</summary>
    internal const string ThreadName = "File pipe poll";

    // Guards everything below, and is held for moments only, never during poll(2).
    private readonly Lock _gate = new();
    private readonly List<ThreadPoolOperation> _waiters = [];
    private bool _running;
    private int _wakeWriteEnd;

    // A wake-up is in the pipe, or its thread has not looked at the waiters since: never more than a few bytes are there, so that writing one, under the lock that
    // the thread needs as well, does not wait.
    private bool _isWoken;
    private long _lastTicket;

    internal static DescriptorPoller Shared { get; } = new();

    /// <summary>
    /// Calls <see cref="ThreadPoolOperation.OnReady"/> once when the descriptor is ready, unless <see cref="TryCancel"/> comes first.
    /// <see langword="false"/>: it came already, and the operation does not wait here.
    /// </summary>
    /// <exception cref="IOException">The system has no descriptors, or no thread, to wait with; the operation does not wait here.</exception>
    internal bool TryAdd(ThreadPoolOperation operation, SafeFileHandle file, short events)
    {
        lock (_gate)
        {
            if (operation.CanceledGeneration == operation.Generation)
            {
                return false;
            }

            bool held = false;
            file.DangerousAddRef(ref held);
            operation.WaitTicket = ++_lastTicket;
            operation.WaitFile = file;
            operation.WaitDescriptor = (int)file.DangerousGetHandle();
            operation.WaitEvents = events;
            _waiters.Add(operation);
            if (_running)
            {
                Wake();
            }
            else
            {
                try
                {
                    StartThread();
                }
                catch
                {
                    Remove(operation);
                    throw;
                }
            }

            return true;
        }
    }

    /// <summary>
    /// <see langword="true"/>: the operation waited here and no longer does, so that ending it is now the caller's. <see langword="false"/>: it is on its way here, or
    /// past it; if it does come, <see cref="TryAdd"/> refuses it. Or it serves another purpose by now, and is left alone.
    /// </summary>
    internal bool TryCancel(ThreadPoolOperation operation, int generation)
    {
        lock (_gate)
        {
            if (operation.Generation != generation)
            {
                return false;
            }

            // The descriptor may still be in the poll(2) of this moment: that does no harm, since the thread looks its waiters up again afterwards.
            operation.CanceledGeneration = generation;
            if (!Remove(operation))
            {
                return false;
            }

            Wake();
            return true;
        }
    }

    private bool Remove(ThreadPoolOperation operation)
    {
        if (!_waiters.Remove(operation))
        {
            return false;
        }

        // Releasing the last reference to a file that was closed meanwhile closes it: a moment.
        operation.WaitFile!.DangerousRelease();
        operation.WaitFile = null;
        operation.WaitTicket = 0;
        return true;
    }

    private void StartThread()
    {
        int* ends = stackalloc int[2];
        if (OpenPipe(ends) != 0)
        {
            throw FileErrors.FromErrno(System.Runtime.InteropServices.Marshal.GetLastPInvokeError(), path: null);
        }

        int wakeReadEnd = ends[0];
        Thread thread = new(() => Run(wakeReadEnd), maxStackSize: 256 * 1024) { IsBackground = true, Name = ThreadName };
        try
        {
            thread.UnsafeStart();
        }
        catch (Exception e) when (e is OutOfMemoryException or ThreadStartException)
        {
            _ = Libc.Close(ends[0]);
            _ = Libc.Close(ends[1]);
            throw new IOException("The system has no thread to wait for the file with.", e);
        }

        // The thread looks when the lock is free.
        _wakeWriteEnd = ends[1];
        _isWoken = false;
        _running = true;
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
        (ThreadPoolOperation Operation, long Ticket)[] polled = new (ThreadPoolOperation, long)[8];
        byte* drained = stackalloc byte[64];
        while (true)
        {
            int count;
            lock (_gate)
            {
                _isWoken = false;
                count = _waiters.Count;
                if (descriptors.Length <= count)
                {
                    descriptors = new Libc.PollDescriptor[count * 2];
                    polled = new (ThreadPoolOperation, long)[count * 2];
                }

                descriptors[0] = new() { Descriptor = wakeReadEnd, Events = Libc.POLLIN };
                for (int i = 0; i < count; i++)
                {
                    ThreadPoolOperation operation = _waiters[i];
                    polled[i] = (operation, operation.WaitTicket);
                    descriptors[i + 1] = new() { Descriptor = operation.WaitDescriptor, Events = operation.WaitEvents };
                }
            }

            int ready;
            fixed (Libc.PollDescriptor* first = descriptors)
            {
                ready = Libc.Poll(first, (nuint)(count + 1), count == 0 ? LingerMilliseconds : -1);
            }

            if (ready > 0 && descriptors[0].ReturnedEvents != 0)
            {
                _ = Libc.Read(wakeReadEnd, drained, 64);
            }

            for (int i = 0; ready > 0 && i < count; i++)
            {
                if (descriptors[i + 1].ReturnedEvents != 0 && TryRemove(polled[i].Operation, polled[i].Ticket))
                {
                    polled[i].Operation.OnReady();
                }
            }

            Array.Clear(polled, 0, count);
            if (ready == 0 && TryStop(wakeReadEnd))
            {
                return;
            }
        }
    }

    // The ticket tells this wait from a later one of the same operation.
    private bool TryRemove(ThreadPoolOperation operation, long ticket)
    {
        lock (_gate)
        {
            return operation.WaitTicket == ticket && Remove(operation);
        }
    }

    private bool TryStop(int wakeReadEnd)
    {
        lock (_gate)
        {
            if (_waiters.Count > 0)
            {
                return false;
            }

            Debug.Assert(_running);
            _running = false;
            _ = Libc.Close(_wakeWriteEnd);
            _ = Libc.Close(wakeReadEnd);
            return true;
        }
    }
}
