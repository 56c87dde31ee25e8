using System.Text;

namespace FilePipelines.Tests;

/// <summary>The ways to the lines of a pipe, and what string.Split says of the same text. Every byte is a character (Latin-1).</summary>
internal static class LineWays
{
    /// <summary>Reads at most that many lines.</summary>
    internal delegate Task<List<string>> Way(PipeReader reader, int count, bool leaveOpen, int maxLength);

    public static Way[] All { get; } = [LinesAsync, BatchesAsync, OffsetsAsync, IndexAsync, TextAsync];

    public static List<string> Split(string text)
    {
        List<string> lines = [.. text.Split('\n')];
        for (int i = 0; i < lines.Count - 1; i++)
        {
            lines[i] = lines[i].EndsWith('\r') ? lines[i][..^1] : lines[i];
        }

        if (lines[^1].Length == 0)
        {
            lines.RemoveAt(lines.Count - 1);
        }

        return lines;
    }

    /// <summary>
    /// The file through this library's memory, a caller's that is no array, the runtime's own reader, and all of it in memory at once.
    /// </summary>
    public static IEnumerable<PipeReader> ReadersOf(string path, int segmentSize)
    {
        yield return FilePipeReader.Create(path, new() { BufferSize = segmentSize });
        yield return FilePipeReader.Create(path, new() { BufferSize = segmentSize, Pool = new CheckedPool() });
        yield return PipeReader.Create(new FileStream(path, FileMode.Open, FileAccess.Read, FileShare.Read, 0),
            new StreamPipeReaderOptions(bufferSize: segmentSize, minimumReadSize: 1));
        byte[] padded = [0, .. File.ReadAllBytes(path), 0];
        yield return PipeReader.Create(new ReadOnlySequence<byte>(padded, 1, padded.Length - 2));
    }

    public static async Task<List<string>> LinesAsync(
        PipeReader reader, int count = int.MaxValue, bool leaveOpen = false, int maxLength = int.MaxValue)
    {
        List<string> lines = [];
        await foreach (ReadOnlySequence<byte> line
            in reader.ReadLineSequencesAsync(maxLength, leaveOpen, TestContext.Current.CancellationToken))
        {
            lines.Add(Encoding.Latin1.GetString(line));
            if (lines.Count == count)
            {
                break;
            }
        }

        return lines;
    }

    public static async Task<List<string>> BatchesAsync(
        PipeReader reader, int count = int.MaxValue, bool leaveOpen = false, int maxLength = int.MaxValue)
    {
        List<string> lines = [];
        await foreach (LineBatch batch in reader.ReadLineBatchesAsync(maxLength, leaveOpen, TestContext.Current.CancellationToken))
        {
            foreach (ReadOnlySpan<byte> line in batch)
            {
                lines.Add(Encoding.Latin1.GetString(line));
                if (lines.Count == count)
                {
                    return lines;
                }
            }
        }

        return lines;
    }

    /// <summary>The lines of a batch by their numbers; as many as it says.</summary>
    public static async Task<List<string>> IndexAsync(
        PipeReader reader, int count = int.MaxValue, bool leaveOpen = false, int maxLength = int.MaxValue)
    {
        List<string> lines = [];
        await foreach (LineBatch batch in reader.ReadLineBatchesAsync(maxLength, leaveOpen, TestContext.Current.CancellationToken))
        {
            Assert.InRange(batch.Count, 1, int.MaxValue);
            for (int i = 0; i < batch.Count; i++)
            {
                lines.Add(Encoding.Latin1.GetString(batch[i]));
                if (lines.Count == count)
                {
                    return lines;
                }
            }
        }

        return lines;
    }

    /// <summary>Each line ends where the next one begins, and where its bytes say.</summary>
    public static async Task<List<string>> OffsetsAsync(
        PipeReader reader, int count = int.MaxValue, bool leaveOpen = false, int maxLength = int.MaxValue)
    {
        List<string> lines = [];
        long offset = reader is FilePipeReader file ? file.Position : 0;
        await foreach (LineBatch batch in reader.ReadLineBatchesAsync(maxLength, leaveOpen, TestContext.Current.CancellationToken))
        {
            foreach (Line line in batch.WithOffsets())
            {
                Assert.Equal(offset, line.Offset);
                Assert.InRange(line.EndOffset - offset - line.Span.Length, 0, 2);
                offset = line.EndOffset;
                lines.Add(Encoding.Latin1.GetString(line.Span));
                if (lines.Count == count)
                {
                    return lines;
                }
            }
        }

        return lines;
    }

    public static async Task<List<string>> TextAsync(
        PipeReader reader, int count = int.MaxValue, bool leaveOpen = false, int maxLength = int.MaxValue)
    {
        List<string> lines = [];
        await foreach (string line
            in reader.ReadLinesAsync(Encoding.Latin1, maxLength, leaveOpen, TestContext.Current.CancellationToken))
        {
            lines.Add(line);
            if (lines.Count == count)
            {
                break;
            }
        }

        return lines;
    }
}
