using BenchmarkDotNet.Attributes;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Reading;

namespace FilePipelinesBenchmarks.Suites;

/// <summary>The grid that .NET 6 was measured with when FileStream was rewritten, reading, with this library beside it.</summary>
public class FileStreamReadGrid : Suite
{
    private ReadCase? _point;

    [Params(1, 1024, 102400)]
    public int KiB { get; set; }

    [Params(512, 4096, 16384)]
    public int UserBuffer { get; set; }

    [Params(FileOptions.None, FileOptions.Asynchronous)]
    public FileOptions Options { get; set; }

    [Benchmark(Baseline = true)]
    public ValueTask<long> Read() => Run(ReadWays.FileStreamSyncBuffered);

    [Benchmark]
    public ValueTask<long> ReadNoBuffering() => Run(ReadWays.FileStreamSyncUnbuffered);

    [Benchmark]
    public ValueTask<long> ReadAsync() => Run(ReadWays.FileStreamAsyncBuffered);

    [Benchmark]
    public ValueTask<long> ReadAsyncNoBuffering() => Run(ReadWays.FileStreamAsyncUnbuffered);

    [Benchmark]
    public ValueTask<long> FilePipeReader() => Run(ReadWays.FilePipeReader);

    private protected override void Make(TemporaryFolder folder)
        => _point = new ReadCase(IntegerFile.Make(folder, KiB * BytesPerKiB), UserBuffer, Options);

    private ValueTask<long> Run(ReadWay way) => way.ReadAsync<LastEightBytes>(_point!);
}
