using System.Collections.Concurrent;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.StaticFiles;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.FileProviders;
using Microsoft.Net.Http.Headers;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// Serves files as an endpoint. The static files middleware answers; what it has answered to a GET for a whole file is remembered, and
/// answered without it as long as the file is kept open and the path still leads to it, unchanged. Any thread may call its members.
/// </summary>
internal sealed class FileEndpoint
{
    /// <summary>The route parameter with the path of the file, relative to the root.</summary>
    internal const string PathParameter = "path";

    // A client that writes one path in many ways gets no more memory than this: so many paths for each file that may be kept.
    private const int PathsPerFile = 2;
    private const int MaxPathLength = 256;

    private readonly ConcurrentDictionary<string, ServedFile> _served = new(StringComparer.Ordinal);
    private readonly FileSender _sender;
    private readonly StaticFileOptions _options;
    private readonly IContentTypeProvider _types;
    private readonly bool _remembers;
    private readonly PrecompressedFiles? _variants;
    private readonly RequestDelegate _middleware;

    private FileEndpoint(IApplicationBuilder app, FileSender sender, StaticFileOptions options, int? order)
    {
        _sender = sender;
        _options = options;
        _types = options.ContentTypeProvider ?? new FileExtensionContentTypeProvider();
        IFileProvider files = options.FileProvider
            ?? app.ApplicationServices.GetRequiredService<IWebHostEnvironment>().WebRootFileProvider;

        // Another provider may show another file for the same path at any time.
        _remembers = files.GetType() == typeof(PhysicalFileProvider);
        HeldTimes held = new(files);
        _variants = order is { } known ? new PrecompressedFiles(held, known) : null;
        IApplicationBuilder branch = app.New();
        branch.Use(next => context => sender.InvokeAsync(context, next));
        branch.UseStaticFiles(new StaticFileOptions
        {
            ContentTypeProvider = _types,
            DefaultContentType = options.DefaultContentType,
            FileProvider = _variants ?? (IFileProvider)held,
            HttpsCompression = options.HttpsCompression,
            OnPrepareResponse = Prepare,
            OnPrepareResponseAsync = options.OnPrepareResponseAsync,
            ServeUnknownFileTypes = options.ServeUnknownFileTypes,
        });
        branch.Run(static context =>
        {
            context.Response.StatusCode = StatusCodes.Status404NotFound;
            return Task.CompletedTask;
        });
        _middleware = branch.Build();
    }

    /// <summary>Serves the files of the options. With compressed variants, what is remembered depends on what the client takes.</summary>
    internal static RequestDelegate Of(IApplicationBuilder app, FileSender sender, StaticFileOptions options)
    {
        if (options is not FileEndpointOptions { ServePrecompressedFiles: true })
        {
            return new FileEndpoint(app, sender, options, order: null).InvokeAsync;
        }

        Lazy<FileEndpoint>[] endpoints = [.. Enumerable.Range(0, PrecompressedFiles.Orders)
            .Select(order => new Lazy<FileEndpoint>(() => new FileEndpoint(app, sender, options, order)))];
        return context => endpoints[PrecompressedFiles.OrderOf(context.Request.Headers.AcceptEncoding)].Value.InvokeAsync(context);
    }

    private Task InvokeAsync(HttpContext context)
    {
        if (!IsPlain(PathOf(context), OperatingSystem.IsWindows()))
        {
            context.Response.StatusCode = StatusCodes.Status404NotFound;
            return Task.CompletedTask;
        }

        return IsForWholeFile(context.Request) && _served.TryGetValue(PathOf(context), out ServedFile? served)
            && (_variants is null || _variants.GetFileInfo("/" + PathOf(context)).PhysicalPath == served.Info.PhysicalPath)
            && _sender.Begin(context, context.Features.Get<IHttpResponseBodyFeature>()) is { } sending && served.File.TryUse()
            ? SendAsync(context, sending, served) : PassAsync(context);
    }

    /// <summary>
    /// Whether the path is the one way to write it: what routing takes for another path than the file system does would reach a file past
    /// the endpoint that it belongs to.
    /// </summary>
    internal static bool IsPlain(ReadOnlySpan<char> path, bool isWindows)
    {
        if (path.IsEmpty)
        {
            return true;
        }

        foreach (Range range in path.Split('/'))
        {
            ReadOnlySpan<char> name = path[range];
            if (name is "" or "." or ".." || (isWindows && IsAlias(name)))
            {
                return false;
            }
        }

        return true;
    }

    // Windows drops dots and spaces at the end of a name, has short names (PRIVAT~1), and streams behind a colon. A backslash divides names
    // for it, and not for routing.
    private static bool IsAlias(ReadOnlySpan<char> name)
    {
        int tilde = name.LastIndexOf('~');
        return name[^1] is '.' or ' ' || name.ContainsAny(':', '\\')
            || (tilde >= 0 && tilde < name.Length - 1 && char.IsAsciiDigit(name[tilde + 1]));
    }

    private static string PathOf(HttpContext context) => context.Request.RouteValues[PathParameter] as string ?? "";

    private static bool IsForWholeFile(HttpRequest request)
    {
        IHeaderDictionary headers = request.Headers;
        return HttpMethods.IsGet(request.Method) && headers.Range.Count == 0 && headers.IfRange.Count == 0
            && headers.IfMatch.Count == 0 && headers.IfNoneMatch.Count == 0
            && headers.IfModifiedSince.Count == 0 && headers.IfUnmodifiedSince.Count == 0;
    }

    /// <summary>Answers as the middleware has answered before, and releases the file.</summary>
    private async Task SendAsync(HttpContext context, FileSendingFeature sending, ServedFile served)
    {
        OpenFile? file = served.File;
        try
        {
            // The status stays: the file may be the page of an error.
            HttpResponse response = context.Response;
            IHttpResponseBodyFeature? body = context.Features.Get<IHttpResponseBodyFeature>();
            IHeaderDictionary headers = response.Headers;
            headers.ContentType = served.ContentType;
            headers.LastModified = served.LastModified;
            headers.ETag = served.EntityTag;
            headers.AcceptRanges = "bytes";
            headers.ContentLength = file.Shared.Length;
            SetEncoding(headers, served.Info);
            StaticFileResponseContext prepared = new(context, served.Info);
            _options.OnPrepareResponse(prepared);
            await _options.OnPrepareResponseAsync(prepared).ConfigureAwait(false);
            try
            {
                if (context.Features.Get<IHttpResponseBodyFeature>() != body)
                {
                    // A callback has replaced the body, perhaps so that nobody gets the file.
                    await response.SendFileAsync(served.Info, 0, file.Shared.Length, context.RequestAborted).ConfigureAwait(false);
                    return;
                }

                OpenFile whole = file;
                file = null;
                await sending.SendFileAsync(whole, context.RequestAborted).ConfigureAwait(false);
            }
            catch (OperationCanceledException)
            {
                // The client is gone, or somebody has aborted the request: the middleware drops this, too.
            }
        }
        finally
        {
            file?.Release();
        }
    }

    /// <summary>Has the middleware answer, which passes on what has an endpoint, and knows paths from its root only.</summary>
    private async Task PassAsync(HttpContext context)
    {
        Passed passed = new(context.GetEndpoint(), context.Request.Path);
        context.Items[typeof(Passed)] = passed;
        context.SetEndpoint(null);
        context.Request.Path = new PathString("/" + PathOf(context));
        try
        {
            await _middleware(context).ConfigureAwait(false);
        }
        finally
        {
            passed.Restore(context);
        }
    }

    /// <summary>The middleware has found the file, and has set the headers.</summary>
    private void Prepare(StaticFileResponseContext prepared)
    {
        (prepared.Context.Items[typeof(Passed)] as Passed)!.Restore(prepared.Context);
        if (_remembers && HttpMethods.IsGet(prepared.Context.Request.Method)
            && prepared.Context.Response.StatusCode == StatusCodes.Status200OK
            && prepared.Context.Features.Get<IHttpResponseBodyFeature>() is FileSendingFeature sending)
        {
            Remember(PathOf(prepared.Context), sending.Files, prepared.File, prepared.Context.Response.Headers);
        }

        SetEncoding(prepared.Context.Response.Headers, prepared.File);
        _options.OnPrepareResponse(prepared);
    }

    private void SetEncoding(IHeaderDictionary headers, IFileInfo file)
    {
        if (_variants is not null)
        {
            headers.Append(HeaderNames.Vary, HeaderNames.AcceptEncoding);
        }

        // What has no length has no body: 304, 412, 416.
        if (file is PrecompressedFiles.Variant variant && headers.ContentLength is not null)
        {
            headers.ContentEncoding = variant.Encoding;
        }
    }

    /// <summary>Remembers the answer if an earlier request has opened the file, and the file is kept.</summary>
    private void Remember(string path, OpenFiles files, IFileInfo info, IHeaderDictionary headers)
    {
        string? type = _types.TryGetContentType("/" + path, out string? known) ? known : _options.DefaultContentType;
        if (path.Length > MaxPathLength || string.IsNullOrEmpty(type) || files.UseKept(info.PhysicalPath) is not { } file)
        {
            return;
        }

        try
        {
            // The headers must be those of the file that is open: it may be newer than what the middleware has seen, or where a link leads.
            if (file.Shared.Length == info.Length
                && FileTimes.WrittenOf(file.Shared.Handle) == info.LastModified.UtcDateTime
                && !(_served.TryGetValue(path, out ServedFile? before) && before.File == file))
            {
                if (_served.Count >= PathsPerFile * (long)files.MaxFiles)
                {
                    _served.Clear();
                }

                _served[path] = new ServedFile(file, info, type, headers.ETag, headers.LastModified);
            }
        }
        finally
        {
            file.Release();
        }
    }

    /// <summary>What the middleware must not see of a request.</summary>
    private sealed record Passed(Endpoint? Endpoint, PathString Path)
    {
        internal void Restore(HttpContext context)
        {
            context.SetEndpoint(Endpoint);
            context.Request.Path = Path;
        }
    }
}
