using Pipelines.File.Memory;

namespace Pipelines.File;

/// <content>The stream as an <see cref="IBufferWriter{T}"/>.</content>
public sealed partial class PooledMemoryStream
{
    // The memory that GetMemory has returned while Position was not Length; else null. Advance copies it to its place, so that bytes that
    // are not advanced over do not overwrite the content.
    private MemorySegment? _scratch;

    /// <summary>
    /// Returns memory for the bytes at <see cref="Position"/>. Write into it, and then call <see cref="Advance"/>. Its initial content is
    /// undefined, and it is valid until the next call of another member of the stream.
    /// </summary>
    /// <param name="sizeHint">The minimum number of bytes that you need; 0 means any number, at least 1.</param>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="sizeHint"/> is negative.</exception>
    /// <exception cref="ObjectDisposedException">The stream was disposed.</exception>
    public Memory<byte> GetMemory(int sizeHint = 0)
    {
        MakeRoom(sizeHint);
        return _scratch is null ? new Memory<byte>(_array, _index, _limit - _index) : _scratch.Array;
    }

    /// <inheritdoc cref="GetMemory"/>
    public Span<byte> GetSpan(int sizeHint = 0)
    {
        int room = _limit - _index;
        return room > 0 && (uint)sizeHint <= (uint)room ? new Span<byte>(_array, _index, room) : GetMemory(sizeHint).Span;
    }

    /// <summary>
    /// Adds the bytes that you have written into the memory of <see cref="GetMemory"/> or <see cref="GetSpan"/>, as
    /// <see cref="Write(ReadOnlySpan{byte})"/> would.
    /// </summary>
    /// <param name="count">The number of bytes that you have written into the memory.</param>
    /// <exception cref="ArgumentOutOfRangeException">
    /// <paramref name="count"/> is negative, or more than the length of that memory.
    /// </exception>
    /// <exception cref="ObjectDisposedException">The stream was disposed.</exception>
    public void Advance(int count)
    {
        int room = _limit - _index;
        if (room > 0 && (uint)count <= (uint)room)
        {
            _index += count;
        }
        else
        {
            AdvanceSlowly(count);
        }
    }

    /// <summary>
    /// Appends the bytes of a value, as they are in memory. Returns <see langword="false"/>, and writes nothing, if they do not fit into
    /// the tail or <see cref="Position"/> is not <see cref="Length"/>.
    /// </summary>
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    internal bool TryAppend<T>(T value)
        where T : unmanaged
    {
        int index = _index;
        if (_limit - index < Unsafe.SizeOf<T>())
        {
            return false;
        }

        Unsafe.WriteUnaligned(ref Unsafe.Add(ref MemoryMarshal.GetArrayDataReference(_array!), index), value);
        _index = index + Unsafe.SizeOf<T>();
        return true;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private void MakeRoom(int sizeHint)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(sizeHint);
        ThrowIfDisposed();
        int size = Math.Max(sizeHint, 1);
        ReturnScratch();
        if (Place != End)
        {
            _scratch = MemorySegment.Rent(size, start: 0);
        }
        else if (_limit - _index < size)
        {
            AppendSegment(size);
            MoveTo(End);
        }
    }

    private void AdvanceSlowly(int count)
    {
        ThrowIfDisposed();
        if ((uint)count > (uint)(_scratch?.Array.Length ?? 0))
        {
            throw new ArgumentOutOfRangeException(nameof(count), count, "Negative, or more bytes than the memory that GetMemory returned.");
        }

        if (count > 0)
        {
            // Taken out first: the write would return it to the pool while it reads from it.
            MemorySegment scratch = _scratch!;
            _scratch = null;
            WriteSlowly(scratch.Array.AsSpan(0, count));
            MemorySegment.Return(scratch);
        }
    }

    private void ReturnScratch()
    {
        if (_scratch is { } scratch)
        {
            _scratch = null;
            MemorySegment.Return(scratch);
        }
    }
}
