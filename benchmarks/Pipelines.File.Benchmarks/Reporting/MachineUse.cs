using System.Globalization;

namespace FilePipelinesBenchmarks.Reporting;

/// <summary>
/// How much of the processors others have used while something was measured: other processes, the kernel's own threads and, in a virtual
/// machine, its neighbours. Ways that hand over between threads suffer from that most. Linux (proc(5)).
/// </summary>
internal readonly struct MachineUse
{
    private readonly double _all;
    private readonly double _busy;
    private readonly double _own;

    private MachineUse(double all, double busy, double own)
    {
        _all = all;
        _busy = busy;
        _own = own;
    }

    /// <summary>The state of the counters.</summary>
    internal static MachineUse Now()
    {
        if (!OperatingSystem.IsLinux())
        {
            return default;
        }

        // cpu user nice system idle iowait irq softirq steal …
        double[] machine = TicksOf(File.ReadLines("/proc/stat").First()[3..]);
        double idle = machine[3] + machine[4];

        // Behind the name in parentheses: state, parent, …; utime and stime are the 12th and 13th field, those of the children that have
        // ended the two after them.
        string own = File.ReadAllText("/proc/self/stat");
        double[] process = TicksOf(own[(own.LastIndexOf(')') + 4)..]);
        return new MachineUse(machine.Take(8).Sum(), machine.Take(8).Sum() - idle, process.Skip(10).Take(4).Sum());
    }

    /// <summary>
    /// The share of all processors that others have used since <paramref name="before"/>, 0 to 1; 0 where it is not known.
    /// </summary>
    internal double OthersSince(MachineUse before)
        => _all == before._all ? 0 : Math.Max(0, (_busy - before._busy - (_own - before._own)) / (_all - before._all));

    private static double[] TicksOf(string fields)
        => [.. fields.Split(' ', StringSplitOptions.RemoveEmptyEntries).Select(field => double.Parse(field, CultureInfo.InvariantCulture))];
}
