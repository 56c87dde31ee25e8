using System.Diagnostics.CodeAnalysis;
using BenchmarkDotNet.Attributes;
using FilePipelinesBenchmarks.Files;

namespace FilePipelinesBenchmarks.Suites;

/// <summary>A suite of BenchmarkDotNet and the temporary folder that its files live in while one of its cases runs.</summary>
[SuppressMessage("Design", "CA1001:Types that own disposable fields should be disposable",
    Justification = "BenchmarkDotNet calls Cleanup and not Dispose.")]
public abstract class Suite
{
    private protected const long BytesPerKiB = 1024;
    private protected const long BytesPerMiB = 1024 * BytesPerKiB;

    private TemporaryFolder? _folder;

    [GlobalSetup]
    public void Setup()
    {
        _folder = new TemporaryFolder();
        Make(_folder);
    }

    [GlobalCleanup]
    public void Cleanup() => _folder?.Dispose();

    /// <summary>Makes the files that the case needs.</summary>
    private protected abstract void Make(TemporaryFolder folder);
}
