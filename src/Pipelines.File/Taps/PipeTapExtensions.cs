using System.IO.Pipelines;
using System.Security.Cryptography;
using Pipelines.File.Taps;

namespace Pipelines.File;

/// <summary>Shows the bytes that go through a pipe to somebody else as well: a checksum on the way, a counter, a copy.</summary>
public static class PipeTapExtensions
{
    /// <summary>A reader that adds what is consumed of it to a hash, each byte once and in order. It reads <paramref name="reader"/>, and completes it.</summary>
    /// <inheritdoc cref="Tap(PipeReader, Action{ReadOnlySpan{byte}})"/>
    /// <param name="reader">Any pipe reader. Nobody else reads it meanwhile.</param>
    /// <param name="hash">The hash. It is neither read nor disposed.</param>
    public static PipeReader Tap(this PipeReader reader, IncrementalHash hash)
    {
        ArgumentNullException.ThrowIfNull(hash);
        return reader.Tap(hash.AppendData);
    }

    /// <summary>
    /// A reader that shows what is consumed of it, each byte once and in order: <c>reader.Tap(crc.Append)</c>. It reads <paramref name="reader"/>, and completes it. What is examined only is shown when it
    /// is consumed.
    /// </summary>
    /// <remarks>The bytes are shown by AdvanceTo, before the reader advances. What <paramref name="append"/> throws is the error of that call, and nothing was consumed.</remarks>
    /// <param name="reader">Any pipe reader. Nobody else reads it meanwhile.</param>
    /// <param name="append">Gets the bytes, on the caller's thread. They are valid until it returns.</param>
    /// <returns>The reader to use instead.</returns>
    public static PipeReader Tap(this PipeReader reader, Action<ReadOnlySpan<byte>> append)
    {
        ArgumentNullException.ThrowIfNull(reader);
        ArgumentNullException.ThrowIfNull(append);
        return new TappedPipeReader(reader, append);
    }

    /// <summary>A writer that adds what is written to it to a hash, each byte once and in order. It writes to <paramref name="writer"/>, and completes it.</summary>
    /// <inheritdoc cref="Tap(PipeWriter, Action{ReadOnlySpan{byte}})"/>
    /// <param name="writer">Any pipe writer. Nobody else writes to it meanwhile.</param>
    /// <param name="hash">The hash. It is neither read nor disposed.</param>
    public static PipeWriter Tap(this PipeWriter writer, IncrementalHash hash)
    {
        ArgumentNullException.ThrowIfNull(hash);
        return writer.Tap(hash.AppendData);
    }

    /// <summary>A writer that shows what is advanced over, each byte once and in order: <c>writer.Tap(crc.Append)</c>. It writes to <paramref name="writer"/>, and completes it.</summary>
    /// <remarks>
    /// The bytes are shown by Advance, before the writer advances, whether they are flushed or not. What <paramref name="append"/> throws is the error of that call, and the bytes were not written.
    /// </remarks>
    /// <param name="writer">Any pipe writer. Nobody else writes to it meanwhile.</param>
    /// <param name="append">Gets the bytes, on the caller's thread. They are valid until it returns.</param>
    /// <returns>The writer to use instead.</returns>
    public static PipeWriter Tap(this PipeWriter writer, Action<ReadOnlySpan<byte>> append)
    {
        ArgumentNullException.ThrowIfNull(writer);
        ArgumentNullException.ThrowIfNull(append);
        return new TappedPipeWriter(writer, append);
    }
}
