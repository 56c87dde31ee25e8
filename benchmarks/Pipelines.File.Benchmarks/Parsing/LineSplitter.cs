using System.Buffers;
using System.IO.Pipelines;
using FilePipelinesBenchmarks.Files;

namespace FilePipelinesBenchmarks.Parsing;

/// <summary>Splits bytes into lines: what every way that yields bytes shares. Every line of these files ends with a line feed.</summary>
internal static class LineSplitter
{
    private const int MaxLineLength = 4096;

    internal static async ValueTask<long> ParseAsync<TParser>(PipeReader reader, TextFile file)
        where TParser : struct, ILineParser
    {
        TParser parser = default;
        while (true)
        {
            ReadResult result = await reader.ReadAsync();
            ReadOnlySequence<byte> rest = result.Buffer;
            TakeLines(ref rest, ref parser);
            reader.AdvanceTo(rest.Start, rest.End);
            if (result.IsCompleted)
            {
                break;
            }
        }

        await reader.CompleteAsync();
        return file.Check(parser.Finish());
    }

    /// <summary>Gives every whole line to the parser and leaves what follows the last of them.</summary>
    internal static void TakeLines<TParser>(ref ReadOnlySequence<byte> buffer, ref TParser parser)
        where TParser : struct, ILineParser
    {
        Span<byte> scratch = stackalloc byte[MaxLineLength];
        while (true)
        {
            ReadOnlySpan<byte> span = buffer.FirstSpan;
            int start = 0;
            int length;
            while ((length = span[start..].IndexOf((byte)'\n')) >= 0)
            {
                parser.Take(span.Slice(start, length));
                start += length + 1;
            }

            buffer = buffer.Slice(start);
            if (buffer.IsSingleSegment || buffer.PositionOf((byte)'\n') is not { } end)
            {
                return;
            }

            // The one line that begins in this segment and ends in a later one.
            ReadOnlySequence<byte> crossing = buffer.Slice(0, end);
            crossing.CopyTo(scratch);
            parser.Take(scratch[..(int)crossing.Length]);
            buffer = buffer.Slice(buffer.GetPosition(1, end));
        }
    }
}
