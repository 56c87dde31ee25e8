using Pipelines.File.Records;

namespace Pipelines.File;

/// <summary>Reads records of your own format from any <see cref="PipeReader"/>.</summary>
public static class PipeReaderRecordExtensions
{
    /// <summary>The default of maxLength, bytes.</summary>
    private const int DefaultMaxLength = 16 * 1024 * 1024;

    /// <summary>
    /// Reads the records of the pipe in batches. Use an <c>await foreach</c> over the batches with a <c>foreach</c> over the records of
    /// each batch. <b>A batch is valid until the next step of the outer loop.</b>
    /// </summary>
    /// <remarks>
    /// <para>The parser sees each record in one span; a record that crosses two segments of the reader's buffer is copied. A record may
    /// refer to that span if it is a <see langword="ref struct"/>.</para>
    /// <para>A record that is damaged or cut off ends the loop with an <see cref="InvalidRecordException"/>, which has its offset. The
    /// records before it were returned. <paramref name="continueAt"/> can continue instead. A damaged length cannot fill the memory: see
    /// <paramref name="maxLength"/>.</para>
    /// <para>The end of the loop completes the reader, also after <c>break</c> and an exception, unless <paramref name="leaveOpen"/> is
    /// <see langword="true"/>.</para>
    /// </remarks>
    /// <example>
    /// <code>
    /// await foreach (RecordBatch&lt;Trade&gt; batch in reader.ReadRecordBatchesAsync&lt;Trade&gt;(Trade.TryParse))
    /// {
    ///     foreach (Trade trade in batch) …
    /// }
    /// </code>
    /// </example>
    /// <typeparam name="T">The type of a record.</typeparam>
    /// <param name="reader">Any pipe reader. Nobody else may read from it at the same time.</param>
    /// <param name="parser">
    /// Takes one record from the bytes; see <see cref="RecordSpanParser{T}"/>. An exception that it throws ends the loop.
    /// </param>
    /// <param name="maxLength">
    /// The maximum length of a record, in bytes; 16 MiB by default. It also limits the memory: the pipe buffers at most that many bytes and
    /// those of one read, and a record that crosses segments is copied.
    /// </param>
    /// <param name="leaveOpen">
    /// Whether the reader can be used after the loop; <see langword="false"/> by default. It then continues after the last record that the
    /// inner loop has returned, or with the invalid one.
    /// </param>
    /// <param name="continueAt">
    /// Decides what happens at bytes that are not a record. It returns the offset at which to continue, which is greater than the
    /// exception's <see cref="InvalidRecordException.Offset"/>; or <see langword="null"/>, and the exception is thrown, as it is without
    /// this delegate. An offset after the end of the pipe ends the loop: <c>e =&gt; e.IsCutOff ? long.MaxValue : null</c> accepts a torn
    /// last record.
    /// </param>
    /// <param name="cancellationToken">
    /// Ends the loop with <see cref="OperationCanceledException"/> at the next batch, as <c>WithCancellation</c> does.
    /// </param>
    /// <returns>
    /// The batches, which can be enumerated once. The loop also throws the errors of reading, for example an <see cref="IOException"/>.
    /// </returns>
    /// <exception cref="ArgumentNullException">The reader or the parser is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentOutOfRangeException">
    /// <paramref name="maxLength"/> is less than 1. Thrown by the loop: <paramref name="continueAt"/> did not return a greater offset.
    /// </exception>
    /// <exception cref="InvalidRecordException">
    /// Thrown by the loop: the next bytes are not a record, are longer than <paramref name="maxLength"/>, or end within a record.
    /// </exception>
    /// <exception cref="OperationCanceledException">
    /// Thrown by the loop: the token was canceled, or <see cref="PipeReader.CancelPendingRead"/> was called.
    /// </exception>
    /// <exception cref="InvalidOperationException">
    /// Thrown by the loop: the parser returned <see cref="OperationStatus.Done"/> without consuming a byte, or consumed more bytes than
    /// there are; or it is the second enumeration, or the reader is completed.
    /// </exception>
    public static IAsyncEnumerable<RecordBatch<T>> ReadRecordBatchesAsync<T>(
        this PipeReader reader,
        RecordSpanParser<T> parser,
        int maxLength = DefaultMaxLength,
        bool leaveOpen = false,
        Func<InvalidRecordException, long?>? continueAt = null,
        CancellationToken cancellationToken = default)
        where T : allows ref struct
    {
        ArgumentNullException.ThrowIfNull(reader);
        ArgumentNullException.ThrowIfNull(parser);
        ArgumentOutOfRangeException.ThrowIfLessThan(maxLength, 1);
        return new DelegateRecordBatches<T>(new(reader, new(parser), maxLength, leaveOpen, continueAt, cancellationToken));
    }

    /// <summary>
    /// Reads the records of the pipe in batches, as the overload with a delegate does. The runtime compiles the parser into the loop over
    /// the records, so that no call is made for each of them: take it for records of less than 100 bytes.
    /// </summary>
    /// <example>
    /// <code>
    /// await foreach (RecordBatch&lt;Trade, TradeParser&gt; batch in reader.ReadRecordBatchesAsync&lt;Trade, TradeParser&gt;(default))
    /// {
    ///     foreach (Trade trade in batch) …
    /// }
    /// </code>
    /// </example>
    /// <typeparam name="T">The type of a record.</typeparam>
    /// <typeparam name="TParser">The type of the parser. A class would be called as a delegate is, so it has to be a struct.</typeparam>
    /// <inheritdoc cref="ReadRecordBatchesAsync{T}" path="/remarks"/>
    /// <param name="reader"><inheritdoc cref="ReadRecordBatchesAsync{T}" path="/param[@name='reader']/node()"/></param>
    /// <param name="parser">
    /// Takes one record from the bytes; see <see cref="IRecordParser{T}"/>. An exception that it throws ends the loop.
    /// </param>
    /// <param name="maxLength"><inheritdoc cref="ReadRecordBatchesAsync{T}" path="/param[@name='maxLength']/node()"/></param>
    /// <param name="leaveOpen"><inheritdoc cref="ReadRecordBatchesAsync{T}" path="/param[@name='leaveOpen']/node()"/></param>
    /// <param name="continueAt"><inheritdoc cref="ReadRecordBatchesAsync{T}" path="/param[@name='continueAt']/node()"/></param>
    /// <param name="cancellationToken">
    /// <inheritdoc cref="ReadRecordBatchesAsync{T}" path="/param[@name='cancellationToken']/node()"/>
    /// </param>
    /// <inheritdoc cref="ReadRecordBatchesAsync{T}" path="/returns"/>
    /// <inheritdoc cref="ReadRecordBatchesAsync{T}" path="/exception"/>
    public static IAsyncEnumerable<RecordBatch<T, TParser>> ReadRecordBatchesAsync<T, TParser>(
        this PipeReader reader,
        TParser parser,
        int maxLength = DefaultMaxLength,
        bool leaveOpen = false,
        Func<InvalidRecordException, long?>? continueAt = null,
        CancellationToken cancellationToken = default)
        where T : allows ref struct
        where TParser : struct, IRecordParser<T>
    {
        ArgumentNullException.ThrowIfNull(reader);
        ArgumentOutOfRangeException.ThrowIfLessThan(maxLength, 1);
        return new RecordBatches<T, TParser>(reader, parser, maxLength, leaveOpen, continueAt, cancellationToken);
    }
}
