using System.Globalization;
using Microsoft.Extensions.FileProviders;
using Pipelines.File.AspNetCore;
using StaticFileServer;

// What benchmarks/serve.sh measures: Kestrel with UseStaticFiles, with the one line or without it.
//     StaticFileServer ROOT PORT WAY
// plain: UseStaticFiles. pipelines: UseFilePipelines before it. opens: the same, and no file is kept open. mapped: MapFiles.
// memory, files=FOLDER, redis=PORT: the output cache, with its entries there.
// saved=FOLDER, copied=FOLDER, resumed=FOLDER: uploads go there, by SaveBodyAsync, Body.CopyToAsync, or MapResumableUploads at /uploads.
// fill=COUNT and measure=COUNT: no server, but an output cache in ROOT with so many entries.

string root = Path.GetFullPath(args[0]);
int port = int.Parse(args[1], CultureInfo.InvariantCulture);
string[] parts = args[2].Split('=', 2);
(string way, string value) = (parts[0], parts[^1]);
if (way == "fill")
{
    await CacheEntries.FillAsync(root, int.Parse(value, CultureInfo.InvariantCulture));
    return;
}

if (way == "measure")
{
    await CacheEntries.MeasureAsync(root, int.Parse(value, CultureInfo.InvariantCulture));
    return;
}

WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
builder.Logging.ClearProviders();
builder.WebHost.ConfigureKestrel(kestrel =>
{
    kestrel.ListenLocalhost(port);
    kestrel.Limits.MaxRequestBodySize = null;
});
if (way is "memory" or "files" or "redis")
{
    builder.Services.AddOutputCache(options => options.SizeLimit = 1 << 30);
}

if (way == "files")
{
    builder.Services.AddFileOutputCache(options => options.Folder = value);
}
else if (way == "redis")
{
    builder.Services.AddStackExchangeRedisOutputCache(options => options.Configuration = $"127.0.0.1:{value}");
}

WebApplication app = builder.Build();
StaticFileOptions options = new() { FileProvider = new PhysicalFileProvider(root), ServeUnknownFileTypes = true };
switch (way)
{
    case "memory" or "files" or "redis":
        app.UseOutputCache();
        app.MapGet("/{name}.bin", (string name) => Results.Bytes(File.ReadAllBytes(Path.Combine(root, Path.GetFileName(name) + ".bin"))))
            .CacheOutput(policy => policy.Expire(TimeSpan.FromHours(1)));
        break;
    case "saved":
        app.MapPut("/{name}", async (string name, HttpRequest request) =>
            await request.SaveBodyAsync(Path.Combine(value, Path.GetFileName(name)), new() { MaxLength = long.MaxValue }));
        break;
    case "resumed":
        app.MapResumableUploads("/uploads", new ResumableUploadOptions
        {
            Folder = Path.Combine(value, ".unfinished"),
            OnCompletedAsync = async (upload, stop)
                => await upload.SaveAsync(Path.Combine(value, Path.GetFileName(upload.Metadata["filename"])), cancellationToken: stop),
        });
        break;
    case "copied":
        app.MapPut("/{name}", async (string name, HttpRequest request) =>
        {
            await using FileStream stream = File.Create(Path.Combine(value, Path.GetFileName(name)));
            await request.Body.CopyToAsync(stream, request.HttpContext.RequestAborted);
        });
        break;
    case "mapped":
        app.MapFiles("/", options);
        break;
    case "pipelines":
        app.UseFilePipelines();
        app.UseStaticFiles(options);
        break;
    case "opens":
        app.UseFilePipelines(files => files.MaxOpenFiles = 0);
        app.UseStaticFiles(options);
        break;
    case "plain":
        app.UseStaticFiles(options);
        break;
    default:
        throw new ArgumentException($"There is no way '{way}'.");
}

app.Run();
