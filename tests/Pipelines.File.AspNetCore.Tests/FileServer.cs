using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using Microsoft.AspNetCore.Mvc;
using Microsoft.AspNetCore.Mvc.Abstractions;
using Microsoft.AspNetCore.Routing;
using Microsoft.AspNetCore.TestHost;
using Microsoft.Extensions.FileProviders;
using Microsoft.Extensions.Hosting;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>An application that sends the files of a folder in every way there is, with the middleware or without it.</summary>
public sealed class FileServer : IAsyncDisposable
{
    private readonly WebApplication _app;
    private Uri? _address;

    private FileServer(WebApplication app, TestLog log)
    {
        _app = app;
        Log = log;
    }

    public TestLog Log { get; }

    public int Port => _address!.Port;

    public static async Task<FileServer> StartAsync(
        string root,
        bool withPipelines,
        Action<KestrelServerOptions>? configureKestrel = null,
        Action<ListenOptions>? listen = null,
        Action<WebApplication>? before = null,
        Action<WebApplication>? after = null,
        Action<IServiceCollection>? services = null,
        FilePipelinesOptions? options = null,
        bool onTestHost = false,
        LogLevel logsFrom = LogLevel.Warning)
    {
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder(new WebApplicationOptions { EnvironmentName = "Production" });
        builder.Logging.ClearProviders().SetMinimumLevel(logsFrom);
        builder.Services.AddRoutingCore();
        builder.Services.AddMvcCore();
        services?.Invoke(builder.Services);
        if (onTestHost)
        {
            builder.WebHost.UseTestServer();
        }
        else
        {
            builder.WebHost.UseKestrel(kestrel =>
            {
                kestrel.Limits.MaxRequestBodySize = null;
                configureKestrel?.Invoke(kestrel);
                kestrel.Listen(IPAddress.Loopback, 0, endpoint => listen?.Invoke(endpoint));
            });
        }

        TestLog log = new(logsFrom);
        builder.Logging.AddProvider(log);
        WebApplication app = builder.Build();
        before?.Invoke(app);
        if (withPipelines)
        {
            app.UseFilePipelines(options);
        }

        after?.Invoke(app);
        app.UseStaticFiles(new StaticFileOptions { FileProvider = new PhysicalFileProvider(root), ServeUnknownFileTypes = true });
        StaticFileOptions mapped = new() { FileProvider = new PhysicalFileProvider(root), ServeUnknownFileTypes = true };
        if (withPipelines)
        {
            app.MapFiles("/mapped", mapped);
        }
        else
        {
            mapped.RequestPath = "/mapped";
            app.UseStaticFiles(mapped);
        }

        app.MapGet("/results/{name}", (string name) => Results.File(Path.Combine(root, name), "text/plain", enableRangeProcessing: true));
        app.MapMethods("/typed/{name}", ["GET", "HEAD"], (string name) =>
            TypedResults.PhysicalFile(Path.Combine(root, name), "text/plain", "download.txt", enableRangeProcessing: true));
        app.MapGet("/mvc/{name}", (string name, HttpContext context) =>
            new PhysicalFileResult(Path.Combine(root, name), "text/plain") { EnableRangeProcessing = true }
                .ExecuteResultAsync(new ActionContext(context, new RouteData(), new ActionDescriptor())));
        app.MapMethods("/send/{name}", ["GET", "HEAD"], (string name, long? offset, long? count, int? status, HttpContext context) =>
        {
            context.Response.StatusCode = status ?? 200;
            return context.Response.SendFileAsync(Path.Combine(root, name), offset ?? 0, count, context.RequestAborted);
        });
        app.MapGet("/around/{name}", async (string name, HttpContext context) =>
        {
            await context.Response.WriteAsync("before ");
            await context.Response.SendFileAsync(Path.Combine(root, name));
            await context.Response.WriteAsync(" after");
        });
        app.MapGet("/announced/{name}/{length}", async (string name, long length, HttpContext context) =>
        {
            context.Response.ContentLength = length;
            await context.Response.SendFileAsync(Path.Combine(root, name));
        });
        app.MapGet("/late/{name}/{length}", async (string name, long length, HttpContext context) =>
        {
            context.Response.OnStarting(() =>
            {
                context.Response.ContentLength = length;
                return Task.CompletedTask;
            });
            await context.Response.SendFileAsync(Path.Combine(root, name));
        });
        app.MapGet("/twice/{name}/{length}", async (string name, long length, HttpContext context) =>
        {
            context.Response.ContentLength = length;
            await context.Response.SendFileAsync(Path.Combine(root, name));
            await context.Response.SendFileAsync(Path.Combine(root, name));
        });
        app.MapGet("/throws/{name}", async (string name, long? offset, long? count, HttpContext context) =>
        {
            try
            {
                await context.Response.SendFileAsync(name.Length == 1 ? root : Path.Combine(root, name), offset ?? 0, count);
            }
            catch (Exception e)
            {
                await context.Response.WriteAsync(string.Create(CultureInfo.InvariantCulture,
                    $"{e.GetType().FullName} {e.Message} {(e as ArgumentOutOfRangeException)?.ParamName} {context.Response.HasStarted}"));
            }
        });

        await app.StartAsync(TestContext.Current.CancellationToken);
        FileServer server = new(app, log);
        if (!onTestHost)
        {
            server._address = new Uri(
                app.Services.GetRequiredService<IServer>().Features.Get<IServerAddressesFeature>()!.Addresses.Single());
        }

        return server;
    }

    /// <summary>A client of this server, over TLS where it wants that.</summary>
    public HttpClient CreateClient(Version version)
    {
        HttpClient client;
        if (_address is null)
        {
            client = _app.GetTestClient();
        }
        else
        {
            SocketsHttpHandler handler = new()
            {
                SslOptions =
                {
                    RemoteCertificateValidationCallback = (_, certificate, _, _) => certificate!.Equals(TestCertificate.Instance),
                },
            };

            // The default, 100 s, would be an assertion on how much else the machine has to do.
            client = new HttpClient(handler) { BaseAddress = _address, Timeout = TimeSpan.FromMinutes(10) };
        }

        client.DefaultRequestVersion = version;
        return client;
    }

    public async Task<Socket> ConnectAsync(int? receiveBuffer = null)
    {
        Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        if (receiveBuffer is int bytes)
        {
            socket.ReceiveBufferSize = bytes;
        }

        await socket.ConnectAsync(IPAddress.Loopback, Port);
        return socket;
    }

    public async ValueTask DisposeAsync()
    {
        using CancellationTokenSource impatience = new(TimeSpan.FromSeconds(2));
        await _app.StopAsync(impatience.Token);
        await _app.DisposeAsync();
    }
}
