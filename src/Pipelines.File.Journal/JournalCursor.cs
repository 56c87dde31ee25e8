using System.Runtime.CompilerServices;

namespace Pipelines.File;

/// <summary>
/// One reading of a journal, over its segments. A segment is opened again whenever it has more, because a reader reads ahead of that.
/// </summary>
/// <param name="source">What there is to read.</param>
/// <param name="from">The number of the first record to return.</param>
/// <param name="follow">Whether to wait at the end for more.</param>
internal sealed class JournalCursor(IJournalSource source, long from, bool follow)
{
    private const long NoReadAhead = 0;

    // The segment that is read: where, and what comes next there.
    private SegmentFile? _segment;
    private RecordChain _chain = null!;
    private uint _seed;
    private long _position;

    // The number behind the records that were there and intact when the cursor last looked, whether or not anything proves them.
    private long _intact;

    // The number of the record up to which the cursor has waited for a later one to prove those before.
    private long _waitedFor = -1;

    // The number of the record for which the cursor has had written to the file what was committed.
    private long _writtenOutFor = -1;

    // The bytes at the end of what was read, when the cursor last looked, and how often they have been the same since.
    private byte[] _seen = new byte[RecordHeader.Length];
    private int _sameLooks;


    /// <summary>Reads a journal. Each enumeration has a cursor of its own.</summary>
    internal static async IAsyncEnumerable<JournalBatch> ReadBatchesAsync(
        IJournalSource source, long from, bool follow, [EnumeratorCancellation] CancellationToken cancellationToken)
    {
        await foreach (JournalBatch batch
            in new JournalCursor(source, from, follow).ReadBatchesAsync(cancellationToken).ConfigureAwait(false))
        {
            yield return batch;
        }
    }

    private async IAsyncEnumerable<JournalBatch> ReadBatchesAsync([EnumeratorCancellation] CancellationToken cancellationToken)
    {
        while (!Begin())
        {
            if (!follow || !await source.WaitAsync(from, cancellationToken).ConfigureAwait(false))
            {
                yield break;
            }
        }

        while (true)
        {
            bool isSealed = source.NextOf(_segment!) is not null;
            long? limit = isSealed ? long.MaxValue : source.Limit;
            long before = _chain.Sequence;
            if (await OpenAsync(cancellationToken).ConfigureAwait(false) is not { } reader)
            {
                BeginNext(isRemoved: true);
                continue;
            }

            await using (reader.ConfigureAwait(false))
            {
                while (await reader.ReadAsync(limit ?? long.MaxValue, onlyProven: limit is null, cancellationToken).ConfigureAwait(false))
                {
                    if (_chain.Sequence > from)
                    {
                        yield return Cut(reader);
                    }
                }

                (_position, _intact) = (reader.Position, reader.Intact);
            }

            if (isSealed)
            {
                BeginNext(isRemoved: false);
            }
            else if (_chain.Sequence == before && !(limit is { } committed
                ? await WaitForCommitAsync(committed, cancellationToken).ConfigureAwait(false)
                : await WaitForProofAsync(cancellationToken).ConfigureAwait(false)))
            {
                yield break;
            }
        }
    }

    /// <summary>What follows the first records of a batch that the caller does not want.</summary>
    private JournalBatch Cut(SegmentReader reader)
    {
        ReadOnlyMemory<byte> bytes = reader.Bytes;
        long first = reader.First;
        while (first < from)
        {
            RecordHeader header = RecordHeader.Read(bytes.Span);
            first += header.IsStatement ? 0 : 1;
            bytes = bytes[(int)JournalFormat.Padded(header.Size)..];
        }

        return new JournalBatch(bytes, first, _chain.Sequence);
    }

    /// <summary>All that was committed is read: waits for more. <see langword="false"/>: the reading is over.</summary>
    private async ValueTask<bool> WaitForCommitAsync(long committed, CancellationToken cancellationToken)
    {
        if (_chain.Sequence < committed && source.NextOf(_segment!) is null)
        {
            if (_writtenOutFor == _chain.Sequence)
            {
                source.ThrowIfFailed();
                throw Damaged("A record is damaged: it is not what was committed.");
            }

            _writtenOutFor = _chain.Sequence;
            await source.WriteOutAsync().ConfigureAwait(false);
            return true;
        }

        return _chain.Sequence < source.Limit
            || (follow && await source.WaitAsync(_chain.Sequence, cancellationToken).ConfigureAwait(false));
    }

    /// <summary>
    /// All that is proven to be on the device is read: proves more, or waits for it. <see langword="false"/>: the reading is over.
    /// </summary>
    private async ValueTask<bool> WaitForProofAsync(CancellationToken cancellationToken)
    {
        try
        {
            if (_intact > _chain.Sequence && (!follow || _waitedFor == _chain.Sequence))
            {
                // Whole records that nothing proves: a sync does. A follower first waits for a later record, which costs nothing.
                string path = _segment!.Path;
                long intact = _intact;
                await Task.Run(() => SegmentFile.Sync(path), cancellationToken).ConfigureAwait(false);
                _chain.Prove(intact);
                return true;
            }

            if (!follow)
            {
                await Task.Run(ThrowIfDamaged, cancellationToken).ConfigureAwait(false);
                return source.NextOf(_segment!) is not null;
            }

            if (_intact == _chain.Sequence && _sameLooks > 0)
            {
                await Task.Run(ThrowIfDamaged, cancellationToken).ConfigureAwait(false);
            }

            _waitedFor = _chain.Sequence;
            do
            {
                if (!await source.WaitAsync(_chain.Sequence, cancellationToken).ConfigureAwait(false))
                {
                    return false;
                }
            }
            while (!HasNews() && _intact == _chain.Sequence);
            return true;
        }
        catch (FileNotFoundException)
        {
            // The segment was removed: opening it again tells whether all of it was read before.
            return true;
        }
    }

    /// <summary>
    /// Whether it is worth to read on. Bytes that stay the same may be those of a torn record, or of one that was read while it was
    /// written: these are read again now and then.
    /// </summary>
    private bool HasNews()
    {
        const int LooksBetweenReads = 16;
        byte[] bytes = new byte[RecordHeader.Length];
        using (Microsoft.Win32.SafeHandles.SafeFileHandle handle = SegmentFile.OpenToRead(_segment!.Path))
        {
            _ = RandomAccess.Read(handle, bytes, _position);
        }

        bool isSame = bytes.AsSpan().SequenceEqual(_seen);
        _seen = bytes;
        _sameLooks = isSame ? _sameLooks + 1 : 0;
        bool isTurn = _sameLooks % LooksBetweenReads == 0;

        // A segment that follows has the next number, unless a record here is damaged: then the folder tells.
        return (isTurn ? source.NextOf(_segment!) is not null : source.HasSegment(_intact))
            || (bytes.AsSpan().ContainsAnyExcept((byte)0) && (!isSame || isTurn));
    }

    /// <summary>A record that is not intact, behind which others say that it was on the device.</summary>
    private void ThrowIfDamaged()
    {
        SegmentTail tail = SegmentTail.Read(
            new SegmentState(_segment!, SegmentHeader.Read(_segment!), _position, _chain.Sequence, _chain.Crc, _chain.Proven));
        if (tail.Proven > _chain.Sequence && !HasNextRecord())
        {
            throw Damaged("A record is damaged: it is not what was written, and later records say that it was on the device.");
        }
    }

    /// <summary>Whether the record that was not intact is so by now: it may have been written while it was read.</summary>
    private bool HasNextRecord()
    {
        using Microsoft.Win32.SafeHandles.SafeFileHandle handle = SegmentFile.OpenToRead(_segment!.Path);
        byte[] bytes = new byte[RecordHeader.Length];
        if (SegmentFile.Read(handle, bytes, _position) < bytes.Length || !RecordHeader.Read(bytes).IsPossible)
        {
            return false;
        }

        bytes = new byte[(int)JournalFormat.Padded(RecordHeader.Read(bytes).Size)];
        int read = SegmentFile.Read(handle, bytes, _position);
        return new RecordChain(_seed, _chain.Sequence, _chain.Crc).Take(bytes.AsSpan(0, read), long.MaxValue, out _, out _) > 0;
    }

    /// <summary>Finds the segment that has the first record. <see langword="false"/>: there is none yet.</summary>
    private bool Begin()
    {
        long oldest = 0;
        SegmentFile? missing = null;
        while (true)
        {
            SegmentFile[] segments = [.. source.Segments.SkipWhile(segment => segment.First < oldest)];
            SegmentFile? segment = segments.LastOrDefault(segment => segment.First <= from) ?? segments.FirstOrDefault();
            if (segment is null)
            {
                return oldest == 0 ? false : throw Removed(oldest - 1);
            }

            try
            {
                Enter(segment, SegmentHeader.Read(segment));
                return true;
            }
            catch (FileNotFoundException) when (segment == segments[0])
            {
                // It is being removed, or somebody else has removed it: the next one is the oldest.
                oldest = segment.First + 1;
            }
            catch (FileNotFoundException) when (segment != missing)
            {
                // It was removed since it was listed, and those before it, too.
                missing = segment;
            }
            catch (FileNotFoundException)
            {
                throw Removed(segment.First);
            }
        }
    }

    private void Enter(SegmentFile segment, SegmentHeader header)
    {
        _segment = segment;
        _seed = header.Seed;
        _chain = new RecordChain(header.Seed, header.First, header.Previous);
        _position = JournalFormat.HeaderLength;
    }

    /// <summary>Goes on with the next segment, whose beginning proves that this one is read to its end.</summary>
    /// <param name="isRemoved">Whether this one was removed: then nobody can tell whether a statement came behind its last record.</param>
    private void BeginNext(bool isRemoved)
    {
        SegmentFile next = source.NextOf(_segment!) ?? throw Removed(_chain.Sequence);
        SegmentHeader header;
        try
        {
            header = SegmentHeader.Read(next);
            while (SegmentFile.Missed(_segment!, next, header.Before) is { } missed)
            {
                next = missed;
                header = SegmentHeader.Read(next);
            }
        }
        catch (FileNotFoundException)
        {
            throw Removed(next.First);
        }

        if (header.Before != _segment!.First)
        {
            throw Removed(header.Before);
        }

        if (header.First != _chain.Sequence || (header.Previous != _chain.Crc && !isRemoved) || header.Seed != _seed)
        {
            throw Damaged("A record is damaged: it is not what was written, and the next segment was begun after it.");
        }

        Enter(next, header);
    }

    /// <summary>Opens the segment. <see langword="null"/>: it was removed, but all of it was read before.</summary>
    private async ValueTask<SegmentReader?> OpenAsync(CancellationToken cancellationToken)
    {
        try
        {
            return await SegmentReader.OpenAsync(_segment!.Path, _position, _chain, NoReadAhead, cancellationToken).ConfigureAwait(false);
        }
        catch (FileNotFoundException)
        {
            return source.NextOf(_segment!)?.First == _chain.Sequence ? null : throw Removed(_chain.Sequence);
        }
    }

    private InvalidJournalException Damaged(string what) => new(what, _segment!.Path, _position, _chain.Sequence);

    private static IOException Removed(long sequence)
        => new($"The records from {sequence} on were removed from the journal before they were read.");
}
