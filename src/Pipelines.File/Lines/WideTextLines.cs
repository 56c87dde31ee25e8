using System.Buffers;
using System.IO.Pipelines;
using System.Runtime.CompilerServices;
using System.Text;

namespace Pipelines.File.Lines;

/// <summary>
/// The lines of a pipe as text, in an encoding whose line feed is not the byte 0x0A alone, such as UTF-16: its bytes end a line only where a character begins. Rare, and not made fast.
/// </summary>
internal static class WideTextLines
{
    /// <summary>Whether the encoding is read here.</summary>
    internal static bool IsFor(Encoding encoding) => !encoding.GetBytes("\n").AsSpan().SequenceEqual("\n"u8);

    internal static async IAsyncEnumerable<string> ReadAsync(
        PipeReader reader, Encoding encoding, int maxLength, bool leaveOpen, [EnumeratorCancellation] CancellationToken cancellationToken)
    {
        byte[] lineFeed = encoding.GetBytes("\n");
        byte[] carriageReturn = encoding.GetBytes("\r");
        byte[] mark = reader is FilePipeReader { Position: > 0 } ? [] : ByteOrderMark.Of(encoding);
        ReadOnlySequence<byte> rest = default;
        bool hasBuffer = false;
        long searched = 0;
        long lines = 0;
        try
        {
            while (true)
            {
                ReadResult result = await reader.ReadAsync(cancellationToken).ConfigureAwait(false);
                rest = result.Buffer;
                if (result.IsCanceled)
                {
                    reader.AdvanceTo(rest.Start);
                    throw new OperationCanceledException("The reading of lines was canceled by CancelPendingRead.");
                }

                hasBuffer = true;
                while (TryFindEnd(rest, lineFeed, ref searched, out ReadOnlySequence<byte> line, out SequencePosition next) || (result.IsCompleted && !rest.IsEmpty))
                {
                    bool isWhole = next.GetObject() is not null;
                    line = isWhole ? WithoutEnd(line, carriageReturn) : rest;
                    if (line.Length > maxLength)
                    {
                        throw new LineTooLongException(lines + 1, maxLength);
                    }

                    bool isMarked = lines == 0 && mark.Length > 0 && line.Length >= mark.Length && line.Slice(0, mark.Length).ToArray().AsSpan().SequenceEqual(mark);
                    string text = encoding.GetString(isMarked ? line.Slice(mark.Length) : line);
                    rest = isWhole ? rest.Slice(next) : rest.Slice(rest.End);
                    searched = 0;
                    lines++;
                    if (isWhole || !isMarked || text.Length > 0)
                    {
                        yield return text;
                    }
                }

                if (rest.Length - carriageReturn.Length > maxLength)
                {
                    throw new LineTooLongException(lines + 1, maxLength);
                }

                hasBuffer = false;
                reader.AdvanceTo(rest.Start, rest.End);
                if (result.IsCompleted)
                {
                    yield break;
                }
            }
        }
        finally
        {
            try
            {
                if (hasBuffer)
                {
                    reader.AdvanceTo(rest.Start);
                }
            }
            catch (InvalidOperationException) when (!leaveOpen)
            {
                // The reader was completed within the loop, and has its memory.
            }
            finally
            {
                if (!leaveOpen)
                {
                    await reader.CompleteAsync().ConfigureAwait(false);
                }
            }
        }
    }

    private static bool TryFindEnd(ReadOnlySequence<byte> rest, byte[] lineFeed, ref long searched, out ReadOnlySequence<byte> line, out SequencePosition next)
    {
        SequenceReader<byte> bytes = new(rest);
        bytes.Advance(searched);
        while (bytes.TryReadTo(out ReadOnlySequence<byte> _, lineFeed, advancePastDelimiter: false))
        {
            if (bytes.Consumed % lineFeed.Length == 0)
            {
                line = rest.Slice(0, bytes.Consumed);
                next = rest.GetPosition(bytes.Consumed + lineFeed.Length);
                return true;
            }

            bytes.Advance(1);
        }

        searched = rest.Length - (rest.Length % lineFeed.Length);
        line = default;
        next = default;
        return false;
    }

    private static ReadOnlySequence<byte> WithoutEnd(ReadOnlySequence<byte> line, byte[] carriageReturn)
    {
        long length = line.Length - carriageReturn.Length;
        return length >= 0 && line.Slice(length).ToArray().AsSpan().SequenceEqual(carriageReturn) ? line.Slice(0, length) : line;
    }
}
