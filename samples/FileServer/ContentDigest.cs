using Microsoft.Extensions.Primitives;

namespace FileServerSample;

/// <summary>
/// The hash that a client sends along, to be compared with that of what has arrived (RFC 9530): <c>Content-Digest: sha-256=:…:</c>.
/// </summary>
internal static class ContentDigest
{
    private const string Begin = "sha-256=:";

    /// <summary>Whether the header is what the bytes have, or asks for nothing that is known here.</summary>
    internal static bool IsRight(StringValues header, ReadOnlySpan<byte> sha256)
    {
        foreach (string digest in header.ToString().Split(',', StringSplitOptions.TrimEntries))
        {
            if (digest.StartsWith(Begin, StringComparison.Ordinal) && digest[Begin.Length..] != Convert.ToBase64String(sha256) + ":")
            {
                return false;
            }
        }

        return true;
    }
}
