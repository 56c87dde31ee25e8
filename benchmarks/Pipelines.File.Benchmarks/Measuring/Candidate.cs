namespace FilePipelinesBenchmarks.Measuring;

/// <summary>One thing that is measured against others.</summary>
/// <param name="Name">What it is called in tables.</param>
/// <param name="RunAsync">Does it once, and checks its own answer.</param>
/// <param name="Prepare">What has to be done before each run and is not measured, such as emptying the page cache.</param>
internal sealed record Candidate(string Name, Func<ValueTask<long>> RunAsync, Action? Prepare = null);
