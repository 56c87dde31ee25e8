using System.Diagnostics.CodeAnalysis;
using BenchmarkDotNet.Attributes;
using BenchmarkDotNet.Columns;
using BenchmarkDotNet.Configs;
using BenchmarkDotNet.Diagnosers;
using BenchmarkDotNet.Filters;
using BenchmarkDotNet.Reports;
using Perfolizer.Horology;
using Perfolizer.Metrology;

namespace FilePipelines.Benchmarks;

/// <summary>A suite of BenchmarkDotNet and the temporary folder that its files live in while one of its cases runs.</summary>
[SuppressMessage("Design", "CA1001:Types that own disposable fields should be disposable",
    Justification = "BenchmarkDotNet calls Cleanup and not Dispose.")]
public abstract class Suite
{
    private protected const long BytesPerKiB = 1024;

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

    /// <summary>What BenchmarkDotNet adds to every suite, and what it leaves out: SystemCall calls the system of Unix.</summary>
    internal static IConfig Configure()
        => ManualConfig.Create(DefaultConfig.Instance)
            .AddDiagnoser(MemoryDiagnoser.Default)
            .AddColumn(StatisticColumn.Median)
            .AddFilter(new SimpleFilter(
                static benchmark => !OperatingSystem.IsWindows()
                    || benchmark.Descriptor.WorkloadMethod.Name != nameof(ReadGrid.SystemCall)))
            .WithSummaryStyle(
                SummaryStyle.Default.WithTimeUnit(TimeUnit.Microsecond).WithSizeUnit(SizeUnit.B).WithMaxParameterColumnWidth(40));
}
