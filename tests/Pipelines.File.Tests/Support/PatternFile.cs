using System.IO.Pipelines;
using FilePipelines.Child;

namespace FilePipelines.Tests;

/// <summary>A file that holds the pattern.</summary>
internal static class PatternFile
{
    /// <summary>Has a thread of the pool write so many bytes of the pattern in pieces, and complete the writer.</summary>
    public static Task WriteAsync(PipeWriter writer, int length)
    {
        const int Piece = 10_000;
        CancellationToken stop = TestContext.Current.CancellationToken;
        return Task.Run(
            async () =>
            {
                for (int index = 0; index < length; index += Piece)
                {
                    await writer.WriteAsync(Pattern.Bytes(Piece, index), stop);
                }

                await writer.CompleteAsync();
            },
            stop);
    }

    /// <summary>Reads to the end, checks every byte, completes the reader, and gives the index behind the last one.</summary>
    /// <param name="reader">At byte <paramref name="index"/> of the pattern.</param>
    /// <param name="index">Where it is.</param>
    public static async Task<long> ReadToEndAsync(PipeReader reader, long index = 0)
    {
        ReadResult result;
        do
        {
            result = await reader.ReadAsync(TestContext.Current.CancellationToken);
            foreach (ReadOnlyMemory<byte> memory in result.Buffer)
            {
                Assert.Equal(-1, Pattern.FirstDifference(memory.Span, index));
                index += memory.Length;
            }

            reader.AdvanceTo(result.Buffer.End);
        }
        while (!result.IsCompleted);

        await reader.CompleteAsync();
        return index;
    }
}
