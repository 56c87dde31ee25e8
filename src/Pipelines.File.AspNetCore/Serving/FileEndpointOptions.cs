using Microsoft.AspNetCore.Builder;

namespace Pipelines.File.AspNetCore;

/// <summary>What <c>MapFiles</c> serves, and how: the options of <c>UseStaticFiles</c>, and more.</summary>
/// <example>
/// <code>
/// using Pipelines.File.AspNetCore;
///
/// WebApplication app = WebApplication.Create(args);
/// app.MapFiles("/assets", new FileEndpointOptions { ServePrecompressedFiles = true });
/// app.Run();
/// </code>
/// </example>
public sealed class FileEndpointOptions : StaticFileOptions
{
    /// <summary>
    /// Whether a client that accepts it gets <c>app.js.br</c> (Brotli) or <c>app.js.gz</c> (gzip) for <c>app.js</c>, if that is smaller,
    /// not older than <c>app.js</c>, and not a symbolic link; <see langword="false"/> by default. Each response then has
    /// <c>Vary: Accept-Encoding</c>.
    /// </summary>
    public bool ServePrecompressedFiles { get; set; }
}
