namespace Pipelines.File;

/// <summary>What a journal has.</summary>
/// <param name="Segments">The number of segment files.</param>
/// <param name="FirstSequence">The sequence number of the oldest record.</param>
/// <param name="NextSequence">The sequence number after the newest record.</param>
/// <param name="Bytes">The number of bytes of records, with their headers.</param>
/// <param name="TornBytes">
/// The number of bytes after the newest record that a crash has left. <see cref="Journal.OpenAsync"/> cuts them off.
/// </param>
public sealed record JournalSummary(int Segments, long FirstSequence, long NextSequence, long Bytes, long TornBytes);
