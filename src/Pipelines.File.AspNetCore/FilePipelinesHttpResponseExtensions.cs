namespace Microsoft.AspNetCore.Http;

/// <summary>Sends what others have uploaded.</summary>
public static class FilePipelinesHttpResponseExtensions
{
    /// <summary>
    /// Sets the headers that a file needs which somebody else has made, so that it does no harm in a browser: it asks for it anew each time (<c>Cache-Control: no-cache</c>), takes it for nothing
    /// but its type says (<c>X-Content-Type-Options: nosniff</c>), shows it in no other site's page (<c>Cross-Origin-Resource-Policy: same-origin</c>), and runs no script in it
    /// (<c>Content-Security-Policy: sandbox</c>; not for sound, films and pictures but SVG, which have none and whose player would not find them). A header that is there already stays.
    /// </summary>
    /// <param name="response">The response, whose type is set: for <c>StaticFileOptions.OnPrepareResponse</c>.</param>
    /// <exception cref="ArgumentNullException"><paramref name="response"/> is <see langword="null"/>.</exception>
    public static void SetUploadHeaders(this HttpResponse response)
    {
        ArgumentNullException.ThrowIfNull(response);
        IHeaderDictionary headers = response.Headers;
        headers.TryAdd("Cache-Control", "no-cache");
        headers.TryAdd("X-Content-Type-Options", "nosniff");
        headers.TryAdd("Cross-Origin-Resource-Policy", "same-origin");
        if (!IsPlayed(response.ContentType ?? string.Empty))
        {
            headers.TryAdd("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'");
        }
    }

    private static bool IsPlayed(string contentType)
        => contentType.StartsWith("audio/", StringComparison.OrdinalIgnoreCase)
            || contentType.StartsWith("video/", StringComparison.OrdinalIgnoreCase)
            || (contentType.StartsWith("image/", StringComparison.OrdinalIgnoreCase) && !contentType.StartsWith("image/svg", StringComparison.OrdinalIgnoreCase));
}
