namespace Pipelines.File.IO;

/// <summary>
/// Linux: one thread waits until descriptors that can block (FIFOs, terminals, sockets) are ready, so that an idle one holds no thread and
/// a wait can be canceled at once. It uses epoll(7) with one-shot registrations, so a wake-up costs the same however many descriptors wait.
/// </summary>
/// <remarks>
/// epoll registers a descriptor once, and several requests may wait for it: they share the registration. The first wait makes it and the
/// last one removes it. So a descriptor that nobody waits for is not registered, and neither is a number that was closed and reused.
/// </remarks>
[UnsupportedOSPlatform("windows")]
internal sealed unsafe class DescriptorPoller
{
    /// <summary>The thread's name. Linux keeps 15 characters.</summary>
    internal const string ThreadName = "Pipelines.File poll";

    private const int StackBytes = 256 * 1024;
    private const int MaxEvents = 64;

    // Guards everything below, and FileRequest.Polled. Held only briefly, never while the thread waits.
    private readonly Lock _gate = new();

    // By descriptor. Entries are never removed: there are at most as many as the process has had files open at once.
    private readonly Dictionary<int, Registration> _registrations = [];

    // The epoll instance; -1 until created. It and the thread live as long as the process: a wait may begin when no descriptor is left, and
    // then the runtime cannot start a thread either.
    private int _epoll = -1;
    private bool _hasThread;

    internal static DescriptorPoller Shared { get; } = new();

    /// <summary>
    /// Creates the descriptor and the thread for waiting. Called when a file that may wait is opened, because opening can still report
    /// that the system has none.
    /// </summary>
    /// <param name="file">The file, for the message; <see langword="null"/>: the caller adds its path.</param>
    /// <exception cref="IOException">The system has no descriptor, or no thread.</exception>
    internal void Prepare(OpenedFile? file = null)
    {
        lock (_gate)
        {
            if (_hasThread)
            {
                return;
            }

            _epoll = _epoll < 0 ? LibcCalls.EpollCreate(Libc.EPOLL_CLOEXEC) : _epoll;
            if (_epoll < 0)
            {
                throw FileErrors.WithPath(LastError(), file?.Path);
            }

            try
            {
                new Thread(Run, StackBytes) { IsBackground = true, Name = ThreadName }.UnsafeStart();
                _hasThread = true;
            }
            catch (Exception e) when (e is OutOfMemoryException or ThreadStartException)
            {
                throw FileErrors.WithPath(new IOException("The system could not start the thread that waits for the file.", e), file?.Path);
            }
        }
    }

    /// <summary>
    /// Calls <see cref="FileRequest.OnReady"/> once, when the descriptor is ready or may be (another wait for it was reported), unless
    /// <see cref="TryCancel"/> comes first. Returns <see langword="false"/> if the request is canceled already, and adds nothing.
    /// </summary>
    /// <param name="wait">The request that waits.</param>
    /// <param name="file">The descriptor.</param>
    /// <param name="events">POLLIN or POLLOUT.</param>
    /// <exception cref="IOException">
    /// The system has no descriptor or thread to wait with, or epoll does not support the file. Nothing was added.
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

            Debug.Assert(wait.Polled is null);
            int descriptor = (int)file.DangerousGetHandle();
            if (!_registrations.TryGetValue(descriptor, out Registration? registration))
            {
                _registrations.Add(descriptor, registration = new Registration());
            }

            // From here on nothing is allocated.
            registration.Waits.EnsureCapacity(registration.Waits.Count + 1);
            bool isHeld = false;
            file.DangerousAddRef(ref isHeld);
            wait.Polled = file;
            registration.Waits.Add(wait);
            registration.Armed |= (ushort)events;

            // EPOLL_CTL_ADD also if others wait already: if the handle of an earlier wait does not own the descriptor, its owner may have
            // closed it, and the number may mean another file now. EEXIST: this file is registered, so only its
            // events change.
            uint armed = registration.Armed | Libc.EPOLLONESHOT;
            if (LibcCalls.EpollControl(_epoll, Libc.EPOLL_CTL_ADD, descriptor, armed, (uint)descriptor) != 0
                && (Marshal.GetLastPInvokeError() != Libc.EEXIST
                    || LibcCalls.EpollControl(_epoll, Libc.EPOLL_CTL_MOD, descriptor, armed, (uint)descriptor) != 0))
            {
                IOException error = LastError();
                EndLocked(wait);
                throw error;
            }

            return true;
        }
    }

    /// <summary>
    /// Cancels the request. Returns <see langword="true"/> if it waited here: it does no longer, and the caller completes it. Otherwise it
    /// is running, or on its way here, where <see cref="TryAdd"/> refuses it.
    /// </summary>
    internal bool TryCancel(FileRequest wait)
    {
        lock (_gate)
        {
            wait.IsCancelWanted = true;
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
            _ = LibcCalls.EpollControl(_epoll, Libc.EPOLL_CTL_DEL, descriptor, 0, 0);
        }

        // If the file was closed meanwhile, this releases the last reference, and so closes it: that takes only a moment.
        wait.Polled = null;
        file.DangerousRelease();
    }

    private void Run()
    {
        byte* events = stackalloc byte[MaxEvents * Libc.EpollEventSize];
        while (true)
        {
            // Nothing here allocates: an exception would end the process.
            int ready = LibcCalls.EpollWait(_epoll, events, MaxEvents, timeoutMilliseconds: -1);
            for (int i = 0; i < ready; i++)
            {
                EndWaits((int)*(ulong*)(events + (i * Libc.EpollEventSize) + Libc.EpollDataOffset));
            }
        }
    }

    /// <summary>
    /// The kernel has reported a descriptor: every wait for it ends and is tried again. A request that waits for another event, or for
    /// another file that had this number, finds that it is not ready and waits again.
    /// </summary>
    private void EndWaits(int descriptor)
    {
        // As many as there are now. One that waits again arms the descriptor again, and so is reported again, with those that it may keep
        // from being taken here.
        for (int left = -1; left != 0; left--)
        {
            FileRequest? wait = null;
            lock (_gate)
            {
                if (_registrations.TryGetValue(descriptor, out Registration? registration) && registration.Waits.Count > 0)
                {
                    left = left < 0 ? registration.Waits.Count : left;
                    HashSet<FileRequest>.Enumerator waits = registration.Waits.GetEnumerator();
                    _ = waits.MoveNext();
                    EndLocked(wait = waits.Current);
                }
            }

            if (wait is null)
            {
                return;
            }

            wait.OnReady();
        }
    }

    /// <summary>One descriptor, which is registered with epoll while a request waits for it.</summary>
    private sealed class Registration
    {
        internal HashSet<FileRequest> Waits { get; } = [];

        /// <summary>The events that are armed; the bits are those of poll(2).</summary>
        internal uint Armed { get; set; }
    }
}
