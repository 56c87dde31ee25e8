namespace FilePipelinesBenchmarks.Memory;

/// <summary>One way to build content in memory.</summary>
/// <param name="Name">What it is called in tables.</param>
/// <param name="RunAsync">Builds as many streams as the case says, and checks each; returns their bytes.</param>
internal sealed record MemoryWay(string Name, Func<MemoryCase, ValueTask<long>> RunAsync);
