namespace Microsoft.AspNetCore.Http;

/// <summary>Protects the clients that get files which other users have uploaded.</summary>
public static class FilePipelinesHttpResponseExtensions
{
    private const string Sandbox = "sandbox; default-src 'none'; style-src 'unsafe-inline'";

    /// <summary>
    /// Sets the headers that keep an uploaded file from doing harm in another user's browser. Headers that are set already stay; a
    /// Content-Security-Policy gets a second one, and browsers obey both.
    /// </summary>
    /// <remarks>
    /// <para><c>Cache-Control: no-cache</c>: the browser asks for the file again each time.</para>
    /// <para><c>X-Content-Type-Options: nosniff</c>: the browser trusts only the content type.</para>
    /// <para><c>Cross-Origin-Resource-Policy: same-origin</c>: no other site can show the file.</para>
    /// <para><c>Content-Security-Policy: sandbox</c>: the file cannot run scripts. It is not set for audio, video, and images other than
    /// SVG, which cannot contain scripts and would not play.</para>
    /// </remarks>
    /// <param name="response">The response, whose content type is set; for example in <c>StaticFileOptions.OnPrepareResponse</c>.</param>
    /// <exception cref="ArgumentNullException"><paramref name="response"/> is <see langword="null"/>.</exception>
    public static void SetUploadHeaders(this HttpResponse response)
    {
        ArgumentNullException.ThrowIfNull(response);
        IHeaderDictionary headers = response.Headers;
        headers.TryAdd("Cache-Control", "no-cache");
        headers.TryAdd("X-Content-Type-Options", "nosniff");
        headers.TryAdd("Cross-Origin-Resource-Policy", "same-origin");
        if (!IsMedia(response.ContentType ?? string.Empty) && !headers.ContentSecurityPolicy.Contains(Sandbox))
        {
            headers.Append("Content-Security-Policy", Sandbox);
        }
    }

    private static bool IsMedia(string contentType)
        => contentType.StartsWith("audio/", StringComparison.OrdinalIgnoreCase)
            || contentType.StartsWith("video/", StringComparison.OrdinalIgnoreCase)
            || (contentType.StartsWith("image/", StringComparison.OrdinalIgnoreCase)
                && !contentType.StartsWith("image/svg", StringComparison.OrdinalIgnoreCase));
}
