using System.Text.Json;

namespace FilePipelines.AspNetCore.Tests.Abuse;

/// <summary>What any client can cause: it is answered as a problem, costs one line of a log, and nobody else their connection.</summary>
public sealed class UploadRefusalTests : InARoot
{
    private readonly TaskCompletionSource _isHeld = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private SaveBodyOptions _options = new();
    private Exception? _thrown;

    public override ValueTask InitializeAsync() => new(StartAsync());

    public static TheoryData<string, int, string> Refusals() => new()
    {
        { "too long", 413, "The upload is longer than the 1 bytes that are allowed." },
        { "exists", 409, "" },
        { "inspection", 422, "" },
        { "status", 418, "" },
        { "precondition", 412, "The file is not the one that the precondition asks for." },
        { "long name", 400, "" },
        { "full", 507, "" },
    };

    [Theory]
    [MemberData(nameof(Refusals))]
    public async Task Refusal_IsAProblem_AndOneLineAtInformation(string what, int status, string detail)
    {
        await File.WriteAllTextAsync(Path.Combine(_root, "old"), "old", _stop);
        _options = what switch
        {
            "too long" => new SaveBodyOptions { MaxLength = 1 },
            "exists" => new SaveBodyOptions { Overwrite = false },
            "inspection" => new SaveBodyOptions { InspectAsync = static (_, _) => ValueTask.FromResult(false) },
            "status" => new SaveBodyOptions { InspectAsync = static (_, _) => throw new BadHttpRequestException("/srv/secret", 418) },
            "precondition" => new SaveBodyOptions { IfMatch = "\"x\"" },
            "full" => new SaveBodyOptions { BeforeReplaceAsync = static (_, _) => throw new IOException("/srv/secret", 28) },
            _ => new SaveBodyOptions(),
        };
        Assert.SkipWhen(what == "full" && !OperatingSystem.IsLinux(), "The number is that of Linux.");
        string name = what == "long name" ? new string('x', 300) : "old";

        using HttpResponseMessage response = await PutAsync(name);

        Assert.Equal((status, "application/problem+json"), ((int)response.StatusCode, response.Content.Headers.ContentType?.MediaType));
        string text = await response.Content.ReadAsStringAsync(_stop);
        Assert.DoesNotContain(_root, text, StringComparison.Ordinal);
        Assert.DoesNotContain("secret", text, StringComparison.Ordinal);
        using JsonDocument problem = JsonDocument.Parse(text);
        Assert.Equal(status, problem.RootElement.GetProperty("status").GetInt32());
        Assert.Equal(detail, problem.RootElement.TryGetProperty("detail", out JsonElement told) ? told.GetString() : "");
        Assert.Single(_server.Log.Lines, line => line.StartsWith($"An upload was refused with status {status}", StringComparison.Ordinal));
        Assert.DoesNotContain(_server.Log.Lines, line => line.Contains("unhandled", StringComparison.Ordinal));
    }

    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task BufferBodyAsync_TooLong_IsAProblem_AndOneLineAtInformation(bool isAnnounced)
    {
        using HttpContent content = isAnnounced ? new ByteArrayContent("abc"u8.ToArray()) : Unannounced(3);
        using HttpResponseMessage response = await _client.PutAsync("buffered", content, _stop);
        Assert.Equal((413, "application/problem+json"), ((int)response.StatusCode, response.Content.Headers.ContentType?.MediaType));
        Assert.Single(_server.Log.Lines, line => line.StartsWith("An upload was refused with status 413", StringComparison.Ordinal));
        Assert.DoesNotContain(_server.Log.Lines, line => line.Contains("unhandled", StringComparison.Ordinal));
    }

    [Fact]
    public async Task Refusal_WithProblemDetailsOfTheApplication_IsOneOfThose()
    {
        await RestartAsync(services => services.AddProblemDetails(
            details => details.CustomizeProblemDetails = context => context.ProblemDetails.Extensions["ours"] = true));
        _options = new SaveBodyOptions { MaxLength = 1 };
        using HttpResponseMessage response = await PutAsync("new");
        Assert.Equal(413, (int)response.StatusCode);
        Assert.Contains("\"ours\":true", await response.Content.ReadAsStringAsync(_stop), StringComparison.Ordinal);
    }

    [Fact]
    public async Task Failure_ThatIsNoRefusal_IsThatOfTheApplication()
    {
        using HttpResponseMessage response = await PutAsync("no%2Ffolder");
        Assert.Equal((500, null), ((int)response.StatusCode, response.Content.Headers.ContentType));
        Assert.Contains(_server.Log.Lines, line => line.Contains("unhandled", StringComparison.Ordinal));

        _thrown = new BadHttpRequestException("The application's own.", 418);
        _options = new SaveBodyOptions { MaxLength = 1 };
        using HttpResponseMessage other = await PutAsync("x");
        Assert.Equal((418, null), ((int)other.StatusCode, other.Content.Headers.ContentType));
    }

    [Fact]
    public async Task TooLongUpload_OnAConnectionOfHttp2_LeavesTheOthersOnIt()
    {
        string folder = Path.Combine(_root, "unfinished");
        ResumableUploadOptions uploads = new() { Folder = folder, MaxLength = 1000 };
        await RestartAsync(_ => { }, app => app.MapResumableUploads("/uploads", uploads));
        _options = new SaveBodyOptions { MaxLength = 10 };
        using HttpClient client = _server.CreateClient(HttpVersion.Version20);
        client.DefaultVersionPolicy = HttpVersionPolicy.RequestVersionExact;
        Task<string> neighbour = client.GetStringAsync("held", _stop);

        foreach (int length in new[] { 11, 400_000 })
        {
            using HttpResponseMessage response = await client.PutAsync("save/long", Unannounced(length), _stop);
            Assert.Equal(413, (int)response.StatusCode);
        }

        using HttpRequestMessage creation = new(HttpMethod.Post, "uploads") { Content = Unannounced(400_000) };
        creation.Version = HttpVersion.Version20;
        creation.VersionPolicy = HttpVersionPolicy.RequestVersionExact;
        creation.Headers.Add("Tus-Resumable", "1.0.0");
        creation.Headers.Add("Upload-Defer-Length", "1");
        creation.Content.Headers.Add("Content-Type", "application/offset+octet-stream");
        using HttpResponseMessage tooLong = await client.SendAsync(creation, _stop);
        Assert.Equal(413, (int)tooLong.StatusCode);

        // The connection ended two seconds after the answer.
        await Task.WhenAny(neighbour, Task.Delay(2500, _stop));
        Assert.False(neighbour.IsCompleted);
        _isHeld.SetResult();
        Assert.Equal("held", await neighbour);
    }

    private static StreamContent Unannounced(int length) => new(new HiddenLength(new byte[length]));

    private async Task<HttpResponseMessage> PutAsync(string name)
    {
        using ByteArrayContent content = new("abc"u8.ToArray());
        return await _client.PutAsync("save/" + name, content, _stop);
    }

    private async Task RestartAsync(Action<IServiceCollection> services, Action<WebApplication>? map = null)
    {
        _client.Dispose();
        await _server.DisposeAsync();
        await StartAsync(services, map);
    }

    private async Task StartAsync(Action<IServiceCollection>? services = null, Action<WebApplication>? map = null)
    {
        _server = await FileServer.StartAsync(
            _root,
            withPipelines: true,
            listen: map is null ? null : endpoint => endpoint.Protocols = HttpProtocols.Http2,
            services: services,
            after: app =>
            {
                app.MapPut("/save/{name}", async (string name, HttpRequest request) =>
                {
                    try
                    {
                        await request.SaveBodyAsync(Path.Combine(_root, Uri.UnescapeDataString(name)), _options);
                    }
                    catch (BadHttpRequestException) when (_thrown is not null)
                    {
                        throw _thrown;
                    }
                });
                app.MapPut("/buffered", (HttpRequest request) => request.BufferBodyAsync(new() { MaxLength = 1 }));
                app.MapGet("/held", async () =>
                {
                    await _isHeld.Task;
                    return "held";
                });
                map?.Invoke(app);
            },
            logsFrom: LogLevel.Information);
        _client = _server.CreateClient(HttpVersion.Version11);
    }

    private sealed class HiddenLength(byte[] bytes) : MemoryStream(bytes)
    {
        public override bool CanSeek => false;
    }
}
