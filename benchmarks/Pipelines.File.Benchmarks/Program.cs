using BenchmarkDotNet.Running;
using FilePipelines.Benchmarks;
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
    case "first":
        return await FirstFile.RunAsync(args[1..]);
    case "follow":
        return await Following.RunAsync(args[1..]);
    case "logs":
        return await ManyLogs.RunAsync(args[1..]);
    case "pairs":
        return await Pairs.RunAsync(args[1..]);
    case "counts":
        return await ReadCounts.RunAsync(args[1..]);
    case "durable":
        return await Commits.RunAsync(args[1..]);
    case "trees":
        return await Trees.RunAsync(args[1..]);
    case TruncatedMapping.Command:
        return TruncatedMapping.Run();
    case "waits":
        return await Waits.RunAsync(args[1..]);
    case "report" or "caching":
        Console.Error.WriteLine("That is a program of its own: dotnet run -c Release --project benchmarks/Pipelines.File.Report");
        return 2;
    default:
        BenchmarkSwitcher.FromAssembly(typeof(Suite).Assembly).Run(args, Suite.Configure());
        return 0;
}
