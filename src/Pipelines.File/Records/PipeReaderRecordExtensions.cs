using Pipelines.File.Records;

namespace Pipelines.File;

/// <summary>Reads records of your own format from any <see cref="PipeReader"/>.</summary>
public static class PipeReaderRecordExtensions
{
    /// <summary>The default of maxLength, bytes.</summary>
    private const int DefaultMaxLength = 16 * 1024 * 1024;

    /// <summary>
    /// Reads the records of the pipe, for one <c>await foreach</c>. Memory of the buffer that a record refers to is valid until the next
    /// step of the loop.
    /// </summary>
    /// <remarks>
    /// <para>A record that is damaged or cut off ends the loop with an <see cref="InvalidRecordException"/>, which has its offset. The
    /// records before it were returned. A damaged length cannot fill the memory: see <paramref name="maxLength"/>.</para>
    /// <para>The end of the loop completes the reader, also after <c>break</c> and an exception, unless <paramref name="leaveOpen"/> is
    /// <see langword="true"/>. The reader then continues after the record at which the loop was left, or with the invalid one.</para>
    /// </remarks>
    /// <typeparam name="T">The type of a record.</typeparam>
    /// <param name="reader">Any pipe reader. Nobody else may read from it at the same time.</param>
    /// <param name="parser">
    /// Takes one record from the bytes; see <see cref="RecordParser{T}"/>. An exception that it throws ends the loop.
    /// </param>
    /// <param name="maxLength">
    /// The maximum length of a record, in bytes; 16 MiB by default. The pipe buffers at most that many bytes, and those of one more read.
    /// </param>
    /// <param name="leaveOpen">Whether the reader can be used after the loop; <see langword="false"/> by default.</param>
    /// <param name="cancellationToken">
    /// Ends the loop with <see cref="OperationCanceledException"/>, as <c>WithCancellation</c> does.
    /// </param>
    /// <returns>The records. The loop also throws the errors of reading.</returns>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="maxLength"/> is less than 1.</exception>
    /// <exception cref="InvalidRecordException">
    /// Thrown by the loop: the next bytes are not a record, are longer than <paramref name="maxLength"/>, or end within a record.
    /// </exception>
    /// <exception cref="InvalidOperationException">
    /// Thrown by the loop: the parser returned <see cref="OperationStatus.Done"/> without consuming a byte.
    /// </exception>
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
        return ReadAsync<T, Parsed<T>>(reader, new Parsed<T>(parser, maxLength), leaveOpen, cancellationToken);
    }

    /// <summary>Reads the records of a pipe; <paramref name="taker"/> knows their format.</summary>
    /// <param name="reader">The pipe.</param>
    /// <param name="taker">Takes the records. Each enumeration has a copy.</param>
    /// <param name="leaveOpen">Whether the reader can be used afterwards; it continues with the first record that was not returned.</param>
    /// <param name="cancellationToken">Ends the enumeration.</param>
    internal static async IAsyncEnumerable<T> ReadAsync<T, TTaker>(PipeReader reader, TTaker taker, bool leaveOpen,
        [EnumeratorCancellation] CancellationToken cancellationToken)
        where TTaker : struct, IRecordTaker<T>
    {
        ReadOnlySequence<byte> rest = default;
        bool hasBuffer = false;
        try
        {
            for (bool isCompleted = false; !isCompleted;)
            {
                ReadResult result = await reader.ReadAsync(cancellationToken).ConfigureAwait(false);
                rest = result.Buffer;
                hasBuffer = true;
                if (result.IsCanceled)
                {
                    throw new OperationCanceledException("The read was canceled.");
                }

                isCompleted = result.IsCompleted;
                while (!rest.IsEmpty && taker.TryTake(ref rest, isCompleted, out T record))
                {
                    yield return record;
                }

                hasBuffer = false;
                reader.AdvanceTo(rest.Start, rest.End);
            }
        }
        finally
        {
            await LeaveAsync(reader, hasBuffer ? rest : null, used: 0, leaveOpen).ConfigureAwait(false);
        }
    }

    /// <summary>Ends a loop over a reader: advances the reader, and completes it unless it is left open.</summary>
    /// <param name="reader">The reader.</param>
    /// <param name="buffer">The buffer that the reader was not advanced over; <see langword="null"/> if it needs no AdvanceTo.</param>
    /// <param name="used">The number of bytes of the buffer that were consumed.</param>
    /// <param name="leaveOpen">Whether the reader can be used afterwards; otherwise it is completed.</param>
    internal static async ValueTask LeaveAsync(PipeReader reader, ReadOnlySequence<byte>? buffer, long used, bool leaveOpen)
    {
        try
        {
            if (buffer is { } bytes)
            {
                reader.AdvanceTo(bytes.GetPosition(used));
            }
        }
        catch (Exception e) when (!leaveOpen && e is (InvalidOperationException or ArgumentOutOfRangeException))
        {
            // The caller completed the reader within the loop, which released the buffer. A reader over a stream has also emptied it, so
            // its positions are out of range.
        }
        finally
        {
            if (!leaveOpen)
            {
                await reader.CompleteAsync().ConfigureAwait(false);
            }
        }
    }

    private struct Parsed<T>(RecordParser<T> parser, int maxLength) : IRecordTaker<T>
    {
        private long _offset;

        public bool TryTake(ref ReadOnlySequence<byte> rest, bool isEnd, out T record)
        {
            SequenceReader<byte> bytes = new(rest);
            OperationStatus status = parser(ref bytes, out record);
            bool isDone = status == OperationStatus.Done;
            if (isDone && bytes.Consumed == 0)
            {
                throw new InvalidOperationException("The parser returned OperationStatus.Done, but has not consumed a byte.");
            }

            // An incomplete record is at least as long as all bytes that are there.
            if ((isDone || status == OperationStatus.NeedMoreData) && (isDone ? bytes.Consumed : rest.Length) > maxLength)
            {
                throw new InvalidRecordException(_offset, isCutOff: false,
                    $"is longer than {maxLength} bytes, the maximum that was passed as maxLength");
            }

            if (isDone)
            {
                _offset += bytes.Consumed;
                rest = rest.Slice(bytes.Position);
            }
            else if (status != OperationStatus.NeedMoreData || isEnd)
            {
                throw new InvalidRecordException(_offset, isCutOff: status == OperationStatus.NeedMoreData);
            }

            return isDone;
        }
    }
}
