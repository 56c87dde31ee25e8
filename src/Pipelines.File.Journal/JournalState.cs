namespace Pipelines.File;

/// <summary>The segments of a journal, looked at and found to follow each other. Nothing is changed.</summary>
/// <param name="Segments">The segments with their headers, in order.</param>
/// <param name="Last">The last one; <see langword="null"/> if there is none.</param>
/// <param name="Tail">What stands behind its last whole record.</param>
/// <param name="Bytes">The bytes of all records that were read, with their headers. A crash leaves zeros behind them.</param>
internal sealed record JournalState(
    IReadOnlyList<(SegmentFile File, SegmentHeader Header)> Segments, SegmentState? Last, SegmentTail Tail, long Bytes)
{
    // How often a listing may have missed a segment: then the folder has names that it does not list.
    private const int MostListings = 100;

    /// <summary>Reads the headers of all segments, and the records of all or of the last one. Waits for the device.</summary>
    /// <exception cref="InvalidJournalException">There is damage that no crash explains.</exception>
    internal static JournalState Read(
        string folder, bool verifyAll, IProgress<JournalProgress>? progress, CancellationToken cancellationToken)
    {
        List<(SegmentFile File, SegmentHeader Header)> segments = ReadHeaders(folder, cancellationToken);
        if (segments.Count == 0)
        {
            return new JournalState(segments, null, default, 0);
        }

        SegmentState[] states = ReadAll(verifyAll ? segments : [segments[^1]], progress, cancellationToken);
        for (int i = 0; i < states.Length - 1; i++)
        {
            ThrowIfNotSealed(states[i], states[i + 1].Header);
        }

        SegmentState last = states[^1];
        SegmentTail tail = TailOf(last, cancellationToken);
        if (tail.Proven > last.Next)
        {
            // Perhaps a process writes, and the records have come since. While the journal is opened nobody does.
            last = SegmentState.Read(last.File, null, cancellationToken);
            tail = last.Next >= tail.Proven ? default : tail;
        }

        if (tail.Proven > last.Next)
        {
            throw new InvalidJournalException(
                "A record is damaged: it is not what was written, and later records say that it was on the device.", last.File.Path,
                last.End, last.Next);
        }

        states[^1] = last;
        return new JournalState(segments, last, tail, states.Sum(static state => state.End - JournalFormat.HeaderLength));
    }

    /// <summary>What stands behind the last whole record.</summary>
    internal static SegmentTail TailOf(SegmentState state, CancellationToken cancellationToken)
        => state.IsContinued ? default
            : SegmentTail.Read(state.File, state.Header.Seed, state.End, state.Next, cancellationToken);

    private static List<(SegmentFile File, SegmentHeader Header)> ReadHeaders(string folder, CancellationToken cancellationToken)
    {
        for (int listings = 1; ; listings++)
        {
            List<(SegmentFile File, SegmentHeader Header)> segments = [];
            SegmentFile? missed = null;
            foreach (SegmentFile file in SegmentFile.In(folder))
            {
                cancellationToken.ThrowIfCancellationRequested();
                SegmentHeader header = SegmentHeader.Read(file);
                if (segments is [.., (SegmentFile, SegmentHeader) before])
                {
                    missed ??= listings < MostListings ? SegmentFile.Missed(before.Item1, file, header.Before) : null;
                    if (missed is null)
                    {
                        ThrowIfNotNext(before.Item1, before.Item2, file, header);
                    }
                }

                segments.Add((file, header));
            }

            if (missed is null)
            {
                return segments;
            }
        }
    }

    private static void ThrowIfNotNext(SegmentFile before, SegmentHeader last, SegmentFile file, SegmentHeader header)
    {
        if (header.Id != last.Id)
        {
            throw new InvalidJournalException("This is a segment of another journal.", file.Path, 0, file.First);
        }

        if (header.Before != before.First || header.EpochBefore != last.Epoch)
        {
            throw new InvalidJournalException(
                $"The segment before this one is missing: its first record has the number {header.Before}.", file.Path, 0, header.Before);
        }
    }

    /// <summary>A segment was written whole before the next one got its name.</summary>
    private static void ThrowIfNotSealed(SegmentState state, SegmentHeader next)
    {
        if (state.Next != next.First || state.Crc != next.Previous)
        {
            throw new InvalidJournalException(
                "A record is damaged: it is not what was written, and the next segment was begun after it.", state.File.Path, state.End,
                state.Next);
        }
    }

    private static SegmentState[] ReadAll(
        List<(SegmentFile File, SegmentHeader Header)> segments, IProgress<JournalProgress>? progress,
        CancellationToken cancellationToken)
    {
        long total = progress is null ? 0 : segments.Sum(static segment => new FileInfo(segment.File.Path).Length);
        long done = 0;
        Action<long>? onRead = progress is null ? null
            : bytes => progress.Report(new JournalProgress(Interlocked.Add(ref done, bytes), total));
        SegmentState[] states = new SegmentState[segments.Count];
        try
        {
            Parallel.For(0, segments.Count, new ParallelOptions { CancellationToken = cancellationToken }, i
                => states[i] = SegmentState.Read(segments[i].File, onRead, cancellationToken));
        }
        catch (AggregateException e)
        {
            // The first damage, as a reader meets it.
            System.Runtime.ExceptionServices.ExceptionDispatchInfo.Throw(
                e.InnerExceptions.OfType<InvalidJournalException>().MinBy(static damage => damage.Sequence) ?? e.InnerExceptions[0]);
        }

        progress?.Report(new JournalProgress(total, total));
        return states;
    }
}
