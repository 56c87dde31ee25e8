using Pipelines.File.Diagnostics;

namespace Pipelines.File.Memory;

/// <summary>
/// The library's own pool: segments with their memory, which is allocated on the pinned object heap once and reused. Sizes are powers of
/// two, so that odd sizes share. The whole pool never keeps more than <see cref="MaxRetainedBytes"/>, and after a full garbage collection
/// it lets go of what lay idle, or of everything where memory is short. What it lets go of is the garbage collector's.
/// </summary>
internal sealed class SegmentPool
{
    internal const int MinSize = 256;
    internal const int MaxSize = 1024 * 1024;

    /// <summary>
    /// Of this size every thread keeps one segment for itself, bytes: what a small stream needs costs no interlocked operation then, which
    /// would be most of its time.
    /// </summary>
    internal const int ThreadSize = 4096;

    /// <summary>The most that <see cref="Shared"/> keeps unless told otherwise, bytes.</summary>
    private const long MostByDefault = 1L << 30;

    /// <summary>The share of the process's memory that it keeps at most unless told otherwise.</summary>
    private const int ShareByDefault = 4;

    /// <summary>Memory is short from this share of the garbage collector's own threshold on, as it is for ArrayPool.Shared.</summary>
    private const double ShortMemory = 0.9;

    /// <summary>
    /// For tests: memory that is given back is filled with a pattern, and has to have it still when it is rented again. Whoever wrote to it
    /// meanwhile used memory that was not his any more, and ends the process.
    /// </summary>
    private static readonly bool s_isPoisoned = Environment.GetEnvironmentVariable("PIPELINES_FILE_POISON") == "1";

    // What the current thread keeps of the shared pool, which nobody else sees.
    [ThreadStatic]
    private static FileSegment? s_ofThread;

    // The last one has segments without memory, for that of callers' pools.
    private readonly Bucket[] _buckets = new Bucket[BucketOf(MaxSize) + 2];

    // Interlocked: bytes in all buckets together.
    private long _retainedBytes;

    // Volatile: set by the application at any time.
    private long _maxRetainedBytes;

    // Written by Trim only, which one thread calls: the finalizer's, or a test's for a pool of its own.
    private long _idleSince = Environment.TickCount64;

    internal SegmentPool(long maxRetainedBytes)
    {
        _maxRetainedBytes = maxRetainedBytes;
        for (int i = 0; i < _buckets.Length; i++)
        {
            _buckets[i] = new Bucket();
        }
    }

    internal static SegmentPool Shared { get; } = MakeShared();

    /// <summary>Bytes that the pool keeps while nobody uses them, beside one segment a thread.</summary>
    internal long RetainedBytes => Volatile.Read(ref _retainedBytes);

    /// <summary>
    /// The most memory that the pool keeps while nobody uses it, bytes, beside one segment a thread. Lowering it lets go of what is over at
    /// once.
    /// </summary>
    internal long MaxRetainedBytes
    {
        get => Volatile.Read(ref _maxRetainedBytes);
        set
        {
            Volatile.Write(ref _maxRetainedBytes, value);
            for (int i = _buckets.Length - 1; i >= 0; i--)
            {
                while (RetainedBytes > value && _buckets[i].Pop() is { } segment)
                {
                    Drop(segment);
                }
            }
        }
    }

    /// <summary>How long memory has to lie unused until a full garbage collection makes the pool let go of it. Default: 30 s.</summary>
    internal TimeSpan IdleTime { get; set; } = TimeSpan.FromSeconds(30);

    /// <summary>A segment of at least one and at most <paramref name="size"/> usable bytes: exactly <paramref name="size"/>.</summary>
    internal FileSegment Rent(int size)
    {
        FileSegment? segment = null;
        if (size == ThreadSize && this == Shared && s_ofThread is not null)
        {
            segment = s_ofThread;
            s_ofThread = null;
        }
        else if (size <= MaxSize)
        {
            segment = _buckets[BucketOf(size)].Pop();
            if (segment is not null)
            {
                Interlocked.Add(ref _retainedBytes, -segment.PooledSize);
            }
        }

        if (segment is null)
        {
            segment = Allocate(size);
        }
        else if (s_isPoisoned)
        {
            segment.CheckPoison();
        }

        segment.Rent(size);
        return segment;
    }

    /// <summary>
    /// A segment around memory of a caller's pool: at most <paramref name="size"/> bytes, fewer where that pool has no such piece.
    /// </summary>
    internal FileSegment Rent(int size, MemoryPool<byte> pool)
    {
        IMemoryOwner<byte> owner = pool.Rent(Math.Min(size, pool.MaxBufferSize));
        try
        {
            FileSegment segment = _buckets[^1].Pop() ?? new FileSegment();
            segment.Rent(owner, size);
            return segment;
        }
        catch
        {
            owner.Dispose();
            throw;
        }
    }

    /// <summary>
    /// Takes back a list of segments, linked by <see cref="FileSegment.NextSegment"/>. Nobody, the operating system included, may touch
    /// them any more. The memory of a caller's pool is disposed here, so no lock is held. Returns what the first of them threw; the others
    /// are given back all the same.
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
                    _buckets[^1].Push(segment);
                }
                catch (Exception e)
                {
                    error ??= e;
                }
            }
            else if (segment.PooledSize <= MaxSize)
            {
                Keep(segment);
            }
        }

        return error;
    }

    /// <summary>
    /// Lets go of everything where memory is short, else, once every <see cref="IdleTime"/>, of what was not needed since the last time: as
    /// many of each size as were there at every moment since.
    /// </summary>
    internal void Trim(long now, bool isMemoryShort)
    {
        bool isTime = now - _idleSince >= (long)IdleTime.TotalMilliseconds;
        _idleSince = isTime ? now : _idleSince;
        if (isTime || isMemoryShort)
        {
            foreach (Bucket bucket in _buckets)
            {
                for (int idle = bucket.BeginInterval(); (isMemoryShort || idle > 0) && bucket.Pop() is { } segment; idle--)
                {
                    Drop(segment);
                }
            }
        }
    }

    internal static int SizeOf(int size) => (int)BitOperations.RoundUpToPowerOf2((uint)Math.Max(size, MinSize));

    private static int BucketOf(int size) => BitOperations.Log2((uint)SizeOf(size)) - BitOperations.Log2(MinSize);

    private static FileSegment Allocate(int size)
    {
        FileSegment segment = new(size <= MaxSize ? SizeOf(size) : size);
        FilePipeMetrics.PoolAllocated.Add(segment.PooledSize);
        return segment;
    }

    private static SegmentPool MakeShared()
    {
        SegmentPool pool = new(Math.Min(MostByDefault, GC.GetGCMemoryInfo().TotalAvailableMemoryBytes / ShareByDefault));
        CollectionWatch.Begin(pool);
        return pool;
    }

    private void Keep(FileSegment segment)
    {
        int size = segment.PooledSize;
        if (s_isPoisoned)
        {
            segment.Poison();
        }

        if (size == ThreadSize && this == Shared && s_ofThread is null && MaxRetainedBytes > 0)
        {
            s_ofThread = segment;
        }
        else if (Interlocked.Add(ref _retainedBytes, size) <= MaxRetainedBytes)
        {
            _buckets[BucketOf(size)].Push(segment);
        }
        else
        {
            Drop(segment);
        }
    }

    private void Drop(FileSegment segment)
    {
        Interlocked.Add(ref _retainedBytes, -segment.PooledSize);
        FilePipeMetrics.PoolReleased.Add(segment.PooledSize);
    }

    /// <summary>Segments of one size. The one that came last is the first to go, as its memory is in the processor's caches.</summary>
    private sealed class Bucket
    {
        // Guards the fields below.
        private readonly Lock _gate = new();
        private readonly Stack<FileSegment> _segments = new();

        // The fewest that there were since the last BeginInterval: so many nobody has needed since.
        private int _idle;

        internal FileSegment? Pop()
        {
            lock (_gate)
            {
                if (_segments.TryPop(out FileSegment? segment))
                {
                    _idle = Math.Min(_idle, _segments.Count);
                }

                return segment;
            }
        }

        internal void Push(FileSegment segment)
        {
            lock (_gate)
            {
                _segments.Push(segment);
            }
        }

        /// <summary>How many nobody has needed since the last call.</summary>
        internal int BeginInterval()
        {
            lock (_gate)
            {
                int idle = _idle;
                _idle = _segments.Count;
                return idle;
            }
        }
    }

    /// <summary>
    /// An object that nobody refers to and whose finalizer puts it back: so it runs after every collection of the generation it is in,
    /// which soon is the oldest. ArrayPool.Shared learns of full collections the same way.
    /// </summary>
    private sealed class CollectionWatch(SegmentPool pool)
    {
        [SuppressMessage("Design", "CA1063:Implement IDisposable Correctly",
            Justification = "It has nothing to dispose of: its finalizer is its purpose.")]
        ~CollectionWatch()
        {
            GCMemoryInfo memory = GC.GetGCMemoryInfo();
            pool.Trim(Environment.TickCount64, memory.MemoryLoadBytes >= memory.HighMemoryLoadThresholdBytes * ShortMemory);
            GC.ReRegisterForFinalize(this);
        }

        internal static void Begin(SegmentPool pool) => _ = new CollectionWatch(pool);
    }
}
