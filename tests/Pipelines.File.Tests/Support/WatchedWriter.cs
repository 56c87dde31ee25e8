namespace FilePipelines.Tests;

/// <summary>A destination that keeps what it gets, and tells of its calls before it does what they ask for.</summary>
internal sealed class WatchedWriter(int memory = 64 * 1024) : PipeWriter
{
    private readonly byte[] _memory = new byte[memory];
    private int _flushes;
    private int _length;

    public Action? OnCall { get; init; }

    /// <summary>Gets how much memory is asked for.</summary>
    public Action<int>? OnGet { get; init; }

    public Action? OnFlush { get; init; }

    public List<byte> Received { get; } = [];

    /// <summary>How many bytes it has got; any thread may ask.</summary>
    public int Length => Volatile.Read(ref _length);

    public int Flushes => Volatile.Read(ref _flushes);

    public override Memory<byte> GetMemory(int sizeHint = 0)
    {
        OnCall?.Invoke();
        OnGet?.Invoke(sizeHint);
        return _memory;
    }

    public override Span<byte> GetSpan(int sizeHint = 0) => GetMemory(sizeHint).Span;

    public override void Advance(int bytes)
    {
        OnCall?.Invoke();
        Received.AddRange(_memory.AsSpan(0, bytes));
        Volatile.Write(ref _length, Received.Count);
    }

    public override ValueTask<FlushResult> FlushAsync(CancellationToken cancellationToken = default)
    {
        OnCall?.Invoke();
        OnFlush?.Invoke();
        Interlocked.Increment(ref _flushes);
        return cancellationToken.IsCancellationRequested ? ValueTask.FromCanceled<FlushResult>(cancellationToken) : default;
    }

    public override void CancelPendingFlush()
    {
    }

    public override void Complete(Exception? exception = null)
    {
    }
}
