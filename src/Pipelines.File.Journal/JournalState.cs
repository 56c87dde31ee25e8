namespace Pipelines.File;

/// <summary>The segments of a journal, looked at and found to follow each other. Nothing is changed.</summary>
/// <param name="Segments">The segments with their headers, in order.</param>
/// <param name="Last">The last one; <see langword="null"/> if there is none.</param>
/// <param name="Tail">What stands behind its last whole record.</param>
/// <param name="Bytes">The bytes of all records that were read, with their headers. A crash leaves zeros behind them.</param>
internal sealed record JournalState(
    IReadOnlyList<(SegmentFile File, SegmentHeader Header)> Segments, SegmentState? Last, SegmentTail Tail, long Bytes)
{
    /// <summary>Reads the headers of all segments, and the records of all or of the last one.</summary>
    /// <exception cref="InvalidJournalException">There is damage that no crash explains.</exception>
    internal static async ValueTask<JournalState> ReadAsync(
        string folder, bool verifyAll, IProgress<JournalProgress>? progress, CancellationToken cancellationToken)
    {
        SegmentFile[] files = SegmentFile.In(folder);
        List<(SegmentFile File, SegmentHeader Header)> segments = new(files.Length);
        foreach (SegmentFile file in files)
        {
            SegmentHeader header = SegmentHeader.Read(file);
            if (segments.Count > 0 && SegmentFile.Missed(segments[^1].File, file, header.Before) is not null)
            {
                return await ReadAsync(folder, verifyAll, progress, cancellationToken).ConfigureAwait(false);
            }

            if (segments.Count > 0 && (header.Id != segments[0].Header.Id || header.Before != segments[^1].File.First))
            {
                throw new InvalidJournalException(
                    header.Id != segments[0].Header.Id ? "This is a segment of another journal."
                        : $"The segment before this one is missing: its first record has the number {header.Before}.",
                    file.Path, 0, header.Id != segments[0].Header.Id ? file.First : header.Before);
            }

            segments.Add((file, header));
        }

        if (segments.Count == 0)
        {
            return new JournalState(segments, null, default, 0);
        }

        SegmentState[] states = await ReadAllAsync(verifyAll ? segments : [segments[^1]], progress, cancellationToken)
            .ConfigureAwait(false);
        for (int i = 0; i < states.Length - 1; i++)
        {
            ThrowIfNotSealed(states[i], states[i + 1].Header);
        }

        SegmentState last = states[^1];
        SegmentTail tail = SegmentTail.Read(last);
        if (tail.Proven > last.Next)
        {
            // Perhaps a process writes, and the records have come since. While the journal is opened nobody does.
            last = await SegmentState.ReadAsync(last.File, last.Header, isAhead: true, null, cancellationToken).ConfigureAwait(false);
            tail = last.Next >= tail.Proven ? default : tail;
        }

        ThrowIfDamaged(last, tail);
        states[^1] = last;
        return new JournalState(segments, last, tail, states.Sum(static state => state.End - JournalFormat.HeaderLength));
    }

    /// <summary>A segment was written whole before the next one got its name.</summary>
    internal static void ThrowIfNotSealed(SegmentState state, SegmentHeader next)
    {
        if (state.Next != next.First || state.Crc != next.Previous)
        {
            throw new InvalidJournalException(
                "A record is damaged: it is not what was written, and the next segment was begun after it.", state.File.Path, state.End,
                state.Next);
        }
    }

    internal static void ThrowIfDamaged(SegmentState last, SegmentTail tail)
    {
        if (tail.Proven > last.Next)
        {
            throw new InvalidJournalException(
                "A record is damaged: it is not what was written, and later records say that it was on the device.", last.File.Path,
                last.End, last.Next);
        }
    }

    private static async ValueTask<SegmentState[]> ReadAllAsync(
        List<(SegmentFile File, SegmentHeader Header)> segments, IProgress<JournalProgress>? progress,
        CancellationToken cancellationToken)
    {
        long total = progress is null ? 0 : segments.Sum(static segment => new FileInfo(segment.File.Path).Length);
        long done = 0;
        Action<long>? onRead = progress is null ? null
            : bytes => progress.Report(new JournalProgress(Interlocked.Add(ref done, bytes), total));
        bool isAhead = segments.Count < Environment.ProcessorCount;
        SegmentState[] states = new SegmentState[segments.Count];
        await Parallel.ForAsync(0, segments.Count, cancellationToken, async (i, token)
            => states[i] = await SegmentState.ReadAsync(segments[i].File, segments[i].Header, isAhead, onRead, token)
                .ConfigureAwait(false)).ConfigureAwait(false);
        progress?.Report(new JournalProgress(total, total));
        return states;
    }
}
