using System.Buffers;
using System.Diagnostics.CodeAnalysis;
using System.IO.Pipelines;
using System.Text;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Lines;

namespace Pipelines.File;

/// <summary>
/// Gives the factories of System.IO.Pipelines a file end, <c>PipeReader.Create(path)</c> and <c>PipeWriter.Create(path)</c>, and every <see cref="PipeReader"/>
/// its lines, <c>reader.ReadLinesAsync()</c>, <c>reader.ReadLineBatchesAsync()</c> and <c>reader.ReadTextLinesAsync()</c>.
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
        public static FilePipeReader Create(SafeFileHandle handle, FilePipeReaderOptions? options = null) => FilePipeReader.Create(handle, options);
    }

    extension(PipeWriter)
    {
        /// <inheritdoc cref="FilePipeWriter.Create(string, FilePipeWriterOptions?)"/>
        public static FilePipeWriter Create(string path, FilePipeWriterOptions? options = null) => FilePipeWriter.Create(path, options);

        /// <inheritdoc cref="FilePipeWriter.Create(SafeFileHandle, FilePipeWriterOptions?)"/>
        public static FilePipeWriter Create(SafeFileHandle handle, FilePipeWriterOptions? options = null) => FilePipeWriter.Create(handle, options);
    }

    /// <param name="reader">Any pipe reader. Nobody else reads it meanwhile.</param>
    extension(PipeReader reader)
    {
        /// <summary>
        /// Reads the lines of the pipe, for one <c>await foreach</c>. A line ends with LF or CR LF, which are not part of it; the last one may lack that.
        /// <b>The bytes of a line are valid until the next step of the loop</b>: copy what is to stay, for example with <c>line.ToArray()</c> or
        /// <c>Encoding.UTF8.GetString(line)</c>. <c>ReadLinesAsync().ToListAsync()</c> compiles, and gives a list of lines whose bytes are others' by then: where lines are to be kept, take
        /// <c>ReadTextLinesAsync()</c>.
        /// </summary>
        /// <remarks>
        /// <para>Most lines are one span (<c>line.IsSingleSegment</c>, <c>line.FirstSpan</c>); one that crosses two segments of the buffer is not. Nothing is decoded: a byte-order
        /// mark is part of the first line, and a CR that no LF follows is part of its line.</para>
        /// <para>Leaving the loop, by its end, <c>break</c> or an exception, completes the reader, unless <paramref name="leaveOpen"/> is <see langword="true"/>. A line costs no
        /// allocation; a read that has to wait may, once.</para>
        /// </remarks>
        /// <param name="maxLength">The most bytes that a line may have, without its line end; 16 MiB by default. So much of a file without line ends is held in memory at most, and one read more.</param>
        /// <param name="leaveOpen">
        /// Whether the reader can be used after the loop, which is <see langword="false"/> by default: it then goes on behind the line that the loop was left at, for example with
        /// what follows a header.
        /// </param>
        /// <param name="cancellationToken">Ends the loop with <see cref="OperationCanceledException"/>; <c>WithCancellation</c> does the same.</param>
        /// <returns>The lines, to be enumerated once. The loop also throws what reading throws: an <see cref="IOException"/> of the file, for example.</returns>
        /// <exception cref="ArgumentNullException">The reader is <see langword="null"/>.</exception>
        /// <exception cref="ArgumentOutOfRangeException"><paramref name="maxLength"/> is negative.</exception>
        /// <exception cref="LineTooLongException">A line is longer than <paramref name="maxLength"/>. Thrown by the loop, after the lines before it.</exception>
        /// <exception cref="OperationCanceledException">
        /// The token was canceled, or another's call of <see cref="PipeReader.CancelPendingRead"/> ended the reading. Thrown by the loop.
        /// </exception>
        /// <exception cref="InvalidOperationException">The lines are enumerated a second time, or the reader is completed. Thrown by the loop.</exception>
        public IAsyncEnumerable<ReadOnlySequence<byte>> ReadLinesAsync(int maxLength = DefaultMaxLength, bool leaveOpen = false, CancellationToken cancellationToken = default)
        {
            return new PipeReaderLines(Batches(reader, maxLength, leaveOpen, cancellationToken));
        }

        /// <summary>
        /// Reads the lines of the pipe in batches, for one <c>await foreach</c> with a <c>foreach</c> in it that neither waits nor allocates, which is the fastest way to all of them:
        /// <code>
        /// await foreach (LineBatch batch in reader.ReadLineBatchesAsync())
        /// {
        ///     foreach (ReadOnlySpan&lt;byte&gt; line in batch) …
        /// }
        /// </code>
        /// A line ends with LF or CR LF, which are not part of it; the last one may lack that. <b>A batch is valid until the next step of the outer loop.</b>
        /// </summary>
        /// <remarks>
        /// <para>Every line is one span: one that crosses two segments of the reader's buffer is copied. Nothing is decoded: a byte-order mark is part of the first line, and a CR that no LF
        /// follows is part of its line.</para>
        /// <para>Leaving the loop, by its end, <c>break</c> or an exception, completes the reader, unless <paramref name="leaveOpen"/> is <see langword="true"/>.</para>
        /// </remarks>
        /// <param name="maxLength">The most bytes that a line may have, without its line end; 16 MiB by default. So much of a file without line ends is held in memory at most, and one read more.</param>
        /// <param name="leaveOpen">
        /// Whether the reader can be used after the loop, which is <see langword="false"/> by default: it then goes on behind the last line that a <c>foreach</c> over the batch has given, or
        /// at the beginning of a batch that was not enumerated.
        /// </param>
        /// <param name="cancellationToken">Ends the loop with <see cref="OperationCanceledException"/> at the next batch; <c>WithCancellation</c> does the same.</param>
        /// <returns>The batches, to be enumerated once. The loop also throws what reading throws: an <see cref="IOException"/> of the file, for example.</returns>
        /// <exception cref="ArgumentNullException">The reader is <see langword="null"/>.</exception>
        /// <exception cref="ArgumentOutOfRangeException"><paramref name="maxLength"/> is negative.</exception>
        /// <exception cref="LineTooLongException">A line is longer than <paramref name="maxLength"/>. Thrown by the loops, after the lines before it.</exception>
        /// <exception cref="OperationCanceledException">
        /// The token was canceled, or another's call of <see cref="PipeReader.CancelPendingRead"/> ended the reading. Thrown by the loop.
        /// </exception>
        /// <exception cref="InvalidOperationException">The batches are enumerated a second time, or the reader is completed. Thrown by the loop.</exception>
        public IAsyncEnumerable<LineBatch> ReadLineBatchesAsync(int maxLength = DefaultMaxLength, bool leaveOpen = false, CancellationToken cancellationToken = default)
            => Batches(reader, maxLength, leaveOpen, cancellationToken);

        /// <summary>
        /// Reads the lines of the pipe as text, for one <c>await foreach</c>. A line ends with LF or CR LF, which are not part of it; the last one may lack that. The strings may be kept:
        /// <c>await reader.ReadTextLinesAsync().ToListAsync()</c>.
        /// </summary>
        /// <remarks>
        /// <para>A byte-order mark at the beginning of the file is left out, and decides nothing: the encoding is what was asked for. A CR that no LF follows is part of its line.</para>
        /// <para>Leaving the loop, by its end, <c>break</c> or an exception, completes the reader, unless <paramref name="leaveOpen"/> is <see langword="true"/>.</para>
        /// </remarks>
        /// <param name="encoding">How the text is encoded; UTF-8 if <see langword="null"/>. What is not valid in it is replaced, or thrown, as the encoding says.</param>
        /// <param name="maxLength">The most bytes that a line may have, without its line end; 16 MiB by default.</param>
        /// <param name="leaveOpen">Whether the reader can be used after the loop, which is <see langword="false"/> by default: it then goes on behind the line that the loop was left at.</param>
        /// <param name="cancellationToken">Ends the loop with <see cref="OperationCanceledException"/>; <c>WithCancellation</c> does the same.</param>
        /// <returns>The lines, to be enumerated once. The loop also throws what reading throws: an <see cref="IOException"/> of the file, for example.</returns>
        /// <exception cref="ArgumentNullException">The reader is <see langword="null"/>.</exception>
        /// <exception cref="ArgumentOutOfRangeException"><paramref name="maxLength"/> is negative.</exception>
        /// <exception cref="LineTooLongException">A line is longer than <paramref name="maxLength"/>. Thrown by the loop, after the lines before it.</exception>
        /// <exception cref="OperationCanceledException">
        /// The token was canceled, or another's call of <see cref="PipeReader.CancelPendingRead"/> ended the reading. Thrown by the loop.
        /// </exception>
        /// <exception cref="InvalidOperationException">The lines are enumerated a second time, or the reader is completed. Thrown by the loop.</exception>
        public IAsyncEnumerable<string> ReadTextLinesAsync(
            Encoding? encoding = null, int maxLength = DefaultMaxLength, bool leaveOpen = false, CancellationToken cancellationToken = default)
        {
            encoding ??= Encoding.UTF8;
            LineBatches batches = Batches(reader, maxLength, leaveOpen, cancellationToken);
            return WideTextLines.IsFor(encoding)
                ? WideTextLines.ReadAsync(reader, encoding, maxLength, leaveOpen, cancellationToken)
                : new PipeReaderTextLines(batches, encoding);
        }
    }

    private static LineBatches Batches(PipeReader reader, int maxLength, bool leaveOpen, CancellationToken cancellationToken)
    {
        ArgumentNullException.ThrowIfNull(reader);
        ArgumentOutOfRangeException.ThrowIfNegative(maxLength);
        return new LineBatches(reader, maxLength, leaveOpen, cancellationToken);
    }
}
