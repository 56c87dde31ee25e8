using System.Globalization;
using Microsoft.Extensions.FileProviders;

// What benchmarks/serve.sh measures: Kestrel with UseStaticFiles, with the one line or without it.
//     StaticFileServer ROOT PORT plain|pipelines [SEGMENT-SIZE]
string root = Path.GetFullPath(args[0]);
int port = int.Parse(args[1], CultureInfo.InvariantCulture);

WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
builder.Logging.ClearProviders();
builder.WebHost.ConfigureKestrel(kestrel => kestrel.ListenLocalhost(port));
WebApplication app = builder.Build();
if (args[2] == "pipelines")
{
    app.UseFilePipelines(options => options.SegmentSize = args.Length > 3 ? int.Parse(args[3], CultureInfo.InvariantCulture) : options.SegmentSize);
}

app.UseStaticFiles(new StaticFileOptions { FileProvider = new PhysicalFileProvider(root), ServeUnknownFileTypes = true });
app.Run();
