using BenchmarkDotNet.Attributes;
using FilePipelinesBenchmarks.Cold;
using FilePipelinesBenchmarks.Files;

namespace FilePipelinesBenchmarks.Suites;

/// <summary>64 readers at once, each of 4 KiB at a time at places of its own in a file that the page cache has let go of. Linux.</summary>
public abstract class ColdRandomSuite : Suite
{
    private protected const int Readers = 64;
    private protected const int ReadsPerReader = 128;

    private RandomReadCase? _point;

    private protected RandomReadCase Point => _point!;

    private protected override void Make(TemporaryFolder folder)
        => _point = new RandomReadCase(IntegerFile.Make(folder, 256 * BytesPerMiB), Readers, ReadsPerReader, 4096);
}
