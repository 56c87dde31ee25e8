using System.IO.Pipelines;

namespace FilePipelinesTests;

/// <summary>Reads to the end, and completes.</summary>
internal static class Draining
{
    public static async Task<long> CountAsync(PipeReader reader, CancellationToken cancellationToken)
    {
        long length = 0;
        while (true)
        {
            ReadResult result = await reader.ReadAsync(cancellationToken);
            length += result.Buffer.Length;
            reader.AdvanceTo(result.Buffer.End);
            if (result.IsCompleted)
            {
                await reader.CompleteAsync();
                return length;
            }
        }
    }
}
