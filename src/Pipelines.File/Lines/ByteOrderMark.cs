namespace Pipelines.File.Lines;

/// <summary>The byte-order mark (U+FEFF) that a text may begin with. It is not a part of the text.</summary>
internal static class ByteOrderMark
{
    private const string Character = "\uFEFF";

    /// <summary>
    /// The bytes of the mark; none if the encoding lacks the character. This is not Encoding.Preamble, which says what an encoder writes:
    /// that of new UTF8Encoding() is empty.
    /// </summary>
    internal static byte[] Of(Encoding encoding)
    {
        try
        {
            byte[] bytes = encoding.GetBytes(Character);
            return encoding.GetString(bytes) == Character ? bytes : [];
        }
        catch (EncoderFallbackException)
        {
            return [];
        }
    }
}
