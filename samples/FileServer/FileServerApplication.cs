using System.Globalization;
using System.Net;
using System.Security.Cryptography;
using Microsoft.AspNetCore.HostFiltering;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.Net.Http.Headers;
using Pipelines.File;
using Pipelines.File.AspNetCore;

namespace FileServerSample;

/// <summary>
/// The application: pages and downloads below /files/, uploads there by PUT, and at /uploads such that go on where they broke off; counters
/// at /metrics.
/// </summary>
internal static partial class FileServerApplication
{
    internal static WebApplication Build(Settings settings)
    {
        // Nothing of the folder it is started in, or of the environment, configures it.
        WebApplicationBuilder builder = WebApplication.CreateEmptyBuilder(new WebApplicationOptions());
        builder.WebHost.UseKestrelCore().ConfigureKestrel(kestrel =>
        {
            kestrel.AddServerHeader = false;
            kestrel.Listen(IPAddress.Loopback, settings.Port);
        });
        builder.Services.AddRoutingCore();

        // A page elsewhere whose name was made to mean 127.0.0.1 is not let in.
        builder.Services.Configure<HostFilteringOptions>(hosts => hosts.AllowedHosts = ["127.0.0.1", "localhost"]);
        builder.Services.AddSingleton(_ => new CounterTable());

        // A start that fails is told in one line by the program.
        builder.Logging.SetMinimumLevel(LogLevel.Warning)
            .AddFilter("Microsoft.Extensions.Hosting.Internal.Host", LogLevel.None).AddSimpleConsole();

        WebApplication app = builder.Build();
        CounterTable counters = app.Services.GetRequiredService<CounterTable>();
        ServedFolder served = new(settings.Root);

        // The one line.
        app.UseFilePipelines();
        app.UseHostFiltering();
        app.MapGet("/", () => Results.Redirect("/files/"));
        app.MapGet("/metrics", () => Results.Text(counters.ToPrometheus(), "text/plain; version=0.0.4; charset=utf-8"));
        app.MapGet("/assets/page.css", () => Asset("page.css", "text/css; charset=utf-8"));
        app.MapGet("/assets/page.js", () => Asset("page.js", "text/javascript; charset=utf-8"));
        app.MapMethods("/files/{**path}", ["GET", "HEAD"], (HttpContext context) => Get(context, served, settings));
        app.MapPut("/files/{**path}", (Delegate)((HttpContext context) => PutAsync(context, served, settings)));
        FolderUploads.Map(app, served, settings);
        return app;
    }

    [LoggerMessage(1, LogLevel.Warning, "An upload failed.")]
    private static partial void LogFailed(ILogger logger, Exception exception);

    private static IResult Asset(string name, string contentType)
        => Results.Stream(typeof(FileServerApplication).Assembly.GetManifestResourceStream(name)!, contentType);

    private static IResult Get(HttpContext context, ServedFolder served, Settings settings)
    {
        if (context.Request.Path.Value == "/files")
        {
            return Results.Redirect("/files/");
        }

        if (NamesOf(context, out bool isFolder) is not { } names || served.PathOf(names) is not { } path)
        {
            return NotFound();
        }

        if (Directory.Exists(path))
        {
            return isFolder
                ? Folder(context, names, path, settings)
                : Results.Redirect("/files/" + string.Concat(names.Select(name => Uri.EscapeDataString(name) + "/")));
        }

        FileInfo file = new(path);
        if (isFolder || !file.Exists)
        {
            return NotFound();
        }

        string contentType = ServedFolder.ContentTypeOf(path);
        if (contentType.StartsWith("text/", StringComparison.Ordinal))
        {
            contentType += "; charset=utf-8";
        }

        context.Response.ContentType = contentType;
        context.Response.SetUploadHeaders();

        // Nothing without a length is opened: it may be a FIFO, which would wait for a writer.
        EntityTagHeaderValue etag = new(TagOf(file));
        return file.Length == 0
            ? TypedResults.Bytes(ReadOnlyMemory<byte>.Empty, contentType, lastModified: ServedFolder.TimeOf(file), entityTag: etag)
            : TypedResults.PhysicalFile(
                path, contentType, lastModified: ServedFolder.TimeOf(file), entityTag: etag, enableRangeProcessing: true);
    }

    private static IResult Folder(HttpContext context, string[] names, string path, Settings settings)
    {
        context.Response.Headers.ContentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
            + "img-src data:; form-action 'none'; frame-ancestors 'none'";
        context.Response.Headers.CacheControl = "no-store";
        context.Response.Headers.XContentTypeOptions = "nosniff";
        _ = int.TryParse(context.Request.Query["page"], NumberStyles.None, CultureInfo.InvariantCulture, out int page);
        try
        {
            return Results.Content(FolderPage.Render(names, path, settings, Math.Max(1, page)), "text/html; charset=utf-8");
        }
        catch (DirectoryNotFoundException)
        {
            return NotFound();
        }
        catch (UnauthorizedAccessException)
        {
            return Text(StatusCodes.Status403Forbidden, "The folder cannot be read.");
        }
    }

    private static async Task<IResult> PutAsync(HttpContext context, ServedFolder served, Settings settings)
    {
        if (NamesOf(context, out bool isFolder) is not { } names || isFolder || served.PathOf(names) is not { } path
            || !Directory.Exists(Path.GetDirectoryName(path)))
        {
            return NotFound();
        }

        if (Directory.Exists(path) || (!settings.Overwrite && File.Exists(path)))
        {
            return Exists(settings);
        }

        if (!ContentDigest.TryParse(context.Request.Headers["Content-Digest"], out ContentDigest digest))
        {
            return Text(StatusCodes.Status400BadRequest, "The Content-Digest is malformed.");
        }

        try
        {
            SaveBodyOptions options = new()
            {
                MaxLength = settings.MaxUpload,
                Overwrite = settings.Overwrite,
                Durable = settings.Durable,
                Caching = settings.DropBehind ? FileCaching.DropBehind : FileCaching.Keep,
                IfMatch = context.Request.Headers.IfMatch,
                IfNoneMatch = context.Request.Headers.IfNoneMatch,
                EntityTag = TagOf,
                DistinctVersions = false,
                Hash = digest.IsAny ? HashAlgorithmName.SHA256 : null,
                InspectAsync = digest.IsAny ? (upload, stop) => digest.IsRightAsync(upload.Hash, upload.Reader.AsStream(), stop) : null,
                Progress = new ReceivedBytes(),
            };
            SavedFile saved = await context.Request.SaveBodyAsync(path, options, context.RequestAborted);
            context.Response.Headers.ETag = saved.EntityTag;
            context.Response.Headers.Location = "/files/" + string.Join('/', names.Select(Uri.EscapeDataString));
            return Text(saved.Replaced ? StatusCodes.Status200OK : StatusCodes.Status201Created, $"{saved.Length} bytes");
        }
        catch (BadHttpRequestException e)
        {
            return Text(e.StatusCode, e.Message);
        }
        catch (PathTooLongException)
        {
            return Text(StatusCodes.Status400BadRequest, "The name is too long.");
        }
        catch (FileExistsException)
        {
            return Exists(settings);
        }
        catch (IOException e) when (IsFull(e))
        {
            return Text(StatusCodes.Status507InsufficientStorage, "There is no room for the file.");
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException && !context.RequestAborted.IsCancellationRequested)
        {
            // The message would tell where the root is.
            LogFailed(context.RequestServices.GetRequiredService<ILoggerFactory>().CreateLogger("FileServer"), e);
            return Text(StatusCodes.Status500InternalServerError, "The file could not be saved.");
        }
    }

    /// <summary>The names below /files/; <paramref name="isFolder"/>: the target ends with a slash.</summary>
    private static string[]? NamesOf(HttpContext context, out bool isFolder)
    {
        string[]? names = ServedFolder.NamesOf(context.Features.GetRequiredFeature<IHttpRequestFeature>().RawTarget);
        isFolder = names is [.., ""];
        return isFolder ? names![..^1] : names;
    }

    /// <summary>The entity tag of a file: another one after every change that its times or its length tell.</summary>
    internal static string TagOf(FileInfo file) => $"\"{ServedFolder.TimeOf(file).Ticks:x}-{file.Length:x}\"";

    private static IResult Exists(Settings settings) => Text(
        StatusCodes.Status409Conflict,
        settings.Overwrite ? "What has that name is no file, and is not replaced." : "There is something of that name already.");

    // ENOSPC and EDQUOT of Linux; ERROR_HANDLE_DISK_FULL and ERROR_DISK_FULL.
    private static bool IsFull(IOException e)
        => OperatingSystem.IsWindows() ? (e.HResult & 0xFFFF) is 39 or 112 : e.HResult is 28 or 122;

    private static IResult NotFound() => Text(StatusCodes.Status404NotFound, "There is no such file.");

    private static IResult Text(int status, string text) => Results.Text(text + "\n", "text/plain; charset=utf-8", statusCode: status);
}
