namespace Pipelines.File;

/// <summary>
/// How far a journal has committed since it was opened, or opened again. An append raises that of its own time only, so one that is late
/// means nothing to a journal that was opened again since. Any thread may call it.
/// </summary>
/// <param name="next">The number behind the last committed record.</param>
/// <param name="bytes">The bytes of all records that were taken up to there.</param>
internal sealed class CommitProgress(long next, long bytes)
{
    private long _next = next;
    private long _bytes = bytes;

    internal long Next => Volatile.Read(ref _next);

    internal long Bytes => Volatile.Read(ref _bytes);

    internal void Raise(long next, long bytes)
    {
        Raise(ref _next, next);
        Raise(ref _bytes, bytes);
    }

    internal static void Raise(ref long value, long atLeast)
    {
        long seen = Volatile.Read(ref value);
        while (seen < atLeast && Interlocked.CompareExchange(ref value, atLeast, seen) is long now && now != seen)
        {
            seen = now;
        }
    }
}
