namespace CopySample;

/// <summary>What was copied so far. Counted by several copies at once.</summary>
internal sealed class Totals
{
    private long _files;
    private long _bytes;
    private long _unchanged;
    private long _failed;

    internal long Files => Volatile.Read(ref _files);

    internal long Bytes => Volatile.Read(ref _bytes);

    internal long Unchanged => Volatile.Read(ref _unchanged);

    internal long Failed => Volatile.Read(ref _failed);

    internal void AddFile() => Interlocked.Increment(ref _files);

    internal void AddBytes(long bytes) => Interlocked.Add(ref _bytes, bytes);

    internal void AddUnchanged() => Interlocked.Increment(ref _unchanged);

    internal void AddFailed() => Interlocked.Increment(ref _failed);
}
