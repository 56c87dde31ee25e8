using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Backends;
using Pipelines.File.Interop;

namespace Pipelines.File.Waiting;

/// <summary>
/// Linux: has the system tell of the changes of followed files, by one inotify(7) instance for the process, which the <see cref="DescriptorPoller"/> waits for. It exists while a file is watched,
/// and a little longer.
/// </summary>
/// <remarks>
/// The kernel has one watch for a file, whoever asks: readers of the same file share it, and it goes with the last of them. Numbers of watches are not given out again before all
/// of them have been used, so an event that comes for a number which is not known any more is for nobody. While no read waits at a file, its watch is muted after the
/// first event: a writer at full speed would keep the poller's thread busy otherwise.
/// </remarks>
internal static unsafe class FileWatches
{
    private const uint Muted = Libc.IN_ATTRIB | Libc.IN_MOVE_SELF | Libc.IN_DELETE_SELF;
    private const uint All = Muted | Libc.IN_MODIFY;

    // statfs(2): file systems where somebody else may change a file without this kernel's knowledge. NFS, SMB, CIFS, SMB2, FUSE, 9p, Ceph, AFS, Coda, Lustre, GFS2, OCFS2, VirtualBox, NCP, Orangefs.
    private static readonly HashSet<long> s_remote =
    [
        0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x65735546, 0x01021997, 0x00c36400, 0x5346414f, 0x73757245, 0x0bd00bd0, 0x01161970, 0x7461636f, 0x786f4256, 0x564c, 0x20030528,
    ];

    /// <summary>
    /// How often it is seen whether the instance is still used, milliseconds. Closing one takes the kernel milliseconds in which it counts as one (/proc/sys/fs/inotify/max_user_instances),
    /// so that followers which come and go would use up the instances of the user.
    /// </summary>
    private const int LingerMilliseconds = 500;

    // Guards everything below, and what is of it in the files and the instance. Held for moments: no call under it waits.
    private static readonly Lock s_gate = new();
    private static Instance? s_instance;

    /// <summary>Whether the file system of that file tells of every change.</summary>
    internal static bool CanWatch(SafeFileHandle file)
    {
        if (!OperatingSystem.IsLinux() || !Environment.Is64BitProcess)
        {
            return false;
        }

        // struct statfs has 120 bytes.
        long* status = stackalloc long[64];
        return Libc.FStatFS(file, status) == 0 && !s_remote.Contains(status[0] & 0xffffffff);
    }

    /// <summary>Watches the file. Where that cannot be had, for lack of watches or of anything else, it stays as it is.</summary>
    internal static void TryAdd(FollowedFile file)
    {
        lock (s_gate)
        {
            Instance? instance = s_instance ?? Instance.TryStart();
            if (instance is null)
            {
                return;
            }

            s_instance = instance;
            int number = instance.Set(file, All);
            if (number >= 0)
            {
                ref Watch? watch = ref CollectionsMarshal.GetValueRefOrAddDefault(instance.Watches, number, out _);
                watch ??= new Watch(number);

                // The mask is that of the last call.
                watch.IsMuted = false;
                file.NextOfWatch = watch.First;
                watch.First = file;
                file.Watch = watch;
            }

            EndIfUnused(instance);
        }
    }

    /// <summary>A read waits at the file from now on. <see langword="false"/>: nobody tells of its changes.</summary>
    internal static bool TryArm(FollowedFile file)
    {
        lock (s_gate)
        {
            if (file.Watch is not { } watch)
            {
                return false;
            }

            if (watch.IsMuted)
            {
                watch.IsMuted = s_instance!.Set(file, All) != watch.Number;
            }

            return !watch.IsMuted;
        }
    }

    /// <summary>Watches the file no more, unless another reader follows it.</summary>
    internal static void Remove(FollowedFile file)
    {
        lock (s_gate)
        {
            if (file.Watch is not { } watch)
            {
                return;
            }

            file.Watch = null;
            watch.Remove(file);
            if (watch.First is null && s_instance is { } instance)
            {
                instance.Watches.Remove(watch.Number);
                _ = Libc.InotifyRemoveWatch(instance.Inotify, watch.Number);
                EndIfUnused(instance);
            }
        }
    }

    /// <summary>Does what the kernel telling so would do: for tests, as a queue that overflows cannot be had at will.</summary>
    internal static void Take(ReadOnlySpan<byte> events)
    {
        Instance? instance;
        lock (s_gate)
        {
            instance = s_instance;
        }

        if (instance is not null)
        {
            Take(instance, events, [], []);
        }
    }

    /// <summary>Records what the kernel has told, and wakes whoever waits for it. Without the lock, as waking takes the files' own.</summary>
    private static void Take(Instance instance, ReadOnlySpan<byte> events, List<FollowedFile> woken, List<FollowedFile> lost)
    {
        lock (s_gate)
        {
            // Another instance has other watches of the same numbers.
            if (s_instance == instance)
            {
                Record(instance, events, woken, lost);
            }
        }

        foreach (FollowedFile file in lost)
        {
            file.OnWatchLost();
        }

        foreach (FollowedFile file in woken)
        {
            file.Wake();
        }

        lost.Clear();
        woken.Clear();
    }

    private static void Record(Instance instance, ReadOnlySpan<byte> events, List<FollowedFile> woken, List<FollowedFile> lost)
    {
        while (events.Length >= sizeof(Libc.WatchEvent))
        {
            Libc.WatchEvent happened = MemoryMarshal.Read<Libc.WatchEvent>(events);
            events = events[Math.Min(events.Length, sizeof(Libc.WatchEvent) + (int)happened.NameLength)..];
            if ((happened.Mask & Libc.IN_Q_OVERFLOW) != 0)
            {
                // Events are missing: any file may have changed.
                foreach (Watch each in instance.Watches.Values)
                {
                    each.AddTo(woken);
                }
            }
            else if (instance.Watches.TryGetValue(happened.Watch, out Watch? watch))
            {
                if ((happened.Mask & Libc.IN_IGNORED) != 0)
                {
                    // The kernel has taken the watch away: the file system was unmounted.
                    instance.Watches.Remove(happened.Watch);
                    Forget(watch, lost);
                }
                else if (!watch.AddTo(woken) && !watch.IsMuted && (happened.Mask & Libc.IN_MODIFY) != 0)
                {
                    watch.IsMuted = instance.Set(watch.First!, Muted) == watch.Number;
                }
            }
        }
    }

    private static void Forget(Watch watch, List<FollowedFile> lost)
    {
        watch.AddAllTo(lost);
        while (watch.First is { } file)
        {
            file.Watch = null;
            watch.Remove(file);
        }
    }

    private static void EndIfUnused(Instance instance)
    {
        if (instance.Watches.Count == 0 && !instance.TryLinger())
        {
            s_instance = null;
            instance.End();
        }
    }

    /// <summary>The time to linger is over.</summary>
    private static void OnLingered(Instance instance)
    {
        lock (s_gate)
        {
            instance.IsLingering = false;
            if (s_instance == instance && instance.Watches.Count == 0)
            {
                s_instance = null;
                instance.End();
            }
        }
    }

    /// <summary>One file that the kernel watches.</summary>
    internal sealed class Watch(int number)
    {
        internal int Number { get; } = number;

        /// <summary>The files that share it: the same one, opened more than once.</summary>
        internal FollowedFile? First { get; set; }

        /// <summary>The kernel does not tell of growth, as nobody waits for it.</summary>
        internal bool IsMuted { get; set; }

        internal void Remove(FollowedFile file)
        {
            if (First == file)
            {
                First = file.NextOfWatch;
            }
            else
            {
                FollowedFile before = First!;
                while (before.NextOfWatch != file)
                {
                    before = before.NextOfWatch!;
                }

                before.NextOfWatch = file.NextOfWatch;
            }

            file.NextOfWatch = null;
        }

        /// <summary>Adds the files where a read waits. <see langword="false"/>: there is none.</summary>
        internal bool AddTo(List<FollowedFile> files)
        {
            bool any = false;
            for (FollowedFile? file = First; file is not null; file = file.NextOfWatch)
            {
                if (file.IsWaiting)
                {
                    any = true;
                    files.Add(file);
                }
            }

            return any;
        }

        internal void AddAllTo(List<FollowedFile> files)
        {
            for (FollowedFile? file = First; file is not null; file = file.NextOfWatch)
            {
                files.Add(file);
            }
        }
    }

    /// <summary>One inotify instance, and its wait for the poller.</summary>
    private sealed class Instance : IDescriptorWaiter, IWaitingCall
    {
        private const int BufferSize = 8 * 1024;

        // So that the poller's other waits get their turn.
        private const int MaxReads = 8;

        private readonly DescriptorWait _wait;
        private readonly DescriptorWait _linger;

        // The poller's thread alone has them.
        private readonly List<FollowedFile> _woken = [];
        private readonly List<FollowedFile> _lost = [];

        private Instance(SafeFileHandle inotify)
        {
            Inotify = inotify;
            _wait = new DescriptorWait(this);
            _linger = new DescriptorWait(new Linger(this));
        }

        internal SafeFileHandle Inotify { get; }

        internal Dictionary<int, Watch> Watches { get; } = [];

        /// <summary>Whether <see cref="OnLingered"/> comes.</summary>
        internal bool IsLingering { get; set; }

        int IDescriptorWaiter.Generation => 0;

        WaitKind IWaitingCall.WaitKind => WaitKind.Open;

        IWaitingCall? IWaitingCall.NextCall { get; set; }

        long IWaitingCall.QueuedAt { get; set; }

        /// <summary><see langword="null"/>: the system has none, or nothing to wait for it with.</summary>
        internal static Instance? TryStart()
        {
            int descriptor = Libc.InotifyInit(Libc.IN_NONBLOCK | Libc.IN_CLOEXEC);
            if (descriptor < 0)
            {
                return null;
            }

            Instance instance = new(new SafeFileHandle(descriptor, ownsHandle: true));
            if (instance.TryWait())
            {
                return instance;
            }

            instance.Inotify.Dispose();
            return null;
        }

        /// <summary>Watches the file for that, whatever it was watched for: the number of the watch, or a negative number where the kernel refuses.</summary>
        internal int Set(FollowedFile file, uint mask)
        {
            bool isHeld = false;
            try
            {
                // By the descriptor: the path may mean another file by now.
                file.Handle.DangerousAddRef(ref isHeld);
                file.DescriptorPath ??= string.Create(System.Globalization.CultureInfo.InvariantCulture, $"/proc/self/fd/{file.Handle.DangerousGetHandle()}");
                return Libc.InotifyAddWatch(Inotify, file.DescriptorPath, mask);
            }
            catch (ObjectDisposedException)
            {
                return -1;
            }
            finally
            {
                if (isHeld)
                {
                    file.Handle.DangerousRelease();
                }
            }
        }

        /// <summary>Has <see cref="OnLingered"/> called. <see langword="false"/>: the system has nothing to wait with.</summary>
        internal bool TryLinger()
        {
            try
            {
                IsLingering = IsLingering || DescriptorPoller.Shared.TryAdd(_linger, file: null, events: 0, LingerMilliseconds);
                return IsLingering;
            }
            catch (IOException)
            {
                return false;
            }
        }

        /// <summary>Nobody uses it any more.</summary>
        internal void End()
        {
            _ = DescriptorPoller.Shared.TryCancel(_wait, generation: 0);

            // close(2) waits until no event is on its way, for milliseconds.
            WaitingThreads.Shared.Queue(this);
        }

        bool IWaitingCall.Perform()
        {
            Inotify.Dispose();
            return false;
        }

        void IDescriptorWaiter.OnReady()
        {
            byte* buffer = stackalloc byte[BufferSize];
            try
            {
                for (int i = 0; i < MaxReads; i++)
                {
                    nint length = Libc.Read(Inotify, buffer, BufferSize);
                    if (length <= 0)
                    {
                        break;
                    }

                    FileWatches.Take(this, new ReadOnlySpan<byte>(buffer, (int)length), _woken, _lost);
                }
            }
            catch (ObjectDisposedException)
            {
                // It has ended.
                return;
            }

            if (!TryWait())
            {
                OnBroken();
            }
        }

        /// <summary><see langword="false"/>: the system has nothing to wait with.</summary>
        private bool TryWait()
        {
            try
            {
                // Refused where it has ended meanwhile.
                _ = DescriptorPoller.Shared.TryAdd(_wait, Inotify, Libc.POLLIN);
                return true;
            }
            catch (ObjectDisposedException)
            {
                return true;
            }
            catch (IOException)
            {
                return false;
            }
        }

        /// <summary>The files are looked at by the timer from here on.</summary>
        private void OnBroken()
        {
            List<FollowedFile> lost = [];
            lock (s_gate)
            {
                foreach (Watch watch in Watches.Values)
                {
                    Forget(watch, lost);
                }

                Watches.Clear();
                if (s_instance == this)
                {
                    s_instance = null;
                    End();
                }
            }

            foreach (FollowedFile file in lost)
            {
                file.OnWatchLost();
            }
        }

        private sealed class Linger(Instance instance) : IDescriptorWaiter
        {
            int IDescriptorWaiter.Generation => 0;

            void IDescriptorWaiter.OnReady() => OnLingered(instance);
        }
    }
}
