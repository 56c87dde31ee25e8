using BenchmarkDotNet.Attributes;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Writing;

namespace FilePipelinesBenchmarks.Suites;

/// <summary>
/// A suite whose methods make a file. Each checks its length; after each iteration, outside what is measured, every byte is compared.
/// </summary>
public abstract class WriteSuite : Suite
{
    private WriteCase? _point;

    [IterationSetup]
    public void Delete() => File.Delete(_point!.Path);

    [IterationCleanup]
    public void Verify() => _point!.Verify();

    private protected abstract WriteCase PointAt(string path);

    private protected override void Make(TemporaryFolder folder) => _point = PointAt(folder.PathOf("written.bin"));

    private protected ValueTask<long> Run(WriteWay way) => way.WriteAsync(_point!);
}
