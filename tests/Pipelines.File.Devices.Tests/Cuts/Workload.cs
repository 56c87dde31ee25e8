namespace FilePipelines.Devices.Tests;

/// <summary>A use of the library that is told what is on the device, and a look for that after a power failure.</summary>
internal abstract class Workload
{
    /// <summary>All of them, by name; those with a guarantee of their own as <paramref name="guarantee"/> says.</summary>
    internal static Workload Of(string name, FlushGuarantee guarantee) => name switch
    {
        "growing" => new GroupCommits(guarantee, preallocated: 0),
        "preallocated" => new GroupCommits(guarantee, GroupCommits.Length),
        "appended" => new AppendedRecords(guarantee),
        "DropBehind" => new DroppedBehind(guarantee),
        "Replace, old name" => new ReplacedFiles(guarantee),
        "Replace, new name" => new NewFiles(guarantee, replaces: true),
        "Create" => new NewFiles(guarantee, replaces: false),
        "journal" => new JournalRecords(guarantee),
        "SaveBodyAsync" => new Uploads(guarantee == FlushGuarantee.Durable),
        "checkpoint" => new Checkpoints(guarantee),
        _ => throw new ArgumentOutOfRangeException(nameof(name), name, null),
    };

    /// <summary>The names of all workloads.</summary>
    internal static string[] Names { get; } =
    [
        "growing", "preallocated", "appended", "DropBehind", "Replace, old name", "Replace, new name", "Create", "journal",
        "SaveBodyAsync", "checkpoint",
    ];

    /// <summary>Writes in that folder, and acknowledges what the library has promised.</summary>
    internal abstract Task RunAsync(string folder, Acknowledge acknowledge, Random random);

    /// <summary>Looks for what was promised.</summary>
    /// <exception cref="LostPromiseException">Something is not there.</exception>
    internal abstract Task CheckAsync(string folder, IReadOnlyDictionary<string, long> promises);

    /// <summary>The file, or nothing if there is none.</summary>
    protected static byte[] Read(string path) => File.Exists(path) ? File.ReadAllBytes(path) : [];

    protected static void Demand(bool isKept, string what)
    {
        if (!isKept)
        {
            throw new LostPromiseException(what);
        }
    }
}
