using System.Net;
using System.Net.Sockets;
using FileServerSample;
using Microsoft.AspNetCore.Builder;

namespace FilePipelines.Repository.Tests;

/// <summary>samples/FileServer: what it serves, and that nothing leaves its root.</summary>
public sealed class SampleTests : IAsyncLifetime
{
    private const string Secret = "secret-of-the-machine";

    private readonly string _folder = Directory.CreateTempSubdirectory("file-server-").FullName;
    private readonly string _root;
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;
    private WebApplication _app = null!;
    private HttpClient _client = null!;

    public SampleTests() => _root = Path.Combine(_folder, "root");

    public static TheoryData<string> Attempts()
    {
        TheoryData<string> attempts = [];
        string[] ups =
        [
            "..", "%2e%2e", "%2E%2E", ".%2e", "%2e.", "%252e%252e", "..%00", "..;", "%c0%ae%c0%ae", "%e0%80%ae%e0%80%ae", "%uff0e%uff0e",
            "....", "...", "..%20", "..%09", ".%0a.", "..%c0%af", "%ff%ff",
        ];
        string[] slashes = ["/", "%2f", "%2F", "%252f", "\\", "%5c", "%255c", "%c0%af", "%e0%80%af", "/./", "//", "%2f%2f", "/%2f"];
        foreach (string up in ups)
        {
            foreach (string slash in slashes)
            {
                attempts.Add($"/files/{up}{slash}secret.txt");
                attempts.Add($"/files/folder{slash}{up}{slash}{up}{slash}secret.txt");
                attempts.Add($"/files{slash}{up}{slash}secret.txt");
            }
        }

        foreach (string attempt in new[]
        {
            "/secret.txt", "/../secret.txt", "/../../secret.txt", "/files/../../secret.txt",
            "/files/..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd", "/files//etc/passwd", "/files/%2fetc%2fpasswd", "/files/%2fetc/passwd",
            "/files//secret.txt", "/files/ROOT/../secret.txt", "/files/%2FOLDER%2Fsecret.txt", "/files/FOLDER/secret.txt",
            "/files/file:///FOLDER/secret.txt", "/files/file:FOLDER/secret.txt", "/files/C:%5csecret.txt", "/files/C:/secret.txt",
            "/files/C:secret.txt", "/files/%5c%5clocalhost%5csecret.txt", "/files/~/secret.txt", "/files/link.txt",
            "/files/links/secret.txt", "/files/links/", "/files/links", "/files/folder/link.txt", "/files/loop/secret.txt",
            "/files/upwards/secret.txt", "/files/upwards/root/../secret.txt", "/files/.hidden", "/files/folder/.hidden", "/files/.",
            "/files/./..", "/files/..", "/files/..?a=b", "/files/../", "/files/%2e%2e%2f", "/files/folder/..%2f..%2fsecret.txt?x",
            "/files/folder/../../secret.txt#f", "/files/folder%00/../../secret.txt", "/files/readme.txt/../../secret.txt",
            "/files/readme.txt%00.png", "/files/%00", "/files/folder/%2e%2e/%2e%2e/secret.txt", "/metrics/../../secret.txt",
            "/assets/../../secret.txt", "/assets/..%2fsecret.txt", "/FILES/../secret.txt", "http://127.0.0.1/files/../secret.txt",
            "http://127.0.0.1/files/..%2fsecret.txt", "secret.txt", "../secret.txt", "*", "",
        })
        {
            attempts.Add(attempt);
        }

        return attempts;
    }

    public async ValueTask InitializeAsync()
    {
        Directory.CreateDirectory(Path.Combine(_root, "folder"));
        Directory.CreateDirectory(Path.Combine(_folder, "outside"));
        await File.WriteAllTextAsync(Path.Combine(_folder, "secret.txt"), Secret, _stop);
        await File.WriteAllTextAsync(Path.Combine(_folder, "outside", "secret.txt"), Secret, _stop);
        await File.WriteAllTextAsync(Path.Combine(_root, "readme.txt"), "0123456789", _stop);
        await File.WriteAllTextAsync(Path.Combine(_root, ".hidden"), Secret, _stop);
        await File.WriteAllTextAsync(Path.Combine(_root, "folder", ".hidden"), Secret, _stop);
        if (!OperatingSystem.IsWindows())
        {
            File.CreateSymbolicLink(Path.Combine(_root, "link.txt"), Path.Combine(_folder, "secret.txt"));
            File.CreateSymbolicLink(Path.Combine(_root, "folder", "link.txt"), "../../secret.txt");
            File.CreateSymbolicLink(Path.Combine(_root, "links"), Path.Combine(_folder, "outside"));
            File.CreateSymbolicLink(Path.Combine(_root, "upwards"), "..");
            File.CreateSymbolicLink(Path.Combine(_root, "loop"), "loop");
        }

        await StartAsync(new Settings(_root, Port: 0, MaxUpload: 1_000_000));
    }

    public async ValueTask DisposeAsync()
    {
        _client.Dispose();

        // Only that closes what it keeps open at once.
        _app.Lifetime.StopApplication();
        await _app.DisposeAsync();
        Directory.Delete(_folder, recursive: true);
    }

    [Fact]
    public async Task AnyMethod_AttemptToLeaveTheRoot_GetsNothingAndChangesNothing()
    {
        // Not every attempt is refused: what is a plain name after it was decoded once may be written below the root.
        string before = Outside();
        List<string> failures = [];
        foreach (TheoryDataRow<string> row in Attempts())
        {
            foreach (string method in new[] { "GET", "HEAD", "PUT" })
            {
                string target = row.Data.Replace("FOLDER", _folder, StringComparison.Ordinal)
                    .Replace("ROOT", _root, StringComparison.Ordinal);
                string response = await AskAsync(method, target);
                if (!response.StartsWith("HTTP/1.1 ", StringComparison.Ordinal)
                    || response.Contains(Secret, StringComparison.Ordinal) || Outside() != before)
                {
                    failures.Add($"{method} {target}: {response.Split('\r')[0]}");
                }
            }
        }

        Assert.Empty(failures);
        Assert.Equal(Secret, await File.ReadAllTextAsync(Path.Combine(_root, ".hidden"), _stop));
        Assert.Equal(Secret, await File.ReadAllTextAsync(Path.Combine(_root, "folder", ".hidden"), _stop));
    }

    [Fact]
    public async Task Put_OntoOrThroughASymbolicLink_IsRefused()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Needs symbolic links.");
        await using WebApplication app = _app;
        await StartAsync(new Settings(_root, Port: 0, Overwrite: true));
        string before = Outside();
        foreach (string target in new[] { "link.txt", "folder/link.txt", "links/secret.txt", "links/new.txt", "upwards/secret.txt",
            "upwards/new.txt", "loop/new.txt", "loop" })
        {
            Assert.StartsWith("HTTP/1.1 404", await AskAsync("PUT", "/files/" + target), StringComparison.Ordinal);
        }

        Assert.Equal(before, Outside());
        Assert.NotNull(new FileInfo(Path.Combine(_root, "link.txt")).LinkTarget);
    }

    [Fact]
    public async Task Get_Folder_ShowsWhatIsServedAndNoMarkupOfItsNames()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Such names are not to be had there.");
        await File.WriteAllTextAsync(Path.Combine(_root, "<img src=x onerror=alert(1)>\"'&.txt"), "x", _stop);
        await File.WriteAllTextAsync(Path.Combine(_root, "a#b?c%d é.txt"), "odd", _stop);
        await File.WriteAllTextAsync(Path.Combine(_root, "javascript:alert(1)"), "x", _stop);
        HttpResponseMessage response = await _client.GetAsync("files/", _stop);
        string page = await response.Content.ReadAsStringAsync(_stop);
        Assert.DoesNotContain("<img", page, StringComparison.Ordinal);
        Assert.DoesNotContain("href=\"javascript:", page, StringComparison.Ordinal);
        Assert.Contains(
            "script-src 'self'", Assert.Single(response.Headers.GetValues("Content-Security-Policy")), StringComparison.Ordinal);
        Assert.Contains("href=\"folder/\"", page, StringComparison.Ordinal);
        Assert.Contains("href=\"readme.txt\"", page, StringComparison.Ordinal);
        foreach (string hidden in new[] { ".hidden", "link.txt", "links", "upwards", "loop" })
        {
            Assert.DoesNotContain(hidden, page, StringComparison.Ordinal);
        }

        Assert.Contains("href=\"a%23b%3Fc%25d%20%C3%A9.txt\"", page, StringComparison.Ordinal);
        Assert.Equal("odd", await _client.GetStringAsync("files/a%23b%3Fc%25d%20%C3%A9.txt", _stop));
    }

    [Fact]
    public async Task Get_FileRangesAndValidators_AreServed()
    {
        using HttpRequestMessage ranged = new(HttpMethod.Get, "files/readme.txt") { Headers = { { "Range", "bytes=3-5" } } };
        HttpResponseMessage response = await _client.SendAsync(ranged, _stop);
        Assert.Equal((HttpStatusCode.PartialContent, "345"), (response.StatusCode, await response.Content.ReadAsStringAsync(_stop)));
        Assert.Equal("bytes 3-5/10", response.Content.Headers.ContentRange!.ToString());
        Assert.Contains("sandbox", Assert.Single(response.Headers.GetValues("Content-Security-Policy")), StringComparison.Ordinal);
        using HttpRequestMessage conditional =
            new(HttpMethod.Get, "files/readme.txt") { Headers = { { "If-None-Match", response.Headers.ETag!.ToString() } } };
        Assert.Equal(HttpStatusCode.NotModified, (await _client.SendAsync(conditional, _stop)).StatusCode);
        Assert.Equal(HttpStatusCode.NotFound, (await _client.GetAsync("files/none.txt", _stop)).StatusCode);
        Assert.Equal(HttpStatusCode.NotFound, (await _client.GetAsync("files/readme.txt/", _stop)).StatusCode);
    }

    [Fact]
    public async Task Get_Fifo_DoesNotWaitForAWriter()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It calls mkfifo.");
        using System.Diagnostics.Process made = System.Diagnostics.Process.Start("mkfifo", Path.Combine(_root, "fifo"));
        await made.WaitForExitAsync(_stop);
        Assert.Empty(await _client.GetByteArrayAsync("files/fifo", _stop).WaitAsync(Eventually.Limit, _stop));
    }

    [Fact]
    public async Task Put_File_IsThereAndCounted()
    {
        byte[] content = FileTree.Content(300_000);
        HttpResponseMessage response = await _client.PutAsync("files/folder/new%20%252e.bin", new ByteArrayContent(content), _stop);
        Assert.Equal((HttpStatusCode.Created, "/files/folder/new%20%252e.bin"),
            (response.StatusCode, response.Headers.Location!.ToString()));
        Assert.Equal(content, await _client.GetByteArrayAsync("files/folder/new%20%252e.bin", _stop));
        Assert.Equal(content, await File.ReadAllBytesAsync(Path.Combine(_root, "folder", "new %2e.bin"), _stop));
        string metrics = await _client.GetStringAsync("metrics", _stop);
        foreach (string counter in new[] { "uploads_saved", "responses_sent", "bytes_read", "bytes_written" })
        {
            Assert.Matches($"(?m)^pipelines_file_{counter}_total [1-9][0-9]*$", metrics);
        }

        Assert.Matches("(?m)^# TYPE pipelines_file_pool_retained gauge$", metrics);
        Assert.Matches("(?m)^pipelines_file_pool_retained [1-9][0-9]*$", metrics);
        // The upload was written by threads of the library's own.
        Assert.Matches("(?m)^pipelines_file_waiting_threads [1-9][0-9]*$", metrics);
        Assert.Matches("(?m)^pipelines_file_waiting_(queued|under_way) [0-9]+$", metrics);
        Assert.Contains("# TYPE pipelines_file_waiting_calls_total counter", metrics, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Put_TooLongOrThereAlready_IsRefused()
    {
        Assert.Equal(HttpStatusCode.RequestEntityTooLarge,
            (await _client.PutAsync("files/large.bin", new ByteArrayContent(new byte[1_000_001]), _stop)).StatusCode);
        Assert.Equal(HttpStatusCode.Created,
            (await _client.PutAsync("files/large.bin", new ByteArrayContent(new byte[1_000_000]), _stop)).StatusCode);
        Assert.Equal(HttpStatusCode.Conflict, (await _client.PutAsync("files/large.bin", new ByteArrayContent([1]), _stop)).StatusCode);
        Assert.Equal(HttpStatusCode.Conflict, (await _client.PutAsync("files/folder", new ByteArrayContent([1]), _stop)).StatusCode);
        Assert.Equal(1_000_000, new FileInfo(Path.Combine(_root, "large.bin")).Length);
        Assert.Equal(HttpStatusCode.NotFound, (await _client.PutAsync("files/none/f.bin", new ByteArrayContent([1]), _stop)).StatusCode);
        await using WebApplication app = _app;
        await StartAsync(new Settings(_root, Port: 0, Overwrite: true, Durable: true));
        Assert.Equal(HttpStatusCode.OK, (await _client.PutAsync("files/large.bin", new ByteArrayContent([1]), _stop)).StatusCode);
        Assert.Equal(1, new FileInfo(Path.Combine(_root, "large.bin")).Length);
    }

    [Fact]
    public async Task Get_HostOfAnotherSite_IsRefused()
    {
        using HttpRequestMessage request = new(HttpMethod.Get, "files/") { Headers = { Host = "example.org" } };
        Assert.Equal(HttpStatusCode.BadRequest, (await _client.SendAsync(request, _stop)).StatusCode);
    }

    [Theory]
    [InlineData("--root is needed")]
    [InlineData("needs a value", "--root")]
    [InlineData("no folder", "--root", "ROOT/none")]
    [InlineData("no folder", "--root", "ROOT/readme.txt")]
    [InlineData("no port", "--root", "ROOT", "--port", "65536")]
    [InlineData("no port", "--root", "ROOT", "--port", "-1")]
    [InlineData("no size", "--root", "ROOT", "--max-upload", "1T")]
    [InlineData("no size", "--root", "ROOT", "--max-upload", "9999999999999G")]
    [InlineData("no argument", "ROOT")]
    public void Parse_BadArgument_TellsItInOneLine(string expected, params string[] arguments)
    {
        Assert.Null(Settings.Parse(
            [.. arguments.Select(argument => argument.Replace("ROOT", _root, StringComparison.Ordinal))], out string? error));
        Assert.Contains(expected.Replace("--root is", "--root FOLDER is", StringComparison.Ordinal), error, StringComparison.Ordinal);
        Assert.DoesNotContain('\n', error!);
    }

    [Fact]
    public void Parse_Arguments_AreTaken()
    {
        Settings? settings = Settings.Parse(
            ["--root", _root + "/", "--port", "0", "--max-upload", "5M", "--overwrite", "--durable", "--drop-behind"], out string? error);
        Assert.Null(error);
        Assert.Equal(new Settings(_root, 0, 5 << 20, Overwrite: true, Durable: true, DropBehind: true), settings);
    }

    private async Task StartAsync(Settings settings)
    {
        _app = FileServerApplication.Build(settings);
        await _app.StartAsync(_stop);
        _client?.Dispose();
        _client = new HttpClient { BaseAddress = new Uri(_app.Urls.Single() + "/") };
    }

    private string Outside() => string.Join('\n', Directory.EnumerateFileSystemEntries(_folder)
        .Concat(Directory.EnumerateFileSystemEntries(Path.Combine(_folder, "outside")))
        .Order(StringComparer.Ordinal)
        .Select(path => File.Exists(path) ? path + File.ReadAllText(path) : path));

    /// <summary>One request whose target nobody has normalised, and the whole response.</summary>
    private async Task<string> AskAsync(string method, string target)
    {
        using Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        await socket.ConnectAsync(IPAddress.Loopback, new Uri(_app.Urls.Single()).Port, _stop);
        string body = method == "PUT" ? "Content-Length: 5\r\n\r\nwrong" : "\r\n";
        await socket.SendAsync(
            Encoding.Latin1.GetBytes($"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{body}"), _stop);
        StringBuilder response = new();
        byte[] buffer = new byte[64 * 1024];
        try
        {
            int read;
            while ((read = await socket.ReceiveAsync(buffer, _stop)) > 0)
            {
                response.Append(Encoding.Latin1.GetString(buffer, 0, read));
            }
        }
        catch (SocketException)
        {
            // Refused with the body unread.
        }

        return response.ToString();
    }
}
