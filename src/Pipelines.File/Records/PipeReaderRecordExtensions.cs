using System.Buffers;
using System.IO.Pipelines;
using System.Runtime.CompilerServices;

namespace Pipelines.File;

/// <summary>Reads records of a format of one's own from any <see cref="PipeReader"/>.</summary>
public static class PipeReaderRecordExtensions
{
    /// <summary>The default of maxLength, bytes.</summary>
    private const int DefaultMaxLength = 16 * 1024 * 1024;

    /// <summary>Reads record after record, for one <c>await foreach</c>. What a record refers to in the buffer is valid until the next step of the loop.</summary>
    /// <remarks>
    /// <para>A record that is no record ends the loop by <see cref="InvalidRecordException"/>, with its offset, after all records before it: one bad length holds no file in memory. So does an end within a
    /// record.</para>
    /// <para>Leaving the loop, by its end, <c>break</c> or an exception, completes the reader, unless <paramref name="leaveOpen"/> is <see langword="true"/>: it then goes on behind the record that the loop was left
    /// at, or with the one that is invalid.</para>
    /// </remarks>
    /// <typeparam name="T">The record.</typeparam>
    /// <param name="reader">Any pipe reader. Nobody else reads it meanwhile.</param>
    /// <param name="parser">Takes one record: see <see cref="RecordParser{T}"/>. What it throws ends the loop.</param>
    /// <param name="maxLength">The most bytes that a record may have; 16 MiB by default. So much, and one read more, is held in memory at most.</param>
    /// <param name="leaveOpen">Whether the reader can be used after the loop; <see langword="false"/> by default.</param>
    /// <param name="cancellationToken">Ends the loop with <see cref="OperationCanceledException"/>; <c>WithCancellation</c> does the same.</param>
    /// <returns>The records. The loop also throws what reading throws.</returns>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="maxLength"/> is less than 1.</exception>
    /// <exception cref="InvalidRecordException">Thrown by the loop: what comes is no record, is longer than <paramref name="maxLength"/>, or ends within one.</exception>
    /// <exception cref="InvalidOperationException">Thrown by the loop: the parser says <see cref="OperationStatus.Done"/> and has taken no byte.</exception>
    public static IAsyncEnumerable<T> ReadRecordsAsync<T>(
        this PipeReader reader,
        RecordParser<T> parser,
        int maxLength = DefaultMaxLength,
        bool leaveOpen = false,
        CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(reader);
        ArgumentNullException.ThrowIfNull(parser);
        ArgumentOutOfRangeException.ThrowIfLessThan(maxLength, 1);
        return ReadAsync(reader, parser, maxLength, leaveOpen, cancellationToken);
    }

    private static async IAsyncEnumerable<T> ReadAsync<T>(
        PipeReader reader,
        RecordParser<T> parser,
        int maxLength,
        bool leaveOpen,
        [EnumeratorCancellation] CancellationToken cancellationToken)
    {
        long offset = 0;
        ReadOnlySequence<byte>? rest = null;
        try
        {
            for (bool isCompleted = false; !isCompleted;)
            {
                ReadResult result = await reader.ReadAsync(cancellationToken).ConfigureAwait(false);
                rest = result.Buffer;
                if (result.IsCanceled)
                {
                    throw new OperationCanceledException("The read was canceled.");
                }

                isCompleted = result.IsCompleted;
                while (!rest.Value.IsEmpty)
                {
                    OperationStatus status = Take(parser, rest.Value, out T record, out ReadOnlySequence<byte> behind);
                    if (status == OperationStatus.Done)
                    {
                        offset += rest.Value.Length - behind.Length;
                        rest = behind;
                        yield return record;
                    }
                    else if (status == OperationStatus.NeedMoreData && rest.Value.Length <= maxLength && !isCompleted)
                    {
                        break;
                    }
                    else
                    {
                        bool isCutOff = status == OperationStatus.NeedMoreData && rest.Value.Length <= maxLength;
                        throw isCutOff || status != OperationStatus.NeedMoreData
                            ? new InvalidRecordException(offset, isCutOff)
                            : new InvalidRecordException(offset, isCutOff: false, $"is longer than {maxLength} bytes, the most that ReadRecordsAsync was told to take (maxLength)");
                    }
                }

                SequencePosition consumed = rest.Value.Start;
                SequencePosition examined = rest.Value.End;
                rest = null;
                reader.AdvanceTo(consumed, examined);
            }
        }
        finally
        {
            if (rest is { } left)
            {
                reader.AdvanceTo(left.Start);
            }

            if (!leaveOpen)
            {
                await reader.CompleteAsync().ConfigureAwait(false);
            }
        }
    }

    private static OperationStatus Take<T>(RecordParser<T> parser, ReadOnlySequence<byte> bytes, out T record, out ReadOnlySequence<byte> behind)
    {
        SequenceReader<byte> reader = new(bytes);
        OperationStatus status = parser(ref reader, out record);
        behind = status == OperationStatus.Done ? bytes.Slice(reader.Position) : bytes;
        return status != OperationStatus.Done || reader.Consumed > 0 ? status : throw new InvalidOperationException("The parser says that a record is done, and has taken no byte of it.");
    }
}
