using System.Security.Cryptography;
using Microsoft.AspNetCore.Http;

namespace Pipelines.File.AspNetCore;

/// <summary>The header or trailer Upload-Checksum: the hash of the body of one request.</summary>
internal sealed record UploadChecksum(HashAlgorithmName Algorithm, byte[] Hash)
{
    internal const string Header = "Upload-Checksum";

    /// <summary>The value of Tus-Checksum-Algorithm.</summary>
    internal const string Algorithms = "sha1,sha256";

    /// <exception cref="BadHttpRequestException">The header is malformed, or nobody knows the algorithm (400).</exception>
    internal static UploadChecksum? Parse(string? header)
    {
        if (header is null)
        {
            return null;
        }

        string[] parts = header.Split(' ');
        byte[] hash = new byte[header.Length];
        HashAlgorithmName? algorithm = parts[0] switch
        {
            "sha1" => HashAlgorithmName.SHA1,
            "sha256" => HashAlgorithmName.SHA256,
            _ => null,
        };
        return algorithm is { } known && parts.Length == 2 && Convert.TryFromBase64String(parts[1], hash, out int length)
            ? new UploadChecksum(known, hash[..length])
            : throw new BadHttpRequestException("Upload-Checksum is malformed, or its algorithm unknown.", StatusCodes.Status400BadRequest);
    }
}
