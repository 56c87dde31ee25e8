using BenchmarkDotNet.Running;
using FilePipelines.Benchmarks;

// Before anything else is loaded.
if (args is [FirstFile.AloneCommand, var way, var path])
{
    return FirstFile.Read(way, path);
}

switch (args.FirstOrDefault())
{
    case Alone.Command:
        return await Alone.RunAsync(args[1..]);
    case "first":
        return await FirstFile.RunAsync(args[1..]);
    case "follow":
        return await Following.RunAsync(args[1..]);
    case "pairs":
        return await Pairs.RunAsync(args[1..]);
    case "durable":
        return await Commits.RunAsync(args[1..]);
    case "waits":
        return await Waits.RunAsync(args[1..]);
    default:
        BenchmarkSwitcher.FromAssembly(typeof(ClassicGrid).Assembly).Run(args, ClassicGrid.Configure());
        return 0;
}
