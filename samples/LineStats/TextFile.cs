using System.Text;
using Pipelines.File;

namespace LineStats;

/// <summary>A text file to try things on.</summary>
internal static class TextFile
{
    private const long Length = 256L * 1024 * 1024;

    /// <summary>Writes 256 MiB of lines of 0 to 160 bytes into the temporary folder; the caller deletes it.</summary>
    public static async Task<string> MakeAsync(CancellationToken cancellationToken)
    {
        string path = Path.Combine(Path.GetTempPath(), $"linestats-{Guid.NewGuid():N}.txt");
        FilePipeWriter writer = FilePipeWriter.Create(path, new FilePipeWriterOptions { PreallocationSize = Length });
        byte[] words = Encoding.UTF8.GetBytes(
            string.Concat(Enumerable.Repeat("the quick brown fox jumps over the lazy dog, naïvely; ", 8)));
        Random random = new(2019);
        try
        {
            for (long left = Length; left > 0;)
            {
                int length = (int)Math.Min(left, random.Next(0, 161) + 1);
                Span<byte> line = writer.GetSpan(length)[..length];
                words.AsSpan(random.Next(0, 200), length - 1).CopyTo(line);
                line[^1] = (byte)'\n';
                writer.Advance(length);
                left -= length;
                if (writer.UnflushedBytes > 64 * 1024)
                {
                    await writer.FlushAsync(cancellationToken);
                }
            }

            await writer.CompleteAsync();
            return path;
        }
        catch (Exception e)
        {
            // A writer that failed throws its failure again when it is completed.
            try
            {
                await writer.CompleteAsync(e);
            }
            finally
            {
                File.Delete(path);
            }

            throw;
        }
    }
}
