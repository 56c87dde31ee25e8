using System.ComponentModel.DataAnnotations;
using System.Net.Http.Headers;
using Microsoft.AspNetCore.HttpLogging;
using Microsoft.AspNetCore.Mvc;
using Microsoft.AspNetCore.Mvc.Controllers;
using Microsoft.AspNetCore.Routing;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>What works behind <c>EnableBuffering</c> works behind <c>UseRequestBuffering</c>, with the same answer.</summary>
public sealed class DropInTests
{
    private static readonly int[] s_lengths = [0, 10, 300_000];

    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;
    private readonly System.Collections.Concurrent.ConcurrentQueue<string> _log = new();

    public enum Way
    {
        EnableBuffering,
        UseRequestBuffering,
        WithRequestBuffering,
    }

    public static TheoryData<Way, int> Ways => new(from way in Enum.GetValues<Way>() from length in s_lengths select (way, length));

    [Theory]
    [MemberData(nameof(Ways))]
    public async Task BoundAndReadAgain_IsTheSameBody(Way way, int length)
    {
        await using WebApplication app = await StartAsync(way);
        using HttpClient client = new() { BaseAddress = new Uri(app.Urls.First()) };
        string text = new('x', length);
        Assert.Equal($"{length} {length + 11}", await PostAsync(client, "/newtonsoft", Json(text)));
        Assert.Equal($"{length} {length + 11}", await PostAsync(client, "/minimal", Json(text)));
        string form = $"{length} {length + 5}";
        Assert.Equal(form, await PostAsync(client, "/model", Form(text)));
        Assert.Equal(form, await PostAsync(client, "/form", Form(text)));
        Assert.Equal($"{length} {length}", await PostAsync(client, "/stream", new StringContent(text)));
        Assert.Equal($"{length} {length}", await PostAsync(client, "/reader", new StringContent(text)));
        using MultipartFormDataContent files = new() { { new ByteArrayContent(Encoding.ASCII.GetBytes(text)), "file", "name" } };
        long whole = files.Headers.ContentLength!.Value;
        Assert.Equal($"{length} {whole}", await PostAsync(client, "/file", files));
        Assert.Contains(_log, line => line.Contains("RequestBody", StringComparison.Ordinal));
    }

    private static StringContent Json(string text) => new($$"""{"text":"{{text}}"}""", new MediaTypeHeaderValue("application/json"));

    private static FormUrlEncodedContent Form(string text) => new([new("text", text)]);

    private async Task<string> PostAsync(HttpClient client, string path, HttpContent content)
    {
        using HttpResponseMessage response = await client.PostAsync(path, content, _stop);
        string answer = await response.Content.ReadAsStringAsync(_stop);
        Assert.True(response.IsSuccessStatusCode, $"{path}: {response.StatusCode} {answer}");
        return answer;
    }

    private async Task<WebApplication> StartAsync(Way way)
    {
        WebApplicationBuilder builder = WebApplication.CreateBuilder(new WebApplicationOptions { EnvironmentName = "Production" });
        builder.Logging.ClearProviders().SetMinimumLevel(LogLevel.Information).AddProvider(new QueueLog(_log));
        builder.WebHost.UseUrls("http://127.0.0.1:0");
        builder.Services.AddHttpLogging(logging => logging.LoggingFields = HttpLoggingFields.RequestBody);
        builder.Services.AddControllers().AddNewtonsoftJson().ConfigureApplicationPartManager(
            parts => parts.FeatureProviders.Add(new OneController()));
        WebApplication app = builder.Build();
        app.UseHttpLogging();
        if (way == Way.EnableBuffering)
        {
            app.Use(async (context, next) =>
            {
                context.Request.EnableBuffering();
                await next(context);
            });
        }
        else if (way == Way.UseRequestBuffering)
        {
            app.UseRequestBuffering();
        }

        if (way != Way.WithRequestBuffering)
        {
            app.Use(async (context, next) =>
            {
                // As a logger of bodies.
                using StreamReader reader = new(context.Request.Body, leaveOpen: true);
                _ = await reader.ReadToEndAsync();
                context.Request.Body.Position = 0;
                await next(context);
            });
        }

        app.UseRouting();
        RouteGroupBuilder all = app.MapGroup("");
        ControllerActionEndpointConventionBuilder controllers = app.MapControllers();
        if (way == Way.WithRequestBuffering)
        {
            all.WithRequestBuffering();
            controllers.WithRequestBuffering();
        }

        all.MapPost("/minimal", async (Body body, HttpRequest request) => $"{body.Text.Length} {await AgainAsync(request)}");
        all.MapPost("/form", async (HttpRequest request)
            => $"{(await request.ReadFormAsync())["text"].ToString().Length} {await AgainAsync(request)}");
        all.MapPost("/file", async (IFormFile file, HttpRequest request) => $"{file.Length} {await AgainAsync(request)}")
            .DisableAntiforgery();
        all.MapPost("/stream", async (Stream body, HttpRequest request) => $"{await LengthAsync(body)} {await AgainAsync(request)}");
        all.MapPost("/reader", async (HttpRequest request) =>
        {
            long length = 0;
            while (true)
            {
                System.IO.Pipelines.ReadResult result = await request.BodyReader.ReadAsync();
                length += result.Buffer.Length;
                request.BodyReader.AdvanceTo(result.Buffer.End);
                if (result.IsCompleted)
                {
                    break;
                }
            }

            return $"{length} {await AgainAsync(request)}";
        });
        await app.StartAsync(_stop);
        return app;
    }

    private static async Task<long> AgainAsync(HttpRequest request)
    {
        request.Body.Position = 0;
        return await LengthAsync(request.Body);
    }

    private static async Task<long> LengthAsync(Stream stream)
    {
        using MemoryStream copy = new();
        await stream.CopyToAsync(copy);
        return copy.Length;
    }

    public sealed record Body([property: Required(AllowEmptyStrings = true)] string Text);

    public sealed class Model
    {
        public string? Text { get; set; }
    }

    public sealed class BoundController : ControllerBase
    {
        [HttpPost("/newtonsoft")]
        public async Task<string> Newtonsoft([FromBody] Newtonsoft.Json.Linq.JObject body)
            => $"{((string)body["text"]!).Length} {await AgainAsync(Request)}";

        [HttpPost("/model")]
        public async Task<string> Bound([FromForm] Model model) => $"{(model.Text ?? "").Length} {await AgainAsync(Request)}";
    }

    private sealed class OneController : ControllerFeatureProvider
    {
        protected override bool IsController(System.Reflection.TypeInfo typeInfo) => typeInfo == typeof(BoundController);
    }

    private sealed class QueueLog(System.Collections.Concurrent.ConcurrentQueue<string> lines) : ILoggerProvider, ILogger
    {
        public ILogger CreateLogger(string categoryName) => this;

        public void Dispose()
        {
        }

        public IDisposable? BeginScope<TState>(TState state) where TState : notnull => null;

        public bool IsEnabled(LogLevel logLevel) => true;

        public void Log<TState>(LogLevel logLevel, EventId eventId, TState state, Exception? exception,
            Func<TState, Exception?, string> formatter) => lines.Enqueue(formatter(state, exception));
    }
}
