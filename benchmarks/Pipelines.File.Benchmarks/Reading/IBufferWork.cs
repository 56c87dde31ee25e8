using FilePipelinesBenchmarks.Files;

namespace FilePipelinesBenchmarks.Reading;

/// <summary>What is done with every buffer that a way to read yields. A struct, so that each way is compiled for it.</summary>
internal interface IBufferWork
{
    void Take(ReadOnlySpan<byte> buffer);

    /// <summary>The answer.</summary>
    /// <exception cref="InvalidDataException">It is not what <paramref name="file"/> holds.</exception>
    long Finish(IntegerFile file);
}
