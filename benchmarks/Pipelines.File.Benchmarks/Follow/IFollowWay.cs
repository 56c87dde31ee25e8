namespace FilePipelinesBenchmarks.Follow;

/// <summary>Follows files from their end on, until it is disposed.</summary>
internal interface IFollowWay : IAsyncDisposable
{
    /// <summary>Processor time of whoever follows, so far.</summary>
    TimeSpan Cpu { get; }

    /// <summary>Threads of whoever follows.</summary>
    int Threads { get; }

    /// <summary>The next line that comes to the first file is there.</summary>
    Task NextLineAsync();
}
