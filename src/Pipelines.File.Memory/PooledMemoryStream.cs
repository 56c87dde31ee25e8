using Pipelines.File.Memory;

namespace Pipelines.File;

/// <summary>
/// A stream in memory, like <see cref="MemoryStream"/>, that uses pooled segments. It grows without copying its content, can be longer than
/// 2 GiB, and returns its memory when it is disposed. Its content is available without a copy as <see cref="Sequence"/>, and as an
/// <see cref="IBufferWriter{T}"/> it takes content without a copy.
/// </summary>
/// <remarks>
/// One caller uses it at a time. After it was disposed, every member except <see cref="Stream.Dispose()"/>, <see cref="CanRead"/>,
/// <see cref="CanSeek"/> and <see cref="CanWrite"/> throws <see cref="ObjectDisposedException"/>. This includes <see cref="ToArray"/>,
/// unlike <see cref="MemoryStream.ToArray"/>. The asynchronous members complete at once, and their tasks hold the exceptions. The memory of
/// a stream that is not disposed is left to the garbage collector.
/// </remarks>
[SuppressMessage("Naming", "CA1711:Identifiers should not have incorrect suffix", Justification = "It is a Stream.")]
public sealed partial class PooledMemoryStream : Stream, IBufferWriter<byte>
{
    /// <summary>The size of the first segment, bytes.</summary>
    private const int FirstSegmentSize = 4 * 1024;

    /// <summary>Up to this size, bytes, each segment is as large as all before it.</summary>
    private const int LargestDoubledSize = 256 * 1024;

    /// <summary>
    /// The maximum size of a segment unless a caller asks for more, bytes. Up to it, a segment is a sixteenth of all before it. The pool
    /// keeps a few dozen arrays of each size, so the content of a hundred MiB needs several sizes to be kept.
    /// </summary>
    private const int LargestSegmentSize = 4 * 1024 * 1024;

    /// <summary>Growth by more than this, bytes, is refused at once if the process cannot have that much memory.</summary>
    private const long MaxUncheckedGrowth = 1 << 30;

    // The chain of the bytes from 0 to Length, with no segment after them. Every segment except the tail has its End; that of the tail is
    // given by _index.
    private MemorySegment? _head;
    private MemorySegment? _tail;

    // The array of the tail, and the index of the next byte to append. Null and 0 without a tail.
    private byte[]? _array;
    private int _index;

    // If Position is Length and there is a tail: the index in _array after the tail's last byte, up to which writes append. Otherwise 0,
    // which sends every write to WriteSlowly.
    private int _limit;

    // Position, unless _limit is set: Position is Length then.
    private long _position;

    // The segment that was read or overwritten last. The next search begins there.
    private MemorySegment? _current;

    private Task<int>? _lastRead;
    private bool _isDisposed;

    /// <summary>Creates an empty stream. It rents memory when the first byte is written.</summary>
    public PooledMemoryStream()
    {
    }

    /// <inheritdoc/>
    public override bool CanRead => !_isDisposed;

    /// <inheritdoc/>
    public override bool CanSeek => !_isDisposed;

    /// <inheritdoc/>
    public override bool CanWrite => !_isDisposed;

    /// <summary>The number of bytes in the stream.</summary>
    /// <exception cref="ObjectDisposedException">The stream was disposed.</exception>
    public override long Length
    {
        get
        {
            ThrowIfDisposed();
            return End;
        }
    }

    /// <summary>
    /// The position of the next read or write, in bytes from the beginning. It may lie after the end: a write there fills the gap with
    /// zeros.
    /// </summary>
    /// <exception cref="ObjectDisposedException">The stream was disposed.</exception>
    /// <exception cref="ArgumentOutOfRangeException">The value is negative.</exception>
    public override long Position
    {
        get
        {
            ThrowIfDisposed();
            return Place;
        }

        set
        {
            ArgumentOutOfRangeException.ThrowIfNegative(value);
            ThrowIfDisposed();
            MoveTo(value);
        }
    }

    /// <summary>
    /// The whole content without a copy, whatever <see cref="Position"/> is. It is valid until the stream is written to, cut or disposed.
    /// </summary>
    /// <exception cref="ObjectDisposedException">The stream was disposed.</exception>
    public ReadOnlySequence<byte> Sequence
    {
        get
        {
            ThrowIfDisposed();
            if (End == 0)
            {
                return default;
            }

            _tail!.SetEnd(_index);
            return new ReadOnlySequence<byte>(_head!, 0, _tail, _tail.End);
        }
    }

    // Length and Position without a check; 0 after the stream was disposed.
    private long End => _tail is null ? 0 : _tail.RunningIndex + (_index);

    private long Place => _limit > 0 ? End : _position;

    /// <inheritdoc/>
    public override void Write(byte[] buffer, int offset, int count)
    {
        ValidateBufferArguments(buffer, offset, count);
        Write(new ReadOnlySpan<byte>(buffer, offset, count));
    }

    /// <inheritdoc/>
    /// <exception cref="IOException">The stream would become longer than <see cref="long.MaxValue"/>.</exception>
    /// <exception cref="OutOfMemoryException">The memory is exhausted. The bytes that had room were written.</exception>
    public override void Write(ReadOnlySpan<byte> buffer)
    {
        int index = _index;
        int room = _limit - index;
        if (room > 0 && buffer.Length <= room)
        {
            buffer.CopyTo(new Span<byte>(_array, index, buffer.Length));
            _index = index + buffer.Length;
        }
        else
        {
            WriteSlowly(buffer);
        }
    }

    /// <inheritdoc/>
    public override void WriteByte(byte value)
    {
        int index = _index;
        if (index < _limit)
        {
            _array![index] = value;
            _index = index + 1;
        }
        else
        {
            WriteSlowly(new ReadOnlySpan<byte>(in value));
        }
    }

    /// <inheritdoc/>
    public override Task WriteAsync(byte[] buffer, int offset, int count, CancellationToken cancellationToken)
    {
        ValidateBufferArguments(buffer, offset, count);
        return WriteAsync(new ReadOnlyMemory<byte>(buffer, offset, count), cancellationToken).AsTask();
    }

    /// <inheritdoc/>
    public override ValueTask WriteAsync(ReadOnlyMemory<byte> buffer, CancellationToken cancellationToken = default)
    {
        if (cancellationToken.IsCancellationRequested)
        {
            return ValueTask.FromCanceled(cancellationToken);
        }

        try
        {
            Write(buffer.Span);
            return ValueTask.CompletedTask;
        }
        catch (Exception e)
        {
            return ValueTask.FromException(e);
        }
    }

    /// <inheritdoc/>
    public override int Read(byte[] buffer, int offset, int count)
    {
        ValidateBufferArguments(buffer, offset, count);
        return Read(new Span<byte>(buffer, offset, count));
    }

    /// <inheritdoc/>
    public override int Read(Span<byte> buffer)
    {
        ThrowIfDisposed();
        long position = Place;
        int count = (int)Math.Clamp(End - position, 0, buffer.Length);
        for (int done = 0; done < count;)
        {
            Span<byte> piece = At(position + done, count - done);
            piece.CopyTo(buffer[done..]);
            done += piece.Length;
        }

        MoveTo(position + count);
        return count;
    }

    /// <inheritdoc/>
    public override int ReadByte()
    {
        byte value = 0;
        return Read(new Span<byte>(ref value)) == 0 ? -1 : value;
    }

    /// <inheritdoc/>
    public override Task<int> ReadAsync(byte[] buffer, int offset, int count, CancellationToken cancellationToken)
    {
        ValidateBufferArguments(buffer, offset, count);
        if (cancellationToken.IsCancellationRequested || _isDisposed)
        {
            return ReadAsync(new Memory<byte>(buffer, offset, count), cancellationToken).AsTask();
        }

        // Reads in a loop often return the same number: its task is reused.
        int read = Read(new Span<byte>(buffer, offset, count));
        return _lastRead is { } last && last.Result == read ? last : _lastRead = Task.FromResult(read);
    }

    /// <inheritdoc/>
    public override ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellationToken = default)
    {
        if (cancellationToken.IsCancellationRequested)
        {
            return ValueTask.FromCanceled<int>(cancellationToken);
        }

        try
        {
            return new ValueTask<int>(Read(buffer.Span));
        }
        catch (Exception e)
        {
            return ValueTask.FromException<int>(e);
        }
    }

    /// <inheritdoc/>
    /// <exception cref="IOException">The position lies before the beginning or after <see cref="long.MaxValue"/>.</exception>
    public override long Seek(long offset, SeekOrigin origin)
    {
        ThrowIfDisposed();
        long from = origin switch
        {
            SeekOrigin.Begin => 0,
            SeekOrigin.Current => Place,
            SeekOrigin.End => End,
            _ => throw new ArgumentException("The origin is not a SeekOrigin.", nameof(origin)),
        };

        // Past long.MaxValue the sum is negative, too.
        long position = unchecked(from + offset);
        if (position < 0)
        {
            throw new IOException(
                "The position would lie before the beginning of the stream, or after the longest stream that is possible.");
        }

        MoveTo(position);
        return position;
    }

    /// <summary>
    /// Cuts the stream, which returns memory, or extends it with zeros. <see cref="Position"/> moves back to the end if it would be after
    /// it.
    /// </summary>
    /// <param name="value">The new length, in bytes.</param>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="value"/> is negative.</exception>
    /// <exception cref="OutOfMemoryException">The memory is exhausted. The stream is as it was.</exception>
    /// <exception cref="ObjectDisposedException">The stream was disposed.</exception>
    public override void SetLength(long value)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(value);
        ThrowIfDisposed();
        long position = Place;
        if (value > End)
        {
            AppendZeros(value - End);
        }
        else if (value < End)
        {
            Cut(value);
        }

        MoveTo(Math.Min(position, value));
    }

    /// <summary>Does nothing, because the stream has nothing to flush.</summary>
    /// <exception cref="ObjectDisposedException">The stream was disposed.</exception>
    public override void Flush() => ThrowIfDisposed();

    /// <inheritdoc cref="Flush"/>
    public override Task FlushAsync(CancellationToken cancellationToken)
        => cancellationToken.IsCancellationRequested ? Task.FromCanceled(cancellationToken)
            : _isDisposed ? Task.FromException(new ObjectDisposedException(GetType().FullName))
            : Task.CompletedTask;

    /// <summary>Copies the whole content to a new array, whatever <see cref="Position"/> is.</summary>
    /// <exception cref="IOException">The content is longer than an array can be.</exception>
    /// <exception cref="ObjectDisposedException">The stream was disposed.</exception>
    public byte[] ToArray()
    {
        ThrowIfDisposed();
        if (End > Array.MaxLength)
        {
            throw new IOException($"The stream has {End} bytes, which is more than an array can hold.");
        }

        byte[] array = GC.AllocateUninitializedArray<byte>((int)End);
        Sequence.CopyTo(array);
        return array;
    }

    /// <inheritdoc/>
    protected override void Dispose(bool disposing)
    {
        _isDisposed = true;
        _limit = _index = 0;
        _position = 0;
        _array = null;
        _tail = _current = null;
        ReturnAll();
        ReturnScratch();
        base.Dispose(disposing);
    }

    private void MoveTo(long position)
    {
        ReturnScratch();
        _position = position;
        _limit = position == End && _tail is not null ? _array!.Length : 0;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private void WriteSlowly(ReadOnlySpan<byte> source)
    {
        ThrowIfDisposed();
        long position = Place;
        if (position > long.MaxValue - source.Length)
        {
            throw new IOException("The stream would become too long.");
        }

        if (position > End)
        {
            // As MemoryStream does, even if there is nothing to write.
            AppendZeros(position - End);
        }

        try
        {
            while (!source.IsEmpty)
            {
                Span<byte> room = position < End ? At(position, source.Length) : Append(source.Length);
                source[..room.Length].CopyTo(room);
                source = source[room.Length..];
                position += room.Length;
            }
        }
        finally
        {
            MoveTo(position);
        }
    }

    private void ThrowIfDisposed() => ObjectDisposedException.ThrowIf(_isDisposed, this);
}
