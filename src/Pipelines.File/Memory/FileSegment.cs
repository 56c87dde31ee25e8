namespace Pipelines.File.Memory;

/// <summary>
/// One piece of memory in a chain of bytes. Its owner is the pool, one chain, or the request that fills it; only the owner writes its
/// fields. The bytes from 0 to <see cref="End"/> are visible through <see cref="ReadOnlySequenceSegment{T}.Memory"/>.
/// </summary>
internal sealed class FileSegment : ReadOnlySequenceSegment<byte>
{
    /// <summary>
    /// The alignment of the library's own memory, bytes: a cache line. A large read into memory with another alignment is a fifth slower
    /// (benchmarks/defaults.md), and the runtime aligns arrays to 8 only.
    /// </summary>
    internal const int Alignment = 64;

    private const byte PoisonByte = 0xDB;

    private readonly byte[]? _pinned;
    private readonly int _start;
    private nint _address;
    private IMemoryOwner<byte>? _owner;
    private MemoryHandle _pin;

    /// <summary>
    /// A segment of the library's own pool: <paramref name="size"/> bytes on the pinned object heap, so their address never changes.
    /// </summary>
    internal unsafe FileSegment(int size)
    {
        _pinned = GC.AllocateUninitializedArray<byte>(size + Alignment - 1, pinned: true);
        nint address = (nint)Unsafe.AsPointer(ref MemoryMarshal.GetArrayDataReference(_pinned));
        _start = (int)(-address & (Alignment - 1));
        _address = address + _start;
        PooledSize = size;
    }

    /// <summary>A segment without memory, for memory of a caller's pool.</summary>
    internal FileSegment()
    {
    }

    /// <summary>The whole memory of this segment, written or not.</summary>
    internal Memory<byte> Buffer { get; private set; }

    /// <summary>How many bytes of <see cref="Buffer"/> are written.</summary>
    internal int End { get; private set; }

    internal int Capacity => Buffer.Length;

    internal int Room => Buffer.Length - End;

    /// <summary>
    /// The size of the library's own memory, bytes, which decides its bucket in the pool; 0 for memory of a caller's pool.
    /// </summary>
    internal int PooledSize { get; }

    /// <summary>The address of the first byte of <see cref="Buffer"/>; 0 if it is not pinned.</summary>
    internal nint Address => _address;

    /// <summary>The whole memory of a pinned segment. Runs no code of a caller's pool.</summary>
    internal unsafe Span<byte> PinnedSpan => new((void*)_address, Buffer.Length);

    /// <summary>
    /// The chain that holds this segment, or whose request does. A position in a segment of another chain is foreign.
    /// </summary>
    internal object? Chain { get; set; }

    /// <summary>How many use this segment of a chain that several readers share. Guarded by the owner of that chain.</summary>
    internal int Uses { get; set; }

    /// <summary>
    /// Whether a caller may still look at the segment when its memory has gone back to the caller's pool: then it is not used again, and so
    /// shows nobody else's bytes.
    /// </summary>
    internal bool IsLookedAt { get; set; }

    internal FileSegment? NextSegment
    {
        get => (FileSegment?)Next;
        set => Next = value;
    }

    /// <summary>Prepares a segment of the library's own pool for use, with at most <paramref name="limit"/> of its bytes.</summary>
    internal void Rent(int limit)
    {
        Debug.Assert(_pinned is not null && Chain is null);
        Buffer = new Memory<byte>(_pinned, _start, Math.Min(limit, PooledSize));
        SetEnd(0);
    }

    /// <summary>
    /// Gives a segment without memory that of a caller's pool, at most <paramref name="limit"/> bytes. Runs the caller's code.
    /// </summary>
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

    /// <summary>
    /// Pins memory of a caller's pool until it is released, which runs the caller's code. The library's own memory is always pinned.
    /// </summary>
    internal unsafe void Pin()
    {
        if (_address == 0)
        {
            _pin = Buffer.Pin();
            _address = (nint)_pin.Pointer;
        }
    }

    /// <summary>
    /// Makes the first <paramref name="end"/> bytes visible. Another thread may read the earlier ones meanwhile: only the length changes.
    /// </summary>
    internal void SetEnd(int end)
    {
        Debug.Assert((uint)end <= (uint)Buffer.Length);
        End = end;
        Memory = Buffer[..end];
    }

    /// <summary>Sets the number of bytes of the chain before this segment.</summary>
    internal void SetRunningIndex(long runningIndex) => RunningIndex = runningIndex;

    /// <summary>Returns memory to a caller's pool. Runs the caller's code.</summary>
    internal void ReleaseOwner()
    {
        using IMemoryOwner<byte>? owner = _owner;
        _owner = null;
        _address = 0;
        Buffer = default;
        Memory = default;
        _pin.Dispose();
    }

    /// <summary>
    /// Unpins memory of a caller's pool that stays with whoever has it. Runs the caller's code, and returns what it throws.
    /// </summary>
    internal Exception? TryUnpin()
    {
        try
        {
            _pin.Dispose();
            return null;
        }
        catch (Exception e)
        {
            return e;
        }
    }

    /// <summary>Fills the memory with a pattern that <see cref="CheckPoison"/> looks for.</summary>
    internal void Poison() => _pinned.AsSpan(_start, PooledSize).Fill(PoisonByte);

    /// <summary>Ends the process if anything has written to the memory since <see cref="Poison"/>.</summary>
    internal void CheckPoison()
    {
        int touched = _pinned.AsSpan(_start, PooledSize).IndexOfAnyExcept(PoisonByte);
        if (touched >= 0)
        {
            Environment.FailFast($"Memory of the segment pool was written to while it was nobody's: byte {touched} of {PooledSize}.");
        }
    }
}
