using System.Reflection;
using System.Runtime;
using System.Runtime.InteropServices;

namespace FilePipelines.Benchmarks.Reporting;

/// <summary>What the figures depend on: the machine, its system, and the code.</summary>
/// <param name="Machine">Its processor and memory, and what a system call costs.</param>
/// <param name="Commit">Of the repository, and whether there were changes on it.</param>
/// <param name="Sources">The tree of src in that commit: the same tree is the same code, whatever the commit is called.</param>
/// <param name="CallMicroseconds">How long the shortest system call takes; <see langword="null"/>: not known.</param>
internal sealed record Surroundings(
    string Machine, string System, string FileSystem, string Runtime, string Commit, string Sources, DateTime Date,
    double? CallMicroseconds)
{
    private const int Calls = 100_000;
    private const string Unknown = "not known";

    internal static Surroundings Look(string repository, string temporaryFolder)
    {
        double? call = MeasureCall();
        return new(
            $"{Processor()}, {Environment.ProcessorCount} logical processors, "
            + $"{GC.GetGCMemoryInfo().TotalAvailableMemoryBytes / (1L << 30)} GiB of memory"
            + (call is null ? string.Empty : string.Create(CultureInfo.InvariantCulture, $", {call:0.0} µs a system call")),
            OperatingSystemName(),
            FileSystemOf(temporaryFolder),
            $"{RuntimeInformation.FrameworkDescription}, {RuntimeInformation.RuntimeIdentifier}, "
            + $"{(GCSettings.IsServerGC ? "server" : "workstation")} collector",
            CommitOf(repository),
            Git(repository, "rev-parse --short=12 HEAD:src") ?? Unknown,
            DateTime.UtcNow,
            call);
    }

    /// <summary>The least of ten means of getppid(2), which only enters the kernel and returns.</summary>
    private static double? MeasureCall()
    {
        if (OperatingSystem.IsWindows())
        {
            return null;
        }

        double least = double.MaxValue;
        for (int i = 0; i < 10; i++)
        {
            long begun = Stopwatch.GetTimestamp();
            for (int call = 0; call < Calls; call++)
            {
                _ = Libc.GetPPid();
            }

            least = Math.Min(least, Stopwatch.GetElapsedTime(begun).TotalMicroseconds / Calls);
        }

        return least;
    }

    private static string Processor()
    {
        const string Information = "/proc/cpuinfo";
        string? model = File.Exists(Information)
            ? File.ReadLines(Information).FirstOrDefault(line => line.StartsWith("model name", StringComparison.Ordinal)) : null;
        return model is null
            ? RuntimeInformation.ProcessArchitecture.ToString()
            : model[(model.IndexOf(':', StringComparison.Ordinal) + 1)..].Trim();
    }

    private static string OperatingSystemName()
    {
        const string KernelRelease = "/proc/sys/kernel/osrelease";
        return File.Exists(KernelRelease) ? $"Linux {File.ReadAllText(KernelRelease).Trim()}" : RuntimeInformation.OSDescription;
    }

    private static string FileSystemOf(string folder)
    {
        DriveInfo? drive = DriveInfo.GetDrives()
            .Where(drive => folder.StartsWith(drive.RootDirectory.FullName, StringComparison.OrdinalIgnoreCase))
            .MaxBy(drive => drive.RootDirectory.FullName.Length);
        return drive is null ? Unknown : drive.DriveFormat;
    }

    // The report's own folder does not count as a change.
    private static string CommitOf(string repository)
    {
        string? commit = Git(repository, "rev-parse --short=12 HEAD");
        string? changes = Git(repository, "status --porcelain --untracked-files=no -- src benchmarks/*.cs benchmarks/*.csproj");
        return commit is null ? Unknown : string.IsNullOrEmpty(changes) ? commit
            : string.Create(CultureInfo.InvariantCulture, $"{commit} with changes");
    }

    private static string? Git(string repository, string arguments)
    {
        try
        {
            using Process? git = Process.Start(new ProcessStartInfo("git", arguments)
            {
                WorkingDirectory = repository,
                RedirectStandardOutput = true,
                RedirectStandardError = true,
            });
            string? output = git?.StandardOutput.ReadToEnd().Trim();
            git?.WaitForExit();
            return git?.ExitCode == 0 ? output : null;
        }
        catch (global::System.ComponentModel.Win32Exception)
        {
            return null;
        }
    }
}

/// <summary>
/// How much of the processors others have used while something was measured: other processes, the kernel's own threads and, in a virtual
/// machine, its neighbours. Ways that hand over between threads suffer from that most. Linux (proc(5)).
/// </summary>
internal readonly record struct MachineUse(double All, double Busy, double Own)
{
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
        => All == before.All ? 0 : Math.Max(0, (Busy - before.Busy - (Own - before.Own)) / (All - before.All));

    private static double[] TicksOf(string fields)
        => [.. fields.Split(' ', StringSplitOptions.RemoveEmptyEntries).Select(field => double.Parse(field, CultureInfo.InvariantCulture))];
}

/// <summary>
/// What one machine has made of the same questions: copies and calls cost differently on each, so one machine's ratios are not another's.
/// </summary>
internal sealed record MachineFigures(string Machine, string Commit, double Reading, double Copy, double Writing)
{
    internal const string FileName = "machines.csv";

    // Headlines that carry over from machine to machine well enough to be compared.
    private static readonly string[] s_keys = ["headline-reading", "headline-copy", "headline-writing"];
    private const string Head = "machine,commit,reading_to_filestream,reading_to_copy,writing_to_filestream";

    /// <summary>Those of other machines that the folder has, with this run's.</summary>
    internal static IReadOnlyList<MachineFigures> Collect(string folder, Surroundings surroundings, IReadOnlyList<Headline> headlines)
    {
        string path = Path.Join(folder, FileName);
        List<MachineFigures> machines = File.Exists(path)
            ? [.. File.ReadLines(path).Skip(1).Select(Parse).Where(other => other.Machine != surroundings.Machine)] : [];
        double[] own = [.. s_keys.Select(key => headlines.FirstOrDefault(headline => headline.Key == key)?.Bars[0].Value ?? double.NaN)];
        machines.Insert(0, new MachineFigures(surroundings.Machine, surroundings.Commit, own[0], own[1], own[2]));
        return machines;
    }

    internal static string ToCsv(IEnumerable<MachineFigures> machines)
        => string.Join('\n', machines.Select(machine => string.Create(CultureInfo.InvariantCulture, $"{machine.Machine.Replace(',', ';')},"
            + $"{machine.Commit},{machine.Reading:0.000},{machine.Copy:0.000},{machine.Writing:0.000}")).Prepend(Head)) + "\n";

    private static MachineFigures Parse(string line)
    {
        string[] fields = line.Split(',');
        double[] figures = [.. fields.Skip(2).Select(field => double.Parse(field, CultureInfo.InvariantCulture))];
        return new MachineFigures(fields[0].Replace(';', ','), fields[1], figures[0], figures[1], figures[2]);
    }
}

/// <summary>The packages of others that the report compares with, in the versions that are built in.</summary>
internal static class Packages
{
    private static readonly Type[] s_types =
    [
        typeof(Nerdbank.Streams.StreamExtensions), typeof(global::Pipelines.Sockets.Unofficial.StreamConnection),
        typeof(Microsoft.Data.Sqlite.SqliteConnection), typeof(FASTER.core.FasterLog), typeof(RocksDbSharp.RocksDb),
        typeof(DotNext.IO.FileReader), typeof(Microsoft.IO.RecyclableMemoryStream),
    ];

    /// <summary>Name and version of each, as its assembly says.</summary>
    internal static IReadOnlyList<string> Versions { get; } = [.. s_types.Select(type => NameAndVersion(type.Assembly))];

    // Of what follows the plus, the commit, as much as tells it from others.
    private static string NameAndVersion(Assembly assembly)
    {
        string version = assembly.GetCustomAttribute<AssemblyInformationalVersionAttribute>()?.InformationalVersion
            ?? assembly.GetName().Version?.ToString() ?? "of a version that it does not say";
        int plus = version.IndexOf('+', StringComparison.Ordinal);
        return $"{assembly.GetName().Name} {(plus < 0 ? version : version[..Math.Min(version.Length, plus + 11)])}";
    }
}
