using Pipelines.File.Memory;

namespace Pipelines.File;

/// <content>The stream as an <see cref="IBufferWriter{T}"/>.</content>
public sealed partial class PooledMemoryStream
{
    // What GetMemory has given out while Position was not Length: Advance copies it to its place, so that bytes it does not count stay as
    // they are.
    private FileSegment? _scratch;

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
        return _scratch is null ? new Memory<byte>(_array, _index, _limit - _index) : _scratch.Buffer;
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
    /// Writes a value as it lies in memory; <see langword="false"/>, and nothing, where that takes more than an append to the tail.
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
            _scratch = Rent(size);
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
        if ((uint)count > (uint)(_scratch?.Capacity ?? 0))
        {
            throw new ArgumentOutOfRangeException(nameof(count), count, "Negative, or more bytes than the memory that GetMemory returned.");
        }

        if (count > 0)
        {
            // Taken out first, so that the write does not give it back while it reads from it.
            FileSegment scratch = _scratch!;
            _scratch = null;
            WriteSlowly(scratch.Buffer.Span[..count]);
            Return(scratch);
        }
    }

    private void ReturnScratch()
    {
        if (_scratch is { } scratch)
        {
            _scratch = null;
            Return(scratch);
        }
    }
}
