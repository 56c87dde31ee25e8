using System.Diagnostics.CodeAnalysis;
using BenchmarkDotNet.Attributes;
using BenchmarkDotNet.Columns;
using BenchmarkDotNet.Configs;
using BenchmarkDotNet.Diagnosers;
using BenchmarkDotNet.Reports;
using Perfolizer.Horology;
using Perfolizer.Metrology;
using Ways = FilePipelines.Benchmarks.ReadWays<FilePipelines.Benchmarks.LastEightBytes>;

namespace FilePipelines.Benchmarks;

/// <summary>A grid of BenchmarkDotNet, and the temporary folder that its files live in while one of its cases runs.</summary>
[SuppressMessage("Design", "CA1001:Types that own disposable fields should be disposable",
    Justification = "BenchmarkDotNet calls Cleanup and not Dispose.")]
public abstract class ClassicGrid
{
    private protected const long BytesPerKiB = 1024;

    private TemporaryFolder? _folder;

    [GlobalSetup]
    public void Setup() => Make(_folder = new TemporaryFolder());

    [GlobalCleanup]
    public void Cleanup() => _folder?.Dispose();

    /// <summary>Makes the files that the case needs.</summary>
    private protected abstract void Make(TemporaryFolder folder);

    internal static IConfig Configure()
        => ManualConfig.Create(DefaultConfig.Instance).AddDiagnoser(MemoryDiagnoser.Default).AddColumn(StatisticColumn.Median)
            .WithSummaryStyle(
                SummaryStyle.Default.WithTimeUnit(TimeUnit.Microsecond).WithSizeUnit(SizeUnit.B).WithMaxParameterColumnWidth(40));
}

/// <summary>
/// The half of the grid of 2019 that the pairs have not: five buffer sizes, FileOptions.Asynchronous, two files of incrementing integers in
/// the page cache, and the last eight bytes of every buffer looked at.
/// </summary>
public class ReadGrid : ClassicGrid
{
    private ReadPoint? _point;

    [Params(4, 128)]
    public int MiB { get; set; }

    [Params(2048, 4096, 16384, 65536, 262144)]
    public int BufferSize { get; set; }

    [Benchmark(Baseline = true)]
    public ValueTask<long> FileStreamSync() => Ways.FileStreamSync.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> FileStreamAsync() => Ways.FileStreamAsync.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> PipeReaderCreate() => Ways.PipeReaderCreate.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> FileStreamToPipe() => Ways.FileStreamToPipe.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> FilePipeReader() => Ways.Own.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> PeerGetReader() => Ways.GetReader.RunAsync(_point!);

    [Benchmark]
    public ValueTask<long> PeerUsePipeReader() => Ways.UsePipeReader.RunAsync(_point!);

    private protected override void Make(TemporaryFolder folder) => _point = new ReadPoint(
        IntegerFile.Make(folder, MiB * 1024 * BytesPerKiB), BufferSize, FileOptions.SequentialScan | FileOptions.Asynchronous);
}

/// <summary>The grids that .NET 6 was measured with when FileStream was rewritten, with this library beside it.</summary>
public abstract class FileStreamGrid : ClassicGrid
{
    [Params(1, 1024, 102400)]
    public int KiB { get; set; }

    [Params(512, 4096, 16384)]
    public int UserBuffer { get; set; }

    [Params(FileOptions.None, FileOptions.Asynchronous)]
    public FileOptions Options { get; set; }

    private protected long Length => KiB * BytesPerKiB;

    [Benchmark(Baseline = true)]
    public ValueTask<long> Stream() => RunAsync(WriteWays.FileStreamSync, Ways.FileStreamSyncBuffered);

    [Benchmark]
    public ValueTask<long> StreamNoBuffering() => RunAsync(WriteWays.FileStreamSyncUnbuffered, Ways.FileStreamSyncUnbuffered);

    [Benchmark]
    public ValueTask<long> StreamAsync() => RunAsync(WriteWays.FileStreamAsync, Ways.FileStreamAsyncBuffered);

    [Benchmark]
    public ValueTask<long> StreamAsyncNoBuffering() => RunAsync(WriteWays.FileStreamAsyncUnbuffered, Ways.FileStreamAsyncUnbuffered);

    [Benchmark]
    public ValueTask<long> FilePipe() => RunAsync(WriteWays.WriteBehind, Ways.Own);

    private protected abstract ValueTask<long> RunAsync(Way<WritePoint> writing, Way<ReadPoint> reading);
}

public class FileStreamReadGrid : FileStreamGrid
{
    private ReadPoint? _point;

    private protected override void Make(TemporaryFolder folder)
        => _point = new ReadPoint(IntegerFile.Make(folder, Length), UserBuffer, Options);

    private protected override ValueTask<long> RunAsync(Way<WritePoint> writing, Way<ReadPoint> reading) => reading.RunAsync(_point!);
}

/// <summary>Each method checks the file's length; after each iteration, not measured, every byte is compared.</summary>
public class FileStreamWriteGrid : FileStreamGrid
{
    private WritePoint? _point;

    [IterationSetup]
    public void Delete() => File.Delete(_point!.Path);

    [IterationCleanup]
    public void Verify() => _point!.Verify();

    private protected override void Make(TemporaryFolder folder)
        => _point = new WritePoint(folder.PathOf("written.bin"), Length, (int)Math.Min(UserBuffer, Length), Preallocate: false, Options);

    private protected override ValueTask<long> RunAsync(Way<WritePoint> writing, Way<ReadPoint> reading) => writing.RunAsync(_point!);
}
