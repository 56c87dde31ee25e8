using Microsoft.Win32.SafeHandles;
using Pipelines.File.Backends;

namespace Pipelines.File.Waiting;

/// <summary>
/// Waits, with one thread for all of them, until descriptors that can block (FIFOs, terminals, sockets) are ready, so that an idle one holds no
/// thread and can be given up at once. The thread exists only while something waits, and a little longer.
/// </summary>
internal abstract class DescriptorPoller
{
    /// <summary>At most the 15 characters that Linux keeps.</summary>
    internal const string ThreadName = "File pipe poll";

    /// <summary>How long the thread outlives the last wait, milliseconds: starting one costs more than keeping it between two reads.</summary>
    protected const int LingerMilliseconds = 200;

    private const int StackBytes = 256 * 1024;

    // Interlocked by the lock below.
    private long _lastTicket;

    internal static DescriptorPoller Shared { get; } = OperatingSystem.IsLinux() ? new EpollPoller() : new PollPoller();

    // Guards the waits and everything of the derived ones, and is held for moments only, never while the thread waits.
    protected Lock Gate { get; } = new();

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
        lock (Gate)
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
                Add(wait);
            }
            catch
            {
                Release(wait);
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
        lock (Gate)
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

            Remove(wait);
            Release(wait);
            return true;
        }
    }

    /// <summary>Under the lock: waits, and makes sure that the thread runs. Where it throws, nothing waits.</summary>
    protected abstract void Add(DescriptorWait wait);

    /// <summary>Under the lock: no longer waits.</summary>
    protected abstract void Remove(DescriptorWait wait);

    /// <summary>Under the lock, once the wait has been removed.</summary>
    protected static void Release(DescriptorWait wait)
    {
        // Releasing the last reference to a file that was closed meanwhile closes it: a moment.
        wait.File?.DangerousRelease();
        wait.File = null;
        wait.Ticket = 0;
    }

    /// <exception cref="IOException">The system has no thread.</exception>
    protected static void StartThread(ThreadStart run)
    {
        try
        {
            new Thread(run, StackBytes) { IsBackground = true, Name = ThreadName }.UnsafeStart();
        }
        catch (Exception e) when (e is OutOfMemoryException or ThreadStartException)
        {
            throw new IOException("The system has no thread to wait for the file with.", e);
        }
    }

    protected static Exception LastError() => FileErrors.FromErrno(System.Runtime.InteropServices.Marshal.GetLastPInvokeError(), path: null);

    /// <summary>Milliseconds until then, for poll(2) and epoll_wait(2).</summary>
    protected static int TimeoutUntil(long due) => due == long.MaxValue ? -1 : (int)Math.Clamp(due - Environment.TickCount64, 0, int.MaxValue);
}
