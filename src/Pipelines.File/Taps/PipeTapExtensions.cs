using System.Security.Cryptography;
using Pipelines.File.Taps;

namespace Pipelines.File;

/// <summary>Shows the bytes that pass through a pipe to other code as well, for example to a checksum or a counter.</summary>
public static class PipeTapExtensions
{
    /// <summary>
    /// Returns a reader that adds the bytes that are consumed to a hash, each byte once and in order. The returned reader reads and
    /// completes <paramref name="reader"/>.
    /// </summary>
    /// <inheritdoc cref="Tap(PipeReader, Action{ReadOnlySpan{byte}})"/>
    /// <param name="reader">Any pipe reader. Nobody else may read from it at the same time.</param>
    /// <param name="hash">The hash that gets the bytes. The tap does not finish or dispose it.</param>
    public static PipeReader Tap(this PipeReader reader, IncrementalHash hash)
    {
        ArgumentNullException.ThrowIfNull(hash);
        return reader.Tap(hash.AppendData);
    }

    /// <summary>
    /// Returns a reader that shows the bytes that are consumed, each byte once and in order: <c>reader.Tap(crc.Append)</c>. The returned
    /// reader reads and completes <paramref name="reader"/>.
    /// </summary>
    /// <remarks>
    /// AdvanceTo shows the bytes before it advances the reader. Bytes that are only examined are shown later, when they are consumed. If
    /// <paramref name="append"/> throws, AdvanceTo throws its exception, and nothing was consumed.
    /// </remarks>
    /// <param name="reader">Any pipe reader. Nobody else may read from it at the same time.</param>
    /// <param name="append">Gets the bytes on the thread that calls AdvanceTo. They are valid until it returns.</param>
    /// <returns>The reader to use instead.</returns>
    public static PipeReader Tap(this PipeReader reader, Action<ReadOnlySpan<byte>> append)
    {
        ArgumentNullException.ThrowIfNull(reader);
        ArgumentNullException.ThrowIfNull(append);
        return new TappedPipeReader(reader, append);
    }

    /// <summary>
    /// Returns a writer that adds the bytes that are written to a hash, each byte once and in order. The returned writer writes to and
    /// completes <paramref name="writer"/>.
    /// </summary>
    /// <inheritdoc cref="Tap(PipeWriter, Action{ReadOnlySpan{byte}})"/>
    /// <param name="writer">Any pipe writer. Nobody else may write to it at the same time.</param>
    /// <param name="hash">The hash that gets the bytes. The tap does not finish or dispose it.</param>
    public static PipeWriter Tap(this PipeWriter writer, IncrementalHash hash)
    {
        ArgumentNullException.ThrowIfNull(hash);
        return writer.Tap(hash.AppendData);
    }

    /// <summary>
    /// Returns a writer that shows the bytes that are written, each byte once and in order: <c>writer.Tap(crc.Append)</c>. The returned
    /// writer writes to and completes <paramref name="writer"/>.
    /// </summary>
    /// <remarks>
    /// Advance shows the bytes before it advances the writer, whether they are flushed or not. If <paramref name="append"/> throws, Advance
    /// throws its exception, and the bytes were not written.
    /// </remarks>
    /// <param name="writer">Any pipe writer. Nobody else may write to it at the same time.</param>
    /// <param name="append">Gets the bytes on the thread that calls Advance. They are valid until it returns.</param>
    /// <returns>The writer to use instead.</returns>
    public static PipeWriter Tap(this PipeWriter writer, Action<ReadOnlySpan<byte>> append)
    {
        ArgumentNullException.ThrowIfNull(writer);
        ArgumentNullException.ThrowIfNull(append);
        return new TappedPipeWriter(writer, append);
    }
}
