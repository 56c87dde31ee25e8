namespace FilePipelinesBenchmarks.Reporting;

internal static partial class Packages
{
    static partial void AddPeers(List<Type> types)
        => types.AddRange([typeof(Nerdbank.Streams.StreamExtensions), typeof(global::Pipelines.Sockets.Unofficial.StreamConnection)]);
}
