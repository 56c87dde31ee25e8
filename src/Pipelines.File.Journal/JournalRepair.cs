namespace Pipelines.File;

/// <summary>What <see cref="Journal.RepairAsync"/> has done.</summary>
/// <param name="Summary">What the journal has now.</param>
/// <param name="Damage">What was wrong; <see langword="null"/> if nothing was.</param>
/// <param name="CutBytes">The number of bytes of segments that were cut off or moved away.</param>
/// <param name="SavedIn">The folder that has the segments as they were; <see langword="null"/> if nothing was wrong.</param>
public sealed record JournalRepair(JournalSummary Summary, InvalidJournalException? Damage, long CutBytes, string? SavedIn);
