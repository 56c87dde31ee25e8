namespace Pipelines.File.Lines;

/// <summary>What a text may begin with, and is no part of it.</summary>
internal static class ByteOrderMark
{
    private const string Character = "\uFEFF";

    /// <summary>
    /// Its bytes; none in an encoding that has no such character. Not the preamble, which says what an encoder writes: new UTF8Encoding()
    /// has none.
    /// </summary>
    internal static byte[] Of(Encoding encoding)
    {
        byte[] bytes = encoding.GetBytes(Character);
        return encoding.GetString(bytes) == Character ? bytes : [];
    }
}
