using System.Threading.Channels;

namespace FilePipelinesBenchmarks.Durable;

/// <summary>
/// What one writes by hand: producers queue their records, one loop writes all that wait, syncs once, and completes them.
/// </summary>
internal sealed class GroupCommitByHand(CommitFile file) : CommitWay("by hand: Channel, FileStream, one Flush(true)", file)
{
    private readonly Channel<(byte[] Record, TaskCompletionSource Committed)> _records
        = Channel.CreateUnbounded<(byte[] Record, TaskCompletionSource Committed)>(new UnboundedChannelOptions { SingleReader = true });

    private FileStream _stream = null!;
    private Task _loop = null!;

    internal override Task OpenAsync(string path, int producers)
    {
        if (File == CommitFile.Preallocated)
        {
            PreallocatedFile.Make(path);
        }

        _stream = new FileStream(path, FileMode.OpenOrCreate, FileAccess.Write, FileShare.Read, bufferSize: 64 * 1024);
        _loop = Task.Run(WriteAsync);
        return Task.CompletedTask;
    }

    internal override ValueTask BeginRoundAsync()
    {
        _stream.Position = File == CommitFile.Preallocated ? 0 : _stream.Position;
        return default;
    }

    internal override ValueTask CommitAsync(int producer, byte[] record)
    {
        TaskCompletionSource committed = new(TaskCreationOptions.RunContinuationsAsynchronously);
        _records.Writer.TryWrite((record, committed));
        return new ValueTask(committed.Task);
    }

    public override void Dispose()
    {
        _records.Writer.Complete();
        _loop.GetAwaiter().GetResult();
        _stream.Dispose();
    }

    private async Task WriteAsync()
    {
        List<TaskCompletionSource> waiting = [];
        while (await _records.Reader.WaitToReadAsync())
        {
            while (_records.Reader.TryRead(out (byte[] Record, TaskCompletionSource Committed) next))
            {
                _stream.Write(next.Record);
                waiting.Add(next.Committed);
            }

            _stream.Flush(flushToDisk: true);
            waiting.ForEach(committed => committed.SetResult());
            waiting.Clear();
        }
    }
}
