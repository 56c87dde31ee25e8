using Microsoft.Win32.SafeHandles;

namespace Pipelines.File;

/// <summary>
/// Reads checked records of one segment, from a place on, and what comes there later. Of a segment that grows it reads each record once,
/// and at most half as much again behind the end. Owned by one reader.
/// </summary>
internal sealed class SegmentReader : IDisposable
{
    private const int MostAtOnce = 256 * 1024;

    // What the page cache has is copied on the caller's thread: it was just written.
    private const int MostInline = 4 * 1024;

    // A record that was torn for long is looked at again after so many looks: it may be appended once more.
    private const int MostLooks = 64;

    private readonly SafeFileHandle _handle;
    private byte[] _buffer = new byte[4 * 1024];

    // In the buffer: what was returned ends, what the chain has taken ends, what was read ends.
    private int _returned;
    private int _taken;
    private int _filled;

    // The bytes of records since there were none.
    private long _yielded;

    // The header at which the chain has stopped, and how often it was there since.
    private RecordHeader _stoppedAt;
    private int _stops;

    // How often there was no more of a batch that is not whole.
    private int _parts;

    // Records before this number were in the file for good when the buffer was filled.
    private long _final;

    private SegmentReader(SafeFileHandle handle, SegmentFile file, SegmentHeader header, RecordChain chain)
    {
        _handle = handle;
        File = file;
        Header = header;
        Chain = chain;
        Next = chain.Sequence;

        // A segment that is entered has more, mostly.
        _yielded = 32 * 1024;
    }

    internal SegmentFile File { get; }

    internal SegmentHeader Header { get; }

    /// <summary>How far records were read, returned or not.</summary>
    internal RecordChain Chain { get; }

    /// <summary>The records that were returned last, and statements between them. Valid until the next call.</summary>
    internal ReadOnlyMemory<byte> Bytes { get; private set; }

    /// <summary>The number of the first of these records.</summary>
    internal long First { get; private set; }

    /// <summary>The number behind the records that were returned.</summary>
    internal long Next { get; private set; }

    /// <summary>Whether so much is read that nothing proves that the reader should have it proven: batches that are whole.</summary>
    internal bool IsFull => Chain.Whole > Next && _taken - _returned >= MostAtOnce;

    /// <summary>Whether bytes stand behind the last record that are none, or none yet.</summary>
    internal bool HasStopped => _stops > 0;

    /// <summary>Opens a segment at a record, or before it.</summary>
    /// <param name="file">The segment.</param>
    /// <param name="from">The number of the record.</param>
    internal static SegmentReader Open(SegmentFile file, long from)
    {
        SafeFileHandle handle = SegmentHeader.Open(file, out SegmentHeader header);
        try
        {
            return new SegmentReader(handle, file, header, SegmentSeek.Find(handle, file, header, from));
        }
        catch
        {
            handle.Dispose();
            throw;
        }
    }

    public void Dispose() => _handle.Dispose();

    /// <summary>Whether the name still means the file that is open, as far as the system tells.</summary>
    internal bool HasName => FileIdentity.TryGet(File.Path, out FileIdentity named)
        && FileIdentity.TryGet(_handle, out FileIdentity open) && named == open;

    /// <summary>
    /// Whether the file has the bytes before an offset. A read tells: on SMB the length that the system knows lags behind what another
    /// client has written and this one has read already.
    /// </summary>
    internal bool HasBytesTo(long end) => File.Read(_handle, stackalloc byte[1], end - 1) == 1;

    /// <summary>Reads the next records. <see langword="false"/>: for now there is no further one before the limit.</summary>
    /// <param name="limit">
    /// The number of the first record that is not to be read. Those before are in the file, unless <paramref name="onlyProven"/>.
    /// </param>
    /// <param name="onlyProven">
    /// Whether to return only records that later ones, or <see cref="RecordChain.Prove"/>, prove: somebody may write the file.
    /// </param>
    /// <param name="cancellationToken">Ends a wait.</param>
    internal async ValueTask<bool> ReadAsync(long limit, bool onlyProven, CancellationToken cancellationToken)
    {
        long final = onlyProven ? 0 : limit;
        if (final != _final && (Chain.Sequence >= _final || final == long.MaxValue))
        {
            // What was read behind the last whole batch may not have been written yet, or not for good: it is read again. Behind a sealed
            // segment nothing else comes, so that it is not read once more.
            Rewind();
        }

        _final = final;
        while (true)
        {
            int needed = TakeBuffered(limit);
            if (TryReturn(onlyProven ? Math.Min(Chain.Whole, Chain.Proven) : Chain.Whole))
            {
                // The record behind them was only met, and not looked at in vain.
                _stops = 0;
                return true;
            }

            if (needed == 0 || (onlyProven && IsFull)
                || !await FillAsync(needed, cancellationToken).ConfigureAwait(false))
            {
                // What stands behind the last record may be written yet: it is read again.
                _filled = _taken;
                _yielded = 0;
                if (Chain.Sequence > Chain.Whole && IsLookedAtAgain(++_parts))
                {
                    // The batch may be cut, and others come in its place.
                    Rewind();
                }

                return false;
            }
        }
    }

    /// <summary>Whether it is time to look again at what was there so often.</summary>
    private static bool IsLookedAtAgain(int looks) => int.IsPow2(looks) || looks % MostLooks == 0;

    /// <summary>Goes back to the end of the last whole batch, and forgets what was read behind it.</summary>
    private void Rewind()
    {
        _taken -= (int)(Chain.Position - Chain.WholePosition);
        _filled = _taken;
        Chain.Rewind();
    }

    /// <summary>Has the chain take what is there. Returns how many bytes the next record needs; 0 if it is not to be taken.</summary>
    private int TakeBuffered(long limit)
    {
        while (true)
        {
            ReadOnlySpan<byte> bytes = _buffer.AsSpan(_taken, _filled - _taken);
            if (bytes.Length < RecordHeader.Length)
            {
                return Chain.IsContinued || Chain.Sequence >= limit ? 0 : RecordHeader.Length;
            }

            if (!Chain.TryRead(bytes, out RecordHeader header))
            {
                _stops = bytes[..RecordHeader.Length].ContainsAnyExcept((byte)0) ? _stops + 1 : 0;
                return 0;
            }

            if (!header.IsStatement && Chain.Sequence >= limit)
            {
                return 0;
            }

            int size = (int)JournalFormat.Padded(header.Size);
            if (bytes.Length < size)
            {
                // A record that was not intact is looked at ever more seldom: it may be long, and it may be torn.
                _stops = header == _stoppedAt ? _stops + 1 : 1;
                _stoppedAt = header;
                return Chain.Sequence < _final || IsLookedAtAgain(_stops) ? size : 0;
            }

            if (Crc32C.Append(0, bytes[RecordHeader.Length..(int)header.Size]) != header.ContentCrc)
            {
                (_stoppedAt, _stops) = (header, Math.Max(_stops, 1));
                return 0;
            }

            Chain.Take(header);
            if (Chain.IsContinued)
            {
                return 0;
            }

            _taken += size;
            _yielded += size;
            _stops = 0;
            _parts = Chain.Sequence > Chain.Whole ? _parts : 0;
        }
    }

    /// <summary>Returns the records before a number, which is the end of a batch.</summary>
    private bool TryReturn(long end)
    {
        (First, int start) = (Next, _returned);
        while (Next < end)
        {
            RecordHeader header = RecordHeader.Read(_buffer.AsSpan(_returned));
            Next += header.IsStatement ? 0 : 1;
            _returned += (int)JournalFormat.Padded(header.Size);
        }

        Bytes = _buffer.AsMemory(start, _returned - start);
        return Next > First;
    }

    private async ValueTask<bool> FillAsync(int needed, CancellationToken cancellationToken)
    {
        int missing = needed - (_filled - _taken);

        // A long batch is in memory whole: ever longer pieces, so that what is there is not copied for each.
        int length = (int)Math.Max(missing, Math.Min(Math.Max(MostAtOnce, (_taken - _returned) / 4), _yielded / 2));
        MakeRoom(length);
        Memory<byte> room = _buffer.AsMemory(_filled, length);
        long position = Chain.Position + (_filled - _taken);
        try
        {
            int read = length <= MostInline ? RandomAccess.Read(_handle, room.Span, position)
                : await RandomAccess.ReadAsync(_handle, room, position, cancellationToken).ConfigureAwait(false);
            _filled += read;
            return read > 0;
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            throw File.Named(e);
        }
    }

    /// <summary>Has room behind what was read. What is kept is what was not returned, so nobody has the rest any more.</summary>
    private void MakeRoom(int length)
    {
        if (_buffer.Length - _filled >= length)
        {
            return;
        }

        int kept = _filled - _returned;
        byte[] old = _buffer;
        if (kept + length > old.Length)
        {
            // Not twice as long if it is long: a heap that has room for the record may have none for that.
            long wanted = kept + (long)length;
            _buffer = new byte[wanted <= 2 * MostAtOnce ? Math.Max(wanted, Math.Min(2 * MostAtOnce, old.Length * 2)) : wanted];
        }

        old.AsSpan(_returned, kept).CopyTo(_buffer);
        _taken -= _returned;
        _filled -= _returned;
        _returned = 0;
    }
}
