using FilePipelinesBenchmarks.Files;

namespace FilePipelinesBenchmarks.Reading;

/// <summary>One point of a read grid.</summary>
/// <param name="File">What is read.</param>
/// <param name="BufferSize">Bytes of one buffer, or of one segment.</param>
/// <param name="Options">How the file is opened.</param>
internal sealed record ReadCase(IntegerFile File, int BufferSize, FileOptions Options);
