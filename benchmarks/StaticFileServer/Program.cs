using System.Globalization;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;
using Microsoft.Extensions.FileProviders;
using Pipelines.File.AspNetCore;
using StaticFileServer;

// What benchmarks/serve.sh measures: Kestrel with UseStaticFiles, with the one line or without it, and without any file.
//     StaticFileServer ROOT PORT WAY[,WAY...]
// plain: UseStaticFiles. pipelines: UseFilePipelines before it. opens: the same, and no file is kept open. mapped: MapFiles.
// nofile: UseStaticFiles, and the bytes come out of memory. array: the bytes come out of memory, and nobody looks for a file.
// inline: UnsafePreferInlineScheduling.
// noqueue: IOQueueCount 0. segment=BYTES: BufferSize. memory, files=FOLDER, redis=PORT: the output cache, with its entries there.
// saved=FOLDER, copied=FOLDER, resumed=FOLDER: uploads go there, by SaveBodyAsync, Body.CopyToAsync, or MapResumableUploads at /uploads.
// fill=COUNT and measure=COUNT: no server, but an output cache in ROOT with so many entries.

string root = Path.GetFullPath(args[0]);
int port = int.Parse(args[1], CultureInfo.InvariantCulture);
string[] ways = args[2].Split(',');

if (ValueOf("fill") is { } missing)
{
    await CacheEntries.FillAsync(root, int.Parse(missing, CultureInfo.InvariantCulture));
    return;
}

if (ValueOf("measure") is { } there)
{
    await CacheEntries.MeasureAsync(root, int.Parse(there, CultureInfo.InvariantCulture));
    return;
}

WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
builder.Logging.ClearProviders();
builder.WebHost.ConfigureKestrel(kestrel =>
{
    kestrel.ListenLocalhost(port);
    kestrel.Limits.MaxRequestBodySize = null;
});
builder.Services.Configure<SocketTransportOptions>(sockets =>
{
    sockets.UnsafePreferInlineScheduling = ways.Contains("inline");
    sockets.IOQueueCount = ways.Contains("noqueue") ? 0 : sockets.IOQueueCount;
});

string? folder = ValueOf("files");
string? redis = ValueOf("redis");
bool isCached = ways.Contains("memory") || folder is not null || redis is not null;
if (isCached)
{
    builder.Services.AddOutputCache(options => options.SizeLimit = 1 << 30);
}

if (folder is not null)
{
    builder.Services.AddFileOutputCache(options => options.Folder = folder);
}
else if (redis is not null)
{
    builder.Services.AddStackExchangeRedisOutputCache(options => options.Configuration = $"127.0.0.1:{redis}");
}

WebApplication app = builder.Build();
if (isCached)
{
    app.UseOutputCache();
    app.MapGet("/{name}.bin", (string name) => Results.Bytes(File.ReadAllBytes(Path.Combine(root, Path.GetFileName(name) + ".bin"))))
        .CacheOutput(policy => policy.Expire(TimeSpan.FromHours(1)));
    app.Run();
    return;
}

if (ValueOf("saved") is { } saved)
{
    app.MapPut("/{name}", async (string name, HttpRequest request) =>
        await request.SaveBodyAsync(Path.Combine(saved, Path.GetFileName(name)), new() { MaxLength = long.MaxValue }));
    app.Run();
    return;
}

if (ValueOf("resumed") is { } resumed)
{
    app.MapResumableUploads("/uploads", new ResumableUploadOptions
    {
        Folder = Path.Combine(resumed, ".unfinished"),
        OnCompletedAsync = async (upload, stop)
            => await upload.SaveAsync(Path.Combine(resumed, Path.GetFileName(upload.Metadata["filename"])), cancellationToken: stop),
    });
    app.Run();
    return;
}

if (ValueOf("copied") is { } copied)
{
    app.MapPut("/{name}", async (string name, HttpRequest request) =>
    {
        await using FileStream stream = File.Create(Path.Combine(copied, Path.GetFileName(name)));
        await request.Body.CopyToAsync(stream, request.HttpContext.RequestAborted);
    });
    app.Run();
    return;
}

if (ways.Contains("pipelines") || ways.Contains("opens"))
{
    string? segment = ValueOf("segment");
    app.UseFilePipelines(options =>
    {
        options.MaxOpenFiles = ways.Contains("opens") ? 0 : options.MaxOpenFiles;
        options.BufferSize = segment is null ? options.BufferSize : int.Parse(segment, CultureInfo.InvariantCulture);
    });
}

if (ways.Contains("nofile") || ways.Contains("array"))
{
    Dictionary<string, byte[]> files = Directory.GetFiles(root).Where(path => new FileInfo(path).Length <= 1 << 20)
        .ToDictionary(path => path, File.ReadAllBytes);
    if (ways.Contains("nofile"))
    {
        app.Use((context, next) =>
        {
            context.Features.Set<IHttpResponseBodyFeature>(
                new MemoryBody(context.Features.GetRequiredFeature<IHttpResponseBodyFeature>(), files));
            return next(context);
        });
    }
    else
    {
        files = files.ToDictionary(file => "/" + Path.GetFileName(file.Key), file => file.Value);
        app.Run(context =>
        {
            byte[] content = files[context.Request.Path.Value!];
            HttpResponse response = context.Response;
            response.ContentLength = content.Length;
            response.ContentType = "application/octet-stream";
            response.Headers.AcceptRanges = "bytes";
            response.Headers.ETag = "\"1dc5b3c0f1d2e00\"";
            response.Headers.LastModified = "Fri, 02 Jan 2026 03:04:05 GMT";
            return MemoryBody.SendAsync(context.Features.GetRequiredFeature<IHttpResponseBodyFeature>(), content, CancellationToken.None);
        });
    }
}

StaticFileOptions options = new() { FileProvider = new PhysicalFileProvider(root), ServeUnknownFileTypes = true };
if (ways.Contains("mapped"))
{
    app.MapFiles("/", options);
}
else
{
    app.UseStaticFiles(options);
}

app.Run();

string? ValueOf(string name)
    => ways.FirstOrDefault(way => way.StartsWith(name + "=", StringComparison.Ordinal))?[(name.Length + 1)..];
