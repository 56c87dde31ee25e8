using Microsoft.AspNetCore.Authentication;
using Microsoft.Extensions.FileProviders;
using Microsoft.Extensions.Options;

namespace FilePipelines.AspNetCore.Tests.Abuse;

/// <summary>Paths by which a client tries to reach a file that is not for it.</summary>
public sealed class ServedPathTests : IAsyncDisposable
{
    private readonly string _root = Directory.CreateTempSubdirectory("served-paths-").FullName;
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;
    private WebApplication? _app;

    public async ValueTask DisposeAsync()
    {
        if (_app is not null)
        {
            await _app.DisposeAsync();
        }

        Directory.Delete(_root, recursive: true);
    }

    [Theory]
    [InlineData("/docs/private/s.txt", 401)]
    [InlineData("/docs/PRIVATE/s.txt", 401)]
    [InlineData("/docs//private/s.txt", 404)]
    [InlineData("/docs///private//s.txt", 404)]
    [InlineData("//docs/private/s.txt", 404)]
    [InlineData("/docs/./private/s.txt", 401)]
    [InlineData("/docs/x/..//private/s.txt", 404)]
    [InlineData("/docs/private%2fs.txt", 404)]
    [InlineData("/docs/%2fprivate/s.txt", 404)]
    [InlineData("/docs/%2e/private/s.txt", 401)]
    [InlineData("/docs/x%2f../private/s.txt", 404)]
    [InlineData("/docs/x%2f..%2fprivate/s.txt", 404)]
    [InlineData("/docs/private\\s.txt", 404)]
    [InlineData("/docs/private%5cs.txt", 404)]
    [InlineData("/docs/%5cprivate/s.txt", 404)]
    [InlineData("/docs/private//s.txt", 401)]
    [InlineData("/docs/private//sub/s.txt", 401)]
    [InlineData("/docs/private;/s.txt", 404)]
    [InlineData("/docs/private./s.txt", 404)]
    [InlineData("/docs/private%20/s.txt", 404)]
    [InlineData("/docs/PRIVAT~1/s.txt", 404)]
    [InlineData("/docs/private::$INDEX_ALLOCATION/s.txt", 404)]
    [InlineData("/docs/a.txt", 200)]
    [InlineData("/docs//a.txt", 404)]
    [InlineData("/docs/sub//b.txt", 404)]
    [InlineData("/docs/sub/b.txt", 200)]
    public async Task InnerFolder_WithAuthorization_IsNotReachedByTheOuterOne(string path, int status)
    {
        string secret = Directory.CreateDirectory(Path.Combine(_root, "private")).FullName;
        Directory.CreateDirectory(Path.Combine(_root, "sub"));
        File.WriteAllText(Path.Combine(_root, "a.txt"), "public");
        File.WriteAllText(Path.Combine(_root, "sub", "b.txt"), "public");
        File.WriteAllText(Path.Combine(secret, "s.txt"), "SECRET");
        await StartAsync(app =>
        {
            app.MapFiles("/docs", new StaticFileOptions { FileProvider = new PhysicalFileProvider(_root) });
            app.MapFiles("/docs/private", new StaticFileOptions { FileProvider = new PhysicalFileProvider(secret) }).RequireAuthorization();
        });

        // Twice: what was answered is remembered.
        for (int i = 0; i < 2; i++)
        {
            string answer = await GetAsync(path);
            Assert.StartsWith($"HTTP/1.1 {status} ", answer, StringComparison.Ordinal);
            Assert.DoesNotContain("SECRET", answer, StringComparison.Ordinal);
        }
    }

    [Theory]
    [InlineData("private\\s.txt")]
    [InlineData("sub/private\\s.txt")]
    [InlineData("\\private\\s.txt")]
    [InlineData("private./s.txt")]
    [InlineData("private /s.txt")]
    [InlineData("PRIVAT~1/s.txt")]
    [InlineData("private::$INDEX_ALLOCATION/s.txt")]
    public void Path_ThatWindowsReadsAsAnother_IsNotPlainThere(string path)
    {
        Assert.False(FileEndpoint.IsPlain(path, isWindows: true));
        Assert.True(FileEndpoint.IsPlain(path, isWindows: false));
    }

    [Theory]
    [InlineData("private/s.txt", true)]
    [InlineData("", true)]
    [InlineData("a~b/c d.txt", true)]
    [InlineData("/s.txt", false)]
    [InlineData("a//s.txt", false)]
    [InlineData("a/../s.txt", false)]
    [InlineData("./s.txt", false)]
    public void Path_IsPlainOrNot_OnEverySystem(string path, bool isPlain)
    {
        Assert.Equal(isPlain, FileEndpoint.IsPlain(path, isWindows: true));
        Assert.Equal(isPlain, FileEndpoint.IsPlain(path, isWindows: false));
    }

    [Fact]
    public async Task Pattern_WithParametersAndOneFolder_IsRefused()
    {
        await Assert.ThrowsAsync<ArgumentException>(() => StartAsync(app => app.MapFiles("/u/{user}", Files())));
        await Assert.ThrowsAsync<ArgumentException>(() => StartAsync(app => app.MapFiles("/u/{user}/files", Files())));
        await Assert.ThrowsAsync<ArgumentException>(() => StartAsync(app => app.MapFiles("/u/{user?}", Files())));
        await Assert.ThrowsAsync<InvalidOperationException>(() => StartAsync(app => app.MapGroup("/u/{user}").MapFiles("/files", Files())));

        StaticFileOptions Files() => new() { FileProvider = new PhysicalFileProvider(_root) };
    }

    [Fact]
    public async Task Pattern_WithParametersAndAFolderOfTheRequest_ServesThatFolderOnly()
    {
        foreach (string user in new[] { "one", "two" })
        {
            Directory.CreateDirectory(Path.Combine(_root, user));
            File.WriteAllText(Path.Combine(_root, user, "b.txt"), "of " + user);
        }

        Assert.Throws<ArgumentException>(() => WebApplication.Create().MapFiles(
            "/u", static _ => null, new StaticFileOptions { FileProvider = new NullFileProvider() }));
        await StartAsync(app => app.MapFiles("/u/{user}", context => context.Request.RouteValues["user"] switch
        {
            "one" => Path.Combine(_root, "one"),
            "two" => Path.Combine(_root, "two"),
            "three" => Path.Combine(_root, "three"),
            _ => null,
        }));
        for (int i = 0; i < 3; i++)
        {
            Assert.EndsWith("\r\n\r\nof one", await GetAsync("/u/one/b.txt"), StringComparison.Ordinal);
            Assert.EndsWith("\r\n\r\nof two", await GetAsync("/u/two/b.txt"), StringComparison.Ordinal);
            Assert.StartsWith("HTTP/1.1 404 ", await GetAsync("/u/one/two/b.txt"), StringComparison.Ordinal);
            Assert.StartsWith("HTTP/1.1 404 ", await GetAsync("/u/one/..%2ftwo/b.txt"), StringComparison.Ordinal);
            Assert.StartsWith("HTTP/1.1 404 ", await GetAsync("/u/three/b.txt"), StringComparison.Ordinal);
            Assert.StartsWith("HTTP/1.1 404 ", await GetAsync("/u/nobody/b.txt"), StringComparison.Ordinal);
        }
    }

    [Theory]
    [InlineData("@300000000000"), InlineData("@-60000000000"), InlineData("@-13000000000")]
    public async Task File_WhoseTimeNobodyCanHold_IsServed(string time)
    {
        string folder = OddTimes.NewFolder();
        try
        {
            string path = Path.Combine(folder, "a.txt");
            File.WriteAllText(path, "old");
            OddTimes.Set(path, time);
            await StartAsync(app => app.MapFiles("/docs", new StaticFileOptions { FileProvider = new PhysicalFileProvider(folder) }));
            for (int i = 0; i < 3; i++)
            {
                Assert.EndsWith("\r\n\r\nold", await GetAsync("/docs/a.txt"), StringComparison.Ordinal);
            }
        }
        finally
        {
            Directory.Delete(folder, recursive: true);
        }
    }

    private async Task StartAsync(Action<WebApplication> map)
    {
        WebApplicationBuilder builder = WebApplication.CreateEmptyBuilder(new WebApplicationOptions());
        builder.WebHost.UseKestrelCore().ConfigureKestrel(kestrel => kestrel.Listen(IPAddress.Loopback, 0));
        builder.Services.AddRoutingCore().AddAuthorization()
            .AddAuthentication("nobody").AddScheme<AuthenticationSchemeOptions, Nobody>("nobody", null);
        WebApplication app = builder.Build();
        try
        {
            app.UseAuthentication();
            app.UseAuthorization();
            map(app);
            await app.StartAsync(_stop);
            _app = app;
        }
        catch
        {
            await app.DisposeAsync();
            throw;
        }
    }

    private async Task<string> GetAsync(string path)
    {
        using TcpClient client = new();
        await client.ConnectAsync(IPAddress.Loopback, new Uri(_app!.Urls.Single()).Port, _stop);
        await client.GetStream().WriteAsync(Encoding.ASCII.GetBytes($"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), _stop);
        using StreamReader reader = new(client.GetStream());
        return await reader.ReadToEndAsync(_stop);
    }

    private sealed class Nobody(
        IOptionsMonitor<AuthenticationSchemeOptions> options, ILoggerFactory loggers, System.Text.Encodings.Web.UrlEncoder encoder)
        : AuthenticationHandler<AuthenticationSchemeOptions>(options, loggers, encoder)
    {
        protected override Task<AuthenticateResult> HandleAuthenticateAsync() => Task.FromResult(AuthenticateResult.NoResult());
    }
}
