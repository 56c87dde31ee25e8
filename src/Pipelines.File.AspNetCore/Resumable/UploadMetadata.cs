using System.Collections.ObjectModel;
using System.Text;
using Microsoft.AspNetCore.Http;

namespace Pipelines.File.AspNetCore;

/// <summary>The header Upload-Metadata: keys, and values in Base64.</summary>
internal static class UploadMetadata
{
    /// <summary>The keys and values, decoded as UTF-8.</summary>
    /// <exception cref="BadHttpRequestException">The header is malformed (400).</exception>
    internal static IReadOnlyDictionary<string, string> Parse(string? header)
    {
        Dictionary<string, string> values = new(StringComparer.Ordinal);
        foreach (string pair in string.IsNullOrEmpty(header) ? [] : header.Split(','))
        {
            string[] parts = pair.Trim(' ').Split(' ');
            if (parts.Length > 2 || parts[0].Length == 0 || !parts[0].All(static c => c is > ' ' and < '\x7F')
                || !TryDecode(parts.Length == 2 ? parts[1] : "", out string value) || !values.TryAdd(parts[0], value))
            {
                throw new BadHttpRequestException("Upload-Metadata is malformed.", StatusCodes.Status400BadRequest);
            }
        }

        return new ReadOnlyDictionary<string, string>(values);
    }

    private static bool TryDecode(string base64, out string value)
    {
        byte[] bytes = new byte[base64.Length];
        bool isRight = Convert.TryFromBase64String(base64, bytes, out int length);
        value = Encoding.UTF8.GetString(bytes, 0, length);
        return isRight;
    }
}
