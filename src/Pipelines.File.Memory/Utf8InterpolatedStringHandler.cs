using System.ComponentModel;

namespace Pipelines.File;

/// <summary>Writes the parts of <c>writer.WriteUtf8($"…")</c>. Only the compiler calls its members.</summary>
/// <remarks>
/// Every part asks the writer for memory and advances it by itself, so an expression in the string may write to the same writer. The type
/// is not a ref struct, so the string may contain <c>await</c>.
/// </remarks>
[InterpolatedStringHandler]
[EditorBrowsable(EditorBrowsableState.Never)]
[SuppressMessage("Performance", "CA1815:Override equals and operator equals on value types", Justification = "Nobody compares it.")]
public readonly struct Utf8InterpolatedStringHandler
{
    /// <summary>
    /// The number of bytes that almost every value fits into. If a value does not fit into the memory at hand, the next attempt asks for
    /// this many bytes, or twice as many as before if that is more.
    /// </summary>
    private const int FormattedSize = 256;

    private readonly IBufferWriter<byte> _writer;
    private readonly IFormatProvider? _provider;
    private readonly ICustomFormatter? _custom;

    /// <summary>Creates the handler of one interpolated string.</summary>
    /// <param name="literalLength">The number of characters that are constant.</param>
    /// <param name="formattedCount">The number of parts that are not constant.</param>
    /// <param name="writer">The writer that receives the bytes.</param>
    /// <param name="provider">The culture of numbers and times; <see langword="null"/> means that of the thread.</param>
    [SuppressMessage("Style", "IDE0060:Remove unused parameter", Justification = "The compiler passes them.")]
    public Utf8InterpolatedStringHandler(int literalLength, int formattedCount, IBufferWriter<byte> writer,
        IFormatProvider? provider = null)
    {
        ArgumentNullException.ThrowIfNull(writer);
        _writer = writer;
        _provider = provider;
        _custom = (ICustomFormatter?)provider?.GetFormat(typeof(ICustomFormatter));
    }

    /// <summary>Writes a constant part.</summary>
    /// <param name="value">The text of the part.</param>
    public void AppendLiteral(string value) => _writer.WriteUtf8(value);

    /// <summary>Writes a string.</summary>
    /// <param name="value">The string to write.</param>
    public void AppendFormatted(string? value) => AppendFormatted(value, alignment: 0);

    /// <summary>Writes a string, padded with spaces.</summary>
    /// <param name="value">The string to write.</param>
    /// <param name="alignment">The minimum number of characters. A negative number puts the spaces after the value.</param>
    /// <param name="format">The format, which only a formatter of the provider uses.</param>
    public void AppendFormatted(string? value, int alignment = 0, string? format = null)
        => AppendFormatted((_custom is null ? value : _custom.Format(format, value, _provider)).AsSpan(), alignment);

    /// <summary>Writes characters, padded with spaces.</summary>
    /// <param name="value">The characters to write.</param>
    /// <param name="alignment">The minimum number of characters. A negative number puts the spaces after the value.</param>
    /// <param name="format">Ignored.</param>
    [SuppressMessage("Style", "IDE0060:Remove unused parameter", Justification = "The compiler passes what stands behind a colon.")]
    public void AppendFormatted(scoped ReadOnlySpan<char> value, int alignment = 0, string? format = null)
    {
        AppendSpaces(alignment, value.Length);
        _writer.WriteUtf8(value);
        AppendSpaces(-(long)alignment, value.Length);
    }

    /// <summary>Writes bytes that are UTF-8 already, padded with spaces.</summary>
    /// <param name="utf8">The bytes.</param>
    /// <param name="alignment">The minimum number of characters. A negative number puts the spaces after the value.</param>
    /// <param name="format">Ignored.</param>
    [SuppressMessage("Style", "IDE0060:Remove unused parameter", Justification = "The compiler passes what stands behind a colon.")]
    public void AppendFormatted(scoped ReadOnlySpan<byte> utf8, int alignment = 0, string? format = null)
    {
        int length = alignment == 0 ? 0 : Encoding.UTF8.GetCharCount(utf8);
        AppendSpaces(alignment, length);
        _writer.Write(utf8);
        AppendSpaces(-(long)alignment, length);
    }

    /// <summary>Writes a value.</summary>
    /// <typeparam name="T">The type of the value.</typeparam>
    /// <param name="value">The value to write.</param>
    public void AppendFormatted<T>(T value) => AppendFormatted(value, alignment: 0, format: null);

    /// <summary>Writes a value in a format.</summary>
    /// <typeparam name="T">The type of the value.</typeparam>
    /// <param name="value">The value to write.</param>
    /// <param name="format">The format, as for the ToString of the value.</param>
    public void AppendFormatted<T>(T value, string? format) => AppendFormatted(value, alignment: 0, format);

    /// <summary>Writes a value, padded with spaces.</summary>
    /// <typeparam name="T">The type of the value.</typeparam>
    /// <param name="value">The value to write.</param>
    /// <param name="alignment">The minimum number of characters. A negative number puts the spaces after the value.</param>
    public void AppendFormatted<T>(T value, int alignment) => AppendFormatted(value, alignment, format: null);

    /// <summary>Writes a value in a format, padded with spaces.</summary>
    /// <typeparam name="T">The type of the value.</typeparam>
    /// <param name="value">The value to write.</param>
    /// <param name="alignment">The minimum number of characters. A negative number puts the spaces after the value.</param>
    /// <param name="format">The format, as for the ToString of the value.</param>
    public void AppendFormatted<T>(T value, int alignment, string? format)
    {
        // Casting a value type to an interface does not box it here: the JIT knows T.
        if (_custom is null && value is char character)
        {
            // char is IUtf8SpanFormattable, too, but throws if it is half of a surrogate pair.
            AppendFormatted(new ReadOnlySpan<char>(in character), alignment);
        }
        else if (_custom is null && value is IUtf8SpanFormattable)
        {
            AppendUtf8(value, alignment, format);
        }
        else
        {
            string? text = _custom is not null ? _custom.Format(format, value, _provider)
                : value is IFormattable formattable ? formattable.ToString(format, _provider) : value?.ToString();
            AppendFormatted(text.AsSpan(), alignment);
        }
    }

    private void AppendUtf8<T>(T value, int alignment, string? format)
    {
        // A padded value is formatted into other memory first: the spaces before it depend on its length.
        Span<byte> room = alignment == 0 ? _writer.GetSpan() : stackalloc byte[FormattedSize];
        int written;
        while (!((IUtf8SpanFormattable)value!).TryFormat(room, out written, format, _provider))
        {
            int size = Math.Max(FormattedSize, checked(room.Length * 2));
            room = alignment == 0 ? _writer.GetSpan(size) : new byte[size];
        }

        if (alignment == 0)
        {
            _writer.Advance(written);
        }
        else
        {
            AppendFormatted(room[..written], alignment);
        }
    }

    /// <summary>
    /// Writes the spaces that pad a text of <paramref name="length"/> characters to <paramref name="width"/>; none if it is longer.
    /// </summary>
    private void AppendSpaces(long width, int length)
    {
        for (long count = width - length; count > 0;)
        {
            Span<byte> room = _writer.GetSpan();
            room = room[..(int)Math.Min(room.Length, count)];
            room.Fill((byte)' ');
            _writer.Advance(room.Length);
            count -= room.Length;
        }
    }
}
