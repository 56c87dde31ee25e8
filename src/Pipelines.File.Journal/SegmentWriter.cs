using System.Buffers;
using Microsoft.Win32.SafeHandles;

namespace Pipelines.File;

/// <summary>The segment that is written. The journal's lock guards it, until the journal has taken it away to finish it.</summary>
internal sealed class SegmentWriter
{
    // The file is filled with zeros up to this many bytes ahead: a sync of blocks that the file has already writes the data alone.
    private const int Step = 1024 * 1024;

    // A longer record goes through memory of the writer's in pieces.
    private const int MostAtOnce = 64 * 1024;

    private static readonly byte[] s_zeros = new byte[Step];

    // The writer's: it closes the file when no call uses it any more.
    private readonly SafeFileHandle _handle;
    private readonly FilePipeWriter _writer;
    private readonly uint _seed;

    // Whether zeros are written ahead.
    private readonly bool _isZeroed;

    private SegmentWriter(
        SafeFileHandle handle, string path, SegmentHeader header, long end, long zeroed, bool isZeroed, FlushGuarantee guarantee)
    {
        _handle = handle;
        _seed = header.Seed;
        _isZeroed = isZeroed;
        File = new SegmentFile(header.First, path);
        Header = header;
        End = end;
        Zeroed = zeroed;
        _writer = FilePipeWriter.Create(
            handle, new FilePipeWriterOptions { Offset = end, FlushGuarantee = guarantee });
    }

    internal SegmentFile File { get; }

    internal SegmentHeader Header { get; }

    /// <summary>The file offset behind the last record.</summary>
    internal long End { get; private set; }

    /// <summary>Up to this file offset there are blocks, which have zeros behind <see cref="End"/>.</summary>
    internal long Zeroed { get; private set; }

    /// <summary>Goes on behind the last record of a segment that recovery has looked at.</summary>
    internal static SegmentWriter Open(SegmentState state, bool isZeroed, FlushGuarantee guarantee)
    {
        SafeFileHandle handle = System.IO.File.OpenHandle(state.File.Path, FileMode.Open, FileAccess.ReadWrite, SegmentFile.Share);
        try
        {
            return new SegmentWriter(
                handle, state.File.Path, state.Header, state.End, RandomAccess.GetLength(handle), isZeroed, guarantee);
        }
        catch
        {
            handle.Dispose();
            throw;
        }
    }

    /// <summary>
    /// Makes a new segment. It gets its name when its header is on the device, and the name is on the device when this completes.
    /// </summary>
    /// <param name="folder">The journal's.</param>
    /// <param name="fileLock">Its lock, which must be in place when names are made.</param>
    /// <param name="header">What the segment begins with.</param>
    /// <param name="prepared">A file with zeros; <see langword="null"/> if there is none.</param>
    /// <param name="isZeroed">Whether zeros are written ahead.</param>
    /// <param name="replaces">
    /// Whether it takes the place of a segment of the same name. Otherwise a file that has the name is an error, and is left alone.
    /// </param>
    /// <param name="guarantee">Of the records.</param>
    internal static async ValueTask<SegmentWriter> CreateAsync(
        string folder, FileLock fileLock, SegmentHeader header, PreparedSegment? prepared, bool isZeroed, bool replaces,
        FlushGuarantee guarantee)
    {
        string next = Path.Combine(folder, JournalFormat.NextName);
        string path = Path.Combine(folder, JournalFormat.NameOf(header.First));
        (SafeFileHandle? handle, long zeroed) = prepared is null ? default : await prepared.TakeAsync().ConfigureAwait(false);
        handle ??= System.IO.File.OpenHandle(next, FileMode.CreateNew, FileAccess.ReadWrite, SegmentFile.Share);
        SegmentWriter? segment = null;
        try
        {
            segment = new SegmentWriter(
                handle, path, header, 0, Math.Max(zeroed, JournalFormat.HeaderLength), isZeroed, guarantee)
            {
                End = JournalFormat.HeaderLength,
            };
            segment._writer.Write(header.ToBytes());
            await segment._writer.FlushAsync(FlushGuarantee.Durable).ConfigureAwait(false);
            JournalFolder.ThrowIfNotInPlace(fileLock);
            System.IO.File.Move(next, path, overwrite: replaces);
            FileSync.FlushFolder(folder);

            // If the folder was moved in that moment, no record of the segment is acknowledged.
            JournalFolder.ThrowIfNotInPlace(fileLock);
            return segment;
        }
        catch
        {
            if (segment is null)
            {
                handle.Dispose();
            }
            else
            {
                await segment.AbortAsync().ConfigureAwait(false);
            }

            JournalFolder.DeleteNext(folder, fileLock);
            throw;
        }
    }

    /// <summary>
    /// Whether a record of this size, with its header, still belongs here. A segment has one record at least, or the next one would get
    /// its name.
    /// </summary>
    internal bool HasRoom(long sequence, long size, long segmentSize) => sequence == Header.First || End + size <= segmentSize;

    /// <summary>Whether there are blocks for a record of this size. Where there are none, it must not be written yet.</summary>
    internal bool HasBlocks(long size) => !_isZeroed || End + size <= Zeroed;

    /// <summary>How many bytes of zeros are to be written next, for records of this size; not more than 0 if there are enough.</summary>
    internal long MissingZeros(long size, long segmentSize)
        => !_isZeroed || Zeroed - End - size > Step / 2 ? 0 : Math.Max(Math.Min(Step, segmentSize - Zeroed), End + size - Zeroed);

    /// <summary>Writes zeros behind those that are there. Called by one thread at a time, without the lock.</summary>
    internal void WriteZeros(long length)
    {
        for (long written = 0; written < length; written += Step)
        {
            SegmentFile.Write(_handle, s_zeros.AsSpan(0, (int)Math.Min(Step, length - written)), Zeroed + written, File.Path);
        }
    }

    /// <summary>Records that zeros were written.</summary>
    internal void AddZerosLocked(long length) => Zeroed += length;

    /// <summary>Adds a record. The caller flushes it.</summary>
    /// <param name="record">The bytes.</param>
    /// <param name="header">What its header says; size and CRC are set here.</param>
    /// <returns>The CRC of the record.</returns>
    internal uint Write(ReadOnlySpan<byte> record, RecordHeader header)
    {
        int size = (int)JournalFormat.SizeOf(record.Length);
        int atOnce = Math.Min(size, MostAtOnce);
        Span<byte> room = _writer.GetSpan(atOnce)[..atOnce];
        uint crc = RecordHeader.Write(room, header with { Size = (uint)(RecordHeader.Length + record.Length) }, _seed, End);
        int copied = Math.Min(record.Length, atOnce - RecordHeader.Length);
        record[..copied].CopyTo(room[RecordHeader.Length..]);
        room[(RecordHeader.Length + copied)..].Clear();
        _writer.Advance(atOnce);
        if (size > atOnce)
        {
            _writer.Write(record[copied..]);
            _writer.Write(s_zeros.AsSpan(0, size - RecordHeader.Length - record.Length));
        }

        End += size;
        return crc;
    }

    /// <summary>Adds a statement that all records are on the device. It may make the file longer.</summary>
    /// <param name="previous">The CRC of the record or statement before.</param>
    /// <param name="next">The number of the next record.</param>
    /// <param name="isContinued">Whether it says that another segment follows.</param>
    internal uint WriteStatement(uint previous, long next, bool isContinued)
        => Write([], new RecordHeader(0, 0, true, 0, previous, 0, isContinued ? 1U : 0, next));

    internal ValueTask<System.IO.Pipelines.FlushResult> FlushAsync(FlushGuarantee guarantee) => _writer.FlushAsync(guarantee);

    /// <summary>Ends a segment whose records are on the device: it gets the length that they have.</summary>
    internal async ValueTask CompleteAsync()
    {
        try
        {
            RandomAccess.SetLength(_handle, End);
        }
        catch
        {
            // The file is closed in any case.
            await AbortAsync().ConfigureAwait(false);
            throw;
        }

        await _writer.CompleteAsync().ConfigureAwait(false);
    }

    /// <summary>
    /// Gives up what is not written. Completes when the system writes nothing any more: only then may another writer read what there is.
    /// </summary>
    internal ValueTask AbortAsync()
    {
        _writer.Abort();
        return _writer.DisposeAsync();
    }
}
