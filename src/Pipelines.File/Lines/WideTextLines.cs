using Pipelines.File.Records;

namespace Pipelines.File.Lines;

/// <summary>
/// Takes the lines of a pipe as text, in an encoding whose line feed is not the byte 0x0A, such as UTF-16: the bytes of a line feed end a
/// line only at the boundary of a character. Rare, so not optimized.
/// </summary>
internal sealed class WideTextLines(Encoding encoding, int maxLength)
{
    private readonly byte[] _lineFeed = encoding.GetBytes("\n");
    private readonly byte[] _carriageReturn = encoding.GetBytes("\r");
    private long _lines;

    /// <summary>Whether the encoding needs this type: its line feed is not the byte 0x0A.</summary>
    internal static bool IsFor(Encoding encoding) => !encoding.GetBytes("\n").AsSpan().SequenceEqual("\n"u8);

    internal async IAsyncEnumerable<string> ReadAsync(PipeReader reader, bool leaveOpen,
        [EnumeratorCancellation] CancellationToken cancellationToken)
    {
        byte[] mark = ByteOrderMark.Of(encoding);
        RecordBatches<string>? batches = null;
        batches = new(reader, Take, int.MaxValue, leaveOpen, continueAt: null, cancellationToken);
        await using ConfiguredAsyncDisposable disposed = ((IAsyncDisposable)batches).ConfigureAwait(false);
        batches.GetAsyncEnumerator(CancellationToken.None);
        while (await batches.MoveNextAsync().ConfigureAwait(false))
        {
            bool isMarked = batches.Offset == 0 && batches.Bytes.Span.StartsWith(mark);
            while (batches.TryTake(batches.Bytes.Span[batches.Returned..], out int length, out string text))
            {
                batches.Returned += length;
                if (length > mark.Length || !isMarked || _lines > 0)
                {
                    yield return isMarked && _lines == 0 ? text[1..] : text;
                }

                _lines++;
            }
        }

        OperationStatus Take(ReadOnlySpan<byte> bytes, out int length, out string text)
        {
            length = FindEnd(bytes);
            bool isWhole = length > 0;
            bool isOver = isWhole || batches!.IsAtEnd;
            ReadOnlySpan<byte> line = isWhole ? bytes[..(length - _lineFeed.Length)] : bytes;
            line = isWhole && line.EndsWith(_carriageReturn) ? line[..^_carriageReturn.Length] : line;

            // If the whole line end has not come, the last bytes may be a part of it.
            if (line.Length - (isOver ? 0 : _carriageReturn.Length) > maxLength)
            {
                throw new LineTooLongException(_lines + 1, maxLength);
            }

            length = isWhole ? length : bytes.Length;
            text = isOver ? encoding.GetString(line) : string.Empty;
            return isOver ? OperationStatus.Done : OperationStatus.NeedMoreData;
        }
    }

    /// <summary>The length of the first line with its line end; 0 if it has none.</summary>
    private int FindEnd(ReadOnlySpan<byte> bytes)
    {
        int end = 0;
        for (int index; (index = bytes[end..].IndexOf(_lineFeed)) >= 0; end++)
        {
            end += index;
            if (end % _lineFeed.Length == 0)
            {
                return end + _lineFeed.Length;
            }
        }

        return 0;
    }
}
