namespace Pipelines.File;

/// <summary>How far <see cref="Journal.VerifyAsync"/> or <see cref="Journal.RepairAsync"/> has come.</summary>
/// <param name="Bytes">The number of bytes that are checked.</param>
/// <param name="TotalBytes">The number of bytes of all segments.</param>
public readonly record struct JournalProgress(long Bytes, long TotalBytes);
