using System.Buffers;
using System.Runtime.InteropServices;

namespace FilePipelinesTests;

/// <summary>Memory that begins at a multiple of 4,096, or so many bytes behind one. It counts what is out.</summary>
internal sealed unsafe class AlignedPool : MemoryPool<byte>
{
    private const int Block = 4096;

    private int _rented;

    public int Misalignment { get; init; }

    public int Rented => Volatile.Read(ref _rented);

    public override int MaxBufferSize => int.MaxValue;

    public override IMemoryOwner<byte> Rent(int minBufferSize = -1) => new Owner(this, Math.Max(Block, minBufferSize));

    protected override void Dispose(bool disposing)
    {
    }

    private sealed class Owner : MemoryManager<byte>
    {
        private readonly AlignedPool _pool;
        private readonly int _length;
        private readonly byte* _allocated;
        private readonly byte* _memory;

        internal Owner(AlignedPool pool, int length)
        {
            _pool = pool;
            _length = length;
            _allocated = (byte*)NativeMemory.AlignedAlloc((nuint)(length + Block), Block);
            _memory = _allocated + pool.Misalignment;
            Interlocked.Increment(ref pool._rented);
        }

        public override Span<byte> GetSpan() => new(_memory, _length);

        public override MemoryHandle Pin(int elementIndex = 0) => new(_memory + elementIndex);

        public override void Unpin()
        {
        }

        protected override void Dispose(bool disposing)
        {
            NativeMemory.AlignedFree(_allocated);
            Interlocked.Decrement(ref _pool._rented);
        }
    }
}
