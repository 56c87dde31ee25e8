namespace Pipelines.File.Lines;

/// <summary>Enumerates the lines of a pipe as sequences. Each is one segment.</summary>
internal sealed class PipeReaderLines(LineBatches batches) : LineByLine<ReadOnlySequence<byte>>(batches)
{
    // Created when it is asked for: storing it in a field for every line would cost two write barriers.
    public override ReadOnlySequence<byte> Current
    {
        get
        {
            if (Array is not { } array)
            {
                return new ReadOnlySequence<byte>(Memory.Slice(Start, Line.Length));
            }

            int start = ArrayStart + Start;
            int end = ArrayStart + End;
            return new ReadOnlySequence<byte>(array, start, end - start - (end > start && array[end - 1] == '\r' ? 1 : 0));
        }
    }
}
