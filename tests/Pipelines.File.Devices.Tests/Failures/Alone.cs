namespace FilePipelines.Devices.Tests;

/// <summary>Tests that look at the pool of the whole process: nothing else runs meanwhile.</summary>
[CollectionDefinition(Name, DisableParallelization = true)]
public sealed class Alone
{
    public const string Name = "alone";
}
