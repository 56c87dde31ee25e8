using System.Buffers;
using System.Diagnostics.CodeAnalysis;
using System.IO.Pipelines;
using Microsoft.Win32.SafeHandles;

namespace Pipelines.File;

/// <summary>
/// Gives the factories of System.IO.Pipelines a file end, <c>PipeReader.Create(path)</c> and <c>PipeWriter.Create(path)</c>, and every <see cref="PipeReader"/>
/// its lines, <c>reader.ReadLinesAsync()</c>.
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
        /// <c>Encoding.UTF8.GetString(line)</c>.
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
            ArgumentNullException.ThrowIfNull(reader);
            ArgumentOutOfRangeException.ThrowIfNegative(maxLength);
            return new PipeReaderLines(reader, maxLength, leaveOpen, cancellationToken);
        }
    }
}
