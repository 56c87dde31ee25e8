using System.Buffers;
using System.Diagnostics.CodeAnalysis;
using System.Text;

namespace Pipelines.File.AspNetCore;

/// <summary>Checks the names of files that clients send.</summary>
public static class UploadFileName
{
    /// <summary>The longest name of a file on the file systems of Linux, bytes of UTF-8.</summary>
    private const int MaxLength = 255;

    // What Windows refuses, or takes for something else than a letter of a name, and U+FFFD, which stands for bytes that were no text.
    private static readonly SearchValues<char> s_refused = SearchValues.Create(
        ['/', '\\', ':', '*', '?', '"', '<', '>', '|', '\x7F', '\uFFFD', .. Enumerable.Range(0, 32).Select(static one => (char)one)]);

    private static readonly string[] s_devices = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];

    /// <summary>
    /// Whether a name that a client has sent is that of one file, which every system can have, in the folder that it is combined with.
    /// </summary>
    /// <remarks>
    /// <para>Refused on every system: an empty name; one with a slash, a backslash, a colon, another character that Windows refuses, a
    /// control character or U+FFFD; one that begins with a dot, which takes in <c>..</c>, hidden files and uploads on the way; one that
    /// ends with a dot or a space, which Windows drops; the names of Windows' devices (<c>NUL</c>, <c>com1.txt</c>); the form of its short
    /// names (<c>PRIVAT~1</c>); half of a surrogate pair; and more than 255 bytes of UTF-8.</para>
    /// <para>The name may still be that of an existing file, folder or link. <c>SaveBodyAsync</c> replaces a link of that name, and never
    /// the file that it leads to.</para>
    /// </remarks>
    /// <example>
    /// <code>
    /// app.MapPut("/upload/{name}", async (string name, HttpRequest request) => UploadFileName.IsValid(name)
    ///     ? Results.Ok(await request.SaveBodyAsync(Path.Combine("files", name))) : Results.BadRequest());
    /// </code>
    /// </example>
    /// <param name="name">The name, decoded; <see langword="null"/> is none.</param>
    public static bool IsValid([NotNullWhen(true)] string? name)
        => !string.IsNullOrEmpty(name) && name[0] != '.' && name[^1] is not ('.' or ' ') && !name.AsSpan().ContainsAny(s_refused)
            && !IsShort(name) && !IsDevice(name) && IsText(name) && Encoding.UTF8.GetByteCount(name) <= MaxLength;

    private static bool IsShort(string name)
        => name.LastIndexOf('~') is int tilde and >= 0 && tilde < name.Length - 1 && char.IsAsciiDigit(name[tilde + 1]);

    // Whatever follows the first dot, and also with spaces before it.
    private static bool IsDevice(string name)
    {
        ReadOnlySpan<char> stem = name.AsSpan(0, name.IndexOf('.') is int dot and >= 0 ? dot : name.Length).TrimEnd(' ');
        foreach (string device in s_devices)
        {
            if (stem.Equals(device, StringComparison.OrdinalIgnoreCase))
            {
                return true;
            }
        }

        return stem.Length == 4 && (char.IsAsciiDigit(stem[3]) || stem[3] is '\u00B9' or '\u00B2' or '\u00B3')
            && (stem.StartsWith("COM", StringComparison.OrdinalIgnoreCase) || stem.StartsWith("LPT", StringComparison.OrdinalIgnoreCase));
    }

    private static bool IsText(string name)
    {
        foreach (Rune rune in name.EnumerateRunes())
        {
            if (rune == Rune.ReplacementChar)
            {
                return false;
            }
        }

        return true;
    }
}
