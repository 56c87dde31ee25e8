using System.Diagnostics;
using System.Runtime.InteropServices;
using System.Text;
using Microsoft.Win32.SafeHandles;

namespace FilePipelines.Devices.Tests;

/// <summary>
/// Answers the system calls of a child (seccomp_unotify(2)): the n-th one of a kind that is about a file of the folder fails, and all
/// others are the kernel's. On a thread of its own.
/// </summary>
internal sealed partial class SystemCallSupervisor : IDisposable
{
    /// <summary>The number of a call that means every one.</summary>
    internal const int Always = 0;

    private const int Eintr = 4;
    private const int Enoent = 2;
    private const int Close = 3;
    private const ulong Receive = 0xC0502100;
    private const ulong Send = 0xC0182101;
    private const ulong AddDescriptor = 0x40182103;
    private const uint Continue = 1;
    private const uint SetDescriptor = 1;
    private const nint OpenProcess = 434;
    private const nint TakeDescriptor = 438;
    private const short In = 1;

    private readonly int _process;
    private readonly string _folder;
    private readonly SafeFileHandle _listener;
    private readonly SafeFileHandle _memory;
    private readonly SafeFileHandle _nothing = File.OpenHandle("/dev/null");
    private readonly Thread _thread;

    // Guards the fields below.
    private readonly Lock _lock = new();
    private readonly Dictionary<int, int> _counts = [];
    private int _call = -1;
    private int _error;
    private int _number;

    internal SystemCallSupervisor(Process child, int descriptor, string folder)
    {
        _process = child.Id;
        _folder = folder;
        using SafeFileHandle process = Opened(Call(OpenProcess, child.Id, 0, 0));
        _listener = Opened(Call(TakeDescriptor, process.DangerousGetHandle(), descriptor, 0));
        _memory = File.OpenHandle($"/proc/{child.Id}/mem", FileMode.Open, FileAccess.Read, FileShare.ReadWrite);
        _thread = new Thread(Serve) { IsBackground = true, Name = "system calls" };
        _thread.Start();
    }

    /// <summary>Whether the call that was to fail was made.</summary>
    internal bool WasMade { get; private set; }

    /// <summary>How often each call was made since <see cref="Arm"/>.</summary>
    internal Dictionary<int, int> Counts
    {
        get
        {
            lock (_lock)
            {
                return new(_counts);
            }
        }
    }

    /// <summary>The child has ended.</summary>
    public void Dispose()
    {
        _thread.Join();
        _listener.Dispose();
        _memory.Dispose();
        _nothing.Dispose();
    }

    /// <summary>
    /// From here on the n-th call of that number, counted from 1, or each (<see cref="Always"/>), fails with that errno; -1: none does.
    /// </summary>
    internal void Arm(int call, int number, int error)
    {
        lock (_lock)
        {
            (_call, _number, _error, WasMade) = (call, number, error, false);
            _counts.Clear();
        }
    }

    [LibraryImport("libc", EntryPoint = "syscall", SetLastError = true)]
    private static partial nint Call(nint number, nint first, nint second, nint third);

    [LibraryImport("libc", EntryPoint = "poll", SetLastError = true)]
    private static unsafe partial int Poll(PollDescriptor* descriptors, nuint count, int timeout);

    private static SafeFileHandle Opened(nint descriptor)
        => descriptor >= 0 ? new SafeFileHandle(descriptor, ownsHandle: true) : throw Libc.Error("pidfd");

    private unsafe void Serve()
    {
        PollDescriptor descriptor = new() { Descriptor = (int)_listener.DangerousGetHandle(), Events = In };
        while (true)
        {
            if (Poll(&descriptor, 1, -1) < 0)
            {
                continue;
            }

            if ((descriptor.Returned & In) == 0)
            {
                // The child has ended.
                return;
            }

            Notification notification = default;
            if (Libc.Control(_listener, Receive, (nint)(&notification)) != 0)
            {
                Debug.Assert(Marshal.GetLastPInvokeError() is Eintr or Enoent, "The thread that made the call was killed.");
                continue;
            }

            int error = Decide(notification);
            if (error != 0 && notification.Number == Close)
            {
                // close(2) fails, and closes the descriptor all the same.
                Replacement replacement = new()
                {
                    Id = notification.Id,
                    Flags = SetDescriptor,
                    Source = (uint)_nothing.DangerousGetHandle(),
                    Target = (uint)notification.First,
                };
                _ = Libc.Control(_listener, AddDescriptor, (nint)(&replacement));
            }

            Response response = new() { Id = notification.Id, Error = -error, Flags = error == 0 ? Continue : 0 };
            _ = Libc.Control(_listener, Send, (nint)(&response));
        }
    }

    private int Decide(in Notification notification)
    {
        SystemCall? call = Array.Find(SystemCall.All, Is(notification.Number));
        if (call is null || !IsOfFolder(call, notification))
        {
            return 0;
        }

        lock (_lock)
        {
            int count = _counts[call.Number] = _counts.GetValueOrDefault(call.Number) + 1;
            bool fails = call.Number == _call && (_number == Always || count == _number);
            WasMade |= fails;
            return fails ? _error : 0;
        }
    }

    private static Predicate<SystemCall> Is(int number) => call => call.Number == number;

    private bool IsOfFolder(SystemCall call, in Notification notification)
    {
        string? path = call.File switch
        {
            SystemCallFile.Descriptor => TargetOf((int)notification.First),
            SystemCallFile.Path => ReadText(notification.First),
            _ => ReadText(notification.Second) is { Length: > 0 } text ? text : TargetOf((int)notification.First),
        };
        const string Own = "/proc/self/fd/";
        if (path is not null && path.StartsWith(Own, StringComparison.Ordinal)
            && int.TryParse(path[Own.Length..].Split('/')[0], out int descriptor))
        {
            path = TargetOf(descriptor);
        }

        // What names no absolute path is relative to a folder of its own.
        return path is not null && (path.StartsWith(_folder, StringComparison.Ordinal)
            || (!path.StartsWith('/') && call.File == SystemCallFile.PathAt
                && TargetOf((int)notification.First)?.StartsWith(_folder, StringComparison.Ordinal) == true));
    }

    private string? TargetOf(int descriptor)
    {
        try
        {
            return descriptor < 0 ? null : new FileInfo($"/proc/{_process}/fd/{descriptor}").LinkTarget;
        }
        catch (IOException)
        {
            return null;
        }
    }

    private string ReadText(ulong address)
    {
        byte[] bytes = new byte[4096];
        int length = 0;
        while (length < bytes.Length && address != 0)
        {
            // Up to the end of the page: the next one may not be there.
            int step = Math.Min(bytes.Length - length, 4096 - (int)((address + (ulong)length) % 4096));
            int read = RandomAccess.Read(_memory, bytes.AsSpan(length, step), (long)address + length);
            int end = bytes.AsSpan(length, read).IndexOf((byte)0);
            if (end >= 0 || read == 0)
            {
                return Encoding.UTF8.GetString(bytes, 0, length + Math.Max(end, 0));
            }

            length += read;
        }

        return "";
    }

    /// <summary>struct seccomp_notif with its struct seccomp_data.</summary>
    [StructLayout(LayoutKind.Explicit, Size = 80)]
    private struct Notification
    {
        [FieldOffset(0)]
        internal ulong Id;

        [FieldOffset(16)]
        internal int Number;

        [FieldOffset(32)]
        internal ulong First;

        [FieldOffset(40)]
        internal ulong Second;
    }

    /// <summary>struct seccomp_notif_resp.</summary>
    [StructLayout(LayoutKind.Sequential)]
    private struct Response
    {
        internal ulong Id;
        internal long Value;
        internal int Error;
        internal uint Flags;
    }

    /// <summary>struct seccomp_notif_addfd.</summary>
    [StructLayout(LayoutKind.Sequential)]
    private struct Replacement
    {
        internal ulong Id;
        internal uint Flags;
        internal uint Source;
        internal uint Target;
        internal uint TargetFlags;
    }

    /// <summary>struct pollfd.</summary>
    [StructLayout(LayoutKind.Sequential)]
    private struct PollDescriptor
    {
        internal int Descriptor;
        internal short Events;
        internal short Returned;
    }
}
