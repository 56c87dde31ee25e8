using Pipelines.File.IO;

namespace Pipelines.File.Growing;

/// <summary>
/// Linux: the inotify(7) instance of the process. It reports the next change of each watched file, once (IN_ONESHOT). The first follower
/// creates it. The instance and the thread that reads from it live as long as the process. Any thread may call the methods.
/// </summary>
/// <remarks>
/// The kernel has one watch per file and instance, so readers of the same file share it. The kernel does not reuse the number of a watch
/// before it has used all numbers, so an event with an unknown number is ignored.
/// </remarks>
internal static unsafe class FileWatches
{
    internal const string ThreadName = "Pipelines.File watches";

    private const uint Changes = Libc.IN_MODIFY | Libc.IN_ATTRIB | Libc.IN_MOVE_SELF | Libc.IN_DELETE_SELF | Libc.IN_ONESHOT;

    private const int BufferSize = 8 * 1024;
    private const int StackBytes = 256 * 1024;

    // Guards everything below and the mutable members of FileWatch. Held briefly: no call under it waits.
    private static readonly Lock s_gate = new();

    // The first watch of each number of the kernel's; FileWatch.Next links the others.
    private static readonly Dictionary<int, FileWatch> s_watches = [];
    private static SafeFileHandle? s_inotify;

    /// <summary>
    /// Watches the file, so that its next change calls <see cref="FollowedFile.OnEvent"/> once. Returns <see langword="false"/> if there is
    /// no watch: <paramref name="watch"/> is <see langword="null"/> or released, or the kernel refuses one, for example because all are in
    /// use. A later call may then succeed.
    /// </summary>
    internal static bool TryAdd([NotNullWhen(true)] FileWatch? watch)
    {
        lock (s_gate)
        {
            if (watch is null || watch.Number != 0 || !OperatingSystem.IsLinux())
            {
                return watch is not null;
            }

            int number = watch.IsReleased || (s_inotify ??= TryStart()) is not { } inotify ? 0
                : LibcCalls.InotifyAddWatch(inotify, watch.Path, Changes);
            if (number <= 0)
            {
                return false;
            }

            ref FileWatch? first = ref CollectionsMarshal.GetValueRefOrAddDefault(s_watches, number, out _);
            watch.Next = first;
            first = watch;
            watch.Number = number;
            return true;
        }
    }

    /// <summary>Ends the watch for good. The kernel's watch stays while another reader of the file uses it.</summary>
    internal static void Remove(FileWatch? watch)
    {
        lock (s_gate)
        {
            watch?.IsReleased = true;
            if (watch is not { Number: > 0 and int number })
            {
                return;
            }

            watch.Number = 0;
            ref FileWatch? first = ref CollectionsMarshal.GetValueRefOrNullRef(s_watches, number)!;
            ref FileWatch? link = ref first;
            while (link != watch)
            {
                link = ref link!.Next;
            }

            link = watch.Next;
            if (first is null && OperatingSystem.IsLinux())
            {
                s_watches.Remove(number);
                _ = LibcCalls.InotifyRemoveWatch(s_inotify!, number);
            }
        }
    }

    /// <summary>
    /// Takes the watches that the events have used up, and calls <see cref="FollowedFile.OnEvent"/> for each. It does so without the lock,
    /// because OnEvent takes the lock of its file.
    /// </summary>
    /// <param name="events">What read(2) has returned.</param>
    /// <param name="changed">An empty list to work with; empty again afterwards.</param>
    internal static void Take(ReadOnlySpan<byte> events, List<FileWatch> changed)
    {
        lock (s_gate)
        {
            while (events.Length >= sizeof(Libc.WatchEvent))
            {
                Libc.WatchEvent happened = MemoryMarshal.Read<Libc.WatchEvent>(events);
                events = events[Math.Min(events.Length, sizeof(Libc.WatchEvent) + (int)happened.NameLength)..];
                if ((happened.Mask & Libc.IN_Q_OVERFLOW) != 0)
                {
                    // Events are missing: any file may have changed.
                    foreach (FileWatch first in s_watches.Values)
                    {
                        TakeAll(first, changed);
                    }

                    s_watches.Clear();
                }
                else if (s_watches.Remove(happened.Watch, out FileWatch? first))
                {
                    // IN_IGNORED comes alone in two cases: the file system was unmounted, or the file was watched again between its event
                    // and the removal of the one-shot watch.
                    TakeAll(first, changed);
                }
            }
        }

        foreach (FileWatch watch in changed)
        {
            watch.Owner?.OnEvent();
        }

        changed.Clear();
    }

    private static void TakeAll(FileWatch? watch, List<FileWatch> changed)
    {
        while (watch is not null)
        {
            FileWatch? next = watch.Next;
            watch.Number = 0;
            watch.Next = null;
            changed.Add(watch);
            watch = next;
        }
    }

    /// <summary>Creates the instance and its thread. Returns <see langword="null"/> if the system refuses one of them.</summary>
    [SupportedOSPlatform("linux")]
    private static SafeFileHandle? TryStart()
    {
        int descriptor = LibcCalls.InotifyInit(Libc.IN_CLOEXEC);
        if (descriptor < 0)
        {
            return null;
        }

        SafeFileHandle inotify = new(descriptor, ownsHandle: true);
        try
        {
            new Thread(static inotify => Run((SafeFileHandle)inotify!), StackBytes) { IsBackground = true, Name = ThreadName }
                .UnsafeStart(inotify);
            return inotify;
        }
        catch (Exception e) when (e is OutOfMemoryException or ThreadStartException)
        {
            inotify.Dispose();
            return null;
        }
    }

    [SupportedOSPlatform("linux")]
    private static void Run(SafeFileHandle inotify)
    {
        byte* buffer = stackalloc byte[BufferSize];
        List<FileWatch> changed = [];
        while (true)
        {
            nint length = LibcCalls.Read(inotify, buffer, BufferSize);
            if (length > 0)
            {
                Take(new ReadOnlySpan<byte>(buffer, (int)length), changed);
            }
        }
    }
}
