using System.Collections.Concurrent;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Http;
using Microsoft.Extensions.FileProviders;

namespace Pipelines.File.AspNetCore;

/// <summary>Serves files of the folder that a request is for. Any thread may call its members.</summary>
internal sealed class FolderEndpoints(
    IApplicationBuilder app, FileSender sender, StaticFileOptions options, Func<HttpContext, string?> folderOf)
{
    // Folders come and go, and an endpoint is soon made again.
    private const int MostFolders = 256;

    private readonly ConcurrentDictionary<string, RequestDelegate> _endpoints = new(StringComparer.Ordinal);

    internal Task InvokeAsync(HttpContext context)
    {
        if (folderOf(context) is { } folder && EndpointOf(folder) is { } endpoint)
        {
            return endpoint(context);
        }

        context.Response.StatusCode = StatusCodes.Status404NotFound;
        return Task.CompletedTask;
    }

    private RequestDelegate? EndpointOf(string folder)
    {
        if (_endpoints.TryGetValue(folder, out RequestDelegate? endpoint))
        {
            return endpoint;
        }

        if (!Path.IsPathFullyQualified(folder))
        {
            throw new InvalidOperationException($"The folder '{folder}' is not an absolute path.");
        }

        if (!Directory.Exists(folder))
        {
            return null;
        }

        if (_endpoints.Count >= MostFolders)
        {
            _endpoints.Clear();
        }

        return _endpoints.GetOrAdd(folder, FileEndpoint.Of(app, sender, new FileEndpointOptions
        {
            ContentTypeProvider = options.ContentTypeProvider,
            DefaultContentType = options.DefaultContentType,
            FileProvider = new PhysicalFileProvider(folder),
            HttpsCompression = options.HttpsCompression,
            OnPrepareResponse = options.OnPrepareResponse,
            OnPrepareResponseAsync = options.OnPrepareResponseAsync,
            ServeUnknownFileTypes = options.ServeUnknownFileTypes,
            ServePrecompressedFiles = options is FileEndpointOptions { ServePrecompressedFiles: true },
        }));
    }
}
