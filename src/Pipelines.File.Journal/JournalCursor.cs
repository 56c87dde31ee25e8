using System.Runtime.CompilerServices;

namespace Pipelines.File;

/// <summary>One reading of a journal, over its segments.</summary>
/// <param name="source">What there is to read.</param>
/// <param name="from">The number of the first record to return; <see cref="Journal.Oldest"/>.</param>
/// <param name="place">
/// The place to begin at, if it has to be told from one in what was there before a repair, or in another journal.
/// </param>
/// <param name="follow">Whether to wait at the end for more.</param>
internal sealed class JournalCursor(IJournalSource source, long from, JournalPosition? place, bool follow) : IDisposable
{
    // How often a reader looks for more before it looks at names again: somebody may have repaired or removed what it reads.
    private const int LooksBetweenNames = 16;

    private readonly BatchLease _lease = new();

    private SegmentReader? _reader;

    // The number of the record up to which the cursor has waited for a later one to prove those before.
    private long _waitedFor = -1;

    // The number of the record for which the cursor has had written to the file what was committed.
    private long _writtenOutFor = -1;

    // How often there was nothing new.
    private int _looks;

    // The number of the first record to return, once that is known.
    private long _from = from;

    private SegmentReader Reader => _reader!;

    public void Dispose()
    {
        _lease.Step();
        _reader?.Dispose();
    }

    /// <summary>Reads a journal. Each enumeration has a cursor of its own.</summary>
    internal static async IAsyncEnumerable<JournalBatch> ReadAsync(
        IJournalSource source, long from, JournalPosition? place, bool follow, [EnumeratorCancellation] CancellationToken cancellationToken)
    {
        using JournalCursor cursor = new(source, from, place, follow);
        while (await cursor.MoveNextAsync(cancellationToken).ConfigureAwait(false))
        {
            yield return cursor.Current();
        }
    }

    /// <summary>Looks whether a reading could go on from a place.</summary>
    /// <param name="source">What there is to read.</param>
    /// <param name="place">The place.</param>
    /// <param name="end">The number of the next record of the journal.</param>
    internal static void Check(IJournalSource source, JournalPosition place, long end)
    {
        using JournalCursor cursor = new(source, place.Sequence, place, follow: false);
        if (!cursor.Begin() || end < place.Sequence)
        {
            throw cursor.BeyondTheEnd(end);
        }
    }

    /// <summary>Goes to the next records. <see langword="false"/>: the reading is over.</summary>
    private async ValueTask<bool> MoveNextAsync(CancellationToken cancellationToken)
    {
        _lease.Step();
        cancellationToken.ThrowIfCancellationRequested();
        while (_reader is null && !Begin())
        {
            if (!follow || !await source.WaitAsync(_from, _looks++, cancellationToken).ConfigureAwait(false))
            {
                return false;
            }
        }

        while (true)
        {
            // Asked first: what is read then is all that the segment will have.
            bool isSealed = source.HasNext(Reader.File, Reader.Chain.Whole);
            long limit = isSealed ? long.MaxValue : source.Limit ?? long.MaxValue;
            bool isProved = isSealed || source.Limit is not null;
            while (await Reader.ReadAsync(limit, onlyProven: !isProved, cancellationToken).ConfigureAwait(false))
            {
                _looks = 0;
                if (Reader.Next > _from)
                {
                    return true;
                }
            }

            if (isSealed && source.NextOf(Reader.File) is not null)
            {
                BeginNext();
            }
            else if (!(isProved ? await WaitForCommitAsync(limit, cancellationToken).ConfigureAwait(false)
                : await WaitForProofAsync(cancellationToken).ConfigureAwait(false)))
            {
                return false;
            }
        }
    }

    /// <summary>What was read, without the first records of it that the caller does not want.</summary>
    private JournalBatch Current()
    {
        ReadOnlyMemory<byte> bytes = Reader.Bytes;
        long first = Reader.First;
        while (first < _from)
        {
            RecordHeader header = RecordHeader.Read(bytes.Span);
            first += header.IsStatement ? 0 : 1;
            bytes = bytes[(int)JournalFormat.Padded(header.Size)..];
        }

        return new JournalBatch(
            _lease, bytes, first, new JournalPosition(Reader.Header.Id, Reader.Header.Epoch, Reader.Next));
    }

    /// <summary>All that was committed is read: waits for more. <see langword="false"/>: the reading is over.</summary>
    private async ValueTask<bool> WaitForCommitAsync(long committed, CancellationToken cancellationToken)
    {
        if (Reader.Next < committed && source.NextOf(Reader.File) is null)
        {
            if (_writtenOutFor == Reader.Next)
            {
                source.ThrowIfFailed();
                throw Damaged("A record is damaged: it is not what was committed.");
            }

            _writtenOutFor = Reader.Next;
            await source.WriteOutAsync().ConfigureAwait(false);
            return true;
        }

        return Reader.Next < source.Limit || source.NextOf(Reader.File) is not null
            || (follow && await source.WaitAsync(Reader.Next, _looks++, cancellationToken).ConfigureAwait(false));
    }

    /// <summary>
    /// All that is proven to be on the device is read: proves more, or waits for it. <see langword="false"/>: the reading is over.
    /// </summary>
    private async ValueTask<bool> WaitForProofAsync(CancellationToken cancellationToken)
    {
        if (Reader.Chain.Whole > Reader.Next && (!follow || _waitedFor == Reader.Next || Reader.IsFull))
        {
            // Whole records that nothing proves: a sync does. A follower first waits for a later record, which costs nothing.
            long intact = Reader.Chain.Whole;
            await Task.Run(SyncAndLook, cancellationToken).ConfigureAwait(false);
            Reader.Chain.Prove(intact);
            return true;
        }

        if (_from > Reader.Chain.Whole && source.NextOf(Reader.File) is null)
        {
            ThrowIfDamaged(cancellationToken);
            throw BeyondTheEnd(Reader.Chain.Whole);
        }

        if (!follow)
        {
            await Task.Run(() => ThrowIfDamaged(cancellationToken), cancellationToken).ConfigureAwait(false);
            return source.NextOf(Reader.File) is not null;
        }

        _waitedFor = Reader.Next;
        await source.WaitAsync(Reader.Next, _looks, cancellationToken).ConfigureAwait(false);
        if (++_looks % LooksBetweenNames == 0)
        {
            await Task.Run(() => LookAtNames(cancellationToken), cancellationToken).ConfigureAwait(false);
        }

        return true;
    }

    private void SyncAndLook()
    {
        ThrowIfChanged();
        try
        {
            SegmentFile.Sync(Reader.File.Path);
        }
        catch (FileNotFoundException)
        {
            // It was trimmed: another one follows, before which its records were on the device.
        }
    }

    private void LookAtNames(CancellationToken cancellationToken)
    {
        ThrowIfChanged();
        if (Reader.HasStopped && int.IsPow2(_looks))
        {
            ThrowIfDamaged(cancellationToken);
        }
    }

    /// <summary>
    /// Looks whether the segment is still the one that was opened, and has what was read: a repair may have cut it, and another journal may
    /// be in the folder.
    /// </summary>
    private void ThrowIfChanged()
    {
        // A header is written once, so an open file that has its name needs no other look at it.
        if (Reader.HasName && Reader.HasBytesTo(Reader.Chain.WholePosition))
        {
            return;
        }

        try
        {
            using SegmentReader now = SegmentReader.Open(Reader.File, Reader.File.First);
            if (now.Header != Reader.Header || !now.HasBytesTo(Reader.Chain.WholePosition))
            {
                throw Changed();
            }
        }
        catch (IOException e) when (e is FileNotFoundException or DirectoryNotFoundException)
        {
            // Trimmed: then another one follows. Or else nothing is left of it.
            if (source.Segments is not [.., var last] || last.First <= Reader.File.First)
            {
                throw Changed();
            }
        }
        catch (InvalidJournalException)
        {
            throw Changed();
        }
    }

    /// <summary>A record that is not intact, behind which others say that it was on the device.</summary>
    private void ThrowIfDamaged(CancellationToken cancellationToken)
    {
        if (Reader.Chain.IsContinued)
        {
            return;
        }

        try
        {
            SegmentState state = new(
                Reader.File, Reader.Header, Reader.Chain.WholePosition, Reader.Chain.Whole, Reader.Chain.WholeCrc, 0, IsContinued: false);

            // Perhaps the records have come since.
            if (JournalState.TailOf(state, cancellationToken).Proven > Reader.Chain.Whole
                && SegmentState.Read(Reader.File, null, cancellationToken).Next <= Reader.Chain.Whole)
            {
                throw Damaged("A record is damaged: it is not what was written, and later records say that it was on the device.");
            }
        }
        catch (FileNotFoundException)
        {
            // It was removed: the names tell.
        }
    }

    /// <summary>Finds the segment that has the first record. <see langword="false"/>: there is none yet.</summary>
    private bool Begin()
    {
        long oldest = 0;
        SegmentFile? missing = null;
        while (true)
        {
            SegmentFile[] segments = [.. source.Segments.SkipWhile(segment => segment.First < oldest)];
            if (segments is not [var first, ..])
            {
                return oldest > 0 ? throw new JournalRecordsRemovedException(oldest - 1, oldest)
                    : place is { Sequence: > 0 } ? throw new JournalChangedException("The folder has no journal any more.")
                    : _from > 0 ? throw BeyondTheEnd(0) : false;
            }

            SegmentFile segment = segments.LastOrDefault(segment => segment.First <= _from) ?? first;
            try
            {
                SegmentReader reader = SegmentReader.Open(segment, Math.Max(_from, segment.First));
                _reader = reader;
                ThrowIfAnother(reader.Header);
                _from = _from == Journal.Oldest ? segment.First : _from;
                return _from < segment.First ? throw new JournalRecordsRemovedException(_from, segment.First) : true;
            }
            catch (FileNotFoundException) when (segment == first)
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
                throw new JournalRecordsRemovedException(segment.First, first.First);
            }
        }
    }

    /// <summary>Compares the place to begin at with what is there: the record before it must be the one that was read.</summary>
    private void ThrowIfAnother(SegmentHeader header)
    {
        if (place is { } wanted && (wanted.Id != header.Id
            || (wanted.Sequence > header.First && wanted.Epoch != header.Epoch)
            || (wanted.Sequence == header.First && wanted.Sequence > 0 && wanted.Epoch != header.EpochBefore)))
        {
            throw new JournalChangedException(wanted.Id != header.Id
                ? $"The folder has another journal, {header.Id:N}, and not {wanted.Id:N}."
                : $"The journal was repaired: the records before {wanted.Sequence} are not those that were read.");
        }
    }

    /// <summary>Goes on with the next segment, whose beginning proves that this one is read to its end.</summary>
    private void BeginNext()
    {
        SegmentFile next = source.NextOf(Reader.File)!;
        SegmentReader? reader = null;
        try
        {
            reader = SegmentReader.Open(next, next.First);
            while (SegmentFile.Missed(Reader.File, next, reader.Header.Before) is { } missed)
            {
                reader.Dispose();
                next = missed;
                reader = SegmentReader.Open(next, next.First);
            }
        }
        catch (FileNotFoundException)
        {
            // Trimmed, or taken away by a repair, since it was listed: what follows now tells.
            reader?.Dispose();
            ThrowIfChanged();
            if (SegmentFile.Next(source.Segments, Reader.File)?.First == next.First)
            {
                throw Removed(next.First);
            }

            return;
        }
        catch
        {
            reader?.Dispose();
            throw;
        }

        SegmentHeader header = reader.Header;
        SegmentReader old = Reader;
        bool isOther = header.Id != old.Header.Id;
        bool isLater = header.Before != old.File.First;
        bool isSame = header.First == old.Chain.Whole && header.Previous == old.Chain.WholeCrc && header.EpochBefore == old.Header.Epoch;
        if (!isOther && !isLater && isSame)
        {
            _reader = reader;
            old.Dispose();
            return;
        }

        reader.Dispose();
        ThrowIfChanged();
        throw isOther || header.EpochBefore != old.Header.Epoch ? Changed()
            : isLater ? Removed(header.First)
            : Damaged("A record is damaged: it is not what was written, and the next segment was begun after it.");
    }

    private InvalidJournalException Damaged(string what)
        => new(what, Reader.File.Path, Reader.Chain.WholePosition, Reader.Chain.Whole);

    private JournalRecordsRemovedException Removed(long next)
        => new(Reader.Chain.Whole, SegmentFile.Next(source.Segments, Reader.File)?.First ?? next);

    private JournalChangedException Changed()
        => new($"The journal was repaired, or made anew: what was read of it before record {Reader.Next} is not there any more. "
            + $"'{Reader.File.Path}'");

    private Exception BeyondTheEnd(long next)
        => place is null
            ? new ArgumentOutOfRangeException(null, _from, $"The journal ends before that: its next record gets the number {next}.")
            : new JournalChangedException($"The journal ends before the place: its next record gets the number {next}, and not {_from}.");
}
