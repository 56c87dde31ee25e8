using System.Buffers;
using System.Diagnostics;
using System.Diagnostics.CodeAnalysis;
using System.IO.Pipelines;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using Pipelines.File.Buffers;

namespace Pipelines.File;

/// <summary>
/// A stream in memory, as <see cref="MemoryStream"/> is, out of pooled segments: it grows without copying what it holds, may be longer than 2 GiB, and gives its memory
/// back when it is disposed. One that is forgotten is garbage like any other object. Its content is to be had without a copy as <see cref="Sequence"/>, and it
/// takes content without one as an <see cref="IBufferWriter{T}"/>.
/// </summary>
/// <remarks>
/// It is used by one caller at a time. Every member but <see cref="Stream.Dispose()"/>, <see cref="CanRead"/>, <see cref="CanSeek"/> and <see cref="CanWrite"/> throws
/// <see cref="ObjectDisposedException"/> after it was disposed, unlike <see cref="MemoryStream.ToArray"/>. The asynchronous members complete at once; what would
/// throw in the others is the error of their task.
/// </remarks>
[SuppressMessage("Naming", "CA1711:Identifiers should not have incorrect suffix", Justification = "It is a Stream.")]
public sealed class PooledMemoryStream : Stream, IBufferWriter<byte>
{
    /// <summary>The first segment, bytes: the size that every thread has one of.</summary>
    private const int FirstSegmentSize = SegmentPool.ThreadSize;

    /// <summary>The largest segment unless more is asked for, bytes. Up to here each is as large as all before it.</summary>
    private const int LargestSegmentSize = 256 * 1024;

    /// <summary>How many segments a seek passes one after the other before it makes an index of all.</summary>
    private const int StepsWithoutIndex = 16;

    /// <summary>A growth by more than this is refused at once where the process cannot have the memory, bytes.</summary>
    private const long SurelyAvailable = 1 << 30;

    // The chain holds the bytes from 0 to Length and no segment behind them. All segments but the tail know where they end; the tail's end is _index.
    private FileSegment? _head;
    private FileSegment? _tail;

    // The tail's memory, where it begins there, and where the next byte goes; all three 0 without a tail.
    private byte[]? _array;
    private int _arrayStart;
    private int _index;

    // Where the tail's memory ends while Position is Length and bytes may be appended without further ado; else 0, which sends every write the long way.
    private int _limit;

    // The stream's bytes before the tail.
    private long _tailStart;

    // Position, except while _limit is set: it is Length then.
    private long _position;

    // A segment that was read or overwritten last, where the search for the next one begins.
    private FileSegment? _current;

    // The first _indexed segments of the chain, for seeks. Made at the first seek that goes far.
    private FileSegment[]? _segments;
    private int _indexed;

    // What GetMemory has given out while Position was not Length: Advance copies it to its place, so that bytes it does not count stay as they are.
    private FileSegment? _scratch;

    private Task<int>? _lastRead;
    private bool _isDisposed;

    /// <summary>Makes an empty stream. It takes memory with the first byte.</summary>
    public PooledMemoryStream()
    {
    }

    /// <inheritdoc/>
    public override bool CanRead => !_isDisposed;

    /// <inheritdoc/>
    public override bool CanSeek => !_isDisposed;

    /// <inheritdoc/>
    public override bool CanWrite => !_isDisposed;

    /// <summary>Bytes in the stream.</summary>
    /// <exception cref="ObjectDisposedException">The stream was disposed.</exception>
    public override long Length
    {
        get
        {
            ThrowIfDisposed();
            return End;
        }
    }

    /// <summary>Where the next byte is read or written, bytes from the beginning. It may lie behind the end: a write there fills the gap with zeros.</summary>
    /// <exception cref="ObjectDisposedException">The stream was disposed.</exception>
    /// <exception cref="ArgumentOutOfRangeException">It is negative.</exception>
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

    /// <summary>The whole content, wherever <see cref="Position"/> is, without a copy. Valid until the stream is written to, cut or disposed.</summary>
    /// <exception cref="ObjectDisposedException">The stream was disposed.</exception>
    public ReadOnlySequence<byte> Sequence
    {
        get
        {
            ThrowIfDisposed();
            if (_head is null || End == 0)
            {
                return ReadOnlySequence<byte>.Empty;
            }

            _tail!.SetEnd(_index - _arrayStart);
            return new ReadOnlySequence<byte>(_head, 0, _tail, _tail.End);
        }
    }

    // What Length and Position are; of a disposed stream, 0.
    private long End => _tailStart + (_index - _arrayStart);

    private long Place => _limit > 0 ? End : _position;

    /// <inheritdoc/>
    public override void Write(byte[] buffer, int offset, int count)
    {
        ValidateBufferArguments(buffer, offset, count);
        Write(new ReadOnlySpan<byte>(buffer, offset, count));
    }

    /// <inheritdoc/>
    /// <exception cref="IOException">The stream would become longer than <see cref="long.MaxValue"/>.</exception>
    /// <exception cref="OutOfMemoryException">There is no memory. What there was some for has been written.</exception>
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
        if (count == 0)
        {
            return 0;
        }

        FileSegment segment = Find(position);
        int start = (int)(position - segment.RunningIndex);
        for (int done = 0; ;)
        {
            int length = Math.Min(LengthOf(segment) - start, count - done);
            segment.Buffer.Span.Slice(start, length).CopyTo(buffer[done..]);
            done += length;
            if (done == count)
            {
                break;
            }

            _current = segment = segment.NextSegment!;
            start = 0;
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
        if (cancellationToken.IsCancellationRequested)
        {
            return Task.FromCanceled<int>(cancellationToken);
        }

        try
        {
            int read = Read(new Span<byte>(buffer, offset, count));

            // Reads in a loop give the same number again and again.
            return _lastRead is { } last && last.Result == read ? last : _lastRead = Task.FromResult(read);
        }
        catch (Exception e)
        {
            return Task.FromException<int>(e);
        }
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
    /// <exception cref="IOException">The place lies before the beginning or behind <see cref="long.MaxValue"/>.</exception>
    public override long Seek(long offset, SeekOrigin origin)
    {
        ThrowIfDisposed();
        long from = origin switch
        {
            SeekOrigin.Begin => 0,
            SeekOrigin.Current => Place,
            SeekOrigin.End => End,
            _ => throw new ArgumentException("Not a place to seek from.", nameof(origin)),
        };

        // Past long.MaxValue the sum is negative, too.
        long position = unchecked(from + offset);
        if (position < 0)
        {
            throw new IOException("A seek to before the beginning of the stream, or to where none can reach.");
        }

        MoveTo(position);
        return position;
    }

    /// <summary>Cuts the stream, which gives memory back, or makes it longer by zeros. <see cref="Position"/> is moved back where it would lie behind the end.</summary>
    /// <param name="value">The new length, bytes.</param>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="value"/> is negative.</exception>
    /// <exception cref="OutOfMemoryException">There is no memory.</exception>
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

    /// <summary>Does nothing: there is nothing to flush.</summary>
    /// <exception cref="ObjectDisposedException">The stream was disposed.</exception>
    public override void Flush() => ThrowIfDisposed();

    /// <inheritdoc cref="Flush"/>
    public override Task FlushAsync(CancellationToken cancellationToken)
        => cancellationToken.IsCancellationRequested ? Task.FromCanceled(cancellationToken)
            : _isDisposed ? Task.FromException(new ObjectDisposedException(GetType().FullName))
            : Task.CompletedTask;

    /// <summary>The whole content in a new array, wherever <see cref="Position"/> is.</summary>
    /// <exception cref="IOException">It is longer than an array can be.</exception>
    /// <exception cref="ObjectDisposedException">The stream was disposed.</exception>
    public byte[] ToArray()
    {
        ThrowIfDisposed();
        long length = End;
        if (length == 0)
        {
            return [];
        }

        if (length > Array.MaxLength)
        {
            throw new IOException($"The stream's {length} bytes are more than an array can hold.");
        }

        byte[] array = GC.AllocateUninitializedArray<byte>((int)length);
        int copied = 0;
        for (FileSegment segment = _head!; ; segment = segment.NextSegment!)
        {
            int used = LengthOf(segment);
            segment.Buffer.Span[..used].CopyTo(array.AsSpan(copied));
            copied += used;
            if (segment == _tail)
            {
                return array;
            }
        }
    }

    /// <summary>Writes the whole content to a stream, wherever <see cref="Position"/> is.</summary>
    /// <param name="stream">Where to.</param>
    /// <exception cref="ObjectDisposedException">This stream was disposed.</exception>
    public void WriteTo(Stream stream)
    {
        ArgumentNullException.ThrowIfNull(stream);
        ThrowIfDisposed();
        WriteTo(stream, 0);
    }

    /// <summary>Writes what lies between <see cref="Position"/> and the end to a stream, a segment at a time, and moves Position to the end.</summary>
    /// <inheritdoc/>
    public override void CopyTo(Stream destination, int bufferSize)
    {
        ValidateCopyToArguments(destination, bufferSize);
        ThrowIfDisposed();
        long position = Place;
        MoveTo(Math.Max(position, End));
        WriteTo(destination, position);
    }

    /// <summary>Writes what lies between <see cref="Position"/> and the end to a stream, a segment at a time, and moves Position to the end.</summary>
    /// <inheritdoc/>
    public override Task CopyToAsync(Stream destination, int bufferSize, CancellationToken cancellationToken)
    {
        ValidateCopyToArguments(destination, bufferSize);
        ThrowIfDisposed();
        if (cancellationToken.IsCancellationRequested)
        {
            return Task.FromCanceled(cancellationToken);
        }

        long position = Place;
        MoveTo(Math.Max(position, End));
        if (position < End && destination is not (MemoryStream or PooledMemoryStream))
        {
            return CopyToStreamAsync(Sequence.Slice(position), destination, cancellationToken);
        }

        try
        {
            WriteTo(destination, position);
            return Task.CompletedTask;
        }
        catch (Exception e)
        {
            return Task.FromException(e);
        }
    }

    /// <summary>
    /// Writes what lies between <see cref="Position"/> and the end to a pipe and flushes it, a segment at a time; Position is then the end, or behind the last segment
    /// that was flushed where the reader has gone or the flush was canceled, or behind all that the writer has, where it is a <see cref="FilePipeWriter"/>. Into a <see cref="FilePipeWriter"/> much content goes without a copy: the system writes the
    /// segments themselves, and has them when this completes.
    /// </summary>
    /// <param name="destination">Where to. It is not completed.</param>
    /// <param name="cancellationToken">Cancels the wait for a flush, or what is not yet begun.</param>
    /// <returns>A task that is complete when the last flush is.</returns>
    /// <exception cref="OperationCanceledException">A flush was canceled.</exception>
    /// <exception cref="ObjectDisposedException">This stream was disposed.</exception>
    public Task CopyToAsync(PipeWriter destination, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(destination);
        ThrowIfDisposed();
        return cancellationToken.IsCancellationRequested ? Task.FromCanceled(cancellationToken)
            : Place < End ? destination is FilePipeWriter file ? CopyToFileAsync(file, cancellationToken) : CopyToPipeAsync(destination, cancellationToken)
            : Task.CompletedTask;
    }

    /// <summary>
    /// Memory for the bytes at <see cref="Position"/>, of which <see cref="Advance"/> takes over as many as were written. What it holds before is not defined. It is
    /// valid until anything else is done with the stream.
    /// </summary>
    /// <param name="sizeHint">The least length, bytes; 0 for any but none.</param>
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
        if (room > 0 && (uint)sizeHint <= (uint)room)
        {
            return new Span<byte>(_array, _index, room);
        }

        MakeRoom(sizeHint);
        return _scratch is null ? new Span<byte>(_array, _index, _limit - _index) : _scratch.Buffer.Span;
    }

    /// <summary>Takes over bytes that were written to what <see cref="GetMemory"/> or <see cref="GetSpan"/> gave, as <see cref="Write(ReadOnlySpan{byte})"/> would.</summary>
    /// <param name="count">How many.</param>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="count"/> is negative, or more than that memory.</exception>
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

    /// <summary>Writes a value as it lies in memory; <see langword="false"/>, and nothing, where that takes more than an append to the tail.</summary>
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

    /// <inheritdoc/>
    protected override void Dispose(bool disposing)
    {
        _isDisposed = true;
        _limit = _index = _arrayStart = 0;
        _tailStart = _position = 0;
        _array = null;

        // Exchanged, so that even two calls at once give it back once.
        Return(Interlocked.Exchange(ref _head, null));
        _tail = _current = null;
        ForgetIndex();
        ReturnScratch();
        base.Dispose(disposing);
    }

    // All of a pooled piece is used; what is larger than any of them is as large as it has to be.
    private static FileSegment Rent(int size) => SegmentPool.Shared.Rent(size <= SegmentPool.MaxSize ? SegmentPool.SizeOf(size) : size);

    // Memory of the own pool: giving it back does not throw.
    private static void Return(FileSegment? list) => _ = SegmentPool.Shared.Return(list);

    private static async Task CopyToStreamAsync(ReadOnlySequence<byte> content, Stream destination, CancellationToken cancellationToken)
    {
        foreach (ReadOnlyMemory<byte> memory in content)
        {
            await destination.WriteAsync(memory, cancellationToken).ConfigureAwait(false);
        }
    }

    private async Task CopyToFileAsync(FilePipeWriter destination, CancellationToken cancellationToken)
    {
        destination.BeginCopy();
        try
        {
            if (DirectWrite.CanWrite(destination, End - Place))
            {
                MoveTo(Place + await DirectWrite.WriteAsync(destination, Sequence.Slice(Place), cancellationToken).ConfigureAwait(false));
                cancellationToken.ThrowIfCancellationRequested();
                if (Place == End)
                {
                    _ = FileCopy.GoesOn(await destination.FlushAsync(cancellationToken).ConfigureAwait(false));
                    return;
                }
            }

            await CopyToPipeAsync(destination, cancellationToken).ConfigureAwait(false);
        }
        finally
        {
            destination.EndCopy();
        }
    }

    private async Task CopyToPipeAsync(PipeWriter destination, CancellationToken cancellationToken)
    {
        long position = Place;
        foreach (ReadOnlyMemory<byte> memory in Sequence.Slice(position))
        {
            position += memory.Length;
            FlushResult result;
            try
            {
                result = await destination.WriteAsync(memory, cancellationToken).ConfigureAwait(false);
            }
            catch (OperationCanceledException) when (destination is FilePipeWriter)
            {
                // It has taken the bytes, and writes them once: a second copy goes on behind them.
                MoveTo(position);
                throw;
            }

            MoveTo(position);
            if (!FileCopy.GoesOn(result))
            {
                return;
            }
        }
    }

    private void WriteTo(Stream destination, long position)
    {
        if (position >= End)
        {
            // An empty sequence has one piece, and a write of nothing is not always nothing.
            return;
        }

        foreach (ReadOnlyMemory<byte> memory in Sequence.Slice(position))
        {
            destination.Write(memory.Span);
        }
    }

    private int LengthOf(FileSegment segment) => segment == _tail ? _index - _arrayStart : segment.End;

    private void MoveTo(long position)
    {
        ReturnScratch();
        _position = position;
        _limit = position == End && _tail is not null ? _arrayStart + _tail.Capacity : 0;
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
            // As MemoryStream does, even where there is nothing to write.
            AppendZeros(position - End);
        }

        if (position < End)
        {
            int length = (int)Math.Min(source.Length, End - position);
            Overwrite(position, source[..length]);
            position += length;
            source = source[length..];
            MoveTo(position);
            if (source.IsEmpty)
            {
                return;
            }
        }

        try
        {
            while (!source.IsEmpty)
            {
                int room = _tail is null ? 0 : _arrayStart + _tail.Capacity - _index;
                if (room == 0)
                {
                    AppendSegment(Math.Min(source.Length, LargestSegmentSize));
                    continue;
                }

                int length = Math.Min(room, source.Length);
                source[..length].CopyTo(new Span<byte>(_array, _index, length));
                _index += length;
                source = source[length..];
            }
        }
        finally
        {
            MoveTo(End);
        }
    }

    private void Overwrite(long position, ReadOnlySpan<byte> source)
    {
        if (source.IsEmpty)
        {
            return;
        }

        FileSegment segment = Find(position);
        int start = (int)(position - segment.RunningIndex);
        while (true)
        {
            int length = Math.Min(LengthOf(segment) - start, source.Length);
            source[..length].CopyTo(segment.Buffer.Span[start..]);
            source = source[length..];
            if (source.IsEmpty)
            {
                return;
            }

            _current = segment = segment.NextSegment!;
            start = 0;
        }
    }

    private void AppendZeros(long count)
    {
        if (count > SurelyAvailable && count > GC.GetGCMemoryInfo().TotalAvailableMemoryBytes)
        {
            throw new InsufficientMemoryException($"The stream would grow by {count} bytes, which is more than all the memory that this process may use.");
        }

        while (count > 0)
        {
            int room = _tail is null ? 0 : _arrayStart + _tail.Capacity - _index;
            if (room == 0)
            {
                AppendSegment((int)Math.Min(count, LargestSegmentSize));
                continue;
            }

            int length = (int)Math.Min(room, count);
            new Span<byte>(_array, _index, length).Clear();
            _index += length;
            count -= length;
        }
    }

    /// <summary>Makes a new tail, of at least <paramref name="size"/> bytes, and in any case one that makes this stream as large again, up to a limit.</summary>
    private void AppendSegment(int size)
    {
        long end = End;
        size = Math.Max(size, (int)Math.Clamp(end, FirstSegmentSize, LargestSegmentSize));
        FileSegment segment = Rent(size);
        segment.SetRunningIndex(end);
        if (_tail is null)
        {
            _head = segment;
        }
        else if (_index == _arrayStart)
        {
            // It is empty and too small for what was asked for.
            ReplaceEmptyTail(segment);
        }
        else
        {
            _tail.SetEnd(_index - _arrayStart);
            _tail.NextSegment = segment;
        }

        SetTail(segment, 0);
        _tailStart = end;
    }

    private void ReplaceEmptyTail(FileSegment segment)
    {
        FileSegment empty = _tail!;
        if (_head == empty)
        {
            _head = segment;
        }
        else
        {
            FileSegment before = Find(empty.RunningIndex - 1);
            before.NextSegment = segment;
        }

        if (_current == empty)
        {
            _current = null;
        }

        ForgetIndex();
        Return(empty);
    }

    private void SetTail(FileSegment segment, int used)
    {
        bool isArray = MemoryMarshal.TryGetArray(segment.Buffer, out ArraySegment<byte> memory);
        Debug.Assert(isArray);
        _tail = segment;
        _array = memory.Array;
        _arrayStart = memory.Offset;
        _index = memory.Offset + used;
        _limit = 0;
    }

    /// <summary>Makes the segment that holds the last of <paramref name="length"/> bytes the tail, and gives those behind it back. The first one stays.</summary>
    private void Cut(long length)
    {
        FileSegment last = length == 0 ? _head! : Find(length - 1);
        FileSegment? rest = last.NextSegment;
        last.NextSegment = null;
        SetTail(last, (int)(length - last.RunningIndex));
        _tailStart = last.RunningIndex;
        _current = null;
        ForgetIndex();
        Return(rest);
    }

    /// <summary>The segment that holds the byte at <paramref name="position"/>, which there is.</summary>
    private FileSegment Find(long position)
    {
        FileSegment segment = _current is { } current && current.RunningIndex <= position ? current : _head!;
        for (int steps = 0; segment != _tail && position >= segment.RunningIndex + segment.End; steps++)
        {
            if (steps == StepsWithoutIndex)
            {
                segment = FindFar(position);
                break;
            }

            segment = segment.NextSegment!;
        }

        return _current = segment;
    }

    private FileSegment FindFar(long position)
    {
        if (position >= _tailStart)
        {
            return _tail!;
        }

        CompleteIndex();
        int low = 0;
        int high = _indexed - 1;
        while (low < high)
        {
            int middle = (low + high + 1) / 2;
            if (_segments![middle].RunningIndex <= position)
            {
                low = middle;
            }
            else
            {
                high = middle - 1;
            }
        }

        return _segments![low];
    }

    private void CompleteIndex()
    {
        _segments ??= ArrayPool<FileSegment>.Shared.Rent(StepsWithoutIndex * 4);
        for (FileSegment? next = _indexed == 0 ? _head : _segments[_indexed - 1].NextSegment; next is not null; next = next.NextSegment)
        {
            if (_indexed == _segments.Length)
            {
                FileSegment[] larger = ArrayPool<FileSegment>.Shared.Rent(_indexed * 2);
                Array.Copy(_segments, larger, _indexed);
                ArrayPool<FileSegment>.Shared.Return(_segments, clearArray: true);
                _segments = larger;
            }

            _segments[_indexed++] = next;
        }
    }

    /// <summary>Has to be called before any segment of the chain is given back.</summary>
    private void ForgetIndex()
    {
        if (_segments is { } segments)
        {
            _segments = null;
            _indexed = 0;
            ArrayPool<FileSegment>.Shared.Return(segments, clearArray: true);
        }
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

    private void ThrowIfDisposed() => ObjectDisposedException.ThrowIf(_isDisposed, this);
}
