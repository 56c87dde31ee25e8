using System.ComponentModel;
using System.Runtime.InteropServices;

namespace FilePipelines.Devices.Child;

/// <summary>
/// Has the parent answer some system calls of this process: a filter of seccomp(2) with a listener (seccomp_unotify(2)). It stays until the
/// process ends.
/// </summary>
internal static partial class SystemCallFilter
{
    private const uint Amd64 = 0xC000003E;
    private const uint Allow = 0x7FFF0000;
    private const uint Notify = 0x7FC00000;

    // bpf(4): load a word, compare, return.
    private const ushort Load = 0x20;
    private const ushort IfEqual = 0x15;
    private const ushort IfGreater = 0x25;
    private const ushort Return = 0x06;

    // offsetof struct seccomp_data
    private const uint Number = 0;
    private const uint Architecture = 4;
    private const uint FirstArgument = 16;

    private const int NoNewPrivileges = 38;
    private const nint Seccomp = 317;
    private const nint SetFilter = 1;

    // SECCOMP_FILTER_FLAG_TSYNC, NEW_LISTENER, TSYNC_ESRCH, WAIT_KILLABLE_RECV: for all threads, and no signal begins a call again that the
    // parent has seen.
    private const nint Flags = 1 | 8 | 16 | 32;

    /// <summary>Installs the filter. Returns the listener's descriptor, which the parent takes with pidfd_getfd(2).</summary>
    internal static unsafe int Install(IEnumerable<int> calls)
    {
        List<Instruction> program =
        [
            new(Load, 0, 0, Architecture),
            new(IfEqual, 1, 0, Amd64),
            new(Return, 0, 0, Allow),
            new(Load, 0, 0, Number),
        ];
        foreach (int call in calls)
        {
            // read(2) and write(2) of the standard streams are how this process talks.
            if (call is 0 or 1)
            {
                program.AddRange(
                [
                    new(IfEqual, 0, 4, (uint)call),
                    new(Load, 0, 0, FirstArgument),
                    new(IfGreater, 0, 1, 2),
                    new(Return, 0, 0, Notify),
                    new(Return, 0, 0, Allow),
                ]);
            }
            else
            {
                program.AddRange([new(IfEqual, 0, 1, (uint)call), new(Return, 0, 0, Notify)]);
            }
        }

        program.Add(new(Return, 0, 0, Allow));
        Instruction[] instructions = [.. program];
        fixed (Instruction* first = instructions)
        {
            Program filter = new() { Length = (ushort)instructions.Length, Instructions = first };
            nint listener = Control(NoNewPrivileges, 1, 0, 0, 0) == 0 ? Call(Seccomp, SetFilter, Flags, (nint)(&filter)) : -1;
            return listener >= 0 ? (int)listener : throw new Win32Exception(Marshal.GetLastPInvokeError());
        }
    }

    /// <summary>Writes to standard output without any other call.</summary>
    internal static unsafe void Say(ReadOnlySpan<byte> text)
    {
        fixed (byte* first = text)
        {
            _ = Write(1, first, text.Length);
        }
    }

    [LibraryImport("libc", EntryPoint = "prctl", SetLastError = true)]
    private static partial int Control(int option, nuint first, nuint second, nuint third, nuint fourth);

    [LibraryImport("libc", EntryPoint = "syscall", SetLastError = true)]
    private static partial nint Call(nint number, nint first, nint second, nint third);

    [LibraryImport("libc", EntryPoint = "write")]
    private static unsafe partial nint Write(int descriptor, byte* bytes, nint length);

    /// <summary>struct sock_filter.</summary>
    [StructLayout(LayoutKind.Sequential)]
    private readonly record struct Instruction(ushort Code, byte IfTrue, byte IfFalse, uint Value);

    /// <summary>struct sock_fprog.</summary>
    [StructLayout(LayoutKind.Sequential)]
    private unsafe struct Program
    {
        internal ushort Length;
        internal Instruction* Instructions;
    }
}
