using BenchmarkDotNet.Running;
using FilePipelinesBenchmarks.Measuring;

switch (args.FirstOrDefault())
{
    case "pairs":
        return await Pairs.RunAsync(args[1..]);
    default:
        BenchmarkSwitcher.FromAssembly(typeof(Pairs).Assembly).Run(args);
        return 0;
}
