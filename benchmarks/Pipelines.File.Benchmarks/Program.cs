using BenchmarkDotNet.Running;
using FilePipelinesBenchmarks.Cold;
using FilePipelinesBenchmarks.Copying;
using FilePipelinesBenchmarks.Durable;
using FilePipelinesBenchmarks.Follow;
using FilePipelinesBenchmarks.Measuring;
using FilePipelinesBenchmarks.Reading;
using FilePipelinesBenchmarks.Reporting;
using FilePipelinesBenchmarks.SmallFiles;
using FilePipelinesBenchmarks.Suites;
using FilePipelinesBenchmarks.Waiting;
using Spectre.Console;

const int RedirectedWidth = 160;

// Before anything else is loaded.
if (args is [FirstFile.AloneCommand, var way, var path])
{
    return FirstFile.Read(way, path);
}

// A file or a pipe takes no colours, and has lines that are long enough for a table.
if (Console.IsOutputRedirected)
{
    AnsiConsole.Profile.Capabilities.Ansi = false;
    AnsiConsole.Profile.Width = RedirectedWidth;
}

switch (args.FirstOrDefault())
{
    case Alone.Command:
        return await Alone.RunAsync(args[1..]);
    case "caching":
        return await CachingCommand.RunAsync(args[1..]);
    case "first":
        return await FirstFile.RunAsync(args[1..]);
    case "follow":
        return await FollowCommand.RunAsync(args[1..]);
    case "logs":
        return await ManyLogs.RunAsync(args[1..]);
    case "pairs":
        return await Pairs.RunAsync(args[1..]);
    case "counts":
        return await ReadCounts.RunAsync(args[1..]);
    case "durable":
        return await CommitMeasurement.RunAsync(args[1..]);
    case "read":
        return await ReadOnly.RunAsync(args[1..]);
    case "report":
        return await ReportCommand.RunAsync(args[1..]);
    case "trees":
        return await TreeCommand.RunAsync(args[1..]);
    case TruncatedMapping.Command:
        return TruncatedMapping.Run();
    case "waits":
        return await WaitsCommand.RunAsync(args[1..]);
    default:
        BenchmarkSwitcher.FromAssembly(typeof(SuiteConfig).Assembly).Run(args, SuiteConfig.Make());
        return 0;
}
