using Pipelines.File.Lines;

namespace Pipelines.File;

/// <summary>
/// Adds <c>PipeReader.Create(path)</c> and <c>PipeWriter.Create(path)</c> to System.IO.Pipelines, and the reading of lines to every
/// <see cref="PipeReader"/>: <c>ReadLinesAsync</c>, <c>ReadLineBatchesAsync</c> and <c>ReadLineSequencesAsync</c>.
/// </summary>
[SuppressMessage("Naming", "CA1708:Identifiers should differ by more than case", Justification = "Extension blocks have no names.")]
public static class FilePipeExtensions
{
    /// <summary>The default of maxLength, bytes.</summary>
    private const int DefaultMaxLength = 16 * 1024 * 1024;

    extension(PipeReader)
    {
        /// <inheritdoc cref="FilePipeReader.Create(string, FilePipeReaderOptions?)"/>
        public static FilePipeReader Create(string path, FilePipeReaderOptions? options = null) => FilePipeReader.Create(path, options);

        /// <inheritdoc cref="FilePipeReader.Create(SafeFileHandle, FilePipeReaderOptions?)"/>
        public static FilePipeReader Create(SafeFileHandle handle, FilePipeReaderOptions? options = null)
            => FilePipeReader.Create(handle, options);
    }

    extension(PipeWriter)
    {
        /// <inheritdoc cref="FilePipeWriter.Create(string, FilePipeWriterOptions?)"/>
        public static FilePipeWriter Create(string path, FilePipeWriterOptions? options = null) => FilePipeWriter.Create(path, options);

        /// <inheritdoc cref="FilePipeWriter.Create(SafeFileHandle, FilePipeWriterOptions?)"/>
        public static FilePipeWriter Create(SafeFileHandle handle, FilePipeWriterOptions? options = null)
            => FilePipeWriter.Create(handle, options);
    }

    /// <param name="reader">Any pipe reader. Nobody else may read from it at the same time.</param>
    extension(PipeReader reader)
    {
        /// <summary>
        /// Reads the lines of the pipe, for one <c>await foreach</c>. <b>A line is valid until the next step of the loop</b>: copy what you
        /// want to keep, for example with <c>line.ToArray()</c>. A line ends with LF or CR LF, which are not part of it; the last line may
        /// lack the line end.
        /// </summary>
        /// <remarks>
        /// <para>Do not call <c>ReadLineSequencesAsync().ToListAsync()</c>: it compiles, but the lines in the list show the bytes of other
        /// lines. <c>ReadLinesAsync()</c> returns lines that you may keep.</para>
        /// <para>Every line is one span (<c>line.FirstSpan</c>); a line that crosses two segments of the reader's buffer is copied. Nothing
        /// is decoded: a byte-order mark is part of the first line, and a CR that no LF follows is part of its line.</para>
        /// <para>The end of the loop completes the reader, also after <c>break</c> and an exception, unless <paramref name="leaveOpen"/> is
        /// <see langword="true"/>.</para>
        /// <para>A line allocates nothing. A read that has to wait may allocate once.</para>
        /// </remarks>
        /// <param name="maxLength">
        /// The maximum length of a line without its line end, in bytes; 16 MiB by default. It also limits the memory: a line that crosses
        /// segments is in the reader's buffer and in a copy, which grows by doubling.
        /// </param>
        /// <param name="leaveOpen">
        /// Whether the reader can be used after the loop; <see langword="false"/> by default. It then continues after the line at which the
        /// loop was left, for example after a header.
        /// </param>
        /// <param name="cancellationToken">
        /// Ends the loop with <see cref="OperationCanceledException"/>, as <c>WithCancellation</c> does.
        /// </param>
        /// <returns>
        /// The lines, which can be enumerated once. The loop also throws the errors of reading, for example an <see cref="IOException"/>.
        /// </returns>
        /// <exception cref="ArgumentNullException">The reader is <see langword="null"/>.</exception>
        /// <exception cref="ArgumentOutOfRangeException"><paramref name="maxLength"/> is negative.</exception>
        /// <exception cref="LineTooLongException">
        /// Thrown by the loop, after the lines before it: a line is longer than <paramref name="maxLength"/>.
        /// </exception>
        /// <exception cref="OperationCanceledException">
        /// Thrown by the loop: the token was canceled, or <see cref="PipeReader.CancelPendingRead"/> was called.
        /// </exception>
        /// <exception cref="InvalidOperationException">
        /// Thrown by the loop: it is the second enumeration, or the reader is completed.
        /// </exception>
        public IAsyncEnumerable<ReadOnlySequence<byte>> ReadLineSequencesAsync(int maxLength = DefaultMaxLength, bool leaveOpen = false,
            CancellationToken cancellationToken = default)
        {
            return new PipeReaderLines(Batches(reader, maxLength, leaveOpen, cancellationToken));
        }

        /// <summary>
        /// Reads the lines of the pipe in batches, which is the fastest way to all lines. Use an <c>await foreach</c> over the batches with
        /// a <c>foreach</c> over the lines of each batch. A line ends with LF or CR LF, which are not part of it; the last line may lack
        /// the line end. <b>A batch is valid until the next step of the outer loop.</b>
        /// </summary>
        /// <remarks>
        /// <para>Every line is one span; a line that crosses two segments of the reader's buffer is copied. Nothing is decoded: a
        /// byte-order mark is part of the first line, and a CR that no LF follows is part of its line.</para>
        /// <para>The end of the loop completes the reader, also after <c>break</c> and an exception, unless <paramref name="leaveOpen"/> is
        /// <see langword="true"/>.</para>
        /// </remarks>
        /// <example>
        /// <code>
        /// await foreach (LineBatch batch in reader.ReadLineBatchesAsync())
        /// {
        ///     foreach (ReadOnlySpan&lt;byte&gt; line in batch) …
        /// }
        /// </code>
        /// </example>
        /// <param name="maxLength">
        /// The maximum length of a line without its line end, in bytes; 16 MiB by default. It also limits the memory: a line that crosses
        /// segments is in the reader's buffer and in a copy, which grows by doubling.
        /// </param>
        /// <param name="leaveOpen">
        /// Whether the reader can be used after the loop; <see langword="false"/> by default. It then continues after the last line that
        /// the inner loop or <c>batch[i]</c> has returned, or at the beginning of a batch that was not enumerated.
        /// </param>
        /// <param name="cancellationToken">
        /// Ends the loop with <see cref="OperationCanceledException"/> at the next batch, as <c>WithCancellation</c> does.
        /// </param>
        /// <returns>
        /// The batches, which can be enumerated once. The loop also throws the errors of reading, for example an <see cref="IOException"/>.
        /// </returns>
        /// <exception cref="ArgumentNullException">The reader is <see langword="null"/>.</exception>
        /// <exception cref="ArgumentOutOfRangeException"><paramref name="maxLength"/> is negative.</exception>
        /// <exception cref="LineTooLongException">
        /// Thrown by the loop, after the lines before it: a line is longer than <paramref name="maxLength"/>.
        /// </exception>
        /// <exception cref="OperationCanceledException">
        /// Thrown by the loop: the token was canceled, or <see cref="PipeReader.CancelPendingRead"/> was called.
        /// </exception>
        /// <exception cref="InvalidOperationException">
        /// Thrown by the loop: it is the second enumeration, or the reader is completed.
        /// </exception>
        public IAsyncEnumerable<LineBatch> ReadLineBatchesAsync(int maxLength = DefaultMaxLength, bool leaveOpen = false,
            CancellationToken cancellationToken = default)
            => Batches(reader, maxLength, leaveOpen, cancellationToken);

        /// <summary>
        /// Reads the lines of the pipe as strings, for one <c>await foreach</c>. You may keep the strings:
        /// <c>await reader.ReadLinesAsync().ToListAsync()</c>. A line ends with LF or CR LF, which are not part of it; the last line
        /// may lack the line end.
        /// </summary>
        /// <remarks>
        /// <para>The byte-order mark of UTF-8 at the beginning of the file is left out; a mark does not select the encoding. A CR that no
        /// LF follows is part of its line.</para>
        /// <para>The end of the loop completes the reader, also after <c>break</c> and an exception, unless <paramref name="leaveOpen"/> is
        /// <see langword="true"/>.</para>
        /// </remarks>
        /// <param name="encoding">
        /// The encoding of the text; <see langword="null"/> means UTF-8. The encoding decides whether invalid bytes are replaced or throw.
        /// </param>
        /// <param name="maxLength">The maximum length of a line without its line end, in bytes; 16 MiB by default.</param>
        /// <param name="leaveOpen">
        /// Whether the reader can be used after the loop; <see langword="false"/> by default. It then continues after the line at which the
        /// loop was left.
        /// </param>
        /// <param name="cancellationToken">
        /// Ends the loop with <see cref="OperationCanceledException"/>, as <c>WithCancellation</c> does.
        /// </param>
        /// <returns>
        /// The lines, which can be enumerated once. The loop also throws the errors of reading, for example an <see cref="IOException"/>.
        /// </returns>
        /// <exception cref="ArgumentNullException">The reader is <see langword="null"/>.</exception>
        /// <exception cref="ArgumentOutOfRangeException"><paramref name="maxLength"/> is negative.</exception>
        /// <exception cref="NotSupportedException">
        /// A line feed of <paramref name="encoding"/> is not the byte 0x0A, as in UTF-16.
        /// </exception>
        /// <exception cref="LineTooLongException">
        /// Thrown by the loop, after the lines before it: a line is longer than <paramref name="maxLength"/>.
        /// </exception>
        /// <exception cref="OperationCanceledException">
        /// Thrown by the loop: the token was canceled, or <see cref="PipeReader.CancelPendingRead"/> was called.
        /// </exception>
        /// <exception cref="InvalidOperationException">
        /// Thrown by the loop: it is the second enumeration, or the reader is completed.
        /// </exception>
        public IAsyncEnumerable<string> ReadLinesAsync(
            Encoding? encoding = null, int maxLength = DefaultMaxLength, bool leaveOpen = false,
                CancellationToken cancellationToken = default)
        {
            encoding ??= Encoding.UTF8;
            LineBatches batches = Batches(reader, maxLength, leaveOpen, cancellationToken);
            return encoding.GetBytes("\n") is [(byte)'\n'] ? new PipeReaderTextLines(batches, encoding)
                : throw new NotSupportedException(
                    $"A line feed of {encoding.WebName} is not the byte 0x0A: read the text with a StreamReader.");
        }
    }

    private static LineBatches Batches(PipeReader reader, int maxLength, bool leaveOpen, CancellationToken cancellationToken)
    {
        ArgumentNullException.ThrowIfNull(reader);
        ArgumentOutOfRangeException.ThrowIfNegative(maxLength);
        return new LineBatches(reader, maxLength, leaveOpen, cancellationToken);
    }
}
