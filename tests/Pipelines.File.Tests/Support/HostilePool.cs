namespace FilePipelines.Tests;

/// <summary>A memory pool whose every part may throw, or call back, at a chosen call.</summary>
/// <remarks>Memory whose Dispose throws counts as returned, as nobody could do more.</remarks>
internal sealed class HostilePool(int maxBufferSize = int.MaxValue) : CheckedPool(maxBufferSize)
{
    private int _thrown;
    private int _matching;

    /// <summary>The part that throws.</summary>
    public Part Throws { get; init; }

    /// <summary>Which call of that part throws, from 1.</summary>
    public int FromCall { get; init; } = 1;

    /// <summary>The last call of that part that throws.</summary>
    public int ToCall { get; init; } = int.MaxValue;

    /// <summary>From here on its memory gives no span.</summary>
    public bool RefusesSpans
    {
        set => OnSpan = value ? static () => throw new HostilePoolException(Part.Memory) : null;
    }

    /// <summary>Called by every part first.</summary>
    public Action<Part>? OnCall { get; init; }

    /// <summary>How often it has thrown.</summary>
    public int Thrown => Volatile.Read(ref _thrown);

    private protected override void Call(Part part)
    {
        OnCall?.Invoke(part);
        if (part == Throws && Interlocked.Increment(ref _matching) is int call && call >= FromCall && call <= ToCall)
        {
            Interlocked.Increment(ref _thrown);
            throw new HostilePoolException(part);
        }
    }

    internal sealed class HostilePoolException(Part part) : Exception($"The pool throws in {part}.");
}
