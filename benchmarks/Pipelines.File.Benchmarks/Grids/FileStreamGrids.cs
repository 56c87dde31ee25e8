using BenchmarkDotNet.Attributes;

namespace FilePipelines.Benchmarks;

/// <summary>The points of the grids that .NET 6 was measured with when FileStream was rewritten.</summary>
public abstract class FileStreamGrid : Suite
{
    [Params(1, 1024, 102400)]
    public int KiB { get; set; }

    [Params(512, 4096, 16384)]
    public int UserBuffer { get; set; }

    [Params(FileOptions.None, FileOptions.Asynchronous)]
    public FileOptions Options { get; set; }
}

/// <summary>Reading, with this library beside it.</summary>
public class FileStreamReadGrid : FileStreamGrid
{
    private ReadPoint? _point;

    [Benchmark(Baseline = true)]
    public ValueTask<long> Read() => ReadWays<LastEightBytes>.FileStreamSyncBuffered.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> ReadNoBuffering() => ReadWays<LastEightBytes>.FileStreamSyncUnbuffered.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> ReadAsync() => ReadWays<LastEightBytes>.FileStreamAsyncBuffered.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> ReadAsyncNoBuffering() => ReadWays<LastEightBytes>.FileStreamAsyncUnbuffered.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> FilePipeReader() => ReadWays<LastEightBytes>.Own.RunAsync(_point!);

    private protected override void Make(TemporaryFolder folder)
        => _point = new ReadPoint(IntegerFile.Make(folder, KiB * BytesPerKiB), UserBuffer, Options);
}

/// <summary>Writing. Each method checks the file's length; after each iteration, not measured, every byte is compared.</summary>
public class FileStreamWriteGrid : FileStreamGrid
{
    private WritePoint? _point;

    [IterationSetup]
    public void Delete() => File.Delete(_point!.Path);

    [IterationCleanup]
    public void Verify() => _point!.Verify();

    [Benchmark(Baseline = true)]
    public ValueTask<long> Write() => WriteWays.FileStreamSync.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> WriteNoBuffering() => WriteWays.FileStreamSyncUnbuffered.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> WriteAsync() => WriteWays.FileStreamAsync.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> WriteAsyncNoBuffering() => WriteWays.FileStreamAsyncUnbuffered.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> FilePipeWriter() => WriteWays.WriteBehind.RunAsync(_point!);

    private protected override void Make(TemporaryFolder folder) => _point = new WritePoint(
        folder.PathOf("written.bin"), KiB * BytesPerKiB, (int)Math.Min(UserBuffer, KiB * BytesPerKiB), Preallocate: false, Options);
}
