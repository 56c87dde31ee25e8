using System.Buffers;
using System.Runtime.InteropServices;

namespace FilePipelines.Tests;

/// <summary>
/// A memory pool that knows what is out, poisons what comes back, and objects to memory that comes back twice, or pinned.
/// </summary>
internal class CheckedPool(int maxBufferSize = int.MaxValue) : MemoryPool<byte>
{
    /// <summary>The code of a pool that a reader or writer runs.</summary>
    internal enum Part
    {
        None,
        MaxBufferSize,
        Rent,
        Memory,
        Pin,
        Unpin,
        Dispose,
    }

    private int _rented;
    private int _returnedTwice;
    private int _returnedPinned;
    private int _pins;

    public int Rented => Volatile.Read(ref _rented);

    public int ReturnedTwice => Volatile.Read(ref _returnedTwice);

    /// <summary>Pieces that came back while a system call, or what is left of it, still held them in place.</summary>
    public int ReturnedPinned => Volatile.Read(ref _returnedPinned);

    /// <summary>Pins that were not undone.</summary>
    public int Pins => Volatile.Read(ref _pins);

    public override int MaxBufferSize
    {
        get
        {
            Call(Part.MaxBufferSize);
            return maxBufferSize;
        }
    }

    /// <summary>Pieces that may be out at a time: where there are as many, <see cref="Rent"/> throws.</summary>
    public int Limit { get; set; } = int.MaxValue;

    public override IMemoryOwner<byte> Rent(int minBufferSize = -1)
    {
        Call(Part.Rent);
        if (Rented >= Limit)
        {
            throw new InvalidOperationException("The pool is empty.");
        }

        Interlocked.Increment(ref _rented);
        return new Owner(this, new byte[Math.Max(1, minBufferSize)]);
    }

    /// <summary>What happens before a piece of its memory gives its span.</summary>
    public Action? OnSpan { get; set; }

    /// <summary>All memory has come back, once, and was not in use.</summary>
    public void AssertReturned()
        => Assert.Equal((0, 0, 0, 0), (Rented, ReturnedTwice, ReturnedPinned, Pins));

    /// <summary>Every part begins with this.</summary>
    private protected virtual void Call(Part part)
    {
    }

    protected override void Dispose(bool disposing)
    {
    }

    private sealed unsafe class Owner(CheckedPool pool, byte[] array) : MemoryManager<byte>
    {
        private int _isReturned;
        private int _ownPins;

        public override Memory<byte> Memory
        {
            get
            {
                pool.Call(Part.Memory);
                return base.Memory;
            }
        }

        public override Span<byte> GetSpan()
        {
            pool.OnSpan?.Invoke();
            return array;
        }

        public override MemoryHandle Pin(int elementIndex = 0)
        {
            pool.Call(Part.Pin);
            Interlocked.Increment(ref _ownPins);
            Interlocked.Increment(ref pool._pins);
            GCHandle handle = GCHandle.Alloc(array, GCHandleType.Pinned);
            return new MemoryHandle((byte*)handle.AddrOfPinnedObject() + elementIndex, handle, this);
        }

        public override void Unpin()
        {
            Interlocked.Decrement(ref _ownPins);
            Interlocked.Decrement(ref pool._pins);
            pool.Call(Part.Unpin);
        }

        protected override void Dispose(bool disposing)
        {
            if (Interlocked.Exchange(ref _isReturned, 1) != 0)
            {
                Interlocked.Increment(ref pool._returnedTwice);
                return;
            }

            if (Volatile.Read(ref _ownPins) != 0)
            {
                Interlocked.Increment(ref pool._returnedPinned);
            }

            array.AsSpan().Fill(0xDD);
            Interlocked.Decrement(ref pool._rented);
            pool.Call(Part.Dispose);
        }
    }
}
