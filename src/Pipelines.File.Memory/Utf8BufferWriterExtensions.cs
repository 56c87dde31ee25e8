namespace Pipelines.File;

/// <summary>
/// Writes text as UTF-8 straight into the memory of an <see cref="IBufferWriter{T}"/>: a <see cref="FilePipeWriter"/> or any other pipe, a
/// response's body. It writes only the bytes of the text; <c>WriteString</c> writes a length first.
/// </summary>
public static class Utf8BufferWriterExtensions
{
    /// <summary>The number of characters that are encoded at a time, so that a long text fits into pooled segments.</summary>
    private const int CharsAtATime = 4096;

    /// <summary>
    /// For up to this many characters, memory is requested for the largest possible number of bytes: to count the bytes would take as long
    /// as to write them.
    /// </summary>
    private const int ShortText = 256;

    /// <summary>
    /// Writes a text as UTF-8, without a length and without a byte-order mark. A surrogate without its other half becomes U+FFFD.
    /// </summary>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="text">The text to write.</param>
    public static void WriteUtf8(this IBufferWriter<byte> writer, string text)
    {
        ArgumentNullException.ThrowIfNull(text);
        writer.WriteUtf8(text.AsSpan());
    }

    /// <inheritdoc cref="WriteUtf8(IBufferWriter{byte}, string)"/>
    public static void WriteUtf8(this IBufferWriter<byte> writer, ReadOnlySpan<char> text)
    {
        ArgumentNullException.ThrowIfNull(writer);
        while (!text.IsEmpty)
        {
            ReadOnlySpan<char> piece = text.Length <= CharsAtATime ? text : text[..CharsAtATime];
            if (piece.Length < text.Length && char.IsHighSurrogate(piece[^1]))
            {
                piece = piece[..^1];
            }

            int size = piece.Length <= ShortText ? Encoding.UTF8.GetMaxByteCount(piece.Length) : Encoding.UTF8.GetByteCount(piece);
            writer.Advance(Encoding.UTF8.GetBytes(piece, writer.GetSpan(size)));
            text = text[piece.Length..];
        }
    }

    /// <summary>
    /// Writes an interpolated string as UTF-8 without creating the string: <c>writer.WriteUtf8($"{now:O} {level} {message}\n")</c>. It
    /// formats in the culture of the thread; the overload with a provider sets another culture.
    /// </summary>
    /// <remarks>
    /// Values that can format themselves as UTF-8 (<see cref="IUtf8SpanFormattable"/>: numbers, times, <see cref="Guid"/>, …) allocate
    /// nothing. Other values allocate what their ToString does. The parts are written one after the other:
    /// if one throws, the parts before it are written. A surrogate whose other half is in another part becomes U+FFFD.
    /// </remarks>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="text">The interpolated string.</param>
    [SuppressMessage("Style", "IDE0060:Remove unused parameter", Justification = "The handler has written already, into this writer.")]
    public static void WriteUtf8(this IBufferWriter<byte> writer,
        [InterpolatedStringHandlerArgument(nameof(writer))] Utf8InterpolatedStringHandler text)
    {
    }

    /// <inheritdoc cref="WriteUtf8(IBufferWriter{byte}, Utf8InterpolatedStringHandler)"/>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="provider">
    /// The culture of numbers and times: <see cref="System.Globalization.CultureInfo.InvariantCulture"/> for files that programs read.
    /// <see langword="null"/> means the culture of the thread.
    /// </param>
    /// <param name="text">The interpolated string.</param>
    [SuppressMessage("Style", "IDE0060:Remove unused parameter", Justification = "The handler has written already, into this writer.")]
    public static void WriteUtf8(
        this IBufferWriter<byte> writer,
        IFormatProvider? provider,
        [InterpolatedStringHandlerArgument(nameof(writer), nameof(provider))] Utf8InterpolatedStringHandler text)
    {
    }
}
