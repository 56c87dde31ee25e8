namespace FilePipelines.Benchmarks;

/// <summary>Whose a way is.</summary>
internal enum Origin
{
    /// <summary>This library's.</summary>
    Own,

    /// <summary>What .NET has ready made: a stream, a reader, a copy.</summary>
    Net,

    /// <summary>
    /// What a good engineer writes by hand for this one purpose: a loop over RandomAccess or a stream, threads of one's own, a group
    /// commit.
    /// </summary>
    ByHand,

    /// <summary>Another package's or program's.</summary>
    Other,

    /// <summary>
    /// What nothing that serves the same purpose can be faster than by much: the system call by itself, or nothing to read.
    /// </summary>
    Limit,
}

/// <summary>Tells by its name whose a way is; what is not listed here is .NET's.</summary>
internal static class Origins
{
    private static readonly string[] s_own =
    [
        "FilePipe", "LogFollower", "PooledMemoryStream", "Pipelines.File", "samples/", "ReadRecordBatchesAsync", "ReadLinesAsync",
        "ForEachPartitionAsync", "SaveBodyAsync",
    ];
    private static readonly string[] s_others =
    [
        "Nerdbank", "StreamConnection", "SQLite", "RecyclableMemoryStream", "nginx", "caddy", "tail", "DotNext", "FasterLog", "RocksDB",
        "wc", "ripgrep",
    ];
    private static readonly string[] s_limits = ["pread(2)", "pwrite(2)", "already in memory", "the kernel's copy"];

    private static readonly string[] s_net = ["RandomAccess.ReadAsync", "RandomAccess.WriteAsync"];
    private static readonly string[] s_byHand =
    [
        "RandomAccess.", "a thread each", "by hand", "FileStreamSync, rented buffer", "FileStream, polled", "File.Copy, SHA256",
    ];

    internal static Origin Of(string way)
    {
        return IsOneOf(s_own) ? Origin.Own : IsOneOf(s_others) ? Origin.Other : IsOneOf(s_limits) ? Origin.Limit
            : !IsOneOf(s_net) && IsOneOf(s_byHand) ? Origin.ByHand : Origin.Net;

        bool IsOneOf(string[] beginnings) => Array.Exists(beginnings, beginning => way.StartsWith(beginning, StringComparison.Ordinal));
    }

    internal static bool IsOwn(string way) => Of(way) == Origin.Own;

    /// <summary>Whether it is something that a program may use instead of this library.</summary>
    internal static bool IsRival(string way) => Of(way) is Origin.Net or Origin.ByHand or Origin.Other;
}

/// <summary>Programs of others that are measured where they are installed.</summary>
internal static class Programs
{
    internal static bool IsInstalled(string name)
        => (Environment.GetEnvironmentVariable("PATH") ?? string.Empty).Split(Path.PathSeparator).Any(
            folder => File.Exists(Path.Join(folder, name)));
}
