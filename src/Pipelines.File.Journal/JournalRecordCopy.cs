namespace Pipelines.File;

/// <summary>A record of a journal in memory of its own: it may be kept.</summary>
/// <param name="Sequence">The record's sequence number.</param>
/// <param name="Memory">The record's bytes.</param>
public readonly record struct JournalRecordCopy(long Sequence, ReadOnlyMemory<byte> Memory)
{
    /// <summary>The record's bytes.</summary>
    public ReadOnlySpan<byte> Span => Memory.Span;
}
