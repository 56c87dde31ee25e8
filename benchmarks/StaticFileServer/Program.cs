using System.Globalization;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;
using Microsoft.Extensions.FileProviders;
using StaticFileServer;

// What benchmarks/serve.sh measures: Kestrel with UseStaticFiles, with the one line or without it, and without any file.
//     StaticFileServer ROOT PORT WAY[,WAY...]
// plain: UseStaticFiles. pipelines: UseFilePipelines before it. opens: the same, and no file is kept open. nofile: UseStaticFiles, and the
// bytes come out of memory. array: the bytes come out of memory, and nobody looks for a file. inline: UnsafePreferInlineScheduling.
// noqueue: IOQueueCount 0. segment=BYTES: SegmentSize.
string root = Path.GetFullPath(args[0]);
int port = int.Parse(args[1], CultureInfo.InvariantCulture);
string[] ways = args[2].Split(',');

WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
builder.Logging.ClearProviders();
builder.WebHost.ConfigureKestrel(kestrel => kestrel.ListenLocalhost(port));
builder.Services.Configure<SocketTransportOptions>(sockets =>
{
    sockets.UnsafePreferInlineScheduling = ways.Contains("inline");
    sockets.IOQueueCount = ways.Contains("noqueue") ? 0 : sockets.IOQueueCount;
});
WebApplication app = builder.Build();
if (ways.Contains("pipelines") || ways.Contains("opens"))
{
    string? segment = ways.FirstOrDefault(way => way.StartsWith("segment=", StringComparison.Ordinal))?["segment=".Length..];
    app.UseFilePipelines(options =>
    {
        options.MaxOpenFiles = ways.Contains("opens") ? 0 : options.MaxOpenFiles;
        options.SegmentSize = segment is null ? options.SegmentSize : int.Parse(segment, CultureInfo.InvariantCulture);
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

app.UseStaticFiles(new StaticFileOptions { FileProvider = new PhysicalFileProvider(root), ServeUnknownFileTypes = true });
app.Run();
