using System.IO.Pipelines;

namespace Pipelines.File;

/// <summary>Records that the journal has taken.</summary>
/// <param name="Sequence">The number of the first one.</param>
/// <param name="Count">How many they are.</param>
/// <param name="Bytes">The bytes of all records up to the last one since the journal was opened.</param>
/// <param name="Progress">What is raised when they are committed.</param>
/// <param name="Started">When, if that is measured; 0.</param>
/// <param name="Flush">Completes when they are committed. Awaited once.</param>
internal readonly record struct TakenAppend(
    long Sequence, int Count, long Bytes, CommitProgress Progress, long Started, ValueTask<FlushResult> Flush);
