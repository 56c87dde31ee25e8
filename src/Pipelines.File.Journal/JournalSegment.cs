namespace Pipelines.File;

/// <summary>A segment file of a journal that is sealed: nothing is written to it any more, until it is removed.</summary>
/// <param name="Path">The file.</param>
/// <param name="FirstSequence">The sequence number of its first record.</param>
/// <param name="NextSequence">The sequence number after its last record.</param>
public sealed record JournalSegment(string Path, long FirstSequence, long NextSequence);
