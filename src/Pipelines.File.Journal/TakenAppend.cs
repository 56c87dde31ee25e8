using System.IO.Pipelines;

namespace Pipelines.File;

/// <summary>A record that the journal has taken.</summary>
/// <param name="Sequence">Its number.</param>
/// <param name="Bytes">The bytes of all records up to this one since the journal was opened.</param>
/// <param name="Flush">Completes when it is committed. Awaited once.</param>
internal readonly record struct TakenAppend(long Sequence, long Bytes, ValueTask<FlushResult> Flush);
