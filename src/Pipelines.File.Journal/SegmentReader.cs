using System.Buffers;
using System.IO.Pipelines;

namespace Pipelines.File;

/// <summary>
/// Reads checked records of one segment, from a place on. It reads ahead of what the segment has, so it is opened again to read what was
/// written since. Owned by one reader.
/// </summary>
internal sealed class SegmentReader : IAsyncDisposable
{
    /// <summary>Bytes of one piece of memory: records that cross two of them are copied.</summary>
    private const int BufferSize = 256 * 1024;

    private readonly FilePipeReader _reader;
    private readonly RecordChain _chain;
    private ReadOnlySequence<byte> _buffer;
    private byte[] _joined = [];
    private int _consumed;

    private SegmentReader(FilePipeReader reader, RecordChain chain, long position)
    {
        _reader = reader;
        _chain = chain;
        Position = position;
    }

    /// <summary>The file offset behind <see cref="Bytes"/>.</summary>
    internal long Position { get; private set; }

    /// <summary>The records that were read last, and statements between them. Valid until the next call.</summary>
    internal ReadOnlyMemory<byte> Bytes { get; private set; }

    /// <summary>The number of the first of these records; the chain has that of the next.</summary>
    internal long First { get; private set; }

    /// <summary>The number behind all records that are intact, also of those that are not returned because nothing proves them.</summary>
    internal long Intact { get; private set; }

    internal static async ValueTask<SegmentReader> OpenAsync(
        string path, long position, RecordChain chain, long readAhead, CancellationToken cancellationToken)
    {
        FilePipeReaderOptions options = new()
        {
            Offset = position,
            BufferSize = BufferSize,
            Share = SegmentFile.Share,
            PauseReadAheadThreshold = readAhead,
        };
        return new SegmentReader(await FilePipeReader.OpenAsync(path, options, cancellationToken).ConfigureAwait(false), chain, position);
    }

    /// <summary>Reads the next records. <see langword="false"/>: for now there is no further one before the limit.</summary>
    /// <param name="limit">The number of the first record that is not to be read.</param>
    /// <param name="onlyProven">Whether to return only records that later ones, or <see cref="RecordChain.Prove"/>, prove.</param>
    /// <param name="cancellationToken">Ends a wait.</param>
    internal async ValueTask<bool> ReadAsync(long limit, bool onlyProven, CancellationToken cancellationToken)
    {
        int needed = RecordHeader.Length;
        while (true)
        {
            _buffer = _buffer.Slice(_consumed);
            _consumed = 0;
            if (_buffer.Length < needed && !await FillAsync(needed, cancellationToken).ConfigureAwait(false))
            {
                return false;
            }

            ReadOnlyMemory<byte> bytes = needed <= _buffer.First.Length ? _buffer.First : Join(needed);
            First = _chain.Sequence;
            uint before = _chain.Crc;
            int taken = _chain.Take(bytes.Span, limit, out int more, out RecordChain.Stop stop);
            Intact = _chain.Sequence;
            if (onlyProven && _chain.Sequence > _chain.Proven)
            {
                taken = _chain.GoBackToProven(bytes.Span[..taken], First, before);
                stop = RecordChain.Stop.Limit;
            }

            _consumed = taken;
            Position += taken;
            Bytes = bytes[..taken];
            if (_chain.Sequence > First)
            {
                return true;
            }

            if (stop != RecordChain.Stop.Bytes)
            {
                return false;
            }

            // Statements alone, or a record that goes on in the next piece of memory.
            needed = more;
        }
    }

    public ValueTask DisposeAsync() => _reader.CompleteAsync();

    private async ValueTask<bool> FillAsync(int needed, CancellationToken cancellationToken)
    {
        if (_buffer.Start.GetObject() is not null)
        {
            _reader.AdvanceTo(_buffer.Start, _buffer.End);
            _buffer = default;
        }

        _buffer = (await _reader.ReadAtLeastAsync(needed, cancellationToken).ConfigureAwait(false)).Buffer;
        return _buffer.Length >= needed;
    }

    /// <summary>One piece of memory with the first bytes of the buffer, which cross two.</summary>
    private ReadOnlyMemory<byte> Join(int length)
    {
        if (_joined.Length < length)
        {
            // The longest record is a little longer than the largest power of two.
            _joined = new byte[length > 1 << 30 ? length : (int)System.Numerics.BitOperations.RoundUpToPowerOf2((uint)length)];
        }

        _buffer.Slice(0, length).CopyTo(_joined);
        return _joined.AsMemory(0, length);
    }
}
