using System.Net;
using System.Net.Http.Headers;

namespace FilePipelines.Repository.Tests;

/// <summary>What README.md and the other pages show, compiled and run as it stands there.</summary>
public sealed partial class DocumentationTests(ExampleProgram program) : IClassFixture<ExampleProgram>, IDisposable
{
    private readonly string _folder = Directory.CreateTempSubdirectory("example-").FullName;
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public static TheoryData<string> Programs
        => [.. ExampleProgram.Examples.Values.Where(example => example.IsRun).Select(example => example.Name)];

    public static TheoryData<string> Servers
        => [.. ExampleProgram.Examples.Values.Where(example => example.IsServer).Select(example => example.Name)];

    public void Dispose() => Directory.Delete(_folder, recursive: true);

    [Theory]
    [MemberData(nameof(Programs))]
    public async Task Program_OfThePage_PrintsWhatItSays(string name)
    {
        Example example = ExampleProgram.Examples[name];
        await File.WriteAllTextAsync(Path.Combine(_folder, "access.log"), "GET / 200 12\nGET /a 500 0\r\nGET /b 500 0", _stop);
        await File.WriteAllTextAsync(Path.Combine(_folder, "events.ndjson"),
            "{\"id\":1,\"amount\":10}\n{\"id\":2,\"amount\":20}\n{\"id\":3,\"amount\":30}\n", _stop);
        await File.WriteAllBytesAsync(Path.Combine(_folder, "records.bin"), [10, 0, 0, 0, 20, 0, 0, 0, 30, 0, 0, 0], _stop);
        using Process process = program.Start(example, _folder);
        Task<string> errors = process.StandardError.ReadToEndAsync(_stop);
        string output = await process.StandardOutput.ReadToEndAsync(_stop).WaitAsync(Eventually.Limit, _stop);
        await process.WaitForExitAsync(_stop);
        Assert.True(process.ExitCode == 0, output + await errors);
        Assert.Contains(example.Prints ?? string.Empty, output, StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(Servers))]
    public async Task Server_OfThePage_ServesAndReceives(string name)
    {
        using Process process = program.Start(ExampleProgram.Examples[name], _folder);
        try
        {
            Uri address = await AddressOfAsync(process).WaitAsync(Eventually.Limit, _stop);
            using HttpClient client = new() { BaseAddress = address };
            byte[] content = FileTree.Content(300_000);
            using HttpResponseMessage made = await client.PutAsync("upload/a%20film.mp4", new ByteArrayContent(content), _stop);
            Assert.Equal((HttpStatusCode.Created, "/files/a%20film.mp4", "300000"),
                (made.StatusCode, made.Headers.Location!.ToString(), await made.Content.ReadAsStringAsync(_stop)));
            Assert.Equal(content, await client.GetByteArrayAsync(made.Headers.Location, _stop));
            using HttpRequestMessage part =
                new(HttpMethod.Get, made.Headers.Location) { Headers = { Range = new RangeHeaderValue(10, 19) } };
            using HttpResponseMessage partial = await client.SendAsync(part, _stop);
            Assert.Equal(HttpStatusCode.PartialContent, partial.StatusCode);
            Assert.Equal(content[10..20], await partial.Content.ReadAsByteArrayAsync(_stop));

            Assert.Equal("no-cache", partial.Headers.GetValues("Cache-Control").Single());
            Assert.Equal("nosniff", partial.Headers.GetValues("X-Content-Type-Options").Single());
            Assert.Equal("same-origin", partial.Headers.GetValues("Cross-Origin-Resource-Policy").Single());

            Assert.Equal(HttpStatusCode.BadRequest, await PutAsync("upload/" + new string('n', 256), new ByteArrayContent([1])));
            Assert.Equal(HttpStatusCode.Conflict, await PutAsync("upload/a%20film.mp4", new ByteArrayContent([1])));
            Assert.Equal(HttpStatusCode.BadRequest, await PutAsync("upload/.hidden", new ByteArrayContent([1])));
            Assert.Equal(HttpStatusCode.BadRequest, await PutAsync("upload/..%2Ffilm.mp4", new ByteArrayContent([1])));
            Assert.Equal(HttpStatusCode.UnsupportedMediaType,
                await PutAsync("upload/form.bin", new MultipartFormDataContent { { new ByteArrayContent([1]), "file", "f.bin" } }));
            using HttpRequestMessage large =
                new(HttpMethod.Put, "upload/large.bin") { Content = new LongContent((1L << 30) + 1), Headers = { ExpectContinue = true } };
            using HttpResponseMessage refused = await client.SendAsync(large, _stop);
            Assert.Equal(HttpStatusCode.RequestEntityTooLarge, refused.StatusCode);
            Assert.Equal(HttpStatusCode.NotFound, (await client.GetAsync("files/none.bin", _stop)).StatusCode);
            Assert.Equal(["a film.mp4"], Directory.EnumerateFileSystemEntries(Path.Combine(_folder, "files"), "*",
                new EnumerationOptions { AttributesToSkip = 0 }).Select(path => Path.GetFileName(path)));

            async Task<HttpStatusCode> PutAsync(string target, HttpContent body)
            {
                using HttpResponseMessage response = await client.PutAsync(target, body, _stop);
                return response.StatusCode;
            }
        }
        finally
        {
            process.Kill();
            await process.WaitForExitAsync(_stop);
        }
    }

    [Fact]
    public void Pages_AllOfThem_AreLookedThrough()
    {
        Assert.InRange(Servers.Count, 1, int.MaxValue);
        foreach (string page in new[] { "README.md", "docs/parsers.md", "src/Pipelines.File/README.md" })
        {
            Assert.Contains(ExampleProgram.Examples.Keys, name => name.StartsWith(page + ":", StringComparison.Ordinal));
        }
    }

    [Fact]
    public void Cookbook_EveryRecipe_IsRunAndShort()
    {
        Example[] recipes = [.. ExampleProgram.Examples.Values.Where(
            example => example.Name.StartsWith("docs/cookbook.md:", StringComparison.Ordinal))];
        Assert.NotEmpty(recipes);
        Assert.All(recipes, recipe => Assert.True(
            recipe is { Lines: <= 25, Prints: not null } or { Lines: <= 25, IsServer: true }, $"{recipe.Name}: {recipe.Lines} lines"));
    }

    private async Task<Uri> AddressOfAsync(Process process)
    {
        while (await process.StandardOutput.ReadLineAsync(_stop) is { } line)
        {
            if (Listening().Match(line) is { Success: true } match)
            {
                _ = process.StandardOutput.ReadToEndAsync(CancellationToken.None);
                return new Uri(match.Groups[1].Value + "/");
            }
        }

        throw new InvalidOperationException("The server has ended: " + await process.StandardError.ReadToEndAsync(_stop));
    }

    [GeneratedRegex(@"Now listening on: (http://\S+)")]
    private static partial Regex Listening();

    /// <summary>Says how long it is, and is never sent.</summary>
    private sealed class LongContent(long length) : HttpContent
    {
        protected override Task SerializeToStreamAsync(Stream stream, TransportContext? context)
            => throw new InvalidOperationException("The server has asked for it.");

        protected override bool TryComputeLength(out long computed)
        {
            computed = length;
            return true;
        }
    }
}
