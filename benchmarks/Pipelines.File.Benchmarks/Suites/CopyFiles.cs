using BenchmarkDotNet.Attributes;
using FilePipelinesBenchmarks.Copying;
using FilePipelinesBenchmarks.Files;

namespace FilePipelinesBenchmarks.Suites;

/// <summary>A file copied to a new one. The copy's length is checked by each method, its bytes after each iteration.</summary>
public class CopyFiles : Suite
{
    private IntegerFile? _source;
    private string? _destination;

    [Params(1, 128)]
    public int MiB { get; set; }

    [IterationSetup]
    public void Delete() => File.Delete(_destination!);

    [IterationCleanup]
    public void Verify() => _source!.VerifyCopy(_destination!);

    [Benchmark(Baseline = true)]
    public ValueTask<long> StreamCopyToAsync() => Run(CopyWays.StreamCopy);

    [Benchmark]
    public ValueTask<long> FileCopy() => Run(CopyWays.FileCopy);

    [Benchmark]
    public ValueTask<long> PipeReaderCreateToPipeWriterCreate() => Run(CopyWays.PipeCopy);

    [Benchmark]
    public ValueTask<long> FilePipeReaderToFilePipeWriter() => Run(CopyWays.ReaderToWriter);

    [Benchmark]
    public ValueTask<long> FilePipeReaderToFilePipeWriterThroughMemory() => Run(CopyWays.ReaderToStreamOfWriter);

    [Benchmark]
    public ValueTask<long> FilePipeReaderToFileStream() => Run(CopyWays.ReaderToStream);

    private protected override void Make(TemporaryFolder folder)
    {
        _source = IntegerFile.Make(folder, MiB * BytesPerMiB);
        _destination = folder.PathOf("copy.bin");
    }

    private ValueTask<long> Run(CopyWay way) => way.RunAsync(_source!.Path, _destination!, _source.Length);
}
