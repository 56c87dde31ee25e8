using Pipelines.File.IO;

namespace Pipelines.File.Follow;

/// <summary>The watch of one followed file. It does not keep the file: a reader may be forgotten.</summary>
internal sealed class FileWatch(FollowedFile file)
{
    private readonly WeakReference<FollowedFile> _file = new(file);
    private FileWatch? _next;

    /// <summary><see langword="null"/>: it was forgotten.</summary>
    internal FollowedFile? File => _file.TryGetTarget(out FollowedFile? file) ? file : null;

    /// <summary>
    /// The file as inotify_add_watch(2) finds it, whatever its name. A handle that its owner has closed means none, or another one, whose
    /// events cost a read, which tells.
    /// </summary>
    internal string DescriptorPath { get; } = $"/proc/self/fd/{file.Handle.DangerousGetHandle()}";

    /// <summary>
    /// The kernel's number of the watch that tells of the next change; 0: there is none. <see cref="FileWatches"/> guards it and the two
    /// below.
    /// </summary>
    internal int Number { get; set; }

    /// <summary>The next one of the same number.</summary>
    internal ref FileWatch? Next => ref _next;

    /// <summary>The file is not watched any more, for good.</summary>
    internal bool IsReleased { get; set; }
}

/// <summary>
/// Linux: the inotify(7) instance of the process, which tells of the next change of each watched file, once. The first follower makes it,
/// and the process keeps it, with the thread that reads from it.
/// </summary>
/// <remarks>
/// The kernel has one watch for a file, whoever asks: readers of the same file share it. Numbers of watches are not given out again before
/// all of them have been used, so an event for an unknown number is for nobody.
/// </remarks>
internal static unsafe class FileWatches
{
    /// <summary>At most the 15 characters that Linux keeps.</summary>
    internal const string ThreadName = "File watches";

    private const uint NextChange = Libc.IN_MODIFY | Libc.IN_ATTRIB | Libc.IN_MOVE_SELF | Libc.IN_DELETE_SELF | Libc.IN_ONESHOT;
    private const int BufferSize = 8 * 1024;
    private const int StackBytes = 256 * 1024;

    // statfs(2): what is written to a file of it goes through it.
    private const long Overlay = 0x794c7630;

    // Guards everything below, and the watches. Held for moments: no call under it waits.
    private static readonly Lock s_gate = new();

    // By the kernel's number: readers of one file share it.
    private static readonly Dictionary<int, FileWatch> s_watches = [];
    private static SafeFileHandle? s_inotify;

    /// <summary>
    /// Whether the file system of that file tells of every change: not where somebody else may change it without this kernel's knowledge.
    /// </summary>
    internal static bool CanWatch(SafeFileHandle file)
        => LocalFileSystems.Hold(file) || (FileOpening.IsLinux && Libc.FileSystemOf(file) == Overlay);

    /// <summary>
    /// Has <see cref="FollowedFile.OnEvent"/> called at the next change. <see langword="false"/>: nobody tells, for lack of watches or of
    /// anything else; a later call may have more luck.
    /// </summary>
    internal static bool TryAdd([NotNullWhen(true)] FileWatch? watch)
    {
        lock (s_gate)
        {
            if (watch is null || watch.Number != 0)
            {
                return watch is not null;
            }

            int number = watch.IsReleased || (s_inotify ??= TryStart()) is not { } inotify ? 0
                : Libc.InotifyAddWatch(inotify, watch.DescriptorPath, NextChange);
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

    /// <summary>Watches the file no more, for good, unless another reader follows it.</summary>
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
            if (first is null)
            {
                s_watches.Remove(number);
                _ = Libc.InotifyRemoveWatch(s_inotify!, number);
            }
        }
    }

    /// <summary>Takes what the kernel has told. Calls the files without the lock, as they take their own.</summary>
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
                    // IN_IGNORED alone comes where a file system was unmounted, and where the file was watched anew in the moment between
                    // its event and the end of the watch.
                    TakeAll(first, changed);
                }
            }
        }

        foreach (FileWatch watch in changed)
        {
            watch.File?.OnEvent();
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

    /// <summary><see langword="null"/>: the system has no instance, or no thread.</summary>
    private static SafeFileHandle? TryStart()
    {
        int descriptor = Libc.InotifyInit(Libc.IN_CLOEXEC);
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

    private static void Run(SafeFileHandle inotify)
    {
        byte* buffer = stackalloc byte[BufferSize];
        List<FileWatch> changed = [];
        while (true)
        {
            nint length = Libc.Read(inotify, buffer, BufferSize);
            if (length > 0)
            {
                Take(new ReadOnlySpan<byte>(buffer, (int)length), changed);
            }
        }
    }
}
