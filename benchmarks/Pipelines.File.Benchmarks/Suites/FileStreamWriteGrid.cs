using BenchmarkDotNet.Attributes;
using FilePipelinesBenchmarks.Writing;

namespace FilePipelinesBenchmarks.Suites;

/// <summary>As <see cref="FileStreamReadGrid"/>, writing.</summary>
public class FileStreamWriteGrid : WriteSuite
{
    [Params(1, 1024, 102400)]
    public int KiB { get; set; }

    [Params(512, 4096, 16384)]
    public int UserBuffer { get; set; }

    [Params(FileOptions.None, FileOptions.Asynchronous)]
    public FileOptions Options { get; set; }

    [Benchmark(Baseline = true)]
    public ValueTask<long> Write() => Run(WriteWays.FileStreamSync);

    [Benchmark]
    public ValueTask<long> WriteNoBuffering() => Run(WriteWays.FileStreamSyncUnbuffered);

    [Benchmark]
    public ValueTask<long> WriteAsync() => Run(WriteWays.FileStreamAsync);

    [Benchmark]
    public ValueTask<long> WriteAsyncNoBuffering() => Run(WriteWays.FileStreamAsyncUnbuffered);

    [Benchmark]
    public ValueTask<long> FilePipeWriter() => Run(WriteWays.WriteBehind);

    private protected override WriteCase PointAt(string path)
        => new(path, KiB * BytesPerKiB, (int)Math.Min(UserBuffer, KiB * BytesPerKiB), Preallocate: false, Options);
}
