using Pipelines.File.Diagnostics;

namespace Pipelines.File.Memory;

/// <summary>
/// The library's own pool of segments. Their memory is allocated once on the pinned object heap, and reused. Sizes are powers of two, so
/// that similar sizes share segments. The pool never keeps more than <see cref="MaxRetainedBytes"/>. After a full garbage collection it
/// drops the segments that were idle, or all of them if memory is short. Dropped segments are left to the garbage collector.
/// </summary>
internal sealed class SegmentPool
{
    internal const int MinSize = 256;
    internal const int MaxSize = 1024 * 1024;

    /// <summary>By default <see cref="Shared"/> keeps at most this many bytes.</summary>
    private const long DefaultMaxRetainedBytes = 1L << 30;

    /// <summary>By default <see cref="Shared"/> keeps at most the memory that the process may use, divided by this.</summary>
    private const int DefaultMemoryDivisor = 4;

    /// <summary>
    /// Memory is short if the load exceeds this part of the garbage collector's high-memory threshold, as for ArrayPool.Shared.
    /// </summary>
    private const double ShortMemory = 0.9;

    /// <summary>
    /// For tests: returned memory is filled with a pattern, which is checked when it is rented again. The process ends if anything has
    /// written to the memory in between.
    /// </summary>
    private static readonly bool s_isPoisoned = Environment.GetEnvironmentVariable("PIPELINES_FILE_POISON") == "1";

    // Guards the fields below.
    private readonly Lock _gate = new();

    // One for each size. The first one has segments without memory, for memory of callers' pools.
    private readonly Bucket[] _buckets = new Bucket[BucketOf(MaxSize) + 1];
    private long _retainedBytes;
    private long _maxRetainedBytes;
    private long _idleSince = Environment.TickCount64;

    // Set by the finalizer after a garbage collection: the next Rent looks whether memory is short, because that look allocates.
    private bool _wasCollected;

    internal SegmentPool(long maxRetainedBytes) => _maxRetainedBytes = maxRetainedBytes;

    internal static SegmentPool Shared { get; } = MakeShared();

    /// <summary>The number of unused bytes that the pool keeps.</summary>
    internal long RetainedBytes => Volatile.Read(ref _retainedBytes);

    /// <summary>The maximum number of unused bytes that the pool keeps. A lower value drops the excess at once.</summary>
    internal long MaxRetainedBytes
    {
        get => Volatile.Read(ref _maxRetainedBytes);
        set
        {
            lock (_gate)
            {
                _maxRetainedBytes = value;
                for (int i = _buckets.Length - 1; i >= 0; i--)
                {
                    while (_retainedBytes > value && Pop(i) is { } segment)
                    {
                        FilePipeMetrics.PoolReleased.Add(segment.PooledSize);
                    }
                }
            }
        }
    }

    /// <summary>
    /// The interval in which memory has to be unused until a full garbage collection makes the pool drop it. Default: 30 s.
    /// </summary>
    internal TimeSpan IdleTime { get; set; } = TimeSpan.FromSeconds(30);

    /// <summary>A segment of exactly <paramref name="size"/> bytes.</summary>
    internal FileSegment Rent(int size)
    {
        if (Volatile.Read(ref _wasCollected))
        {
            Volatile.Write(ref _wasCollected, false);
            GCMemoryInfo memory = GC.GetGCMemoryInfo();
            if (memory.MemoryLoadBytes >= memory.HighMemoryLoadThresholdBytes * ShortMemory)
            {
                Trim(Environment.TickCount64, isMemoryShort: true);
            }
        }

        FileSegment? segment = size <= MaxSize ? Pop(BucketOf(size)) : null;
        if (segment is null)
        {
            segment = new FileSegment(size <= MaxSize ? SizeOf(size) : size);
            FilePipeMetrics.PoolAllocated.Add(segment.PooledSize);
        }
        else if (s_isPoisoned)
        {
            segment.CheckPoison();
        }

        segment.Rent(size);
        return segment;
    }

    /// <summary>
    /// A segment around memory of a caller's pool: at most <paramref name="size"/> bytes, fewer if that pool provides fewer. Runs the
    /// caller's code, and throws what it throws.
    /// </summary>
    internal FileSegment Rent(int size, MemoryPool<byte> pool, bool pins = false)
    {
        IMemoryOwner<byte> owner = pool.Rent(Math.Min(size, pool.MaxBufferSize));
        try
        {
            FileSegment segment = Pop(0) ?? new FileSegment();
            segment.Rent(owner, size);
            if (pins)
            {
                segment.Pin();
            }

            return segment;
        }
        catch
        {
            owner.Dispose();
            throw;
        }
    }

    /// <summary>
    /// Takes back a list of segments, linked by <see cref="FileSegment.NextSegment"/>. Nobody, the operating system included, may use them
    /// any more. Called without a lock, because memory of a caller's pool is disposed of here. Returns the first exception of that pool;
    /// the other segments are returned all the same.
    /// </summary>
    internal Exception? Return(FileSegment? list)
    {
        Exception? error = null;
        while (list is { } segment)
        {
            list = segment.NextSegment;
            segment.Chain = null;
            segment.NextSegment = null;
            try
            {
                if (segment.PooledSize == 0)
                {
                    segment.ReleaseOwner();
                }

                if (!segment.IsLookedAt)
                {
                    Push(segment);
                }
            }
            catch (Exception e)
            {
                error ??= e;
            }
        }

        return error;
    }

    /// <summary>
    /// Drops everything if memory is short. Otherwise it drops, once every <see cref="IdleTime"/>, the segments that nobody has needed
    /// since the last time: of each size, the smallest number that the pool has held meanwhile.
    /// </summary>
    internal void Trim(long now, bool isMemoryShort)
    {
        lock (_gate)
        {
            bool isTime = now - _idleSince >= (long)IdleTime.TotalMilliseconds;
            _idleSince = isTime ? now : _idleSince;
            for (int i = 0; i < _buckets.Length && (isTime || isMemoryShort); i++)
            {
                ref Bucket bucket = ref _buckets[i];
                for (int left = isMemoryShort ? bucket.Count : bucket.Idle; left > 0; left--)
                {
                    FilePipeMetrics.PoolReleased.Add(Pop(i)!.PooledSize);
                }

                bucket.Idle = bucket.Count;
            }
        }
    }

    internal static int SizeOf(int size) => (int)BitOperations.RoundUpToPowerOf2((uint)Math.Max(size, MinSize));

    private static int BucketOf(int size) => size == 0 ? 0 : 1 + BitOperations.Log2((uint)SizeOf(size)) - BitOperations.Log2(MinSize);

    private static SegmentPool MakeShared()
    {
        SegmentPool pool = new(Math.Min(DefaultMaxRetainedBytes, GC.GetGCMemoryInfo().TotalAvailableMemoryBytes / DefaultMemoryDivisor));
        _ = new CollectionWatch(pool);
        FilePipeMetrics.PoolRetained = () => pool.RetainedBytes;
        return pool;
    }

    private FileSegment? Pop(int index)
    {
        lock (_gate)
        {
            ref Bucket bucket = ref _buckets[index];
            FileSegment? segment = bucket.First;
            if (segment is not null)
            {
                bucket.First = segment.NextSegment;
                segment.NextSegment = null;
                bucket.Idle = Math.Min(bucket.Idle, --bucket.Count);
                _retainedBytes -= segment.PooledSize;
            }

            return segment;
        }
    }

    private void Push(FileSegment segment)
    {
        int size = segment.PooledSize;
        if (s_isPoisoned && size > 0)
        {
            segment.Poison();
        }

        lock (_gate)
        {
            if (size <= MaxSize && _retainedBytes + size <= _maxRetainedBytes)
            {
                ref Bucket bucket = ref _buckets[BucketOf(size)];
                segment.NextSegment = bucket.First;
                bucket.First = segment;
                bucket.Count++;
                _retainedBytes += size;
                return;
            }
        }

        FilePipeMetrics.PoolReleased.Add(size);
    }

    /// <summary>
    /// Segments of one size, last in, first out, because the memory of the last one is probably in the processor's caches. They are linked,
    /// so that giving one back allocates nothing: flushes and completions come after it.
    /// </summary>
    private struct Bucket
    {
        internal FileSegment? First;
        internal int Count;

        /// <summary>The smallest count since the last interval began: nobody has needed that many.</summary>
        internal int Idle;
    }

    /// <summary>
    /// Trims the pool after garbage collections: nobody refers to the object, and its finalizer registers it again. So the finalizer runs
    /// after every collection of the object's generation, which soon is the oldest. ArrayPool.Shared does the same.
    /// </summary>
    private sealed class CollectionWatch(SegmentPool pool)
    {
        [SuppressMessage("Design", "CA1063:Implement IDisposable Correctly",
            Justification = "It has nothing to dispose of: its finalizer is its purpose.")]
        ~CollectionWatch()
        {
            // Memory may be out: this allocates nothing, and an exception would end the process.
            try
            {
                Volatile.Write(ref pool._wasCollected, true);
                pool.Trim(Environment.TickCount64, isMemoryShort: false);
                GC.ReRegisterForFinalize(this);
            }
            catch (OutOfMemoryException)
            {
                // The lock was contended, or the list of finalizers is full: the pool is not trimmed any more.
            }
        }
    }
}
