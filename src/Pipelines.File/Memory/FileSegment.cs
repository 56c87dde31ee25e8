namespace Pipelines.File.Memory;

/// <summary>
/// One piece of memory in a chain of bytes. It belongs to the pool, to one chain, or to the operation that a chain has lent it to; only its
/// owner writes its fields. The bytes from 0 to <see cref="End"/> are visible through <see cref="ReadOnlySequenceSegment{T}.Memory"/>.
/// </summary>
internal sealed class FileSegment : ReadOnlySequenceSegment<byte>
{
    /// <summary>
    /// What the memory of the own pool is aligned to, bytes: a cache line. A large read into memory that starts anywhere else is a fifth
    /// slower (docs/tuning.md), and the runtime aligns arrays to 8 only.
    /// </summary>
    internal const int Alignment = 64;

    /// <summary>Segments of that many bytes and more begin with a page, for direct I/O.</summary>
    internal const int LeastWholePages = 64 * 1024;

    private const int Page = 4096;

    private const byte PoisonByte = 0xDB;

    private readonly byte[]? _pinned;
    private readonly int _start;
    private nint _address;
    private IMemoryOwner<byte>? _owner;
    private MemoryHandle _pin;

    /// <summary>
    /// A segment of the library's own pool, <paramref name="size"/> bytes on the pinned object heap, so that its address never changes.
    /// </summary>
    internal unsafe FileSegment(int size)
    {
        int alignment = size < LeastWholePages ? Alignment : Page;
        _pinned = GC.AllocateUninitializedArray<byte>(size + alignment - 1, pinned: true);
        nint address = (nint)Unsafe.AsPointer(ref MemoryMarshal.GetArrayDataReference(_pinned));
        _start = (int)(-address & (alignment - 1));
        _address = address + _start;
        PooledSize = size;
    }

    /// <summary>A segment without memory, for that of a caller's pool.</summary>
    internal FileSegment()
    {
    }

    /// <summary>The whole memory of this segment, written or not.</summary>
    internal Memory<byte> Buffer { get; private set; }

    /// <summary>How many bytes of <see cref="Buffer"/> are written.</summary>
    internal int End { get; private set; }

    internal int Capacity => Buffer.Length;

    internal int Room => Buffer.Length - End;

    /// <summary>The size of the own pool's memory, bytes, which decides the bucket that it goes back to; 0 for a caller's memory.</summary>
    internal int PooledSize { get; }

    /// <summary>The address of <see cref="Buffer"/>'s first byte where it is pinned, else 0.</summary>
    internal nint Address => _address;

    /// <summary>The whole memory of a pinned segment, without the code of the pool that it is from.</summary>
    internal unsafe Span<byte> PinnedSpan => new((void*)_address, Buffer.Length);

    /// <summary>
    /// The chain that holds this segment or has lent it to an operation; a position with another one is foreign to that chain.
    /// </summary>
    internal object? Chain { get; set; }

    internal FileSegment? NextSegment
    {
        get => (FileSegment?)Next;
        set => Next = value;
    }

    /// <summary>Readies a segment of the own pool for use, with at most <paramref name="limit"/> of its bytes.</summary>
    internal void Rent(int limit)
    {
        Debug.Assert(_pinned is not null && Chain is null);
        int capacity = Math.Min(limit, PooledSize);
        if (Buffer.Length != capacity)
        {
            Buffer = new Memory<byte>(_pinned, _start, capacity);
        }

        SetEnd(0);
    }

    /// <summary>Readies a segment without memory for that of a caller's pool, with at most <paramref name="limit"/> of its bytes.</summary>
    internal void Rent(IMemoryOwner<byte> owner, int limit)
    {
        Memory<byte> memory = owner.Memory;
        if (memory.IsEmpty)
        {
            throw new InvalidOperationException("The memory pool returned empty memory.");
        }

        _owner = owner;
        Buffer = memory.Length > limit ? memory[..limit] : memory;
        SetEnd(0);
    }

    /// <summary>Pins a caller's memory until it is given back; the own pool's always is. Runs the caller's code.</summary>
    internal unsafe void Pin()
    {
        if (_address == 0)
        {
            _pin = Buffer.Pin();
            _address = (nint)_pin.Pointer;
        }
    }

    /// <summary>
    /// Makes the first <paramref name="end"/> bytes visible. A reader of the earlier ones may run meanwhile: only the length changes.
    /// </summary>
    internal void SetEnd(int end)
    {
        Debug.Assert((uint)end <= (uint)Buffer.Length);
        if (End != end || Memory.Length != end)
        {
            End = end;
            Memory = Buffer[..end];
        }
    }

    /// <summary>Places this segment in its chain: the chain's bytes before it.</summary>
    internal void SetRunningIndex(long runningIndex) => RunningIndex = runningIndex;

    /// <summary>Gives a caller's memory back to its pool.</summary>
    internal void ReleaseOwner()
    {
        using IMemoryOwner<byte>? owner = _owner;
        _owner = null;
        _address = 0;
        Buffer = default;
        Memory = default;
        _pin.Dispose();
    }

    /// <summary>Fills the memory with a pattern that <see cref="CheckPoison"/> looks for.</summary>
    internal void Poison() => _pinned.AsSpan(_start, PooledSize).Fill(PoisonByte);

    /// <summary>Ends the process where somebody has written to the memory since <see cref="Poison"/>.</summary>
    internal void CheckPoison()
    {
        int touched = _pinned.AsSpan(_start, PooledSize).IndexOfAnyExcept(PoisonByte);
        if (touched >= 0)
        {
            Environment.FailFast($"Memory of the segment pool was written to while it was nobody's: byte {touched} of {PooledSize}.");
        }
    }
}
