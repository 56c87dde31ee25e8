using System.Buffers;
using System.Numerics;

namespace Pipelines.File.Buffers;

/// <summary>
/// The library's own pool: segments with their memory, which is allocated on the pinned object heap once and reused. Sizes are powers of two, so that
/// odd sizes share, and the whole pool never keeps more than <see cref="MaxRetainedBytes"/>; what is over goes to the garbage collector.
/// </summary>
internal sealed class SegmentPool
{
    internal const int MinSize = 256;
    internal const int MaxSize = 1024 * 1024;

    /// <summary>The most memory that the pool keeps while nobody uses it, bytes.</summary>
    internal const long MaxRetainedBytes = 16 * 1024 * 1024;

    private const int MaxRetainedEmpty = 256;

    /// <summary>
    /// For tests: memory that is given back is filled with a pattern, and has to have it still when it is rented again. Whoever wrote to it meanwhile used memory that was
    /// not his any more, and ends the process.
    /// </summary>
    private static readonly bool s_isPoisoned = Environment.GetEnvironmentVariable("PIPELINES_FILE_POISON") == "1";

    private readonly Bucket[] _buckets;

    // Segments without memory, for that of callers' pools.
    private readonly Bucket _empty = new();

    // Interlocked: bytes in all buckets together, and segments in _empty.
    private long _retainedBytes;
    private int _retainedEmpty;

    internal SegmentPool()
    {
        _buckets = new Bucket[BucketOf(MaxSize) + 1];
        for (int i = 0; i < _buckets.Length; i++)
        {
            _buckets[i] = new Bucket();
        }
    }

    internal static SegmentPool Shared { get; } = new();

    internal long RetainedBytes => Volatile.Read(ref _retainedBytes);

    /// <summary>A segment of at least one and at most <paramref name="size"/> usable bytes: exactly <paramref name="size"/>.</summary>
    internal FileSegment Rent(int size)
    {
        FileSegment? segment = null;
        if (size <= MaxSize)
        {
            segment = _buckets[BucketOf(size)].Pop();
            if (segment is not null)
            {
                Interlocked.Add(ref _retainedBytes, -segment.PooledSize);
                if (s_isPoisoned)
                {
                    segment.CheckPoison();
                }
            }
        }

        segment ??= new FileSegment(size <= MaxSize ? SizeOf(size) : size);
        segment.Rent(size);
        return segment;
    }

    /// <summary>A segment around memory of a caller's pool: at most <paramref name="size"/> bytes, fewer where that pool has no such piece.</summary>
    internal FileSegment Rent(int size, MemoryPool<byte> pool)
    {
        IMemoryOwner<byte> owner = pool.Rent(Math.Min(size, pool.MaxBufferSize));
        Memory<byte> memory;
        try
        {
            memory = owner.Memory;
            if (memory.IsEmpty)
            {
                throw new InvalidOperationException("The memory pool has given memory of no bytes.");
            }
        }
        catch
        {
            owner.Dispose();
            throw;
        }

        FileSegment? segment = _empty.Pop();
        if (segment is null)
        {
            segment = new FileSegment();
        }
        else
        {
            Interlocked.Decrement(ref _retainedEmpty);
        }

        segment.Rent(owner, memory, size);
        return segment;
    }

    /// <summary>
    /// Takes back a list of segments, linked by <see cref="FileSegment.NextSegment"/>. Nobody, the operating system included, may touch them any more. The memory of a
    /// caller's pool is disposed here, so no lock is held. Returns what the first of them threw; the others are given back all the same.
    /// </summary>
    internal Exception? Return(FileSegment? list)
    {
        Exception? error = null;
        while (list is { } segment)
        {
            list = segment.NextSegment;
            segment.Chain = null;
            segment.NextSegment = null;
            if (segment.PooledSize == 0)
            {
                try
                {
                    segment.ReleaseOwner();
                }
                catch (Exception e)
                {
                    error ??= e;
                }

                KeepEmpty(segment);
            }
            else if (segment.PooledSize <= MaxSize)
            {
                Keep(segment);
            }
        }

        return error;
    }

    private void KeepEmpty(FileSegment segment)
    {
        if (Interlocked.Increment(ref _retainedEmpty) <= MaxRetainedEmpty)
        {
            _empty.Push(segment);
        }
        else
        {
            Interlocked.Decrement(ref _retainedEmpty);
        }
    }

    private void Keep(FileSegment segment)
    {
        int size = segment.PooledSize;
        int bucket = BucketOf(size);
        if (s_isPoisoned)
        {
            segment.Poison();
        }

        if (Interlocked.Add(ref _retainedBytes, size) <= MaxRetainedBytes || TryMakeRoom(bucket))
        {
            _buckets[bucket].Push(segment);
        }
        else
        {
            Interlocked.Add(ref _retainedBytes, -size);
        }
    }

    /// <summary>Lets go of what the size that keeps the most keeps: the segment that comes back was in use until now, and those may never be again.</summary>
    private bool TryMakeRoom(int bucket)
    {
        int most = 0;
        for (int i = 1; i < _buckets.Length; i++)
        {
            if ((long)_buckets[i].Count << i > (long)_buckets[most].Count << most)
            {
                most = i;
            }
        }

        while (most != bucket && _buckets[most].Pop() is { } segment)
        {
            if (Interlocked.Add(ref _retainedBytes, -segment.PooledSize) <= MaxRetainedBytes)
            {
                return true;
            }
        }

        return false;
    }

    internal static int SizeOf(int size) => (int)BitOperations.RoundUpToPowerOf2((uint)Math.Max(size, MinSize));

    private static int BucketOf(int size) => BitOperations.Log2((uint)SizeOf(size)) - BitOperations.Log2(MinSize);

    /// <summary>A stack of segments of one size, linked through <see cref="FileSegment.NextSegment"/>, so that keeping them allocates nothing.</summary>
    private sealed class Bucket
    {
        // Guards _top and _count.
        private readonly Lock _gate = new();
        private FileSegment? _top;
        private int _count;

        internal int Count => Volatile.Read(ref _count);

        internal FileSegment? Pop()
        {
            lock (_gate)
            {
                FileSegment? segment = _top;
                if (segment is not null)
                {
                    _top = segment.NextSegment;
                    segment.NextSegment = null;
                    _count--;
                }

                return segment;
            }
        }

        internal void Push(FileSegment segment)
        {
            lock (_gate)
            {
                segment.NextSegment = _top;
                _top = segment;
                _count++;
            }
        }
    }
}
