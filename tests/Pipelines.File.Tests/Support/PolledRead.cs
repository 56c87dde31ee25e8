using System.IO.Pipelines;

namespace FilePipelines.Tests;

/// <summary>A read that is looked at until it has ended, and whose result is taken once.</summary>
internal sealed class PolledRead(ValueTask<ReadResult> task)
{
    private readonly ValueTask<ReadResult> _task = task;

    internal bool IsCompleted => _task.IsCompleted;

    internal ReadResult TakeResult() => _task.GetAwaiter().GetResult();
}
