using System.Security.Cryptography;
using System.Text.RegularExpressions;
using Microsoft.Extensions.Primitives;

namespace FileServerSample;

/// <summary>
/// The hashes that a client sends along, to be compared with those of what has arrived (RFC 9530): <c>Content-Digest: sha-256=:…:</c>. The
/// header is a dictionary of structured fields (RFC 9651); algorithms other than SHA-256 and SHA-512 are ignored.
/// </summary>
internal sealed partial class ContentDigest
{
    private const string Key = @"[a-z*][a-z0-9_\-.*]*";
    private const string Item
        = @"(?::[A-Za-z0-9+/=]*:|""(?:[ !#-\[\]-~]|\\[""\\])*""|\?[01]|-?[0-9]+(?:\.[0-9]+)?|[A-Za-z*][\w:/!#$%&'*+\-.^`|~]*)";
    private const string List = $@"\( *(?:{Item}(?: +{Item})* *)?\)";

    private readonly Dictionary<string, byte[]> _digests;

    private ContentDigest(Dictionary<string, byte[]> digests) => _digests = digests;

    /// <summary>Whether there is a hash to compare.</summary>
    internal bool IsAny => _digests.Count > 0;

    /// <summary>Parses the header. Returns <see langword="false"/> if it is malformed.</summary>
    internal static bool TryParse(StringValues header, out ContentDigest digest)
    {
        Dictionary<string, byte[]> digests = [];
        digest = new ContentDigest(digests);
        string text = string.Join(',', header.Select(static line => line!.Trim(' ', '\t')).Where(static line => line.Length > 0));
        for (int at = 0; at < text.Length;)
        {
            Match member = Member().Match(text, at);
            if (!member.Success)
            {
                return false;
            }

            at += member.Length;
            string name = member.Groups["name"].Value;
            string value = member.Groups["value"].Value;
            if (name is "sha-256" or "sha-512")
            {
                byte[] bytes = new byte[value.Length];
                if (value is not [':', .., ':'] || !Convert.TryFromBase64String(value[1..^1], bytes, out int length))
                {
                    return false;
                }

                // Of two members with one name the last one counts (RFC 9651, 4.2.2).
                digests[name] = bytes[..length];
            }

            // Nothing may follow the last comma.
            if (at == text.Length && member.Value.TrimEnd(' ', '\t').EndsWith(','))
            {
                return false;
            }
        }

        return true;
    }

    /// <summary>Whether the bytes have every hash that is known here.</summary>
    internal async ValueTask<bool> IsRightAsync(ReadOnlyMemory<byte> sha256, Stream content, CancellationToken cancellationToken)
        => (!_digests.TryGetValue("sha-256", out byte[]? wanted) || sha256.Span.SequenceEqual(wanted))
            && (!_digests.TryGetValue("sha-512", out wanted)
                || (await SHA512.HashDataAsync(content, cancellationToken)).AsSpan().SequenceEqual(wanted));

    // Text can be divided in one way only: a client could make a pattern that allows several try them all.
    [GeneratedRegex($@"\G(?<name>{Key})(?:=(?<value>{Item}|{List}))?(?:; *{Key}(?:={Item})?)*[ \t]*(?:,[ \t]*|$)")]
    private static partial Regex Member();
}
