using BenchmarkDotNet.Columns;
using BenchmarkDotNet.Configs;
using BenchmarkDotNet.Diagnosers;
using BenchmarkDotNet.Filters;
using BenchmarkDotNet.Jobs;
using BenchmarkDotNet.Reports;
using Perfolizer.Horology;
using Perfolizer.Metrology;

namespace FilePipelinesBenchmarks.Suites;

/// <summary>What BenchmarkDotNet adds to every suite, and what it leaves out.</summary>
internal static class SuiteConfig
{
    /// <summary>The suites' methods of this name call the system directly, which they do on Unix only.</summary>
    internal const string UnixOnly = "SystemCall";

    internal static IConfig Make()
    {
        ManualConfig config = ManualConfig.Create(DefaultConfig.Instance)
            .AddDiagnoser(MemoryDiagnoser.Default)
            .AddColumn(StatisticColumn.Median)
            .AddFilter(new SimpleFilter(
                static benchmark => !OperatingSystem.IsWindows() || benchmark.Descriptor.WorkloadMethod.Name != UnixOnly))
            .WithSummaryStyle(
                SummaryStyle.Default.WithTimeUnit(TimeUnit.Microsecond).WithSizeUnit(SizeUnit.B).WithMaxParameterColumnWidth(40));
#if PEERS
        // The project that BenchmarkDotNet generates builds this one again, and needs to be told, too.
        config.AddJob(Job.Default.WithArguments([new MsBuildArgument("/p:Peers=true")]).AsMutator());
#endif
        return config;
    }
}
