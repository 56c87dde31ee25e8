using System.Buffers;

namespace FilePipelinesTests;

/// <summary>A memory pool that knows what is out, poisons what comes back, and objects to memory that comes back twice.</summary>
internal sealed class CheckedPool(int maxBufferSize = int.MaxValue) : MemoryPool<byte>
{
    private int _rented;
    private int _returnedTwice;

    public int Rented => Volatile.Read(ref _rented);

    public int ReturnedTwice => Volatile.Read(ref _returnedTwice);

    public override int MaxBufferSize => maxBufferSize;

    /// <summary>Pieces that may be out at a time: where there are as many, <see cref="Rent"/> throws.</summary>
    public int Limit { get; set; } = int.MaxValue;

    public override IMemoryOwner<byte> Rent(int minBufferSize = -1)
    {
        if (Rented >= Limit)
        {
            throw new InvalidOperationException("The pool is empty.");
        }

        Interlocked.Increment(ref _rented);
        return new Owner(this, new byte[Math.Max(1, minBufferSize)]);
    }

    protected override void Dispose(bool disposing)
    {
    }

    private sealed class Owner(CheckedPool pool, byte[] array) : IMemoryOwner<byte>
    {
        private int _isReturned;

        public Memory<byte> Memory => array;

        public void Dispose()
        {
            if (Interlocked.Exchange(ref _isReturned, 1) != 0)
            {
                Interlocked.Increment(ref pool._returnedTwice);
                return;
            }

            array.AsSpan().Fill(0xDD);
            Interlocked.Decrement(ref pool._rented);
        }
    }
}
