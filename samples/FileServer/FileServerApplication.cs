using System.Net;
using Microsoft.AspNetCore.HostFiltering;
using Microsoft.Net.Http.Headers;
using Pipelines.File;
using Pipelines.File.AspNetCore;

namespace FileServerSample;

/// <summary>The application: pages and downloads below /files/, uploads there by PUT, counters at /metrics.</summary>
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
        builder.Logging.SetMinimumLevel(LogLevel.Warning).AddFilter("Microsoft.Extensions.Hosting.Internal.Host", LogLevel.None).AddSimpleConsole();

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
        return app;
    }

    [LoggerMessage(1, LogLevel.Warning, "An upload failed.")]
    private static partial void LogFailed(ILogger logger, Exception exception);

    private static IResult Asset(string name, string contentType)
        => Results.Stream(typeof(FileServerApplication).Assembly.GetManifestResourceStream(name)!, contentType);

    private static IResult Get(HttpContext context, ServedFolder served, Settings settings)
    {
        context.Response.Headers.XContentTypeOptions = "nosniff";
        if (context.Request.Path.Value == "/files")
        {
            return Results.Redirect("/files/");
        }

        string[] names = NamesOf(context, out bool isFolder);
        if (served.PathOf(names) is not { } path)
        {
            return NotFound();
        }

        if (Directory.Exists(path))
        {
            if (!isFolder)
            {
                return Results.Redirect("/files/" + string.Concat(names.Select(name => Uri.EscapeDataString(name) + "/")));
            }

            context.Response.Headers.ContentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action 'none'; frame-ancestors 'none'";
            context.Response.Headers.CacheControl = "no-store";
            return Results.Content(FolderPage.Render(names, path, settings), "text/html; charset=utf-8");
        }

        FileInfo file = new(path);
        if (isFolder || !file.Exists)
        {
            return NotFound();
        }

        string contentType = ServedFolder.ContentTypeOf(path);
        if (!ServedFolder.IsPlayed(contentType))
        {
            // A page that somebody has uploaded runs no script here. A film in a sandbox would not find itself.
            context.Response.Headers.ContentSecurityPolicy = "sandbox; default-src 'none'; style-src 'unsafe-inline'";
        }

        if (contentType.StartsWith("text/", StringComparison.Ordinal))
        {
            contentType += "; charset=utf-8";
        }

        // Nothing without a length is opened: it may be a FIFO, which would wait for a writer.
        EntityTagHeaderValue etag = new($"\"{file.LastWriteTimeUtc.Ticks:x}-{file.Length:x}\"");
        return file.Length == 0
            ? TypedResults.Bytes(ReadOnlyMemory<byte>.Empty, contentType, lastModified: file.LastWriteTimeUtc, entityTag: etag)
            : TypedResults.PhysicalFile(path, contentType, lastModified: file.LastWriteTimeUtc, entityTag: etag, enableRangeProcessing: true);
    }

    private static async Task<IResult> PutAsync(HttpContext context, ServedFolder served, Settings settings)
    {
        string[] names = NamesOf(context, out bool isFolder);
        if (isFolder || served.PathOf(names) is not { } path || !Directory.Exists(Path.GetDirectoryName(path)))
        {
            return NotFound();
        }

        if (Directory.Exists(path) || (!settings.Overwrite && File.Exists(path)))
        {
            return Text(StatusCodes.Status409Conflict, "There is something of that name already.");
        }

        try
        {
            long length = await context.Request.SaveBodyAsync(
                path, new SaveBodyOptions { MaxLength = settings.MaxUpload, Overwrite = settings.Overwrite, Durable = settings.Durable }, context.RequestAborted);
            context.Response.Headers.Location = "/files/" + string.Join('/', names.Select(Uri.EscapeDataString));
            return Text(StatusCodes.Status201Created, $"{length} bytes");
        }
        catch (BadHttpRequestException e)
        {
            return Text(e.StatusCode, e.Message);
        }
        catch (FileExistsException)
        {
            return Text(StatusCodes.Status409Conflict, "There is something of that name already.");
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException && !context.RequestAborted.IsCancellationRequested)
        {
            // The message would tell where the root is.
            LogFailed(context.RequestServices.GetRequiredService<ILoggerFactory>().CreateLogger("FileServer"), e);
            return Text(StatusCodes.Status500InternalServerError, "The file could not be saved.");
        }
    }

    /// <summary>The names below /files/ as the client sent them, decoded once by the server; <paramref name="isFolder"/>: the path ends with a slash.</summary>
    private static string[] NamesOf(HttpContext context, out bool isFolder)
    {
        string path = context.Request.Path.Value!;
        string below = path.Length > "/files/".Length ? path["/files/".Length..] : "";
        isFolder = below.Length == 0 || below.EndsWith('/');
        return below.Length == 0 ? [] : (isFolder ? below[..^1] : below).Split('/');
    }

    private static IResult NotFound() => Text(StatusCodes.Status404NotFound, "There is no such file.");

    private static IResult Text(int status, string text) => Results.Text(text + "\n", "text/plain; charset=utf-8", statusCode: status);
}
