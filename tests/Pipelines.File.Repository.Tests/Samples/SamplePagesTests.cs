using System.Net;
using System.Security.Cryptography;
using FilePipelines.AspNetCore.Tests.Resumable;
using FileServerSample;
using Microsoft.AspNetCore.Builder;

namespace FilePipelines.Repository.Tests;

/// <summary>samples/FileServer: names of every kind, folders that change, and what an upload may ask for.</summary>
public sealed partial class SamplePagesTests : IAsyncLifetime
{
    private readonly string _root = Directory.CreateTempSubdirectory("file-server-").FullName;
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;
    private WebApplication _app = null!;
    private HttpClient _client = null!;

    public async ValueTask InitializeAsync()
    {
        _app = FileServerApplication.Build(new Settings(_root, Port: 0, Overwrite: true));
        await _app.StartAsync(_stop);
        _client = new HttpClient { BaseAddress = new Uri(_app.Urls.Single() + "/files/") };
    }

    public async ValueTask DisposeAsync()
    {
        _client.Dispose();

        // Only that closes what it keeps open at once.
        _app.Lifetime.StopApplication();
        await _app.DisposeAsync();
        using Process removed = Process.Start("rm", ["-rf", _root]);
        await removed.WaitForExitAsync(CancellationToken.None);
    }

    [Fact]
    public async Task Get_FolderWithANameThatIsNoUtf8_ShowsTheOthers()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Such names are only to be had there.");
        await File.WriteAllTextAsync(Path.Combine(_root, "good.txt"), "x", _stop);
        const string Make = "touch \"$(printf 'bad\\377name')\" && mkdir \"$(printf 'folder\\377')\" && ln -s nowhere dangling";
        using Process made = Process.Start(new ProcessStartInfo("sh", ["-c", Make]) { WorkingDirectory = _root })!;
        await made.WaitForExitAsync(_stop);
        Assert.Equal(["good.txt"], await NamesAsync(""));
    }

    [Theory]
    [InlineData("fifo"), InlineData("folder")]
    public async Task Put_OnWhatIsNoFile_Is409_WhichTellsIt(string name)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It calls mkfifo.");
        using Process made = Process.Start(new ProcessStartInfo("sh", ["-c", "mkfifo fifo && mkdir folder"]) { WorkingDirectory = _root })!;
        await made.WaitForExitAsync(_stop);
        using HttpResponseMessage answer = await _client.PutAsync(name, new ByteArrayContent([1]), _stop)
            .WaitAsync(Eventually.Limit, _stop);
        Assert.Equal(HttpStatusCode.Conflict, answer.StatusCode);
        Assert.Equal("What has that name is no file, and is not replaced.\n", await answer.Content.ReadAsStringAsync(_stop));
        Assert.Equal(2, Directory.EnumerateFileSystemEntries(_root).Count(path => Path.GetFileName(path)[0] != '.'));
    }

    [Fact]
    public async Task Put_OnAFullDisk_Is507_WhichTellsIt_AndTheNextOneIsSaved()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux() && Environment.IsPrivilegedProcess, "Only root mounts a small file system.");
        string full = Path.Combine(_root, "full");
        Directory.CreateDirectory(full);
        using Process mount = Process.Start("mount", ["-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", full]);
        await mount.WaitForExitAsync(_stop);
        Assert.SkipUnless(mount.ExitCode == 0, "A file system cannot be mounted here.");
        try
        {
            using HttpResponseMessage answer = await _client.PutAsync("full/large", new ByteArrayContent(new byte[2_000_000]), _stop);
            Assert.Equal(HttpStatusCode.InsufficientStorage, answer.StatusCode);
            Assert.Equal("There is no room for the file.\n", await answer.Content.ReadAsStringAsync(_stop));
            Assert.Empty(Directory.EnumerateFileSystemEntries(full));
            using HttpResponseMessage next = await _client.PutAsync("full/small", new ByteArrayContent([1]), _stop);
            Assert.Equal(HttpStatusCode.Created, next.StatusCode);
        }
        finally
        {
            using Process unmount = Process.Start("umount", ["-l", full]);
            await unmount.WaitForExitAsync(CancellationToken.None);
        }
    }

    [Fact]
    public async Task Get_FolderWhoseFilesComeAndGo_IsShown()
    {
        using CancellationTokenSource enough = new();
        Task changing = Task.Run(
            () =>
            {
                for (int i = 0; !enough.IsCancellationRequested; i++)
                {
                    File.WriteAllText(Path.Combine(_root, $"{i % 50}.txt"), "x");
                    File.Delete(Path.Combine(_root, $"{(i + 25) % 50}.txt"));
                }
            },
            _stop);
        for (int i = 0; i < 100; i++)
        {
            using HttpResponseMessage response = await _client.GetAsync("", _stop);
            Assert.Equal(HttpStatusCode.OK, response.StatusCode);
        }

        await enough.CancelAsync();
        await changing;
    }

    [Fact]
    public async Task Get_FolderOfManyNames_ShowsThemInParts()
    {
        string[] names = [.. Enumerable.Range(0, (2 * FolderPage.PageSize) + 50).Select(i => $"{i:d4}.txt")];
        foreach (string name in names)
        {
            await File.WriteAllTextAsync(Path.Combine(_root, name), "x", _stop);
        }

        Assert.Equal(names[..FolderPage.PageSize], await NamesAsync(""));
        Assert.Equal(names[FolderPage.PageSize..(2 * FolderPage.PageSize)], await NamesAsync("?page=2"));
        Assert.Equal(names[(2 * FolderPage.PageSize)..], await NamesAsync("?page=3"));
        Assert.Empty(await NamesAsync("?page=4"));
        Assert.Empty(await NamesAsync("?page=2147483647"));
        Assert.Equal(names[..FolderPage.PageSize], await NamesAsync("?page=-1"));
    }

    [Theory]
    [InlineData("a%252fb", "a%2fb")]
    [InlineData("100%25", "100%")]
    [InlineData("%2525", "%25")]
    [InlineData("%28%29%21%27%2A", "()!'*")]
    [InlineData("()!'*", "()!'*")]
    public async Task Put_NameWithSigns_IsListedAndServed(string encoded, string name)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Such names are not to be had there.");
        Uri target = new(
            _client.BaseAddress!.AbsoluteUri + encoded, new UriCreationOptions { DangerousDisablePathAndQueryCanonicalization = true });
        using HttpResponseMessage made = await _client.PutAsync(target, new ByteArrayContent("content"u8.ToArray()), _stop);
        Assert.Equal(HttpStatusCode.Created, made.StatusCode);
        Assert.Equal([name], Directory.EnumerateFiles(_root).Select(Path.GetFileName));
        Assert.Equal([name], await NamesAsync(""));
        Assert.Equal("content", await _client.GetStringAsync(target, _stop));
        Assert.Equal("content", await _client.GetStringAsync(made.Headers.Location, _stop));
    }

    [Theory]
    [InlineData("a%2fb"), InlineData("a%FFb"), InlineData("a%zzb"), InlineData("a%EF%BF%BDb")]
    public async Task AnyMethod_NoName_IsNotFound(string encoded)
    {
        Uri target = new(
            _client.BaseAddress!.AbsoluteUri + encoded, new UriCreationOptions { DangerousDisablePathAndQueryCanonicalization = true });
        using HttpResponseMessage made = await _client.PutAsync(target, new ByteArrayContent([1]), _stop);
        Assert.InRange((int)made.StatusCode, 400, 404);
        AssertNothingIsSaved();
    }

    [Theory]
    [InlineData("target", "/files/.hidden", 404)]
    [InlineData("target", "/files/.uploads/0123456789abcdef0123456789abcdef.json", 404)]
    [InlineData("target", "/files/../outside", 404)]
    [InlineData("target", "/files/none/f.txt", 404)]
    [InlineData("target", "/files/a%2fb", 404)]
    [InlineData("target", "/files/", 404)]
    [InlineData("target", "/etc/passwd", 404)]
    [InlineData("target", "", 404)]
    [InlineData("filename", "../outside", 404)]
    [InlineData("filename", "", 404)]
    [InlineData("filename", "a \u2713 %41.txt", 201)]
    public async Task Upload_OfAnyName_StaysInTheFolder(string key, string name, int status)
    {
        TusAnswer answer = await UploadAsync(key, name);
        Assert.Equal(status, answer.Status);
        if (status == 201)
        {
            Assert.Equal("hello", await File.ReadAllTextAsync(Path.Combine(_root, name), _stop));
            File.Delete(Path.Combine(_root, name));
        }

        AssertNothingIsSaved();
    }

    private Task<TusAnswer> UploadAsync(string key, string name)
        => TusAnswer.SendAsync(_client, "POST", new Uri(_client.BaseAddress!, "/uploads"), new ByteArrayContent("hello"u8.ToArray()),
            ("Upload-Length", "5"), ("Upload-Metadata", $"{key} {Convert.ToBase64String(Encoding.UTF8.GetBytes(name))}"));

    // The state of a finished upload stays for clients that have missed the answer.
    private void AssertNothingIsSaved()
    {
        string unfinished = Path.Combine(_root, ".uploads");
        Assert.Equal([unfinished], Directory.EnumerateFileSystemEntries(_root));
        Assert.All(Directory.EnumerateFiles(unfinished), path => Assert.EndsWith(".json", path, StringComparison.Ordinal));
    }

    [Theory]
    [InlineData("a=(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false)]
    [InlineData("a=(1111111111111111111111111111111111111111", false)]
    [InlineData("a=(                                        a", false)]
    [InlineData("a=(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa  1  )", true)]
    [InlineData("a=()", true)]
    [InlineData("a=(   )", true)]
    [InlineData("a=(a1 \"b\"), sha-256=:AAAA:", true)]
    [InlineData("a=(a\"b\")", false)]
    public async Task ContentDigest_OfAnyText_IsParsedAtOnce(string header, bool isRight)
    {
        // A pattern that may divide the same text in many ways would take for ever.
        Task<bool> parsing = Task.Run(() => ContentDigest.TryParse(header, out _), _stop);
        Assert.Equal(isRight, await parsing.WaitAsync(Eventually.Limit, _stop));
    }

    [Theory]
    [InlineData(255, HttpStatusCode.Created), InlineData(256, HttpStatusCode.BadRequest), InlineData(4000, HttpStatusCode.BadRequest)]
    public async Task Put_LongName_IsTheClientsMistake(int length, HttpStatusCode status)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Paths have other limits there.");
        using HttpResponseMessage made = await _client.PutAsync(new string('n', length), new ByteArrayContent([1]), _stop);
        Assert.Equal(status, made.StatusCode);
    }

    [Fact]
    public async Task Put_Preconditions_AreHonoured()
    {
        Assert.Equal(HttpStatusCode.Created, await PutAsync("f.txt", "1", ("If-None-Match", "*")));
        Assert.Equal(HttpStatusCode.PreconditionFailed, await PutAsync("f.txt", "2", ("If-None-Match", "*")));
        using HttpResponseMessage first = await _client.GetAsync("f.txt", _stop);
        string tag = first.Headers.ETag!.ToString();
        Assert.Equal(HttpStatusCode.OK, await PutAsync("f.txt", "3", ("If-Match", tag)));
        Assert.Equal(HttpStatusCode.PreconditionFailed, await PutAsync("f.txt", "4", ("If-Match", tag)));
        Assert.Equal("3", await _client.GetStringAsync("f.txt", _stop));
    }

    [Fact]
    public async Task Put_ContentDigest_IsCompared()
    {
        string digest = $"sha-256=:{Convert.ToBase64String(SHA256.HashData("right"u8))}:";
        Assert.Equal(HttpStatusCode.Created, await PutAsync("f.txt", "right", ("Content-Digest", "md5=:AAAA:, " + digest)));
        Assert.Equal(HttpStatusCode.UnprocessableEntity, await PutAsync("g.txt", "wrong", ("Content-Digest", digest)));
        Assert.Equal(["f.txt"], Directory.EnumerateFiles(_root).Select(Path.GetFileName));
        Assert.Matches("(?m)^fileserver_received_total [1-9][0-9]*$", await _client.GetStringAsync("/metrics", _stop));
    }

    [Theory]
    [InlineData("sha-256=R;a=1;b=\"x, y\", unknown=:AAAA:, sha-512=S", HttpStatusCode.Created)]
    [InlineData("sha-256=W, sha-256=R", HttpStatusCode.Created)]
    [InlineData("sha-256=R, sha-256=W", HttpStatusCode.UnprocessableEntity)]
    [InlineData("sha-256=R, sha-512=W", HttpStatusCode.UnprocessableEntity)]
    [InlineData("sha-512=S", HttpStatusCode.Created)]
    [InlineData("unknown, other=(1 2.5 ?1), more=token;p", HttpStatusCode.Created)]
    [InlineData("sha-256=W;a=1", HttpStatusCode.UnprocessableEntity)]
    [InlineData("sha-256=R,", HttpStatusCode.BadRequest)]
    [InlineData("sha-256=token", HttpStatusCode.BadRequest)]
    [InlineData("sha-256", HttpStatusCode.BadRequest)]
    [InlineData("SHA-256=:AAAA:", HttpStatusCode.BadRequest)]
    [InlineData("sha-256=:not base64:", HttpStatusCode.BadRequest)]
    public async Task Put_ContentDigest_IsParsedAsADictionary(string header, HttpStatusCode status)
    {
        // R and S are those of the content, and W is another's.
        string value = header.Replace("=R", $"=:{Convert.ToBase64String(SHA256.HashData("right"u8))}:", StringComparison.Ordinal)
            .Replace("=S", $"=:{Convert.ToBase64String(SHA512.HashData("right"u8))}:", StringComparison.Ordinal)
            .Replace("=W", $"=:{Convert.ToBase64String(SHA256.HashData("wrong"u8))}:", StringComparison.Ordinal);
        Assert.Equal(status, await PutAsync("f.txt", "right", ("Content-Digest", value)));
        Assert.Equal(status == HttpStatusCode.Created, File.Exists(Path.Combine(_root, "f.txt")));
    }

    [Fact]
    public void List_AnyPart_IsThatOfTheSortedNames()
    {
        Random random = new(1);
        string[] names = [.. Enumerable.Range(0, 300).Select(_ => $"{(random.Next(2) == 0 ? "a" : "B")}{random.Next(1000)}").Distinct()];
        foreach (string name in names)
        {
            if (random.Next(4) == 0)
            {
                Directory.CreateDirectory(Path.Combine(_root, name));
            }
            else
            {
                File.WriteAllBytes(Path.Combine(_root, name), []);
            }
        }

        string[] sorted = [.. names.OrderBy(name => File.Exists(Path.Combine(_root, name)))
            .ThenBy(name => name, StringComparer.OrdinalIgnoreCase).ThenBy(name => name, StringComparer.Ordinal)];
        foreach ((int skip, int take) in new[]
        {
            (0, 10), (7, 13), (names.Length - 3, 10), (names.Length, 5), (int.MaxValue, 5), (0, 1000),
        })
        {
            Assert.Equal(sorted.Skip(skip).Take(take), ServedFolder.List(_root, skip, take, out int count).Select(entry => entry.Name));
            Assert.Equal(names.Length, count);
        }
    }

    [Fact]
    [System.Runtime.Versioning.UnsupportedOSPlatform("windows")]
    public async Task Get_FolderThatCannotBeRead_Is403()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux() && Environment.UserName != "root", "The superuser needs no permission.");
        File.SetUnixFileMode(Directory.CreateDirectory(Path.Combine(_root, "closed")).FullName, UnixFileMode.None);
        using HttpResponseMessage response = await _client.GetAsync("closed/", _stop);
        Assert.Equal(HttpStatusCode.Forbidden, response.StatusCode);
        Assert.DoesNotContain("   at ", await response.Content.ReadAsStringAsync(_stop), StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("page.html", true)]
    [InlineData("picture.svg", true)]
    [InlineData("picture.png", false)]
    [InlineData("film.mp4", false)]
    [InlineData("what", true)]
    public async Task Get_File_HasTheHeadersThatUploadsNeed(string name, bool isSandboxed)
    {
        await File.WriteAllTextAsync(Path.Combine(_root, name), "x", _stop);
        using HttpResponseMessage response = await _client.GetAsync(name, _stop);
        Assert.Equal("no-cache", response.Headers.GetValues("Cache-Control").Single());
        Assert.Equal("nosniff", response.Headers.GetValues("X-Content-Type-Options").Single());
        Assert.Equal("same-origin", response.Headers.GetValues("Cross-Origin-Resource-Policy").Single());
        Assert.Equal(isSandboxed, response.Headers.TryGetValues("Content-Security-Policy", out IEnumerable<string>? policy)
            && policy.Single().StartsWith("sandbox", StringComparison.Ordinal));
    }

    private async Task<HttpStatusCode> PutAsync(string name, string content, (string Name, string Value) header)
    {
        using HttpRequestMessage request = new(HttpMethod.Put, name) { Content = new StringContent(content) };
        Assert.True(request.Headers.TryAddWithoutValidation(header.Name, header.Value));
        using HttpResponseMessage response = await _client.SendAsync(request, _stop);
        return response.StatusCode;
    }

    private async Task<IEnumerable<string>> NamesAsync(string target)
        => Row().Matches(await _client.GetStringAsync(target, _stop)).Select(row => WebUtility.HtmlDecode(row.Groups[1].Value));

    [GeneratedRegex("<tr class=\"[a-z]+\"><td><a href=\"[^\"]*\">([^<]*)</a>")]
    private static partial Regex Row();
}
