namespace FilePipelinesBenchmarks.Reporting;

internal static partial class Packages
{
    static partial void AddLogPeers(List<Type> types)
        => types.AddRange([typeof(FASTER.core.FasterLog), typeof(RocksDbSharp.RocksDb)]);
}
