using System.Buffers;
using System.Runtime.InteropServices;

namespace FilePipelines.Tests;

/// <summary>A memory pool whose every part may throw, or call back, at a chosen call. It counts what is out.</summary>
internal sealed class HostilePool : MemoryPool<byte>
{
    private int _rented;
    private int _returnedTwice;
    private int _returnedPinned;
    private int _pins;
    private int _thrown;
    private int _matching;

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

    /// <summary>The part that throws.</summary>
    public Part Throws { get; init; }

    /// <summary>Which call of that part throws, from 1.</summary>
    public int FromCall { get; init; } = 1;

    /// <summary>The last call of that part that throws.</summary>
    public int ToCall { get; init; } = int.MaxValue;

    /// <summary>From here on its memory gives no span.</summary>
    public bool RefusesSpans { get; set; }

    /// <summary>Called by every part first.</summary>
    public Action<Part>? OnCall { get; init; }

    /// <summary>
    /// Pieces of memory whose owner was not disposed. One whose Dispose throws counts as disposed, as nobody could do more.
    /// </summary>
    public int Rented => Volatile.Read(ref _rented);

    public int ReturnedTwice => Volatile.Read(ref _returnedTwice);

    public int ReturnedPinned => Volatile.Read(ref _returnedPinned);

    /// <summary>Pins that were not undone.</summary>
    public int Pins => Volatile.Read(ref _pins);

    /// <summary>How often it has thrown.</summary>
    public int Thrown => Volatile.Read(ref _thrown);

    public override int MaxBufferSize
    {
        get
        {
            Call(Part.MaxBufferSize);
            return int.MaxValue;
        }
    }

    public override IMemoryOwner<byte> Rent(int minBufferSize = -1)
    {
        Call(Part.Rent);
        Interlocked.Increment(ref _rented);
        return new Owner(this, new byte[Math.Max(1, minBufferSize)]);
    }

    protected override void Dispose(bool disposing)
    {
    }

    private void Call(Part part)
    {
        OnCall?.Invoke(part);
        if (part == Throws && Interlocked.Increment(ref _matching) is int call && call >= FromCall && call <= ToCall)
        {
            Interlocked.Increment(ref _thrown);
            throw new HostilePoolException(part);
        }
    }

    internal sealed class HostilePoolException(Part part) : Exception($"The pool throws in {part}.");

    private sealed unsafe class Owner(HostilePool pool, byte[] array) : MemoryManager<byte>
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

        public override Span<byte> GetSpan() => pool.RefusesSpans ? throw new HostilePoolException(Part.Memory) : array;

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
