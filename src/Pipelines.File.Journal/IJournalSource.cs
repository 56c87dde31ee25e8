namespace Pipelines.File;

/// <summary>Where a <see cref="JournalCursor"/> learns what there is to read: from the journal itself, or from its folder.</summary>
internal interface IJournalSource
{
    /// <summary>The segments, in order.</summary>
    SegmentFile[] Segments { get; }

    /// <summary>The segment that follows; <see langword="null"/> if there is none yet.</summary>
    SegmentFile? NextOf(SegmentFile segment);

    /// <summary>
    /// Whether there is a segment whose first record has this number, behind another one. It is quick, however many segments there are.
    /// </summary>
    bool HasNext(SegmentFile segment, long first);

    /// <summary>
    /// The number of the first record that is not committed; <see langword="null"/> if only the records themselves tell.
    /// </summary>
    long? Limit { get; }

    /// <summary>
    /// Has written to the files what is committed, or throws: an append with WriteBehind completes before that.
    /// </summary>
    ValueTask WriteOutAsync();

    /// <summary>Throws why what was committed is perhaps not in the files: the journal has failed.</summary>
    void ThrowIfFailed();

    /// <summary>
    /// Waits until there may be more than the records before <paramref name="sequence"/>. <see langword="false"/>: there will never be.
    /// </summary>
    /// <param name="sequence">The number of the record that is wanted.</param>
    /// <param name="looks">How often there was none.</param>
    /// <param name="cancellationToken">Ends the wait.</param>
    ValueTask<bool> WaitAsync(long sequence, int looks, CancellationToken cancellationToken);
}
